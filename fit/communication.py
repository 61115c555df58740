"""Is the workload communication bound? Four meanings, each a number against its null value.

With c the communication, k the compute and T the time of a call, Δ the growth from the reference count n0:

- *share*: c / T against ½;
- *exceeds compute*: (c - k) / T against 0;
- *growth*: the smaller of (Δc - gain) / T(n0) and Δc / T(n0) - 0.05 against 0, gain = max(0, k(n0) - k(n));
- *no gain even with free dispatch* (strong path): with the growth of dispatch and entry free, no measured count beats
  n0, and with communication free as well, some count would: the smaller of the two log ratios of times against 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.cell import devices
from .answer import CommunicationBound, Meanings
from .attribution import CANNOT_COMMUNICATE, NO_COLLECTIVE_SAID, headline_size
from .collective_cost import workload_facts
from .counterfactual import prevented_gain
from .extremes import Mean, Smallest
from .growth import one_device_regime
from .intervals import tost
from .launches import LaunchTable
from .meanings import Found, Missing, Place, judged, percent, place_at

if TYPE_CHECKING:
    from .lawfit import LawFits

LEAST_GROWTH = 0.05
"""Communication that grows by less than this share of T(n0) makes nothing communication bound."""

NEGLIGIBLE = 0.05
"""Margin of the equivalence test: communication within this share of the time counts as none."""

OUTRIGHT = f"{CANNOT_COMMUNICATE}: no collective, send, receive, callback or custom call, and its inputs are in place"


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
    places = {one: place_at(table, strategy, one, reference, largest, fits) for one in sizes}
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


def _outright(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> str | None:
    facts = workload_facts(table, strategy, num_devices, axis_size)
    if facts is None or not facts.can_rule_out_communication:
        return None
    return NO_COLLECTIVE_SAID if table.foreign else OUTRIGHT


def _meanings(place: Place, confidence: float, *, adjusted: bool) -> Meanings:
    found = {
        "share": _share(place, confidence),
        "exceeds_compute": _exceeds_compute(place),
        "growth": _growth(place),
        "no_gain_even_with_free_dispatch": prevented_gain(place, "communication", free="dispatch"),
    }
    outright = _outright(place.table, place.strategy, place.num_devices, place.axis_size)
    return Meanings(
        size=place.axis_size,
        num_devices=place.num_devices,
        adjusted=adjusted,
        **judged(found, confidence=confidence, adjusted=adjusted, outright=outright),
    )


def _share(place: Place, confidence: float) -> Found | Missing:
    at = place.causes[place.num_devices]
    c = at.seconds["communication"]
    if c is None:
        return Missing(reason=at.reasons.get("communication") or at.undecided or "")
    share = c / at.total
    words = f"communication is {percent(share.mean())} of the time on {devices(place.num_devices)}, against half"
    if tost(share, NEGLIGIBLE, confidence=confidence).equivalent:
        words += f" (equivalent to none within {percent(NEGLIGIBLE)} of the time)"
    return Found(number=Mean(share - 0.5), null=0.5, words=words)


def _exceeds_compute(place: Place) -> Found | Missing:
    at = place.causes[place.num_devices]
    c, k = at.seconds["communication"], at.seconds["compute"]
    if c is None or k is None:
        return Missing(reason=at.undecided or "")
    words = (
        f"communication is {percent((c / at.total).mean())} and compute {percent((k / at.total).mean())} "
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
        f"from {first} to {devices(last)} communication grows by {percent(grown.mean())} of the time on {first} "
        f"while compute gains {percent(max(0.0, change.mean()))}; it must exceed the gain and {percent(LEAST_GROWTH)}"
    )
    return Found(number=smaller, words=words)
