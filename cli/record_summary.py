"""What is in a record, counted: the object behind ``show``."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from ..data.schema import Launch, Plan
from ..data.surroundings import Surroundings, surroundings
from ..model.cell import ROLES, Cell

if TYPE_CHECKING:
    import pandas as pd

    from ..data.schema import Failure
    from ..data.store import Record


class LaunchSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One launch; ``complete_rounds`` hold every cell not barred, and only they are used."""

    launch: str
    started: str
    rounds: int
    complete_rounds: int
    visits: int
    samples: int


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One cell; ``median_s``: median over the visits of complete rounds, None where there is none."""

    cell: Cell
    launches: int
    visits: int
    samples: int
    median_s: float | None
    compile_s: float | None
    control: str | None
    barred: bool


class FailureSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of failure and how often it came."""

    stage: str
    error: str
    message: str
    cell: Cell | None
    times: int
    frames: tuple[str, ...]


class RecordSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A record at a glance.

    ``environment``: of the first launch, except its own names and times. ``skew_s``: by device count, median over the
    visits of how far apart the processes began a call, where they share a clock.
    """

    source: str
    created: str
    version: str
    foreign: bool
    synthetic: bool
    plan: Plan
    environment: dict[str, str | int | float | None]
    launches: tuple[LaunchSummary, ...]
    cells: tuple[CellSummary, ...]
    failures: tuple[FailureSummary, ...]
    visits: int
    samples: int
    surroundings: tuple[Surroundings, ...] = ()
    traced: int = 0
    skew_s: dict[int, float] = {}


def summarise(record: Record) -> RecordSummary:
    """Count what a record holds.

    Raises
    ------
    RecordError
        If sweeps are in it that must not be pooled.
    """
    from ..data import rounds, table

    sweep = rounds.select_sweeps(record)
    visits = table.visits(record)
    launches = tuple(_launch(record, launch, visits) for launch in record.launches)
    return RecordSummary(
        source=record.source,
        created=sweep.created,
        version=sweep.version,
        foreign=sweep.foreign,
        synthetic=sweep.synthetic,
        plan=sweep.plan,
        environment=_environment(record.launches),
        launches=launches,
        cells=_cells(record, visits),
        failures=_failures(record.failures),
        visits=len(record.visits),
        samples=sum(len(visit.latency_ns) for visit in record.visits),
        surroundings=surroundings(record),
        traced=len(record.traces),
        skew_s=_skew_s(record),
    )


def _skew_s(record: Record) -> dict[int, float]:
    devices = {(p.sweep, p.launch, p.program): p.cell.num_devices for p in record.programs}
    found: dict[int, list[int]] = {}
    for visit in record.visits:
        if visit.skew_ns is not None:
            found.setdefault(devices[visit.sweep, visit.launch, visit.program], []).append(visit.skew_ns)
    return {n: median(skews) * 1e-9 for n, skews in sorted(found.items())}


def _launch(record: Record, launch: Launch, visits: pd.DataFrame) -> LaunchSummary:
    own = [v for v in record.visits if (v.sweep, v.launch) == (launch.sweep, launch.launch)]
    rows = visits[(visits["sweep"] == launch.sweep) & (visits["launch"] == launch.launch)]
    return LaunchSummary(
        launch=launch.launch,
        started=launch.started,
        rounds=len({v.round for v in own}),
        complete_rounds=int(rows.loc[rows["complete"], "round"].nunique()),
        visits=len(own),
        samples=sum(len(v.latency_ns) for v in own),
    )


def _environment(launches: tuple[Launch, ...]) -> dict[str, str | int | float | None]:
    if not launches:
        return {}
    left_out = {"kind", "sweep", "launch", "started", "pid", "load_average", "machines"}
    return {name: value for name, value in msgspec.to_builtins(launches[0]).items() if name not in left_out}


def _cells(record: Record, visits: pd.DataFrame) -> tuple[CellSummary, ...]:
    from ..data import rounds, table

    barred = rounds.barred(record)
    programs: dict[Cell, list] = {}
    for program in record.programs:
        programs.setdefault(program.cell, []).append(program)
    numbers = {(p.sweep, p.launch, p.program): p.cell for p in record.programs}
    counts: Counter[Cell] = Counter()
    samples: Counter[Cell] = Counter()
    for visit in record.visits:
        cell = numbers[visit.sweep, visit.launch, visit.program]
        counts[cell] += 1
        samples[cell] += len(visit.latency_ns)
    complete = visits[visits["complete"]]
    medians = complete.groupby([*table.CELL_COLUMNS])["latency_s"].median().to_dict() if len(complete) else {}
    return tuple(
        CellSummary(
            cell=cell,
            launches=len(own),
            visits=counts[cell],
            samples=samples[cell],
            median_s=medians.get(table.cell_values(cell)),
            compile_s=_mean([p.compile_s for p in own if p.compile_s is not None]),
            control=next((p.control for p in own if p.control), None),
            barred=cell in barred,
        )
        for cell, own in sorted(programs.items(), key=lambda item: item[0].sort_key)
    )


def _failures(failures: tuple[Failure, ...]) -> tuple[FailureSummary, ...]:
    times = Counter((f.stage, f.error, f.message, f.cell, f.frames) for f in failures)
    return tuple(
        FailureSummary(stage=stage, error=error, message=message, cell=cell, times=count, frames=frames)
        for (stage, error, message, cell, frames), count in times.items()
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def role_counts(cells: tuple[CellSummary, ...]) -> dict[str, int]:
    """Number of cells of each role present, in the order of ``ROLES``."""
    found = Counter(entry.cell.role for entry in cells)
    return {role: found[role] for role in ROLES if found[role]}


def counts(record: Record) -> dict[str, int]:
    """How much a record holds: launches with a complete round, cells, visits, calls, failures."""
    from ..data import table

    visits = table.visits(record)
    complete = visits.loc[visits["complete"], ["sweep", "launch"]].drop_duplicates()
    return {
        "launches": len(complete),
        "cells": len({program.cell for program in record.programs}),
        "visits": len(record.visits),
        "samples": sum(len(visit.latency_ns) for visit in record.visits),
        "failures": len(record.failures),
    }
