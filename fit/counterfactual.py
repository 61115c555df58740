"""What would be if a cause were free: does it alone keep every larger count from beating the reference count?"""

from __future__ import annotations

import numpy as np

from ..model.cell import devices
from .extremes import Between, Largest, Mean, Smallest, Tested
from .growth import one_device_regime
from .meanings import Found, Missing, Place


def prevented_gain(place: Place, cause: str, *, free: str | None = None) -> Found | Missing:
    """No measured count beats n0, but with ``cause`` free as well some count would.

    The number is the smaller of two: the least log ratio of times T(n) / T(n0) with ``free`` free, and less the least
    one with ``cause`` free too; against 0. Of dispatch only the growth from n0 is freed, entry included.

    Parameters
    ----------
    place : Place, on the strong path
    cause : what is said to prevent the gain
    free : another cause that is free in both cases
    """
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
    before = {free} - {None}
    pieces = [
        [_log_ratios(place, first, more, dispatch, causes) for causes in (before, before | {cause})]
        for dispatch in (least, most)
    ]
    if any(np.isnan(ratio).any() for piece in pieces for ratios in piece for ratio in ratios):
        freed = " and ".join(filter(None, (free, cause)))
        return Missing(reason=f"a time without {freed} is not positive", holds="undecided")
    (kept_least, free_least), (kept_most, free_most) = pieces
    low, high = _extremes(kept_least, free_most), _extremes(kept_most, free_least)
    said = (
        f"{f'with {free} free' if free else 'as measured'} the best count takes {_times(kept_least)} the time of "
        f"{devices(first)}, with {cause} free {'as well ' if free else ''}{_times(free_least)}"
    )
    return Found(number=low if most is least else Between(low, high), words=f"{said} ({words})")


def _log_ratios(place: Place, first: int, more: list[int], dispatch: np.ndarray, free: set) -> list[np.ndarray]:
    """Log time against the reference count with some causes free, each (G,).

    ``dispatch`` is the reference count's own, and stays in every time: freeing it too would not change any sign.
    """

    def log_time(n: int) -> np.ndarray:
        one = place.causes[n]
        left = one.total
        for cause in free:
            spent = (one.determined or {})[cause]
            left = left - (spent if cause != "dispatch" else 0.0 if n == first else spent - dispatch)
        return _log(left)

    reference = log_time(first)
    return [log_time(n) - reference for n in more]


def _extremes(kept: list[np.ndarray], free: list[np.ndarray]) -> Tested:
    """The smaller of "no count beats the reference" and "without the cause some count would"."""
    return Smallest((Smallest(tuple(map(Mean, kept))), Largest(tuple(Mean(-ratio) for ratio in free))))


def _log(seconds: np.ndarray) -> np.ndarray:
    return np.log(np.where(seconds > 0, seconds, np.nan))


def _times(ratios: list[np.ndarray]) -> str:
    return f"{np.exp(min(ratio.mean() for ratio in ratios)):.2f} times"
