"""When measuring may stop: an interval narrow enough, that still holds its truth at the moment somebody stops.

Who looks after every launch and stops at the first narrow interval stops at a moment when the spread happens to look
small: a plain 95 % interval then holds in 92.7 % of the cases (normal launches, looks at 6 to 40; with one launch in
ten disturbed, 91.3 %). So every look takes its interval at half the level, 97.5 % for 95 %, which holds in 96.1 % and
95.0 %, for about a quarter more launches. Who stops at the first *significant* difference errs far more: 24 % instead
of 5 over the same looks. Such a look takes an eighth of the level (4.4 %). ``tests/fit/test_stopping.py`` counts again.
"""

from __future__ import annotations

import math

import msgspec

from ..answer import Estimate, Interval

MIN_LAUNCHES_AT_LOOK = 6
"""Before that many launches an interval is wide, and its own width uncertain by a third."""
WIDTH_SHARE = 1 / 2
DECISION_SHARE = 1 / 8
"""Shares of the level that each look takes, when it waits for a width or for a significant difference."""


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """How narrow an interval must be: both ends within a share of the estimate, or within an absolute distance.

    Raises
    ------
    ValueError
        If not exactly one of the two is given, or it is not positive.
    """

    relative: float | None = None
    absolute: float | None = None

    def __post_init__(self) -> None:
        if (self.relative is None) == (self.absolute is None):
            raise ValueError("a precision is either relative or absolute: give exactly one.")
        if not 0 < self.wanted < math.inf:
            raise ValueError(f"a precision must be a positive number, got {self.wanted}; 0.1 is 10 % of the estimate.")

    @property
    def wanted(self) -> float:
        """The half width asked for, a share or in the estimate's unit."""
        value = self.relative if self.absolute is None else self.absolute
        assert value is not None, "one of them is given"
        return value

    def half_width(self, found: Estimate) -> float | None:
        """Distance of the farther end from the estimate, in this measure; None where an end is open."""
        if found.estimate is None or found.interval is None:
            return None
        lower, upper = found.interval
        if lower is None or upper is None:
            return None
        half = max(upper - found.estimate, found.estimate - lower)
        if self.relative is None:
            return half
        return half / abs(found.estimate) if found.estimate else None


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the data says.

    ``interval`` holds the truth with ``confidence`` whenever one stops, at the goal or because time is over.
    ``half_width`` is a share or in the estimate's unit, as ``wanted`` is. ``reason``: why not to stop.
    """

    stop: bool
    launches: int
    estimate: float | None
    interval: Interval | None
    half_width: float | None
    wanted: float
    confidence: float
    reason: str | None = None


def look_confidence(confidence: float = 0.95, *, decision: bool = False) -> float:
    """Confidence at which the interval (or test) of every look is computed, to have ``confidence`` at the stop.

    Parameters
    ----------
    confidence : wanted at the stop
    decision : whether one stops at a significant difference, not at a width
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}. Use 0.95 for 95 %.")
    return 1 - (1 - confidence) * (DECISION_SHARE if decision else WIDTH_SHARE)


def look(found: Estimate, launches: int, goal: Precision, *, confidence: float = 0.95) -> Look:
    """Say whether measuring may stop.

    Parameters
    ----------
    found : the quantity, with its interval at ``look_confidence(confidence)``
    launches : complete ones behind it
    goal : how narrow it must be
    confidence : what ``found.interval`` has at the stop

    Returns
    -------
    Look
    """
    half = goal.half_width(found)
    reason = _why_not(found, half, launches, goal)
    return Look(
        stop=reason is None,
        launches=launches,
        estimate=found.estimate,
        interval=found.interval,
        half_width=half,
        wanted=goal.wanted,
        confidence=confidence,
        reason=reason,
    )


def _why_not(found: Estimate, half: float | None, launches: int, goal: Precision) -> str | None:
    if half is None:
        nothing = "the estimate is 0, and a share of it means nothing" if found.estimate == 0 else None
        return found.reason or nothing or "the interval is open at an end"
    if half > goal.wanted:
        return f"{_plus_minus(half, goal)} after {launches} launches, {_plus_minus(goal.wanted, goal)} asked"
    if launches < MIN_LAUNCHES_AT_LOOK:
        return f"{launches} launches: the first look is after {MIN_LAUNCHES_AT_LOOK}"
    return None


def _plus_minus(half: float, goal: Precision) -> str:
    return f"±{100 * half:.3g} %" if goal.absolute is None else f"±{half:.3g}"
