"""What a process finds around it when a launch begins: cores, limits, frequencies, accelerators, clock."""

from __future__ import annotations

import csv
import os
import platform as host_platform
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from ..data.schema import Machine
from .control_group import memory_limit_bytes, quota_cores, read_text
from .variables import variables

BUS = "pci.bus_id"
"""The driver's name for what tells the accelerators of a host apart."""

_CLOCK_READINGS = 500
_ACCELERATOR_FACTS = (
    *("name", "pstate", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem"),
    *("power.limit", "temperature.gpu", "clocks_throttle_reasons.active", "driver_version", BUS),
)
_ASK_TIMEOUT_S = 10.0


def machine(
    *,
    platform: str = "cpu",
    host: str | None = None,
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
) -> Machine:
    """Read what can be read; the rest stays None or empty.

    Parameters
    ----------
    platform : of the devices; on ``gpu`` the driver is asked for clocks and limits
    host : name to record instead of the host's own
    root : where ``proc`` and ``sys`` lie
    environment : of this process
    """
    cores = affinity()
    return Machine(
        host=host or host_platform.node() or None,
        boot=boot(root),
        affinity=cores,
        quota_cores=quota_cores(root),
        memory_limit_bytes=memory_limit_bytes(root),
        frequency_mhz=frequency_mhz(cores, root),
        governor=_governor(cores, root),
        numa_nodes=_numa_nodes(cores, root),
        accelerators=_accelerators() if platform == "gpu" else (),
        variables=variables(environment),
        clock_resolution_ns=clock_resolution_ns(),
        clock_overhead_ns=clock_overhead_ns(),
    )


def boot(root: Path = Path("/")) -> str | None:
    """Name the running system, the same for all its processes; None where it does not say."""
    return read_text(root / "proc/sys/kernel/random/boot_id").strip() or None


def affinity() -> tuple[int, ...]:
    """Cores that this process may run on, ascending; empty where the system does not say."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def frequency_mhz(cores: Iterable[int], root: Path = Path("/")) -> tuple[float, float] | None:
    """Lowest and highest current frequency of cores, MHz; None where nothing says so."""
    allowed, folder = set(cores), root / "sys/devices/system/cpu"
    texts = [read_text(folder / f"cpu{core}/cpufreq/scaling_cur_freq").strip() for core in allowed]
    found = [int(text) / 1000 for text in texts if text.isdigit()]
    if not found:
        blocks = read_text(root / "proc/cpuinfo").split("\n\n")
        told = (dict(re.findall(r"^(.*?)\s*:\s*(.*)$", block, re.MULTILINE)) for block in blocks)
        found = [float(one["cpu MHz"]) for one in told if "cpu MHz" in one and int(one.get("processor", -1)) in allowed]
    return (min(found), max(found)) if found else None


def clock_overhead_ns(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """Nanoseconds that one reading of the clock takes: the mean over a run, of the quickest of twenty runs."""
    return min(_per_reading_ns(clock) for _ in range(20))


def clock_resolution_ns(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """Smallest step seen between readings of the clock, nanoseconds.

    Not what ``time.get_clock_info`` promises: that is 1 ns on Linux, whatever the hardware counts in.
    """
    readings = [clock() for _ in range(_CLOCK_READINGS)]
    steps = {later - earlier for earlier, later in pairwise(readings)} - {0}
    # The steps are multiples of the clock's tick; each spans whole ticks, so their differences show it.
    distinct = sorted(steps)
    gaps = [b - a for a, b in pairwise(distinct)]
    return float(min([*distinct, *gaps], default=0)) or time.get_clock_info("perf_counter").resolution * 1e9


def _per_reading_ns(clock: Callable[[], int]) -> float:
    start = clock()
    for _ in range(_CLOCK_READINGS):
        clock()
    return (clock() - start) / (_CLOCK_READINGS + 1)


def _governor(cores: Iterable[int], root: Path) -> str | None:
    folder = root / "sys/devices/system/cpu"
    found = {read_text(folder / f"cpu{core}/cpufreq/scaling_governor").strip() for core in cores} - {""}
    return ", ".join(sorted(found)) or None


def _numa_nodes(cores: Iterable[int], root: Path) -> tuple[int, ...]:
    allowed = set(cores)
    nodes = (root / "sys/devices/system/node").glob("node[0-9]*")
    return tuple(sorted(int(node.name[4:]) for node in nodes if allowed & cores_in(read_text(node / "cpulist"))))


def cores_in(text: str) -> set[int]:
    """Cores of a list as the kernel writes it: ``0-3,8``."""
    spans = re.findall(r"(\d+)(?:-(\d+))?", text)
    return {core for first, last in spans for core in range(int(first), int(last or first) + 1)}


def _accelerators() -> tuple[str, ...]:
    """One text a GPU, as ``nvidia-smi`` says it; empty where it is not there or does not answer."""
    query = [f"--query-gpu={','.join(_ACCELERATOR_FACTS)}", "--format=csv,noheader"]
    try:
        asked = subprocess.run(
            ["nvidia-smi", *query], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    rows = csv.reader(asked.stdout.splitlines(), skipinitialspace=True)
    return tuple(", ".join(map(" ".join, zip(_ACCELERATOR_FACTS, row, strict=False))) for row in rows)
