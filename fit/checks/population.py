"""Whether the replicates of a cell come from one population: two modes, by visit or by launch, and exact copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from ...model.cell import Cell
from ..answer import Diagnostic
from ..intervals import holm
from ..launches import LaunchTable
from .residuals import LEVEL, Residuals, judged, others, percent, skipped

SMALLER_MODE = 0.2
"""Share of the replicates that the smaller mode must have, two at least: fewer are outliers, not a population."""

APART = 0.10
MIN_VALUES = 20
MIN_LAUNCHES = 5
DRAWS = 20_000
COPIED = "copied or rounded numbers carry no spread, so nothing can be tested: give the raw times of each run"


class Split(NamedTuple):
    """Best split of values in two: share of the variance left inside the groups, border, distance of the means."""

    inside: float
    border: float
    apart: float


def two_means(values: np.ndarray) -> Split:
    """Split values, shape (n,), in two groups of least variance, each of at least ``SMALLER_MODE``.

    Exact for one dimension: the groups of the best split are neighbours when sorted.
    """
    ordered = np.sort(values)
    sums, between, lower = _splits(ordered)
    best = int(between.argmax())
    size, total = int(lower[best]), float(((ordered - ordered.mean()) ** 2).sum())
    border = float(ordered[size - 1] + ordered[size]) / 2
    apart = float(abs(sums[best]) * (1 / size + 1 / (ordered.size - size)))
    return Split(1 - float(between[best]) / total if total > 0 else 1.0, border, apart)


def _splits(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum of the lower group about the mean, sum of squares between the groups, size of the lower group, by split.

    ``ordered`` has shape (..., n), each row ascending; the first two have shape (..., splits), the sizes (splits,).
    """
    count = ordered.shape[-1]
    least = max(2, int(np.ceil(SMALLER_MODE * count)))
    lower = np.arange(least, count - least + 1)
    sums = np.cumsum(ordered - ordered.mean(axis=-1, keepdims=True), axis=-1)[..., lower - 1]
    return sums, sums**2 * (1 / lower + 1 / (count - lower)), lower


def one_population_p(inside: float, count: int) -> float:
    """p-value of "these values come from one population", from the share of variance inside two groups.

    Parameters
    ----------
    inside : as ``two_means`` gives it: 1/4 for many values spread evenly, 0.36 for a normal, near 0 for two clusters
    count : n

    Notes
    -----
    Against the uniform distribution, the unimodal one that looks most like two clusters (as for Hartigan's dip [1]_);
    the share's logit is close to normal there, mean -1.0986 - 2.3/n, standard deviation below 1.65/√n for n >= 20.
    Fewer values are compared with draws.

    References
    ----------
    .. [1] J. A. Hartigan, P. M. Hartigan, Ann. Statist. 13, 70-84, 1985, doi:10.1214/aos/1176346577.
    """
    if inside <= 0:
        return 1 / (DRAWS + 1) if count < MIN_VALUES else 0.0
    if count >= MIN_VALUES:
        return float(special.ndtr((special.logit(inside) + 1.0986 + 2.3 / count) * np.sqrt(count) / 1.65))
    draws = np.sort(np.random.default_rng(count).random((DRAWS, count)), axis=1)
    least = 1 - _splits(draws)[1].max(axis=1) / (draws.var(axis=1) * count)
    return float(1 + (least <= inside).sum()) / (DRAWS + 1)


class _Tested(NamedTuple):
    """One cell whose replicates (``kind``: visits, launches, repeats) were split in two."""

    cell: Cell
    split: Split
    kind: str
    p: float


def modes(residuals: Residuals) -> Diagnostic:
    """Look for cells whose visits, or launches, fall in two groups.

    Visits count as replicates only where half of the launches or more hold both groups; else the launches are what
    differs, and there are only G of them.
    """
    tested = [found for cell in range(len(residuals.cells)) if (found := _modes_of(residuals, cell)) is not None]
    return _judge(tested, f"fewer than {MIN_VALUES} visits a cell", "give the sweep a larger --budget", "visits")


def one_population(times: Mapping[Cell, np.ndarray]) -> Diagnostic:
    """Look for cells whose repeats, each of shape (R,), seconds, fall in two groups."""
    tested = [
        _Tested(cell, split, "repeats", _p(split, one.size))
        for cell, one in times.items()
        if one.size >= MIN_LAUNCHES and (split := two_means(np.log(one))).apart > 0
    ]
    reason = f"no cell has {MIN_LAUNCHES} repeats that differ"
    return _judge(tested, reason, "give the raw times of each repeat", "repeats")


def _judge(tested: Sequence[_Tested], why_not: str, how: str, kind: str) -> Diagnostic:
    name = "one population"
    if not tested:
        return skipped(name, why_not, how)
    adjusted = [1.0 if p is None else p for p in holm([one.p for one in tested])]
    failing = [
        (one, p) for one, p in zip(tested, adjusted, strict=True) if p < LEVEL and np.expm1(one.split.apart) >= APART
    ]
    if not failing:
        best = min(range(len(tested)), key=lambda i: tested[i].p)
        return judged(
            name,
            str(tested[best].cell),
            statistic=tested[best].split.inside,
            p=adjusted[best],
            failed=False,
            words=f"no cell's {kind} fall in two groups",
            remedy="",
        )
    # The workload is what is asked about; of several, the cell whose groups lie furthest apart.
    worst, p = max(failing, key=lambda one: (one[0].cell.role == "workload", one[0].split.apart))
    return judged(
        name,
        f"{worst.cell}{others(len(failing) - 1)}",
        statistic=worst.split.inside,
        p=p,
        failed=True,
        words=f"{worst.kind} fall in two groups, the slower one {percent(worst.split.apart)} above",
        remedy="their mean describes neither: find what switches (a program run inline or on a pool, clock, "
        "placement), or compare counts that are free of it",
    )


def _modes_of(residuals: Residuals, cell: int) -> _Tested | None:
    per_launch = [block[cell][np.isfinite(block[cell])] for block in residuals.rounds]
    level = residuals.levels[cell]
    if len(per_launch) == level.size:
        visits = np.concatenate([values + shift for values, shift in zip(per_launch, level, strict=True)])
        if visits.size >= MIN_VALUES:
            split = two_means(visits)
            both = [
                min(np.mean(values + shift > split.border), np.mean(values + shift <= split.border)) >= 0.1
                for values, shift in zip(per_launch, level, strict=True)
            ]
            if np.mean(both) >= 0.5:
                return _Tested(residuals.cells[cell], split, "visits", one_population_p(split.inside, visits.size))
    if level.size < MIN_LAUNCHES:
        return None
    split = two_means(level)
    p = _p(split, level.size)
    if len(residuals.cells) > 1:
        # A launch that is slower as a whole is no mode of the cell: it must fall in two beside the other cells too.
        p = max(p, _p(two_means(level - residuals.launch_effects), level.size))
    return _Tested(residuals.cells[cell], split, "launches", p)


def _p(split: Split, count: int) -> float:
    """p-value of one population; of few values only tight clusters are worth the draws, all else is far from small."""
    worth = np.expm1(split.apart) >= APART and (split.inside < 0.03 or count >= MIN_VALUES)
    return one_population_p(split.inside, count) if worth else 1.0


def copies(table: LaunchTable) -> Diagnostic:
    """Look for replicates that agree to the last digit: a clock reads nanoseconds, so equal times are copies."""
    name = "replicates differ"
    if table.num_launches < 2:
        return skipped(name, "one launch only", "measure at least three launches")
    there = np.isfinite(table.latency_s).all(axis=1)
    times = table.latency_s[there]
    spread = np.ptp(times, axis=1) <= 1e-12 * times.max(axis=1)
    same_launch = [
        (a, b)
        for a in range(times.shape[1])
        for b in range(a + 1, times.shape[1])
        if len(times) > 1 and np.allclose(times[:, a], times[:, b], rtol=1e-12, atol=0)
    ]
    if spread.any():
        cells = [table.cells[i] for i in np.flatnonzero(there)]
        first = int(np.flatnonzero(spread)[0])
        return judged(
            name,
            f"{cells[first]}{others(int(spread.sum()) - 1)}",
            statistic=float(spread.sum()),
            p=None,
            failed=True,
            words="all launches are identical to the last digit",
            remedy=COPIED,
        )
    if same_launch:
        a, b = same_launch[0]
        return judged(
            name,
            f"launches {a + 1} and {b + 1}",
            statistic=float(len(same_launch)),
            p=None,
            failed=True,
            words="every cell has the same time in both: one is a copy of the other",
            remedy=COPIED,
        )
    return judged(
        name, "all cells", statistic=0.0, p=None, failed=False, words="no two launches are the same", remedy=""
    )


def normal_launches(table: LaunchTable) -> Diagnostic:
    """Test whether log times of launches are normal, cell by cell (Shapiro and Wilk), as Student t assumes."""
    from scipy import stats  # half a second

    name = "normal launches"
    if table.num_launches < MIN_LAUNCHES:
        return skipped(name, f"fewer than {MIN_LAUNCHES} launches", "measure more launches with --launches 8")
    logs = {cell: np.log(row) for cell, row in zip(table.cells, table.latency_s, strict=True) if np.all(row > 0)}
    cells = [cell for cell, values in logs.items() if np.ptp(values) > 1e-12]
    if not cells:
        return skipped(name, "replicates are identical", "give the raw times of each run")
    results = [stats.shapiro(logs[cell]) for cell in cells]
    adjusted = [float(p) for p in holm([float(result.pvalue) for result in results]) if p is not None]
    failing = sum(p < LEVEL for p in adjusted)
    worst = int(np.argmin([result.pvalue for result in results]))
    return judged(
        name,
        f"{cells[worst]}{others(failing - 1)}",
        statistic=float(results[worst].statistic),
        p=adjusted[worst],
        failed=failing > 0,
        words=f"Shapiro-Wilk W {results[worst].statistic:.2f}, the smallest p-value of {len(cells)} cells",
        remedy="look at the launches one by one: t over them is only roughly right here; more launches help",
    )
