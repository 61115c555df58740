"""The most that the processors of this host can compute: a generous bound from what their flags say."""

from __future__ import annotations

from pathlib import Path

from .control_group import read_text

HIGHEST_CLOCK_HZ = 6.5e9
"""No processor on sale runs faster, whatever its turbo."""

_PER_CYCLE = (
    ("amx_int8", 2048, 64),
    ("amx_bf16", 1024, 64),
    ("avx512f", 256, 64),
    ("avx2", 128, 32),
    ("avx", 64, 16),
    ("i8mm", 512, 64),
    ("asimd", 256, 64),
)
"""Operations of one core and cycle in the fastest number format, and in 32 bits, by the first flag that is there."""


def host_peak_flops(cores: int, *, narrow: bool = True, root: Path = Path("/")) -> float | None:
    """Operations per second that ``cores`` cores cannot exceed.

    Parameters
    ----------
    cores : int
        Cores of the machine, not of the process's affinity: a bound must hold wherever its threads run.
    narrow : bool
        Whether numbers of fewer than 32 bits may be computed with.
    root : Path
        Where ``proc`` lies; tests give another.

    Returns
    -------
    float or None
        None where no flag is known: nothing is said then.

    Notes
    -----
    Two units of the widest vector (512, 256 or 128 bits; eight of 128 bits on Arm), a fused multiply-add counts twice;
    8-bit numbers are four times as fast as float32. A core with AMX makes 2,048 operations a cycle in 8 bits and 1,024
    in bfloat16 [1]_.

    References
    ----------
    .. [1] Intel, "Accelerate Artificial Intelligence (AI) Workloads with Intel Advanced Matrix Extensions", 2022.
    """
    lines = read_text(root / "proc/cpuinfo").splitlines()
    flags = next((line.split() for line in lines if line.lower().startswith(("flags", "features"))), [])
    per_cycle = next((any_format if narrow else wide for flag, any_format, wide in _PER_CYCLE if flag in flags), None)
    return None if per_cycle is None else cores * HIGHEST_CLOCK_HZ * per_cycle
