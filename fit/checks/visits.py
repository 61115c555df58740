"""What only the single visits and calls of a record show: warm-up, place in the round, series without launches."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from ...data.rounds import TimedVisit
from ...model.cell import Cell
from ..answer import Diagnostic
from ..intervals import MIN_LAUNCHES, TOO_FEW, holm, p_above, p_differs
from ..repeats import FAR_OFF, FarOff, far_off
from .population import COPIED, one_population
from .residuals import LEVEL, MATTERS, judged, others, percent, skipped
from .signal_noise import below_noise

MIN_SERIES = 5
MIN_STEP = 12
"""Repeats from which a step can come out at the level, one of two tests."""
MOST_BLOCKS = 100

Groups = Mapping[tuple[Cell, str], Sequence[TimedVisit]]


def by_cell_and_launch(visits: Sequence[TimedVisit]) -> Groups:
    """Complete visits by cell and launch, in file order."""
    groups: dict[tuple[Cell, str], list[TimedVisit]] = defaultdict(list)
    for visit in visits:
        if visit.complete and visit.cell.role != "sentinel":
            groups[visit.cell, visit.visit.launch].append(visit)
    return groups


def first_calls(groups: Groups) -> Diagnostic:
    """Test whether the first third of a visit's calls, warm-ups left out, is slower than the last (t over launches)."""
    name = "first calls of a visit"
    excess: dict[Cell, list[float]] = defaultdict(list)
    for (cell, _), visits in groups.items():
        ratios = [_first_over_last(v.visit.latency_ns[v.visit.warmups :]) for v in visits if v.num_calls >= 3]
        if ratios:
            excess[cell].append(float(np.mean(ratios)))
    cells = list(excess)
    if not cells:
        return skipped(name, "fewer than 3 calls a visit", "measure with --calls 6")
    values = [np.array(excess[cell]) for cell in cells]
    adjusted = holm([p_above(one) for one in values])
    if all(p is None for p in adjusted):
        return skipped(name, TOO_FEW, "measure at least three launches")
    means = np.array([one.mean() for one in values])
    failing = [i for i, p in enumerate(adjusted) if p is not None and p < LEVEL and means[i] >= MATTERS]
    worst = max(failing or range(len(cells)), key=lambda i: means[i])
    return judged(
        name,
        f"{cells[worst]}{others(len(failing) - 1)}",
        statistic=means[worst],
        p=adjusted[worst],
        failed=bool(failing),
        words=f"the first third of the calls differs by {percent(means[worst])} from the last",
        remedy="not steady, extend warm-up: measure with more --warmups",
    )


def position(groups: Groups, num_cells: int) -> Diagnostic:
    """Test whether the place of a visit in its round matters (slopes by launch, t over launches)."""
    name = "place in the round"
    moments: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for (_, launch), visits in groups.items():
        place = np.array([v.visit.position for v in visits]) / max(num_cells - 1, 1)
        logs = np.log([v.latency_s for v in visits])
        centred = place - place.mean()
        moments[launch] += np.array([centred @ logs, centred @ centred])
    slopes = np.array([product / square for product, square in moments.values() if square > 1e-9])
    if not slopes.size:
        return skipped(name, "every cell always had the same place", "measure with 'breakeven measure': it shuffles")
    p = p_differs(slopes)
    if p is None:
        return skipped(name, TOO_FEW, "measure at least three launches")
    mean = float(slopes.mean())
    return judged(
        name,
        "all cells",
        statistic=mean,
        p=p,
        failed=p < LEVEL and abs(mean) >= MATTERS,
        words=f"the last place of a round is {percent(mean)} slower than the first",
        remedy="the order is random, so comparisons stand; let the machine rest between rounds",
    )


def series(groups: Groups) -> list[Diagnostic]:
    """Check repeats without launches, cell by cell in file order: possible, steady, one population, above noise.

    All but the first check look at what is left without the repeats that the first one names.
    """
    repeats: dict[Cell, list[float]] = defaultdict(list)
    for (cell, _), visits in groups.items():
        repeats[cell] += [v.latency_s for v in visits]
    times = {cell: np.array(found) for cell, found in repeats.items() if len(found) >= MIN_LAUNCHES}
    if not times:
        return [skipped("steady series", "no cell has three repeats", "repeat each measurement, in separate runs")]
    odd = {cell: found for cell, one in times.items() if (found := _odd(one)) is not None}
    rest = {cell: one[~odd[cell].which] if cell in odd else one for cell, one in times.items()}
    return [_copies(times), _possible(times, odd), _steady(rest), one_population(rest), _above_noise(rest)]


def _odd(one: np.ndarray) -> FarOff | None:
    """Repeats that cannot be, or that shift the mean by what matters; a rare stall among many repeats does not."""
    found = far_off(one)
    return found if found is not None and (found.impossible or found.shift >= MATTERS) else None


def _copies(times: Mapping[Cell, np.ndarray]) -> Diagnostic:
    same = [cell for cell, one in times.items() if np.ptp(one) == 0]
    return judged(
        "replicates differ",
        f"{same[0]}{others(len(same) - 1)}" if same else "all cells",
        statistic=len(same),
        p=None,
        failed=bool(same),
        words="all repeats are identical to the last digit" if same else "no cell's repeats are all the same",
        remedy=COPIED,
    )


def _possible(times: Mapping[Cell, np.ndarray], odd: Mapping[Cell, FarOff]) -> Diagnostic:
    cell = max(odd or times, key=lambda cell: abs(odd[cell].shift) if cell in odd else 0)
    return judged(
        "possible times",
        f"{cell}{others(len(odd) - 1)}" if odd else "all cells",
        statistic=max(float((one / np.median(one)).max()) for one in times.values()),
        p=None,
        failed=bool(odd),
        words=odd[cell].words if odd else f"no repeat lies {FAR_OFF:g} times off where it matters",
        remedy=odd[cell].remedy if odd else "",
    )


def _steady(times: Mapping[Cell, np.ndarray]) -> Diagnostic:
    name = "steady series"
    tested = {cell: one for cell, one in times.items() if one.size >= MIN_SERIES and np.ptp(one) > 0}
    if not tested:
        return skipped(name, f"no cell has {MIN_SERIES} repeats that differ", "give the raw times of each repeat")
    cells = list(tested)
    trends = [_trend(one) for one in tested.values()]
    adjusted = [float(p) for p in holm([trend.p for trend in trends]) if p is not None]
    failing = [i for i, p in enumerate(adjusted) if p < LEVEL and abs(trends[i].change) >= MATTERS]
    worst = min(failing or range(len(cells)), key=lambda i: adjusted[i])
    trend = trends[worst]
    return judged(
        name,
        f"{cells[worst]}{others(len(failing) - 1)}",
        statistic=trend.tau,
        p=adjusted[worst],
        failed=bool(failing),
        words=trend.words if failing else f"no trend in file order (Kendall's tau {trend.tau:.2f})",
        remedy="not steady, extend warm-up: leave out the repeats before it is flat, or run longer"
        if trend.change < 0
        else "not steady: something grows from repeat to repeat (memory, heat); measure in fresh processes",
    )


class _Trend(NamedTuple):
    """The clearest of the tests for a trend: its p-value after Bonferroni, and the log change along the file."""

    p: float
    tau: float
    change: float
    words: str


def _trend(one: np.ndarray) -> _Trend:
    """Test for a trend along all repeats (Kendall), and for a step, which a trend hardly shows; p times the tests."""
    from scipy import stats  # half a second

    kendall = stats.kendalltau(np.arange(one.size), one)
    tau, third = float(kendall.statistic), max(1, one.size // 3)
    words = f"the repeats {'fall' if tau < 0 else 'rise'} in file order (Kendall's tau {tau:.2f})"
    change = math.log(np.median(one[-third:]) / np.median(one[:third]))
    found = [_Trend(float(kendall.pvalue), tau, change, words)]
    if one.size >= MIN_STEP:
        place, p = _step(np.log(one))
        change = math.log(np.median(one[place:]) / np.median(one[:place]))
        words = f"from repeat {place + 1} of {one.size} on they differ by {percent(change)} from those before (a step)"
        found.append(_Trend(p, tau, change, words))
    best = min(found, key=lambda trend: trend.p)
    return best._replace(p=min(1.0, best.p * len(found)))


def _step(logs: np.ndarray) -> tuple[int, float]:
    """Place of the best step in values of shape (R,), and the p-value of "their order does not matter".

    Notes
    -----
    The largest sum of squares between the values before and after a place, two or more on either side, against that of
    permutations: exact whatever the values' distribution. More draws only where the first thousand leave it small; of
    long series medians of neighbours are looked at.
    """
    blocks = np.array_split(logs, min(logs.size, MOST_BLOCKS))
    values = np.array([np.median(block) for block in blocks])
    values -= values.mean()
    rng = np.random.default_rng(0)
    between = _between(values)
    best = int(between.argmax())
    above = draws = 0
    for more in (1000, 19_000):
        shuffled = rng.permuted(np.tile(values, (more, 1)), axis=1)
        above += int((_between(shuffled).max(axis=1) >= between[best] * (1 - 1e-12)).sum())
        draws += more
        if above > 0.02 * draws:
            break
    return sum(block.size for block in blocks[: best + 2]), (1 + above) / (1 + draws)


def _between(values: np.ndarray) -> np.ndarray:
    """Sum of squares between both sides of each place, two values or more on either; values of mean 0, (..., R)."""
    count = values.shape[-1]
    before = np.arange(2, count - 1)
    sums = np.cumsum(values, axis=-1)[..., before - 1]
    return sums**2 * count / (before * (count - before))


def _above_noise(times: Mapping[Cell, np.ndarray]) -> Diagnostic:
    times = {cell: one for cell, one in times.items() if one.size >= MIN_LAUNCHES}
    if not times:
        return skipped("times above noise", "fewer than three repeats are left", "repeat each measurement")
    relative = {cell: float(one.std(ddof=1) / one.mean()) for cell, one in times.items()}
    noisy = [cell for cell, one in times.items() if below_noise(one)]
    worst = max(noisy or times, key=lambda cell: relative[cell])
    return judged(
        "times above noise",
        f"{worst}{others(len(noisy) - 1)}",
        statistic=relative[worst],
        p=None,
        failed=bool(noisy),
        words=f"repeats differ by {100 * relative[worst]:.0f} % of the time (one standard deviation)"
        + ("; signal below noise, no verdict" if noisy else ""),
        remedy="one more repeat could come out at zero: time longer runs, or inside the process instead of by "
        "difference, and repeat in separate runs",
    )


def _first_over_last(calls: Sequence[int]) -> float:
    third = len(calls) // 3
    return math.log(median(calls[:third]) / median(calls[-third:]))
