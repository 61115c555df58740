"""Plan, measure, fit, answer: the whole of a study in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.schema import Plan
from ..data.store import read
from ..fit.launches import LaunchTable, from_record
from ..measure.description import described
from ..measure.launch import local_ranks
from ..measure.planning import make_plan
from ..measure.processes.cluster import refuse_several
from ..measure.processes.group import Start
from ..measure.sweep import OnLaunch, OnProgress
from ..measure.sweep import run as measure

if TYPE_CHECKING:
    from ..fit.answer import Answer

DEFAULT_RECORD = "sweep.jsonl"


@dataclass(frozen=True, kw_only=True)
class Study:
    """A plan, the record it was measured into, and what the record says."""

    plan: Plan
    record: Path
    table: LaunchTable = field(repr=False)
    answer: Answer = field(repr=False)


def run(
    workload: str | Callable[..., Any],
    *,
    devices: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    sizes_per_device: Sequence[int] | None = None,
    record: str | os.PathLike[str] = DEFAULT_RECORD,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Study:
    """Measure a workload over device counts and sizes, and say from where on adding devices helps.

    Parameters
    ----------
    workload : a built-in's name, ``path/to/file.py:build``, or the ``build(mesh, size)`` function itself, defined at
        the top level of a file (fresh processes measure it, and import it from there)
    devices : counts n; default: the workload's own
    sizes : global sizes S: a strong sweep
    sizes_per_device : sizes S / n: a weak sweep. One of the two, where the workload declares no path of its own.
    record : the JSON Lines file that is written, or gone on with when it holds the same plan
    on_progress : called with a ``Progress`` at every step
    **options : further arguments of ``breakeven.measure.planning.make_plan``: ``launches``, ``budget_s``, ...

    Returns
    -------
    Study

    Raises
    ------
    MeasureError, RecordError
        As ``make_plan`` and ``measure.sweep.run`` do, and in one of several processes that a launcher started.

    Examples
    --------
    Under ``if __name__ == "__main__":`` where the file holds ``build`` too: the processes that measure import it.

    >>> study = breakeven.study.run("sin-reduce", devices=[1, 2], sizes=[512, 1024, 2048])  # doctest: +SKIP
    >>> study.answer.break_even.first.estimate  # doctest: +SKIP
    """
    refuse_several()
    declared, available = described(workload)
    asked: dict[str, Any] = {"available": available} | options
    plan = make_plan(declared, devices=devices, sizes=sizes, sizes_per_device=sizes_per_device, **asked)
    return carry_out(plan, record, on_progress=on_progress)


def carry_out(
    plan: Plan,
    record: str | os.PathLike[str],
    *,
    on_progress: OnProgress | None = None,
    on_launch: OnLaunch | None = None,
    start: Start = local_ranks,
) -> Study:
    """Measure a plan, fit the record, answer."""
    path = measure(plan, record, on_progress=on_progress, on_launch=on_launch, start=start)
    from ..fit.report import answer  # imports jax, which the measuring parent has no use for

    table = from_record(read(path))
    return Study(plan=plan, record=path, table=table, answer=answer(table, seed=plan.seed))
