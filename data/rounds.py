"""Which visits of a record count: sweeps that may be pooled, cells not barred, complete rounds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from typing import NamedTuple

from ..model.cell import Cell
from .schema import Sweep, Visit
from .store import Record, RecordError

POOLED_ALIKE = (
    *("workload", "path", "objective", "unit", "platform", "visible_devices"),
    *("devices", "sizes", "strategies", "controls", "probes", "warmups", "queued_calls"),
    *("processes", "sentinel", "pairs", "orders"),
)
"""Fields of the plan in which sweeps must agree to be pooled: those that change a time, its meaning, or the cells."""

BARRING = ("visit", "compile", "build")
"""Stages of a failure that counts against its cell."""


def select_sweeps(record: Record) -> Sweep:
    """Return the plan that the record's sweeps share.

    Raises
    ------
    RecordError
        If sweeps are in it that must not be pooled: they differ in one of ``POOLED_ALIKE``.
    """
    first, *others = record.sweeps
    for other in others:
        for name in POOLED_ALIKE:
            ours, theirs = getattr(first.plan, name), getattr(other.plan, name)
            if ours != theirs:
                raise RecordError(
                    f"{record.source}: holds sweeps that differ in {name} ({ours} and {theirs}); "
                    "they cannot be pooled. Split the file by its 'sweep' field."
                )
    return first


class TimedVisit(NamedTuple):
    """One visit with its cell and the medians of the calls after its warm-ups, seconds; NaN where not measured.

    ``complete`` marks the visits that count: those of a round which holds every cell not barred, barred cells apart.
    """

    visit: Visit
    cell: Cell
    latency_s: float
    dispatch_s: float
    queued_s: float
    num_calls: int
    complete: bool


def timed_visits(record: Record, *, again: Set[Cell] | None = None) -> list[TimedVisit]:
    """Summarise the visits of a record, in file order; those whose calls were all warm-ups are left out.

    Parameters
    ----------
    record : Record
    again : barred cells that a complete round must hold all the same; None: those of which the record itself says that
        they are mended
    """
    cells = {(p.sweep, p.launch, p.program): p.cell for p in record.programs}
    found = [
        (visit, cells[visit.sweep, visit.launch, visit.program])
        for visit in record.visits
        if len(visit.latency_ns) > visit.warmups
    ]
    counted = _complete(record, found, again)
    return [
        TimedVisit(
            visit,
            cell,
            _median_s(visit.latency_ns[visit.warmups :]),
            _median_s(visit.dispatch_ns[visit.warmups :]),
            math.nan if visit.queued_ns is None else visit.queued_ns * 1e-9,
            len(visit.latency_ns) - visit.warmups,
            complete,
        )
        for (visit, cell), complete in zip(found, counted, strict=True)
    ]


def barred(record: Record) -> set[Cell]:
    """Cells that failed twice in a visit, or could not be built at all: left out for every launch."""
    counts = Counter(f.cell for f in record.failures if f.cell is not None and f.stage in BARRING)
    return {cell for cell, count in counts.items() if count >= 2}


def tried_again(record: Record) -> dict[Cell, tuple[int, int]]:
    """Barred cells that later launches measured: how many launches did so after its last failure, and how many did not.

    A sweep that goes on gives a barred cell one more try, since what failed may have been mended.
    """
    left_out = barred(record)
    if not left_out:
        return {}
    place = {(line.sweep, line.launch): i for i, line in enumerate(record.launches)}
    cells = {(p.sweep, p.launch, p.program): p.cell for p in record.programs}
    seen: dict[tuple[str, str], set[Cell]] = defaultdict(set)
    for v in record.visits:
        seen[v.sweep, v.launch].add(cells[v.sweep, v.launch, v.program])
    counts = {}
    for cell in left_out:
        last = max(place.get((f.sweep, f.launch), -1) for f in record.failures if f.cell == cell and f.stage in BARRING)
        held = sum(cell in found and place.get(launch, -1) > last for launch, found in seen.items())
        if held:
            counts[cell] = (held, len(seen) - held)
    return counts


def mended(record: Record) -> set[Cell]:
    """Barred cells that count again: leaving them out would keep fewer launches than it costs."""
    return {cell for cell, (held, lacking) in tried_again(record).items() if held > lacking}


def _complete(record: Record, found: Sequence[tuple[Visit, Cell]], again: Set[Cell] | None) -> list[bool]:
    """A round counts when it visited every cell that its launch compiled and that is not barred."""
    if all(sweep.foreign for sweep in record.sweeps):
        return [True] * len(found)
    again = mended(record) if again is None else again
    left_out = barred(record) - again
    # All launches owe the same cells: one that died while compiling must not count as complete with fewer.
    owed = ({program.cell for program in record.programs} | again) - left_out
    seen: dict[tuple[str, str, int], set[Cell]] = defaultdict(set)
    for visit, cell in found:
        seen[visit.sweep, visit.launch, visit.round].add(cell)
    whole = {key for key, cells in seen.items() if owed <= cells}
    # Launches before a cell's second failure did measure it; others have nothing to set beside it.
    return [(v.sweep, v.launch, v.round) in whole and cell not in left_out for v, cell in found]


def _median_s(times_ns: Sequence[int]) -> float:
    if not times_ns:
        return math.nan
    ordered, middle = sorted(times_ns), len(times_ns) // 2
    return (ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2) * 1e-9
