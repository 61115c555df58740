"""Run the study: chunks of sweeps in processes of one thread each, every chunk kept in a file of its own."""

from __future__ import annotations

import csv
import dataclasses
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from .checks import Check, Kind
from .questions import ask
from .scenarios import SCENARIOS, Scenario
from .sweeps import draw, streams
from .table import Row, summarise

CHUNK = 100
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
FIELDS = tuple(f.name for f in dataclasses.fields(Check))


class Task(NamedTuple):
    """One chunk: ``sweeps`` of them, kept at ``path`` where there is one."""

    scenario: Scenario
    seed: int
    chunk: int
    sweeps: int
    path: Path | None


def checks_of(task: Task) -> list[Check]:
    """Simulate and check a chunk, or read it where it was done before."""
    if task.path is not None and task.path.exists():
        return _read(task.path)
    rng = streams(task.scenario, task.seed, task.chunk)
    found = [check for _ in range(task.sweeps) for check in ask(draw(task.scenario, rng))]
    if task.path is not None:
        _write(task.path, found)
    return found


def rows_of(scenarios: Sequence[Scenario], sweeps: int, seed: int, *, jobs: int, parts: Path | None) -> list[Row]:
    """Rows of all scenarios, with progress on stderr; ``jobs`` 0 stays in this process."""
    tasks = list(_tasks(scenarios, sweeps, seed, parts))
    done: dict[str, list[Check]] = {one.name: [] for one in scenarios}
    start = time.monotonic()
    for number, (task, found) in enumerate(_run(tasks, jobs), start=1):
        done[task.scenario.name] += found
        if jobs:
            minutes = (time.monotonic() - start) / 60
            left = minutes / number * (len(tasks) - number)
            said = f"{number} of {len(tasks)} chunks, {minutes:.1f} min, about {left:.0f} to go: {task.scenario.name}"
            print(said, file=sys.stderr, flush=True)
    least = 50 if sweeps >= 1000 else 20
    return [row for name, found in done.items() for row in summarise(name, found, least=least)]


def pick(name: str | None) -> Sequence[Scenario]:
    """The scenarios whose name begins so; all without a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    found = [one for one in SCENARIOS if one.name.startswith(name or "")]
    if not found:
        raise ValueError(f"no scenario is called {name!r}; there are: {'; '.join(s.name for s in SCENARIOS)}.")
    return found


def _tasks(scenarios: Sequence[Scenario], sweeps: int, seed: int, parts: Path | None) -> Iterator[Task]:
    """Chunk by chunk over all scenarios, so that an early look at the parts sees all of them."""
    for chunk, first in enumerate(range(0, sweeps, CHUNK)):
        for one in scenarios:
            name = "".join(c if c.isalnum() else "-" for c in one.name)
            size = min(CHUNK, sweeps - first)
            path = None if parts is None else parts / f"{name}.{seed}.{chunk}.{size}.csv"
            yield Task(one, seed, chunk, size, path)


def _run(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, list[Check]]]:
    if not jobs:
        yield from ((task, checks_of(task)) for task in tasks)
        return
    # Set before the children import numpy and jax; fresh interpreters, since jax does not survive a fork.
    os.environ |= ONE_THREAD
    numbered = list(enumerate(tasks))
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for number, found in pool.imap_unordered(_numbered, numbered):
            yield tasks[number], found


def _numbered(task: tuple[int, Task]) -> tuple[int, list[Check]]:
    return task[0], checks_of(task[1])


def _write(path: Path, checks: Sequence[Check]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows(dataclasses.astuple(check) for check in checks)
    unfinished.replace(path)


def _read(path: Path) -> list[Check]:
    with path.open(newline="") as file:
        return [_check(line) for line in csv.DictReader(file)]


def _check(line: Mapping[str, str]) -> Check:
    return Check(
        group=line["group"],
        quantity=line["quantity"],
        kind=cast("Kind", line["kind"]),
        answered=line["answered"] == "True",
        holds=line["holds"] == "True",
        width=float(line["width"]),
    )
