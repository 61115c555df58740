"""Simulated samples as a record, so that every later step treats them as it treats measurements."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..model.cell import Cell
from ..model.program import ProgramFacts
from .schema import MAX_CALLS_PER_VISIT, SCHEMA_VERSION, Launch, Line, Plan, Program, Sweep, Visit
from .store import Record, RecordError, Writer


def simulated_lines(
    plan: Plan,
    cells: Sequence[Cell],
    samples_s: np.ndarray,
    *,
    facts: Mapping[Cell, ProgramFacts | None] | None = None,
    cores: int | None = None,
    source: str | None = None,
) -> list[Line]:
    """Lines of a sweep whose calls were simulated; the sweep is marked ``synthetic``.

    Parameters
    ----------
    plan : what the sweep would have measured
    cells : C cells
    samples_s : ndarray, shape (C, launches, rounds, calls), seconds
        As ``model.simulate.sample`` returns them; no warm-ups among them.
    facts : of the cells' programs, where there are any
    cores : of the imagined machine
    source : one line on how the samples were made

    Raises
    ------
    ValueError
        If the samples do not fit the cells, are too many for one visit, or round to no positive nanosecond count.
    """
    samples = np.asarray(samples_s, dtype=float)
    if samples.ndim != 4 or len(samples) != len(cells):
        raise ValueError(
            f"samples_s must have shape ({len(cells)} cells, launches, rounds, calls), got {samples.shape}."
        )
    if samples.shape[3] > MAX_CALLS_PER_VISIT:
        raise ValueError(f"samples_s has {samples.shape[3]} calls a visit; at most {MAX_CALLS_PER_VISIT} are stored.")
    if not (np.isfinite(samples).all() and (samples > 0.5e-9).all()):
        raise ValueError("samples_s must be finite and at least one nanosecond.")
    nanoseconds = np.rint(samples * 1e9).astype(np.int64)
    sweep = str(uuid.UUID(bytes=hashlib.sha256(nanoseconds.tobytes()).digest()[:16]))
    lines: list[Line] = [
        Sweep(schema=SCHEMA_VERSION, sweep=sweep, created="", version="", plan=plan, synthetic=True, source=source)
    ]
    for g in range(nanoseconds.shape[1]):
        lines += _launch_lines(plan, sweep, g, cells, nanoseconds[:, g], facts or {}, cores)
    return lines


def _launch_lines(
    plan: Plan,
    sweep: str,
    number: int,
    cells: Sequence[Cell],
    nanoseconds: np.ndarray,
    facts: Mapping[Cell, ProgramFacts | None],
    cores: int | None,
) -> list[Line]:
    """One launch; ``nanoseconds`` has shape (C, rounds, calls)."""
    launch = str(uuid.uuid5(uuid.UUID(sweep), str(number)))
    lines: list[Line] = [
        Launch(
            sweep=sweep,
            launch=launch,
            started="",
            platform=plan.platform,
            visible_devices=plan.visible_devices,
            cores=cores,
        )
    ]
    lines += [
        Program(sweep=sweep, launch=launch, program=i, cell=cell, facts=facts.get(cell)) for i, cell in enumerate(cells)
    ]
    lines += [
        Visit(
            sweep=sweep,
            launch=launch,
            program=i,
            round=r,
            position=i,
            time=0.0,
            warmups=0,
            latency_ns=tuple(nanoseconds[i, r].tolist()),
        )
        for r in range(nanoseconds.shape[1])
        for i in range(len(cells))
    ]
    return lines


def simulated_record(
    plan: Plan,
    cells: Sequence[Cell],
    samples_s: np.ndarray,
    *,
    facts: Mapping[Cell, ProgramFacts | None] | None = None,
    cores: int | None = None,
    source: str | None = None,
) -> Record:
    """Simulated samples as a record in memory; the arguments are those of ``simulated_lines``."""
    return Record.from_lines(
        simulated_lines(plan, cells, samples_s, facts=facts, cores=cores, source=source), source=source or "<simulated>"
    )


def write_simulated(
    path: str | os.PathLike[str],
    plan: Plan,
    cells: Sequence[Cell],
    samples_s: np.ndarray,
    *,
    facts: Mapping[Cell, ProgramFacts | None] | None = None,
    cores: int | None = None,
    source: str | None = None,
) -> Path:
    """Write simulated samples as a new record; the arguments are those of ``simulated_lines``.

    Raises
    ------
    RecordError
        If the file exists: simulated samples are never added to other ones.
    """
    path = Path(path)
    if path.exists():
        raise RecordError(f"{path}: exists already; simulated samples go into a file of their own.")
    with Writer(path) as writer:
        for line in simulated_lines(plan, cells, samples_s, facts=facts, cores=cores, source=source):
            writer.write(line)
    return path
