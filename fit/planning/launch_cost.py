"""What measuring costs beside the calls: starting a launch and compiling, read from a record."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ...data.store import Record
from ...model.cell import QUEUED_ROLES

ASSUMED_START_S = 3.0
ASSUMED_PROGRAM_S = 0.1
ASSUMED_CALLS = 10
ASSUMED_WARMUPS = 2
"""Where the record does not say: imports and the backend's start; building one program; calls of a visit, timed and
discarded."""
VISIT_OVERHEAD_S = 1e-4


@dataclass(frozen=True, kw_only=True)
class LaunchCost:
    """Seconds of a launch that are not calls, and how many calls a visit has.

    Attributes
    ----------
    start_s : of a launch, whatever it measures
    program_s : to build and compile one program
    calls, warmups : timed and discarded calls of a visit
    queued_calls : calls queued once in every visit of the workload and of null
    assumed : what the record does not say, in words
    """

    start_s: float = ASSUMED_START_S
    program_s: float = ASSUMED_PROGRAM_S
    calls: int = ASSUMED_CALLS
    warmups: int = ASSUMED_WARMUPS
    queued_calls: int = 4
    assumed: tuple[str, ...] = ()

    def startup_s(self, programs: int) -> float:
        """Until everything is compiled."""
        return self.start_s + programs * self.program_s

    def calls_of(self, role: str) -> int:
        """All calls of one visit."""
        return self.warmups + self.calls + (self.queued_calls if role in QUEUED_ROLES else 0)


def launch_cost(record: Record) -> LaunchCost:
    """Read the cost of a launch from the time stamps between launches.

    From the end of one launch to the first visit of the next one, a process ends, another starts and compiles. The
    median over launches is not moved by a sweep that was interrupted and went on a day later.
    """
    plan = record.sweeps[0].plan
    compiled: dict[tuple[str, str], list[float]] = defaultdict(list)
    for program in record.programs:
        if program.compile_s is not None:
            compiled[program.sweep, program.launch].append(program.compile_s)
    every = [seconds for times in compiled.values() for seconds in times]
    program_s = sum(every) / len(every) if every else ASSUMED_PROGRAM_S
    gaps = [gap for gap in _gaps(record) if gap > 0]
    programs = len(record.programs) / max(1, len(record.launches))
    counts = [len(v.latency_ns) - v.warmups for v in record.visits if len(v.latency_ns) > v.warmups]
    foreign = all(sweep.foreign for sweep in record.sweeps)
    assumed = []
    if not gaps:
        assumed.append(f"a launch starts in {ASSUMED_START_S:g} s (not in the record)")
    if not every:
        assumed.append(f"a program compiles in {ASSUMED_PROGRAM_S:g} s (not in the record)")
    return LaunchCost(
        start_s=max(0.0, median(gaps) - programs * program_s) if gaps else ASSUMED_START_S,
        program_s=program_s,
        calls=max(1, round(median(counts))) if counts and not foreign else ASSUMED_CALLS,
        warmups=_warmups(record) if plan.warmups is None else plan.warmups,
        queued_calls=plan.queued_calls,
        assumed=tuple(assumed),
    )


def _warmups(record: Record) -> int:
    """Of a typical visit: launches may differ in it."""
    found = [visit.warmups for visit in record.visits]
    return ASSUMED_WARMUPS if not found else round(median(found))


def _gaps(record: Record) -> list[float]:
    """Seconds from the last visit of a launch to the first of the next, within a sweep."""
    first: dict[tuple[str, str], float] = {}
    last: dict[tuple[str, str], float] = {}
    for visit in record.visits:
        key = visit.sweep, visit.launch
        first.setdefault(key, visit.time)
        last[key] = visit.time + sum(visit.latency_ns) * 1e-9
    return [first[b] - last[a] for a, b in pairwise(first) if a[0] == b[0]]
