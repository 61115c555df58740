"""The most that a device can do: published rates, so that a time which implies more is known to be wrong."""

from __future__ import annotations

_RATES = (
    ("b300", 1.5e16, 8.0e12),
    ("gb200", 1.0e16, 8.0e12),
    ("b200", 9.0e15, 8.0e12),
    ("gh200", 1.979e15, 4.9e12),
    ("h200", 1.979e15, 4.8e12),
    ("h100", 1.979e15, 3.94e12),
    ("a100", 6.24e14, 2.04e12),
    ("v100", 1.3e14, 1.134e12),
    ("tpu7x", 4.614e15, 7.4e12),
    ("tpu v6", 1.84e15, 1.64e12),
    ("tpu v5 lite", 3.94e14, 8.2e11),
    ("tpu v5e", 3.94e14, 8.2e11),
    ("tpu v5", 9.18e14, 2.77e12),
    ("tpu v4", 2.75e14, 1.23e12),
    ("tpu v3", 1.4e14, 9.0e11),
    ("tpu v2", 4.6e13, 7.16e11),
)
"""By a part of the kind's name, the first that fits: operations and bytes per second."""


def peak_flops(device_kind: str | None) -> float | None:
    """The highest dense rate that the maker states for one device, in any number format.

    Parameters
    ----------
    device_kind : str, optional
        As JAX names it (``NVIDIA H100 80GB HBM3``, ``TPU v5 lite``), or a person (``8x TPU v5p``).

    Returns
    -------
    float or None, operations per second
        None for a kind that is not in the table: nothing is said of it then.

    Notes
    -----
    Dense, without sparsity, in 8 bits where the device has them (4 on B200 and B300, where programs use them), of the
    fastest variant (B300 as in GB300, V100 as V100S); TPUs by the chip. Where sources differ, the higher. A program in
    16 bits reaches half of it, in 32 bits less; one in 4 bits could do more on A100 and TPU v5 and v6.

    References
    ----------
    .. [1] What NVIDIA states, as collected by G. Lockwood (glennklockwood.com/garden/processors: A100, H100, B200,
       B300), for V100S in its data sheet; the memory of H100 NVL and GH200 and B300's rate in GB300 from memory.
    .. [2] Google Cloud's pages on TPU v5p, v6e and TPU7x (docs.cloud.google.com/tpu/docs).
    .. [3] The table of TPUs in JAX's Pallas (``jax/_src/pallas/mosaic/tpu_info.py``); the memory of v3 from memory.
    """
    found = _of(device_kind)
    return None if found is None else found[1]


def memory_bandwidth(device_kind: str | None) -> float | None:
    """Bytes per second of one device's memory, by the same sources; None for a kind that is not in the table."""
    found = _of(device_kind)
    return None if found is None else found[2]


def _of(device_kind: str | None) -> tuple[str, float, float] | None:
    kind = (device_kind or "").lower()
    return next((rates for rates in _RATES if rates[0] in kind), None)
