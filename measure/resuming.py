"""Going on with a record: only the same plan and program, and only on the same kind of device."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from ..data.machines import Difference, devices_differ, surroundings_differ
from ..data.rounds import BARRING, POOLED_ALIKE
from ..data.same_programs import Unlike
from ..data.schema import Failure, Launch, Plan
from ..model.cell import Cell
from .workload import MeasureError

_SPOKEN = {
    "queued_calls": "queued calls",
    "budget_s": "budget in seconds",
    "step_timeout_s": "timeout in seconds",
    "visible_devices": "devices at each launch",
}
"""Fields of a plan whose names no option has."""

_NAMED = 3
"""Cells named in one sentence."""


def check_same_plan(ours: Plan, theirs: Plan, path: Path) -> None:
    """Raise MeasureError where a file holds a sweep of another plan; it names what differs."""
    names = [
        name
        for name in Plan.__struct_fields__
        # A trace changes no time, so that it may be asked for later.
        if name != "trace" and getattr(ours, name) != getattr(theirs, name)
    ]
    if names:
        told = [f"{_SPOKEN.get(one, one)} ({getattr(theirs, one)} there, {getattr(ours, one)} now)" for one in names]
        joined = "" if set(names) & set(POOLED_ALIKE) else "; breakeven merge then joins the two"
        raise MeasureError(
            f"{path} holds a sweep of another plan; they differ in {', '.join(told)}. "
            f"Give another file with -o{joined}, or the same options to go on."
        )


def check_same_devices(before: Launch, now: Launch, path: Path) -> None:
    """Raise MeasureError where a launch runs on another kind of device than the one before."""
    if found := devices_differ(before, now):
        raise MeasureError(
            f"{path} was measured on another kind of device: {_told(found)}. Such times are never pooled: give another "
            "file with -o."
        )


def warn_of_surroundings(before: Launch, now: Launch, path: Path) -> None:
    """Say where a launch that is kept differs from the one before in other things that may change times."""
    if found := surroundings_differ(before, now):
        warnings.warn(
            f"{path}: its last launch and this one differ in {_told(found)}; both are kept, and say so.", stacklevel=2
        )


def other_program(found: Unlike, before: Launch, now: Launch, path: Path) -> MeasureError:
    """Say that a launch has another program than those of the record."""
    differ = surroundings_differ(before, now)
    surroundings = f" Its last launch and this one differ in {_told(differ)}." if differ else ""
    return MeasureError(
        f"{path} was measured with another program: {found.told('there', 'now')}.{surroundings} Such times are never "
        "pooled: measure into another file with -o, or undo the change."
    )


def one_more_try(failures: Sequence[Failure], again: Collection[Cell]) -> list[Failure]:
    """The failures without all but the last that barred each of these cells: one more bars it again."""
    kept, spared = [], set[Cell | None]()
    for failure in reversed(failures):
        if failure.cell in again and failure.stage in BARRING:
            if failure.cell in spared:
                continue
            spared.add(failure.cell)
        kept.append(failure)
    return kept[::-1]


def warn_of_failed(cells: Collection[Cell], failures: Sequence[Failure], path: Path, *, again: bool) -> None:
    """Name the cells that earlier launches left out, with why; ``again``: they are tried once more."""
    reasons = {f.cell: f"{f.cell} ({f.error}: {f.message.partition(chr(10))[0]})" for f in failures if f.cell in cells}
    named = ", ".join(list(reasons.values())[:_NAMED])
    more = f" and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
    what = "tried once more" if again else "not tried again, since nothing else is missing; for that give another -o"
    warnings.warn(f"{path}: what failed before is {what}: {named}{more}.", stacklevel=2)


def _told(found: Iterable[Difference]) -> str:
    return ", ".join(f"{name} ({before} there, {now} now)" for name, before, now in found)
