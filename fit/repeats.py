"""Repeats of data from elsewhere that are not of the same work: a compile or warm-up first, a stall, a missing wait.

Our own calls are warmed up and their order is shuffled; a log's steps are neither, and its mean holds them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..data.rounds import TimedVisit
from ..model.cell import Cell

FAR_OFF = 3.0
"""A time this many times below or above the median of its series is no time of the same work."""
MIN_REPEATS = 3
MATTERS = 0.05
"""Share of a cell's mean from which repeats far off are doubted."""
AGREE, MOST = 1.25, 0.9
"""Later repeats agree where this share of them lies within this factor of their median."""
SLOW_FIRST = 2.0
"""Geometric mean over the series of a first repeat over the median of the later ones, from which it is left out."""
MOST_NAMED = 5
CLEAR = 1.5
"""Factor over the median of the later repeats of several first ones that stand clear of them: a warm-up."""


class WithoutFirst(NamedTuple):
    """Visits that may count, and the sentence about the first ones where they were left out."""

    visits: list[TimedVisit]
    words: str | None


class FarOff(NamedTuple):
    """Repeats of a series, shape (R,), that lie far off: which, whether a warm-up or a missing wait, and what they do.

    ``shift``: what they add to the time, the mean of the others, as a share of it. ``remedy``: what to do about them.
    """

    which: np.ndarray
    impossible: bool
    shift: float
    words: str
    remedy: str


def leave_out_first(visits: Sequence[TimedVisit]) -> WithoutFirst:
    """Leave out every series' first repeat where it is a compile or warm-up in all of them.

    Parameters
    ----------
    visits : of data from elsewhere, in file order; a series is the repeats of one cell in one launch

    Returns
    -------
    WithoutFirst
        All visits where there are fewer than two series, where one has fewer than three later repeats or such that do
        not agree, or where one's first repeat is not slower than nearly all later ones: by chance it is that in one
        series of R + 1 repeats in R + 1, and in all of k series rarely. It is left out by its place, not by its value,
        so that the mean of what is left has no bias.
    """
    series = [np.array([v.latency_s for v in one]) for one in _series(visits, by_launch=True).values()]
    if len(series) < 2 or not all(_slow_first(one) for one in series):
        return WithoutFirst(list(visits), None)
    ratios = [float(one[0] / np.median(one[1:])) for one in series]
    if np.exp(np.mean(np.log(ratios))) < SLOW_FIRST:
        return WithoutFirst(list(visits), None)
    words = (
        f"the first repeat of every cell{' in every launch' if _launches(visits) > 1 else ''} is left out: it takes "
        f"{min(ratios):.3g} to {max(ratios):.3g} times the median of the later ones, which agree; it holds a compile "
        "or warm-up"
    )
    return WithoutFirst(drop_first(visits), words)


def drop_first(visits: Sequence[TimedVisit]) -> list[TimedVisit]:
    """All but the first repeat of each cell in each launch."""
    firsts = {id(one[0]) for one in _series(visits, by_launch=True).values()}
    return [v for v in visits if id(v) not in firsts]


def odd_repeats(visits: Sequence[TimedVisit], *, by_launch: bool) -> dict[Cell, FarOff]:
    """Cells whose time repeats far off shift by ``MATTERS`` or more: the worst series of each, the shift of all.

    Parameters
    ----------
    visits : of data from elsewhere, in file order
    by_launch : whether launches are replicates; else all repeats of a cell are one series
    """
    by_cell: dict[Cell, list[tuple[str | None, FarOff | None]]] = defaultdict(list)
    for (cell, launch), one in _series(visits, by_launch=by_launch).items():
        by_cell[cell].append((launch, far_off(np.array([v.latency_s for v in one]))))
    found: dict[Cell, FarOff] = {}
    for cell, series in by_cell.items():
        odd = [(launch, one) for launch, one in series if one is not None]
        # A cell's time is the geometric mean over launches.
        shift = float(np.expm1(sum(np.log1p(one.shift) for _, one in odd) / len(series)))
        if abs(shift) >= MATTERS:
            launch, worst = max(odd, key=lambda one: abs(one[1].shift))
            words = f"in launch {launch} {worst.words}" if by_launch else worst.words
            found[cell] = worst._replace(shift=shift, words=words)
    return found


def doubt(found: Mapping[Cell, FarOff]) -> str:
    """One sentence about the worst cell: what lies off, what that does to its mean, what to do."""
    cell, odd = max(found.items(), key=lambda one: abs(one[1].shift))
    more = f" and {len(found) - 1} other cell{'s' * (len(found) > 2)}" if len(found) > 1 else ""
    verb = "raise" if odd.shift > 0 else "lower"
    return (
        f"{cell}{more}: {odd.words}; that {verb}s its time by {100 * abs(odd.shift):.3g} %, and the answer may turn on "
        f"it: {odd.remedy}"
    )


def far_off(times: np.ndarray) -> FarOff | None:
    """Look for repeats, shape (R,), seconds, in file order, that lie far off their median; None where there are none.

    Notes
    -----
    Several first repeats that are slower than all later ones by more than those span, and by half, count too: by
    chance the slowest two of R repeats come first in one of R (R - 1) / 2 series, and few have two so clear of the
    rest.
    """
    if times.size < MIN_REPEATS:
        return None
    ratios = times / np.median(times)
    slow, short = ratios > FAR_OFF, ratios < 1 / FAR_OFF
    slow[: _warm_up(times)] = True
    which = slow | short
    if not which.any() or which.all():
        return None
    lead = int(np.argmin(slow))
    later = np.flatnonzero(slow[lead:]) + lead
    words, remedies = [], []
    if lead:
        why = "it holds a compile or warm-up", "they hold a compile or warm-up"
        words.append(_takes(np.arange(lead), f"{ratios[:lead].max():.3g} times the median", why))
        remedies.append("leave the first repeat out" if lead == 1 else f"leave the first {lead} repeats out")
    if later.size:
        why = "it holds a compile, a checkpoint or a stall", "they hold a compile, a checkpoint or a stall"
        words.append(_takes(later, f"{ratios[later].max():.3g} times the median", why))
        remedies.append("leave such repeats out where they are no part of the work")
    if short.any():
        why = "it was not waited for", "they were not waited for"
        words.append(_takes(np.flatnonzero(short), f"{ratios.min():.2g} of the median", why))
        remedies.append("block until the result is ready, and take the median of what is left")
    return FarOff(
        which=which,
        impossible=bool(lead or short.any()),
        shift=float(times.mean() / times[~which].mean() - 1),
        words="; ".join(words),
        remedy="; ".join(remedies),
    )


def _takes(places: np.ndarray, furthest: str, why: tuple[str, str]) -> str:
    """``repeat 1 takes 8 times the median: it holds a compile``, or the same of several."""
    if places.size == 1:
        return f"repeat {places[0] + 1} takes {furthest}: {why[0]}"
    *first, last = [str(place + 1) for place in places[:MOST_NAMED]]
    named = f"{', '.join(first)} and {last}" if places.size <= MOST_NAMED else f"{', '.join([*first, last])} and more"
    return f"repeats {named} take {furthest} at the furthest: {why[1]}"


def _warm_up(times: np.ndarray) -> int:
    """How many first repeats, two at least and a quarter at most, stand clear of all later ones."""
    counts = np.arange(2, times.size // 4 + 1)
    first = np.minimum.accumulate(times)[counts - 1]
    highest, lowest = (f.accumulate(times[::-1])[::-1][counts] for f in (np.maximum, np.minimum))
    clear = (first > highest + (highest - lowest)) & (first > CLEAR * np.median(times))
    return int(counts[clear].max(initial=0))


def _slow_first(times: np.ndarray) -> bool:
    later = times[1:]
    if later.size < MIN_REPEATS:
        return False
    agree = np.abs(np.log(later / np.median(later))) <= np.log(AGREE)
    return bool(agree.mean() >= MOST and (later < times[0]).mean() >= MOST)


def _series(visits: Sequence[TimedVisit], *, by_launch: bool) -> dict[tuple[Cell, str | None], list[TimedVisit]]:
    found: dict[tuple[Cell, str | None], list[TimedVisit]] = defaultdict(list)
    for v in visits:
        found[v.cell, v.visit.launch if by_launch else None].append(v)
    return found


def _launches(visits: Sequence[TimedVisit]) -> int:
    return len({v.visit.launch for v in visits})
