"""One answer against its truth, and the kinds of answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from breakeven.fit.answer import BreakEvenSize, Estimate, Parameter

Kind = Literal["interior", "set", "error", "choice"]
CONFIDENCE = 0.95
LEVEL = 1 - CONFIDENCE


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One answer against its truth.

    Attributes
    ----------
    group, quantity : the table it goes into, and its column there
    answered : whether there was an answer; one that was not given is not counted as right
    holds : whether the truth was in it, or the test did not err
    width : of the interval or set, in the group's unit; NaN where an end is open
    """

    group: str
    quantity: str
    kind: Kind
    answered: bool
    holds: bool
    width: float = np.nan


def interval(
    group: str, quantity: str, found: Estimate, truth: float, *, unit: float = 1.0, kind: Kind = "interior"
) -> Check:
    """An interval with two ends; its width in ``unit``."""
    if found.interval is None:
        return Check(group=group, quantity=quantity, kind=kind, answered=False, holds=False)
    low, high = (np.nan if end is None else end for end in found.interval)
    holds = not truth < low and not truth > high
    return Check(group=group, quantity=quantity, kind=kind, answered=True, holds=holds, width=(high - low) / unit)


def ratio(group: str, quantity: str, found: Estimate, truth: float, *, kind: Kind = "interior") -> Check:
    """A positive quantity; its width is the upper over the lower end."""
    if found.interval is None:
        return Check(group=group, quantity=quantity, kind=kind, answered=False, holds=False)
    low, high = (np.nan if end is None else end for end in found.interval)
    holds = not truth < low and not truth > high
    return Check(group=group, quantity=quantity, kind=kind, answered=True, holds=holds, width=high / low)


def members(quantity: str, found: Sequence[int | None], truth: int | None) -> Check:
    """A set of counts."""
    return Check(
        group="counts", quantity=quantity, kind="set", answered=bool(found), holds=truth in found, width=len(found)
    )


def pieces(quantity: str, found: BreakEvenSize, root: float) -> Check:
    """A set of sizes in pieces."""
    holds = any((low is None or low <= root) and (high is None or root <= high) for low, high in found.pieces)
    (low, high), *more = found.pieces or ((None, None),)
    return Check(
        group="break-even size",
        quantity=quantity,
        kind="set",
        answered=found.pieces != ((None, None),),
        holds=holds,
        width=high / low if low and high and not more else np.nan,
    )


def parameter(name: str, found: Parameter, truth: float) -> Iterator[Check]:
    """What is printed of a parameter, its interval or its upper limit; the limits of all once more by themselves."""
    kind: Kind = "interior" if truth > 0 else "set"
    quantity = name if truth > 0 else f"{name} (truth 0)"
    limited = found.interval is None and found.upper_limit is not None
    known = Estimate(interval=(0.0, found.upper_limit) if limited else found.interval)
    yield interval("parameters", quantity, known, truth, kind=kind, unit=truth or np.nan)
    if limited:
        yield interval("parameters", "upper limits", known, truth, kind="set", unit=truth or np.nan)


def error(quantity: str, *, said: bool, wrong: bool) -> Check:
    """A test, which errs where it says what is false."""
    return Check(group="tests", quantity=quantity, kind="error", answered=said, holds=not wrong)
