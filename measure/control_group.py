"""Limits of the control group that this process runs in (Linux, both versions of the hierarchy)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_NO_LIMIT_BYTES = 2**60
"""The first version writes "no limit" as the largest whole number of pages."""


def quota_cores(root: Path = Path("/")) -> float | None:
    """Cores allowed by the smallest quota on the way up from this process's group; None: no limit."""
    quotas = []
    for folder in _own_groups(root):
        quotas += _quota_v2(root / "sys/fs/cgroup" / folder / "cpu.max")
        quotas += _quota_v1(root / "sys/fs/cgroup/cpu" / folder)
    return min(quotas, default=None)


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """Bytes allowed by the smallest limit on the way up from this process's group; None: no limit."""
    limits = []
    for folder in _own_groups(root):
        for name in (f"{folder}/memory.max", f"memory/{folder}/memory.limit_in_bytes"):
            text = read_text(root / "sys/fs/cgroup" / name).strip()
            limits += [int(text)] if text.isdigit() and int(text) < _NO_LIMIT_BYTES else []
    return min(limits, default=None)


def throttled_s(root: Path = Path("/")) -> float | None:
    """Seconds that this process's groups were held back since they were made; None where nothing says so."""
    found = []
    for folder in _own_groups(root):
        for name in (f"{folder}/cpu.stat", f"cpu/{folder}/cpu.stat"):
            text = read_text(root / "sys/fs/cgroup" / name)
            found += [int(t) * 1e-6 for t in re.findall(r"^throttled_usec (\d+)$", text, re.MULTILINE)]
            found += [int(t) * 1e-9 for t in re.findall(r"^throttled_time (\d+)$", text, re.MULTILINE)]
    return max(found, default=None)


def memory_kills(root: Path = Path("/")) -> int | None:
    """Processes that the kernel ended in this process's group because memory ran out; None where nothing says so."""
    for folder in sorted(_own_groups(root), key=lambda path: len(path.parts), reverse=True):
        for name in (f"{folder}/memory.events", f"memory/{folder}/memory.oom_control"):
            if found := re.search(r"^oom_kill (\d+)$", read_text(root / "sys/fs/cgroup" / name), re.MULTILINE):
                return int(found[1])
    return None


def read_text(path: Path) -> str:
    """Text of a file; empty where it is not there or not ours to read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _own_groups(root: Path) -> Iterator[Path]:
    """This process's groups and all above them."""
    text = read_text(root / "proc/self/cgroup")
    # Inside a container the group's path is often that of the host; its own limit then stands at the root.
    groups = {Path(line.split(":", 2)[2].lstrip("/")) for line in text.splitlines() if line.count(":") >= 2} | {Path()}
    yield from {folder for group in groups for folder in (group, *group.parents)}


def _quota_v2(path: Path) -> list[float]:
    values = read_text(path).split()
    return [int(values[0]) / int(values[1])] if len(values) == 2 and values[0].isdigit() else []


def _quota_v1(folder: Path) -> list[float]:
    quota, period = read_text(folder / "cpu.cfs_quota_us").strip(), read_text(folder / "cpu.cfs_period_us").strip()
    return [int(quota) / int(period)] if quota.isdigit() and period.isdigit() else []
