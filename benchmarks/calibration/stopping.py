"""Whether answers hold at the moment at which ``measure --until`` stops, which is chosen by looking at them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from breakeven.fit.launches import LaunchTable
from breakeven.fit.optimum import optimum
from breakeven.fit.planning.stopping import MIN_LAUNCHES_AT_LOOK, look_confidence
from breakeven.study.until import Goal, Outcome, judge, parse

from .checks import Check, error
from .sweeps import Sweep

GROUP = "stopping"


def stopping(sweep: Sweep) -> Iterator[Check]:
    """Look after every launch from the sixth, and stop where a goal is reached or after the last launch.

    An interval counts at the stop, whether it reached the goal or not; a count only where it is said to be decided.
    """
    for text in sweep.scenario.until:
        goal = parse(text)
        table, found = _stopped(sweep.table, goal)
        yield Check(
            group=GROUP,
            quantity=f"{text}: reached",
            kind="choice",
            answered=True,
            holds=found.reached,
            width=found.launches,
        )
        if goal.precision is None:
            wrong = found.reached and _wrong(sweep, table, goal, found.count)
            yield error(f"stopped at {text}: wrong", said=found.reached, wrong=wrong)
        else:
            yield _covered(goal, text, found, _truth(sweep, goal))


def _stopped(table: LaunchTable, goal: Goal) -> tuple[LaunchTable, Outcome]:
    for launches in range(MIN_LAUNCHES_AT_LOOK, table.num_launches + 1):
        seen = table.take(np.arange(launches))
        found = judge(seen, goal)
        if found.reached:
            break
    return seen, found


def _covered(goal: Goal, text: str, found: Outcome, truth: float) -> Check:
    """Coverage at the stop; to stop because there is nothing to find is wrong, since there is."""
    low, high = (found.look and found.look.interval) or (None, None)
    open_ended = low is None and high is None
    return Check(
        group=GROUP,
        quantity=text,
        # As everywhere in the study: a break-even size comes as a set.
        kind="set" if goal.target == "break-even" else "interior",
        answered=found.reached or not open_ended,
        holds=not open_ended and not (low is not None and truth < low) and not (high is not None and truth > high),
        width=found.launches,
    )


def _truth(sweep: Sweep, goal: Goal) -> float:
    last = sweep.true.devices[-1]
    if goal.target == "share":
        return sweep.causes[last]["communication"] / sweep.totals[last]
    return sweep.tie(last)


def _wrong(sweep: Sweep, table: LaunchTable, goal: Goal, said: int | None) -> bool:
    """Whether a count is not the true one; where several are left, whether it costs more than the tolerance."""
    one, least = sweep.true.devices[0], min(sweep.totals.values())
    if goal.target == "first":
        helps = (n for n, t in sweep.totals.items() if t < sweep.totals[one])
        return said != next(helps, None)
    best = optimum(table, sweep.strategy, None, axis_size=sweep.largest, confidence=look_confidence(decision=True))
    allowed = best.tolerance if len(best.set) > 1 else 0.0
    return said is None or sweep.totals[said] > (1 + allowed) * least
