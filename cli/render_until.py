"""What ``measure --until`` says at its end: the goal, whether it was reached, and what stands in the way."""

from __future__ import annotations

from ..fit.answer import Estimate
from ..study.until import Goal, Outcome
from . import units
from .text import sentence


def ending(goal: Goal, outcome: Outcome, unit: str) -> str:
    """One sentence."""
    answer = _answer(goal, outcome, unit)
    if not outcome.reached:
        why = outcome.reason or f"{outcome.launches} launches do not tell"
        so_far = f"; so far {answer}" if answer else ""
        return sentence(f"not resolved, {goal}: {why}{so_far}. The same command goes on.")
    return sentence(f"resolved after {outcome.launches} launches, {goal}: {answer or outcome.reason}")


def _answer(goal: Goal, outcome: Outcome, unit: str) -> str | None:
    if outcome.count is not None:
        return str(outcome.count)
    look = outcome.look
    if look is None or look.estimate is None:
        return None
    value = Estimate(estimate=look.estimate, interval=look.interval)
    text = units.share_estimate(value) if goal.target == "share" else units.size_estimate(value, unit)
    return f"{text}, {100 * look.confidence:g} % at the stop" if look.interval else text
