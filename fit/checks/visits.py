"""What only the single visits and calls of a record show: warm-up, place in the round, series without launches."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from ...data.rounds import TimedVisit
from ...model.cell import Cell
from ..answer import Diagnostic
from ..intervals import MIN_LAUNCHES, TOO_FEW, holm, p_above, p_differs
from .population import COPIED
from .residuals import LEVEL, MATTERS, judged, others, percent, skipped
from .signal_noise import below_noise

MIN_SERIES = 5
IMPOSSIBLE = 3.0
"""A time this many times below a series' median is no time of the same work; above it at the start, a compile."""

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
    """Check repeats without launches, cell by cell in file order: steady, above noise, possible."""
    repeats: dict[Cell, list[float]] = defaultdict(list)
    for (cell, _), visits in groups.items():
        repeats[cell] += [v.latency_s for v in visits]
    times = {cell: np.array(found) for cell, found in repeats.items() if len(found) >= MIN_LAUNCHES}
    if not times:
        return [skipped("steady series", "no cell has three repeats", "repeat each measurement, in separate runs")]
    return [_copies(times), _possible(times), _steady(times), _above_noise(times)]


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


def _possible(times: Mapping[Cell, np.ndarray]) -> Diagnostic:
    name = "possible times"
    found = {cell: one / np.median(one) for cell, one in times.items()}
    short = {cell: int(np.flatnonzero(one < 1 / IMPOSSIBLE)[0]) for cell, one in found.items()
             if (one < 1 / IMPOSSIBLE).any()}  # fmt: skip
    compiled = [cell for cell, one in found.items() if one[0] > IMPOSSIBLE]
    words, remedy = [], []
    if compiled:
        words.append(f"repeat 1 takes {found[compiled[0]][0]:.3g} times the median: it holds a compile or warm-up")
        remedy.append("leave the first repeat out")
    if short:
        cell, place = next(iter(short.items()))
        words.append(f"repeat {place + 1} takes {found[cell][place]:.2g} of the median: it was not waited for")
        remedy.append("block until the result is ready, and take the median of what is left")
    hit = list(dict.fromkeys([*compiled, *short]))
    cell = hit[0] if hit else next(iter(times))
    return judged(
        name,
        f"{cell}{others(len(hit) - 1)}" if hit else "all cells",
        statistic=float(found[cell].max()),
        p=None,
        failed=bool(hit),
        words="; ".join(words) or f"no repeat lies {IMPOSSIBLE:g} times off where it cannot",
        remedy="; ".join(remedy),
    )


def _steady(times: Mapping[Cell, np.ndarray]) -> Diagnostic:
    from scipy import stats  # half a second

    name = "steady series"
    tested = {cell: one for cell, one in times.items() if one.size >= MIN_SERIES and np.ptp(one) > 0}
    if not tested:
        return skipped(name, f"no cell has {MIN_SERIES} repeats that differ", "give the raw times of each repeat")
    cells = list(tested)
    results = [stats.kendalltau(np.arange(tested[cell].size), tested[cell]) for cell in cells]
    taus = [float(result.statistic) for result in results]
    adjusted = [float(p) for p in holm([float(result.pvalue) for result in results]) if p is not None]
    failing = [i for i, p in enumerate(adjusted) if p < LEVEL]
    worst = min(failing or range(len(cells)), key=lambda i: adjusted[i])
    direction = "fall" if taus[worst] < 0 else "rise"
    return judged(
        name,
        f"{cells[worst]}{others(len(failing) - 1)}",
        statistic=taus[worst],
        p=adjusted[worst],
        failed=bool(failing),
        words=f"the repeats {direction} in file order (Kendall's tau {taus[worst]:.2f})"
        if failing
        else f"no trend in file order (Kendall's tau {taus[worst]:.2f})",
        remedy="not steady, extend warm-up: leave out the repeats before it is flat, or run longer"
        if taus[worst] < 0
        else "not steady: something grows from repeat to repeat (memory, heat); measure in fresh processes",
    )


def _above_noise(times: Mapping[Cell, np.ndarray]) -> Diagnostic:
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
