"""Meanings of "bound by a cause": numbers against their null values, judged in both directions within their family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .answer import Holds, Meaning
from .attribution import Attribution, attribute, counts_at
from .extremes import Tested, interval
from .growth import growth_ends
from .intervals import holm
from .launches import LaunchTable

if TYPE_CHECKING:
    from .lawfit import LawFits


@dataclass(frozen=True, kw_only=True)
class Found:
    """The number of one meaning, less its null value, and what it says in words."""

    number: Tested
    words: str
    null: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Why a meaning has no number."""

    reason: str
    holds: Holds = "undefined"


@dataclass(frozen=True, kw_only=True)
class Place:
    """One size: the causes at each measured count from n0 to the largest asked for."""

    table: LaunchTable
    strategy: str
    axis_size: int
    causes: Mapping[int, Attribution]
    ends: tuple[int, int] | None

    @property
    def num_devices(self) -> int:
        """The largest count."""
        return max(self.causes)


def place_at(
    table: LaunchTable,
    strategy: str,
    axis_size: int,
    reference: int | None,
    largest: int | None,
    fits: LawFits | None,
) -> Place | None:
    """The causes at one size; None where no count from n0 to the largest was measured there."""
    counts = counts_at(table, strategy, axis_size, largest=largest)
    counts = tuple(n for n in counts if n >= (reference or 1)) or counts[-1:]
    found = {n: attribute(table, strategy, n, axis_size, fits=fits) for n in counts}
    causes = {n: one for n, one in found.items() if one is not None}
    if not causes:
        return None
    ends = growth_ends(table, strategy, axis_size, reference=reference, largest=largest)
    return Place(table=table, strategy=strategy, axis_size=axis_size, causes=causes, ends=ends)


def judged(
    found: Mapping[str, Found | Missing], *, confidence: float, adjusted: bool, outright: str | None = None
) -> dict[str, Meaning]:
    """Judge a family of meanings.

    Parameters
    ----------
    found : by name
    adjusted : whether ``holds`` follows the p-values after Holm over the meanings that have one, each direction by
        itself; the p-values themselves are always unadjusted
    outright : why none of them can hold, whatever was measured
    """
    numbers = {name: one.number for name, one in found.items() if isinstance(one, Found) and not one.number.why_not()}
    above = [number.p_above() for number in numbers.values()]
    below = [number.p_below() for number in numbers.values()]
    pairs = zip(holm(above), holm(below), strict=True) if adjusted else zip(above, below, strict=True)
    decided: dict[str, Holds] = dict(
        zip(numbers, (_holds(up, down, 1 - confidence) for up, down in pairs), strict=True)
    )
    return {name: _meaning(one, decided.get(name, "undecided"), outright, confidence) for name, one in found.items()}


def _holds(above: float | None, below: float | None, level: float) -> Holds:
    if above is not None and above < level:
        return "yes"
    return "no" if below is not None and below < level else "undecided"


def _meaning(found: Found | Missing, holds: Holds, outright: str | None, confidence: float) -> Meaning:
    if isinstance(found, Missing):
        return Meaning(
            estimate=None,
            interval=None,
            p_above=None,
            p_below=None,
            holds="no" if outright else found.holds,
            reason=outright or found.reason,
        )
    number, null = found.number, found.null
    why_not = number.why_not()
    ends = interval(number, confidence)
    said = {"yes": "significant", "no": "significantly not so", "undecided": why_not or "not significant either way"}
    return Meaning(
        estimate=number.estimate + null,
        interval=None if ends is None else (_shift(ends[0], null), _shift(ends[1], null)),
        p_above=None if why_not else number.p_above(),
        p_below=None if why_not else number.p_below(),
        holds="no" if outright else holds,
        reason=f"{outright}; measured: {found.words}" if outright else f"{found.words}: {said[holds]}",
    )


def _shift(end: float | None, null: float) -> float | None:
    return None if end is None else end + null


def percent(share: float) -> str:
    """A share in words."""
    return f"{round(100 * float(share))} %"
