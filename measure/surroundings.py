"""What happens around a launch while it measures: other load, throttling, clocks that jump, a machine that sleeps."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..data.schema import Closing
from .control_group import read_text, throttled_s
from .devices import MEASURING
from .machine import affinity, cores_in, frequency_mhz

_BUSY = ("user", "nice", "system", "irq", "softirq")
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Counters of the machine at one moment; ``closing`` says what happened between two of them.

    Attributes
    ----------
    monotonic_s, wall_s, boot_s : the clock that stands still while the machine sleeps, the calendar's, and the one
        that goes on; None: the system has no such clock
    busy_s, stolen_s, all_s : of the cores that this process may use, since the start of the machine
    own_s : on them, processor time of all processes of this launch, and of those that started them; None also where
        one of them may run on other cores too, so that its share on these is not known
    throttled_s, heat_throttles : of the control group and of the cores, since they exist
    """

    monotonic_s: float
    wall_s: float
    boot_s: float | None
    busy_s: float | None
    stolen_s: float | None
    all_s: float | None
    own_s: float | None
    throttled_s: float | None
    heat_throttles: int | None
    frequency_mhz: tuple[float, float] | None

    @classmethod
    def now(cls, *, cores: Iterable[int] | None = None, root: Path = Path("/")) -> Self:
        """Read all of them.

        Parameters
        ----------
        cores : that count; default: those this process may run on
        root : where ``proc`` and ``sys`` lie
        """
        cores = affinity() if cores is None else tuple(cores)
        times = _core_times(cores, root)
        return cls(
            monotonic_s=time.monotonic(),
            wall_s=time.time(),
            boot_s=time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else None,
            busy_s=None if times is None else sum(times[name] for name in _BUSY) * _TICK_S,
            stolen_s=None if times is None else times["steal"] * _TICK_S,
            all_s=None if times is None else sum(times.values()) * _TICK_S,
            own_s=_own_s(cores, root),
            throttled_s=throttled_s(root),
            heat_throttles=_heat_throttles(cores, root),
            frequency_mhz=frequency_mhz(cores, root),
        )

    def closing(self, end: Surroundings, *, sweep: str, launch: str) -> Closing:
        """What happened from here to ``end``.

        Notes
        -----
        The kernel counts processor time in ticks (10 ms as a rule), so what others did in a launch of a second is
        known to a few hundredths of a core.
        """
        seconds = end.monotonic_s - self.monotonic_s
        busy = _difference(self.busy_s, end.busy_s)
        own = _difference(self.own_s, end.own_s)
        stolen, whole = _difference(self.stolen_s, end.stolen_s), _difference(self.all_s, end.all_s)
        awake = _difference(self.boot_s, end.boot_s)
        heat = _difference(self.heat_throttles, end.heat_throttles)
        return Closing(
            sweep=sweep,
            launch=launch,
            seconds=seconds,
            others_busy_cores=max(0.0, busy - own) / seconds if busy is not None and own is not None else None,
            stolen_share=stolen / whole if stolen is not None and whole else None,
            throttled_s=_difference(self.throttled_s, end.throttled_s),
            heat_throttles=None if heat is None else int(heat),
            frequency_mhz=end.frequency_mhz,
            clock_jump_s=end.wall_s - self.wall_s - (seconds if awake is None else awake),
            suspended_s=None if awake is None else max(0.0, awake - seconds),
        )


def _difference(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start


def _core_times(cores: Iterable[int], root: Path) -> dict[str, int] | None:
    """Ticks by kind, summed over cores; None where nothing says so."""
    lines = re.findall(r"^cpu(\d+) (.*)$", read_text(root / "proc/stat"), re.MULTILINE)
    allowed = set(cores)
    counted = [[int(field) for field in fields.split()] for core, fields in lines if int(core) in allowed]
    if not counted:
        return None
    # Guests' time, behind the first eight columns, is contained in that of users.
    return {name: sum(fields[i] for fields in counted) for i, name in enumerate(_COLUMNS)}


def _own_s(cores: Iterable[int], root: Path) -> float | None:
    """Processor time of this launch's processes, known by their environment, and of the parents that watch them.

    What a process has waited for is counted with it, except for the parents: their earlier launches are over. One that
    is bound to none of the cores takes no time of theirs.
    """
    counted = set(cores)
    launch = os.environ.get(MEASURING)
    mark = f"{MEASURING}={launch}".encode()
    own, parents, ticks = set[str](), set[str](), 0
    for folder in (root / "proc").glob("[0-9]*"):
        try:
            ours = launch is not None and mark in (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # ended meanwhile, or another user's
            continue
        if (ours or folder.name == str(os.getpid())) and (fields := _stat(folder)):
            own.add(folder.name)
            parents.add(fields[1])
            if (share := _share(folder, counted)) is None:
                return None
            ticks += share * sum(map(int, fields[11:15]))
    if not own:
        return None
    for parent in parents - own - {"0"}:
        if (share := _share(root / "proc" / parent, counted)) is None:
            return None
        ticks += share * sum(map(int, _stat(root / "proc" / parent)[11:13]))
    return ticks * _TICK_S


def _share(process: Path, cores: set[int]) -> int | None:
    """1: it runs on these cores only, 0: on none of them; None: on others too. 1 where the system does not say."""
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", read_text(process / "status"), re.MULTILINE)
    allowed = cores_in(found[1]) if found else cores
    return 1 if allowed <= cores else None if allowed & cores else 0


def _stat(process: Path) -> list[str]:
    """Fields of a process from its state on; its name before that may hold anything, spaces and brackets too."""
    return read_text(process / "stat").rpartition(")")[2].split()


def _heat_throttles(cores: Iterable[int], root: Path) -> int | None:
    folder = root / "sys/devices/system/cpu"
    texts = [read_text(folder / f"cpu{core}/thermal_throttle/core_throttle_count").strip() for core in cores]
    counts = [int(text) for text in texts if text.isdigit()]
    return sum(counts) if counts else None
