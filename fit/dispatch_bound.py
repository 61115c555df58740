"""Is the workload dispatch bound? Its share of the time, and what would be if the growth of dispatch were free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.cell import devices
from .answer import DispatchBound
from .counterfactual import prevented_gain
from .extremes import Mean
from .launches import LaunchTable
from .meanings import Found, Missing, Place, judged, percent, place_at

if TYPE_CHECKING:
    from .lawfit import LawFits


def dispatch_bound(
    table: LaunchTable,
    strategy: str,
    size: int,
    *,
    reference: int | None = None,
    largest: int | None = None,
    fits: LawFits | None = None,
    confidence: float = 0.95,
) -> DispatchBound | None:
    """Judge two meanings of "dispatch bound" at the largest count.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    size : int
        Entry of the plan's size axis.
    reference, largest : int, optional
        Reference count n0 and largest count asked for; the smallest and largest measured by default.
    fits : LawFits, optional
        Source of the causes where controls and probes were not measured.

    Returns
    -------
    DispatchBound or None
        *share*: dispatch, c0 included, over the time of the call, against 1/2. *prevents gain* (strong path): no
        measured count beats n0, but with the growth of dispatch and entry free some count would. p-values are
        unadjusted, ``holds`` follows them after Holm over the two. None where nothing was measured there.
    """
    place = place_at(table, strategy, size, reference, largest, fits)
    if place is None:
        return None
    found = {"share": _share(place), "prevents_gain": prevented_gain(place, "dispatch")}
    return DispatchBound(
        size=size, num_devices=place.num_devices, **judged(found, confidence=confidence, adjusted=True)
    )


def _share(place: Place) -> Found | Missing:
    at = place.causes[place.num_devices]
    dispatch = at.seconds["dispatch"]
    if dispatch is None:
        return Missing(reason=at.reasons.get("dispatch") or at.undecided or "")
    share = dispatch / at.total
    words = f"dispatch is {percent(share.mean())} of the time on {devices(place.num_devices)}, against half"
    return Found(number=Mean(share - 0.5), null=0.5, words=words)
