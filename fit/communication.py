"""Is the workload communication bound? Four meanings, each a number against its null value.

With c the communication, k the compute and T the time of a call, Δ the growth from the reference count n0:

- *share*: c / T against ½;
- *exceeds compute*: (c - k) / T against 0;
- *growth*: the smaller of (Δc - gain) / T(n0) and Δc / T(n0) - 0.05 against 0, gain = max(0, k(n0) - k(n));
- *no gain even with free dispatch* (strong path): with the growth of dispatch and entry free, no measured count beats
  n0, and with communication free as well, some count would: the smaller of the two log ratios of times against 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..model.cell import devices
from .answer import CommunicationBound, Holds, Meaning, Meanings
from .attribution import CANNOT_COMMUNICATE, Attribution, attribute, counts_at, headline_size
from .collective_cost import workload_facts
from .extremes import Between, Largest, Mean, Smallest, Tested, interval
from .growth import growth_ends, one_device_regime
from .intervals import holm, tost
from .launches import LaunchTable

if TYPE_CHECKING:
    from .lawfit import LawFits

LEAST_GROWTH = 0.05
"""Communication that grows by less than this share of T(n0) makes nothing communication bound."""

NEGLIGIBLE = 0.05
"""Margin of the equivalence test: communication within this share of the time counts as none."""

OUTRIGHT = f"{CANNOT_COMMUNICATE}: no collective, send, receive, callback or custom call, and its inputs are in place"


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


def communication_bound(
    table: LaunchTable,
    strategy: str,
    *,
    size: int | None = None,
    reference: int | None = None,
    largest: int | None = None,
    fits: LawFits | None = None,
    confidence: float = 0.95,
) -> CommunicationBound:
    """Judge the four meanings at the largest count, for the headline size and every other one.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    size : int, optional
        Headline entry of the plan's size axis; the largest measured by default.
    reference, largest : int, optional
        Reference count n0 and largest count asked for; the smallest and largest measured by default.
    fits : LawFits, optional
        Source of the communication where neither control nor probe was measured.

    Returns
    -------
    CommunicationBound
        p-values are unadjusted. At the headline size ``holds`` follows them after Holm over the meanings that have
        one, each direction by itself; ``by_size`` takes them as they are.

    Raises
    ------
    ValueError
        If the strategy was not measured at the size.
    """
    sizes = table.sizes("workload", strategy)
    headline = headline_size(table, strategy, size)
    if headline is None:
        where = "" if size is None else f" at size {size}"
        measured = ", ".join(map(str, sizes)) or "none"
        raise ValueError(f"strategy {strategy!r} was not measured{where}; measured sizes: {measured}.")
    places = {one: _place(table, strategy, one, reference, largest, fits) for one in sizes}
    by_size = {
        one: _meanings(place, confidence, adjusted=one == headline)
        for one, place in places.items()
        if place is not None
    }
    main = by_size.pop(headline, None)
    if main is None:
        raise ValueError(f"strategy {strategy!r} was not measured on up to {largest} devices at size {headline}.")
    return CommunicationBound(
        **{name: getattr(main, name) for name in Meanings.__struct_fields__},
        by_size=by_size,
        rejected_outright=_outright(table, strategy, main.num_devices, headline),
    )


def _place(
    table: LaunchTable,
    strategy: str,
    axis_size: int,
    reference: int | None,
    largest: int | None,
    fits: LawFits | None,
) -> Place | None:
    counts = counts_at(table, strategy, axis_size, largest=largest)
    counts = tuple(n for n in counts if n >= (reference or 1)) or counts[-1:]
    found = {n: attribute(table, strategy, n, axis_size, fits=fits) for n in counts}
    causes = {n: one for n, one in found.items() if one is not None}
    if not causes:
        return None
    ends = growth_ends(table, strategy, axis_size, reference=reference, largest=largest)
    return Place(table=table, strategy=strategy, axis_size=axis_size, causes=causes, ends=ends)


def _outright(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> str | None:
    facts = workload_facts(table, strategy, num_devices, axis_size)
    return OUTRIGHT if facts is not None and facts.can_rule_out_communication else None


def _meanings(place: Place, confidence: float, *, adjusted: bool) -> Meanings:
    found = {
        "share": _share(place, confidence),
        "exceeds_compute": _exceeds_compute(place),
        "growth": _growth(place),
        "no_gain_even_with_free_dispatch": _no_gain(place),
    }
    numbers = {name: one.number for name, one in found.items() if isinstance(one, Found) and not one.number.why_not()}
    above = [number.p_above() for number in numbers.values()]
    below = [number.p_below() for number in numbers.values()]
    judged = zip(holm(above), holm(below), strict=True) if adjusted else zip(above, below, strict=True)
    decided: dict[str, Holds] = dict(
        zip(numbers, (_holds(up, down, 1 - confidence) for up, down in judged), strict=True)
    )
    outright = _outright(place.table, place.strategy, place.num_devices, place.axis_size)
    return Meanings(
        size=place.axis_size,
        num_devices=place.num_devices,
        adjusted=adjusted,
        **{name: _meaning(one, decided.get(name, "undecided"), outright, confidence) for name, one in found.items()},
    )


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


def _share(place: Place, confidence: float) -> Found | Missing:
    at = place.causes[place.num_devices]
    c = at.seconds["communication"]
    if c is None:
        return Missing(reason=at.reasons.get("communication") or at.undecided or "")
    share = c / at.total
    words = f"communication is {_percent(share.mean())} of the time on {devices(place.num_devices)}, against half"
    if tost(share, NEGLIGIBLE, confidence=confidence).equivalent:
        words += f" (equivalent to none within {_percent(NEGLIGIBLE)} of the time)"
    return Found(number=Mean(share - 0.5), null=0.5, words=words)


def _exceeds_compute(place: Place) -> Found | Missing:
    at = place.causes[place.num_devices]
    c, k = at.seconds["communication"], at.seconds["compute"]
    if c is None or k is None:
        return Missing(reason=at.undecided or "")
    words = (
        f"communication is {_percent((c / at.total).mean())} and compute {_percent((k / at.total).mean())} "
        f"of the time on {devices(place.num_devices)}"
    )
    return Found(number=Mean((c - k) / at.total), words=words)


def _growth(place: Place) -> Found | Missing:
    if place.ends is None:
        return Missing(reason="growth needs two counts at this size")
    first, last = place.ends
    if first == 1 and (reason := one_device_regime(place.table, place.strategy, place.axis_size)):
        return Missing(reason=reason, holds="undecided")
    start, end = place.causes[first], place.causes[last]
    before, after = start.determined, end.determined
    if before is None or after is None:
        return Missing(reason=end.undecided or start.undecided or "")
    grown = (after["communication"] - before["communication"]) / start.total
    change = (before["compute"] - after["compute"]) / start.total
    # Cutting the gain at 0 changes nothing: growth less the least growth already lies below growth itself.
    smaller = Smallest((Mean(grown - change), Mean(grown - LEAST_GROWTH)))
    words = (
        f"from {first} to {devices(last)} communication grows by {_percent(grown.mean())} of the time on {first} "
        f"while compute gains {_percent(max(0.0, change.mean()))}; it must exceed the gain and {_percent(LEAST_GROWTH)}"
    )
    return Found(number=smaller, words=words)


def _no_gain(place: Place) -> Found | Missing:
    if place.table.plan.path != "strong":
        return Missing(reason="only defined at a fixed global size (strong path)")
    first, *later = sorted(place.causes)
    known = {n: one.determined for n, one in place.causes.items()}
    start, more = known[first], [n for n in later if known[n] is not None]
    if start is None or not more:
        reason = place.causes[place.num_devices].undecided or place.causes[first].undecided
        return Missing(reason=reason or "needs two counts at this size")
    least = start["dispatch"]
    most = least
    words = f"measured counts: {', '.join(map(str, (first, *more)))}"
    if first == 1 and (regime := one_device_regime(place.table, place.strategy, place.axis_size)):
        # Whatever the regime of the workload, its dispatch on one device lies between the null's there and on more.
        next_count = known[more[0]]
        most = least if next_count is None else np.maximum(least, next_count["dispatch"])
        words += f"; dispatch on one device is only bounded ({regime})"
    pieces = [_no_gain_ratios(place, first, more, dispatch) for dispatch in (least, most)]
    if any(np.isnan(ratio).any() for kept, free in pieces for ratio in (*kept, *free)):
        return Missing(reason="a time without dispatch and communication is not positive", holds="undecided")
    (kept_least, free_least), (kept_most, free_most) = pieces
    low, high = _extremes(kept_least, free_most), _extremes(kept_most, free_least)
    number = low if most is least else Between(low, high)
    said = (
        f"with dispatch free the best count takes {_times(kept_least)} the time of {devices(first)}, "
        f"with communication free as well {_times(free_least)}"
    )
    return Found(number=number, words=f"{said} ({words})")


def _no_gain_ratios(
    place: Place, first: int, more: list[int], dispatch: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Log time against the reference count, growth of dispatch free, with and without communication; each (G,).

    ``dispatch`` is the reference count's own, and stays in every time: freeing it too would not change any sign.
    """

    def log_time(n: int, *, communication_free: bool) -> np.ndarray:
        one = place.causes[n]
        known = one.determined or {}
        freed = known["communication"] if communication_free else 0.0
        grown = 0.0 if n == first else known["dispatch"] - dispatch
        return _log(one.total - grown - freed)

    def ratios(*, communication_free: bool) -> list[np.ndarray]:
        reference = log_time(first, communication_free=communication_free)
        return [log_time(n, communication_free=communication_free) - reference for n in more]

    return ratios(communication_free=False), ratios(communication_free=True)


def _extremes(kept: list[np.ndarray], free: list[np.ndarray]) -> Tested:
    """The smaller of "no count beats the reference" and "without communication some count would"."""
    return Smallest((Smallest(tuple(map(Mean, kept))), Largest(tuple(Mean(-ratio) for ratio in free))))


def _log(seconds: np.ndarray) -> np.ndarray:
    return np.log(np.where(seconds > 0, seconds, np.nan))


def _times(ratios: list[np.ndarray]) -> str:
    return f"{np.exp(min(ratio.mean() for ratio in ratios)):.2f} times"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
