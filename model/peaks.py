"""The most that a device can do: published rates, so that a time which implies more is known to be wrong."""

from __future__ import annotations

_RATES = (
    ("b200", 9.0e15, 8.0e12),
    ("h200", 1.979e15, 4.8e12),
    ("h100", 1.979e15, 3.94e12),
    ("a100", 6.24e14, 2.04e12),
    ("v100", 1.3e14, 1.13e12),
    ("tpu v6", 1.836e15, 1.64e12),
    ("tpu v5 lite", 3.94e14, 8.2e11),
    ("tpu v5e", 3.94e14, 8.2e11),
    ("tpu v5", 9.18e14, 2.77e12),
    ("tpu v4", 2.75e14, 1.23e12),
    ("tpu v3", 1.23e14, 9.0e11),
    ("tpu v2", 4.6e13, 7.0e11),
)
"""By a part of the kind's name: operations and bytes per second."""


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
    Dense, without sparsity, in the fastest format (8 bits where there is one, 4 on B200), whichever variant is fastest;
    TPU v2 and v3 for a chip of two cores. A program in 16 bits reaches half of it, in 32 bits less [1]_ [2]_.

    References
    ----------
    .. [1] What NVIDIA states for V100, A100, H100, H200 and HGX B200; noted from memory.
    .. [2] What Google Cloud states for its TPU versions; those of v4 and v5p (459e12 in bfloat16, 918e12 in 8 bits)
       looked up, the others noted from memory.
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
