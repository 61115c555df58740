"""The record's other face: tidy pandas tables, one row a sample or one row a visit."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pandas as pd

from ..model.cell import Cell
from .schema import Sweep
from .store import Record, RecordError

CELL_COLUMNS = ("role", "strategy", "num_devices", "size", "k", "payload_bytes")


POOLED_ALIKE = (
    *("workload", "path", "objective", "unit", "platform", "visible_devices"),
    *("devices", "sizes", "strategies", "controls", "probes", "warmups"),
)
"""Fields of the plan in which sweeps must agree to be pooled: those that change a time or the set of cells."""


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


def visits(record: Record) -> pd.DataFrame:
    """One row a visit.

    Returns
    -------
    DataFrame
        Columns ``sweep, launch, round, position, time, role, strategy, num_devices, size, k, payload_bytes,
        latency_s, dispatch_s, queued_s, num_calls, complete``. ``latency_s`` is the median of the calls after
        the warm-ups; ``k`` and ``payload_bytes`` are 0 where they do not apply; ``complete`` marks visits of a
        round that holds every cell not barred, barred cells apart. Visits whose calls were all warm-ups are left out.
    """
    cells = {(p.sweep, p.launch, p.program): p.cell for p in record.programs}
    rows = []
    for visit in record.visits:
        timed = visit.latency_ns[visit.warmups :]
        if not timed:
            continue
        cell = cells[visit.sweep, visit.launch, visit.program]
        dispatch = visit.dispatch_ns[visit.warmups :]
        rows.append(
            (
                visit.sweep,
                visit.launch,
                visit.round,
                visit.position,
                visit.time,
                *_cell_values(cell),
                _median(timed) * 1e-9,
                _median(dispatch) * 1e-9 if dispatch else np.nan,
                visit.queued_ns * 1e-9 if visit.queued_ns is not None else np.nan,
                len(timed),
            )
        )
    columns = [
        *("sweep", "launch", "round", "position", "time"),
        *CELL_COLUMNS,
        *("latency_s", "dispatch_s", "queued_s", "num_calls"),
    ]
    table = pd.DataFrame(rows, columns=columns)
    table["complete"] = _complete(record, table)
    return table


def samples(record: Record) -> pd.DataFrame:
    """One row a call: the columns of ``visits`` up to ``payload_bytes``, then call, warmup, latency_s, dispatch_s."""
    cells = {(p.sweep, p.launch, p.program): p.cell for p in record.programs}
    repeats = [len(visit.latency_ns) for visit in record.visits]
    by_visit = pd.DataFrame(
        [
            (
                v.sweep,
                v.launch,
                v.round,
                v.position,
                v.time,
                *_cell_values(cells[v.sweep, v.launch, v.program]),
                v.warmups,
            )
            for v in record.visits
        ],
        columns=["sweep", "launch", "round", "position", "time", *CELL_COLUMNS, "warmups"],
    )
    table = by_visit.loc[np.repeat(np.arange(len(by_visit)), repeats)].reset_index(drop=True)
    table["call"] = np.concatenate([np.arange(n) for n in repeats]) if repeats else np.array([], dtype=int)
    table["warmup"] = table["call"] < table.pop("warmups")
    table["latency_s"] = np.array([t for v in record.visits for t in v.latency_ns]) * 1e-9
    dispatch = [t for v in record.visits for t in (v.dispatch_ns or (np.nan,) * len(v.latency_ns))]
    table["dispatch_s"] = np.array(dispatch, dtype=float) * 1e-9
    return table


def barred(record: Record) -> set[Cell]:
    """Cells that failed twice in a visit, or could not be built at all: left out for every launch."""
    counts = Counter(f.cell for f in record.failures if f.cell is not None and f.stage in ("visit", "compile", "build"))
    return {cell for cell, count in counts.items() if count >= 2}


def _complete(record: Record, table: pd.DataFrame) -> np.ndarray:
    """A round counts when it visited every cell that its launch compiled and that is not barred."""
    if all(sweep.foreign for sweep in record.sweeps):
        return np.ones(len(table), dtype=bool)
    left_out = barred(record)
    wanted: dict[tuple[str, str], set[Cell]] = defaultdict(set)
    for program in record.programs:
        if program.cell not in left_out:
            wanted[program.sweep, program.launch].add(program.cell)
    # All launches owe the same cells: one that died while compiling must not count as complete with fewer.
    owed = set().union(*wanted.values()) if wanted else set()
    seen: dict[tuple[str, str, int], set[Cell]] = defaultdict(set)
    cells = {(p.sweep, p.launch, p.program): p.cell for p in record.programs}
    for visit in record.visits:
        if len(visit.latency_ns) > visit.warmups:
            seen[visit.sweep, visit.launch, visit.round].add(cells[visit.sweep, visit.launch, visit.program])
    whole = {key for key, found in seen.items() if owed <= found}
    keys = zip(table["sweep"], table["launch"], table["round"], strict=True)
    complete = np.fromiter((key in whole for key in keys), dtype=bool, count=len(table))
    if left_out:
        # Launches before the second failure did measure the cell; others have nothing to set beside it.
        values = {_cell_values(cell) for cell in left_out}
        rows = zip(*(table[name] for name in CELL_COLUMNS), strict=True)
        complete &= np.fromiter((row not in values for row in rows), dtype=bool, count=len(table))
    return complete


def _cell_values(cell: Cell) -> tuple[str, str, int, int, int, int]:
    return (cell.role, cell.strategy, cell.num_devices, cell.size, cell.k or 0, cell.payload_bytes or 0)


def _median(values: tuple[int, ...]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return float(ordered[middle]) if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
