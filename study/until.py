"""Measure until a question is answered: launches are added until its answer is precise enough, or the time is up."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..data.schema import Plan
from ..data.store import Record, RecordError, read
from ..fit.answer import BreakEvenSize, Estimate
from ..fit.attribution import parts
from ..fit.breakeven import break_even
from ..fit.launches import LaunchTable, from_record
from ..fit.optimum import optimum
from ..fit.planning.stopping import MIN_LAUNCHES_AT_LOOK, Look, Precision, look, look_confidence
from ..measure.launch import local_ranks
from ..measure.processes.group import Start
from ..measure.sweep import OnLaunch, OnProgress
from ..measure.sweep import run as measure
from ..model.cell import devices

MOST_LAUNCHES = 30
"""Launches of a sweep that stops by itself at most, unless told otherwise."""

_LEAST_LAUNCH_S = 10.0


def launches_within(budget_s: float) -> int:
    """Launches for a budget: ten seconds each or more, since each starts and compiles anew; as many as a look needs."""
    return min(MOST_LAUNCHES, max(MIN_LAUNCHES_AT_LOOK, int(budget_s / _LEAST_LAUNCH_S)))


TARGETS = {
    "break-even": "size at which the largest count (or 'at N') costs the same as the smallest, to ±X%",
    "share": "share of communication in the time, to ±X% of the call",
    "optimum": "best count: until one count is left, or no other is better by more than the tolerance",
    "first": "smallest count that helps: until one is left",
}
_TEXT = re.compile(
    r"(?P<target>[a-z-]+)(?:\s+at\s+(?P<count>\d{1,9}))?(?:\s*(?:±|\+/?-)\s*(?P<number>\d*\.?\d+)\s*%)?", re.IGNORECASE
)


class GoalError(ValueError):
    """A goal that cannot be read or is not to be had from the plan; the message says what to write instead."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is to be known before a sweep stops.

    Attributes
    ----------
    target : a key of ``TARGETS``
    precision : half width of the interval, as a share of the size, or for ``share`` of the call's time; None for
        targets that are counts
    num_devices : for ``break-even``, the count in question; None: the largest
    """

    target: str
    precision: float | None = None
    num_devices: int | None = None

    def __str__(self) -> str:
        """As it is written on the command line."""
        at = "" if self.num_devices is None else f" at {self.num_devices}"
        return f"{self.target}{at}" + ("" if self.precision is None else f" ±{100 * self.precision:g}%")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a sweep ended: its record, and what the last look at it said.

    ``reached``: the goal; ``look``: the interval asked for, None where the answer is a count or there is none;
    ``count``: the answer where it is a count; ``reason``: what stands in the way, or why there is nothing to find.
    """

    launches: int
    reached: bool
    look: Look | None = None
    count: int | None = None
    reason: str | None = None


def parse(text: str) -> Goal:
    """Read ``break-even ±10%``, ``break-even at 4 ±10%``, ``share ±5%``, ``optimum`` or ``first``; ``+-`` is ``±``.

    Raises
    ------
    GoalError
        If it is none of them.
    """
    known = "; ".join(f"'{name}': {meaning}" for name, meaning in TARGETS.items())
    match = _TEXT.fullmatch(text.strip())
    if match is None or match["target"].lower() not in TARGETS:
        raise GoalError(f"{text!r} is no goal. Write 'break-even ±10%', or another: {known}.")
    target, number = match["target"].lower(), match["number"]
    if (target in ("break-even", "share")) != (number is not None):
        wanted = "takes a precision, as in" if number is None else "takes no precision: write"
        raise GoalError(f"{text!r}: {target} {wanted} '{target}{' ±10%' if number is None else ''}'.")
    if match["count"] is not None and target != "break-even":
        raise GoalError(f"{text!r}: only break-even is asked at a count.")
    precision = None if number is None else float(number) / 100
    if precision is not None and not 0 < precision < 1:
        raise GoalError(f"{text!r}: the precision must lie between 0 and 100 %.")
    return Goal(target=target, precision=precision, num_devices=int(match["count"]) if match["count"] else None)


def check(goal: Goal, plan: Plan) -> None:
    """Raise GoalError where a plan cannot reach the goal however long it runs."""
    if len(plan.devices) < 2:
        raise GoalError(f"'{goal}' compares counts: give at least two with --devices.")
    if goal.target == "break-even" and len(plan.sizes) < 2:
        raise GoalError(f"'{goal}' is found between sizes: give at least two, below and above it.")
    if goal.target == "share" and not (plan.controls or plan.probes):
        raise GoalError(f"'{goal}' needs a control: leave out --no-controls.")
    if goal.num_devices is not None and goal.num_devices not in plan.devices[1:]:
        counts = ", ".join(map(str, plan.devices[1:]))
        raise GoalError(f"'{goal}': {goal.num_devices} is not compared here; counts are {counts}.")
    if plan.launches < MIN_LAUNCHES_AT_LOOK:
        raise GoalError(f"--launches {plan.launches}: the first look is after {MIN_LAUNCHES_AT_LOOK}; allow as many.")


def carry_out(
    plan: Plan,
    record: str | os.PathLike[str],
    goal: Goal,
    *,
    on_progress: OnProgress | None = None,
    on_launch: OnLaunch | None = None,
    start: Start = local_ranks,
) -> tuple[Path, Outcome]:
    """Measure launch by launch until the goal is reached, ``plan.launches`` are done, or the budget is spent.

    Raises
    ------
    GoalError
        If the plan cannot reach the goal.
    MeasureError, RecordError, Interrupted
        As ``measure.sweep.run`` does.
    """
    check(goal, plan)
    path = measure(
        plan,
        record,
        on_progress=on_progress,
        on_launch=on_launch,
        start=start,
        enough=lambda found: judge_record(found, goal).reached,
    )
    return path, judge_record(read(path), goal)


def judge_record(record: Record, goal: Goal) -> Outcome:
    """One look at a record under way; one that cannot be read as a table yet has not reached the goal."""
    try:
        table = from_record(record)
    except RecordError as error:
        return Outcome(launches=0, reached=False, reason=str(error))
    return judge(table, goal)


def judge(table: LaunchTable, goal: Goal) -> Outcome:
    """One look at the launches so far, with the confidence that ``fit.planning.stopping`` asks of every look."""
    if not table.strategies:
        return Outcome(launches=0, reached=False, reason="no program of the workload was measured")
    strategy = table.strategies[0]
    axis_size = table.sizes("workload", strategy)[-1]
    match goal.target:
        case "break-even":
            return _size(table, strategy, axis_size, goal)
        case "share":
            last = table.devices("workload", strategy)[-1]
            split = parts(table, strategy, last, axis_size, confidence=look_confidence())
            if "communication" not in split:
                reason = f"{strategy} was not measured on {devices(last)} at the largest size"
                return Outcome(launches=table.num_launches, reached=False, reason=reason)
            return _width(table, split["communication"].share, Precision(absolute=goal.precision))
        case "optimum":
            best = optimum(table, strategy, None, axis_size=axis_size, confidence=look_confidence(decision=True))
            return _count(table, best.estimate, best.reason, decided=best.outcome != "undecided")
    first = break_even(table, strategy, None, axis_size=axis_size, confidence=look_confidence(decision=True)).first
    possible = ", ".join("never" if n is None else str(n) for n in first.set)
    return _count(table, first.estimate, first.reason or f"still possible: {possible}", decided=len(first.set) == 1)


def _count(table: LaunchTable, count: int | None, reason: str | None, *, decided: bool) -> Outcome:
    launches = table.num_launches
    if decided and launches < MIN_LAUNCHES_AT_LOOK:
        decided, reason = False, f"{launches} launches: the first look is after {MIN_LAUNCHES_AT_LOOK}"
    return Outcome(launches=launches, reached=decided, count=count, reason=None if decided else reason)


def _width(table: LaunchTable, found: Estimate, wanted: Precision) -> Outcome:
    seen = look(found, table.num_launches, wanted)
    return Outcome(launches=table.num_launches, reached=seen.stop, look=seen, reason=seen.reason)


def _size(table: LaunchTable, strategy: str, axis_size: int, goal: Goal) -> Outcome:
    count = goal.num_devices or table.devices("workload", strategy)[-1]
    found = break_even(table, strategy, None, axis_size=axis_size, confidence=look_confidence())
    sizes: BreakEvenSize | None = next((s for s in found.sizes if s.num_devices == count), None)
    if sizes is None:
        # Its cells failed and are barred, though the plan holds them.
        reason = f"{strategy} was not measured on {devices(count)} and fewer"
        return Outcome(launches=table.num_launches, reached=False, reason=reason)
    if len(sizes.roots) == 1:
        return _width(table, sizes.roots[0], Precision(relative=goal.precision))
    # Signs that are sure at every size leave nothing to wait for.
    sure = break_even(table, strategy, None, axis_size=axis_size, confidence=look_confidence(decision=True))
    settled = next(s.helps for s in sure.sizes if s.num_devices == count) in ("always", "never")
    many = f"{len(sizes.roots)} break-even sizes lie within the measured sizes"
    return Outcome(
        launches=table.num_launches,
        reached=settled and table.num_launches >= MIN_LAUNCHES_AT_LOOK,
        reason=many if sizes.roots else sizes.reason or "no break-even size was found yet",
    )
