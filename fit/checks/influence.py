"""Which cell the law rests on: leverage, deleted residuals, and answers that turn when one cell is left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ...model.rank import TOLERANCE
from ..answer import Diagnostic
from ..intervals import holm
from ..sample import Sample
from ..stacked import TRUSTED, solve, stack
from .residuals import LEVEL, MATTERS, judged, others, skipped

if TYPE_CHECKING:
    from ..launches import LaunchTable
    from ..lawfit import FittedLaw, LawFits

ALONE = 1 - 1e-9


@dataclass(frozen=True, kw_only=True)
class Influence:
    """Influence of each of C cells on a weighted linear fit.

    Attributes
    ----------
    leverage : ndarray, shape (C,): 1 where a parameter rests on this cell alone
    relative : ndarray, shape (C,): residual over the fitted time
    deleted_t : ndarray, shape (C,): residual over its standard error without this cell; NaN at leverage 1
    cook : ndarray, shape (C,): Cook's distance; NaN at leverage 1
    freedom : cells minus parameters
    """

    leverage: np.ndarray
    relative: np.ndarray
    deleted_t: np.ndarray
    cook: np.ndarray
    freedom: int

    @property
    def p(self) -> tuple[float | None, ...]:
        """Two-sided p-value of each deleted residual, Holm over the cells; None where there is none."""
        raw = 2 * special.stdtr(self.freedom - 1, -np.abs(self.deleted_t))
        return holm([None if np.isnan(p) else float(p) for p in raw])


def influence(matrix: np.ndarray, times_s: np.ndarray, fitted_s: np.ndarray) -> Influence | None:
    """Measure the influence of each cell when residuals are relative to ``fitted_s``.

    Parameters
    ----------
    matrix : ndarray, shape (C, P), of any rank; times_s, fitted_s : ndarray, shape (C,), seconds

    Returns
    -------
    Influence, or None
        None with fewer than two degrees of freedom, or where every cell is fitted exactly.

    Notes
    -----
    The same numbers as statsmodels' ``OLSInfluence`` for a design of full rank; written out because statsmodels takes
    longer to import than a whole answer may take.

    References
    ----------
    R. D. Cook, Technometrics 19, 15-18, 1977, doi:10.1080/00401706.1977.10489493.
    """
    basis = _basis(matrix, fitted_s)
    target = times_s / fitted_s
    residual = target - basis @ (basis.T @ target)
    rank = basis.shape[1]
    freedom = len(target) - rank
    squares = float(residual @ residual)
    if freedom < 2 or squares <= 1e-18 * len(target):
        return None
    leverage = (basis**2).sum(axis=1)
    free = np.where(leverage < ALONE, 1 - leverage, np.nan)
    rest = np.maximum(squares - residual**2 / free, 1e-18) / (freedom - 1)
    return Influence(
        leverage=leverage,
        relative=residual,
        deleted_t=residual / np.sqrt(rest * free),
        cook=residual**2 * leverage / (rank * squares / freedom * free**2),
        freedom=freedom,
    )


def _basis(matrix: np.ndarray, fitted_s: np.ndarray) -> np.ndarray:
    """Orthonormal basis of what the weighted design can fit, shape (C, rank); its squares sum to the leverages."""
    scaled = matrix / fitted_s[:, None]
    lengths = np.linalg.norm(scaled, axis=0)
    left, singular, _ = np.linalg.svd(scaled[:, lengths > 0] / lengths[lengths > 0], full_matrices=False)
    return left[:, singular > TOLERANCE * singular.max(initial=0.0)]


def chosen_law(fits: LawFits) -> FittedLaw | None:
    """The law whose parameters are reported."""
    return next((law for law in fits.laws if law.name == fits.parameters_of), None)


def fitted_times(law: FittedLaw, sample: Sample) -> np.ndarray:
    """Times of the law's cells, shape (C,), seconds: mean over launches, kept near the measured ones."""
    fitted = law.design.matrix @ law.values.mean(axis=0)
    return np.clip(fitted, sample.mean_s / TRUSTED, sample.mean_s * TRUSTED)


def influential_cell(table: LaunchTable, strategy: str, fits: LawFits) -> Diagnostic:
    """Look for a cell that the law pays for: an outlier of the fit that moves it."""
    name = "no cell pulls the law"
    law = chosen_law(fits)
    if law is None:
        return skipped(name, "no law was fitted")
    sample = Sample.of(table, strategy)
    found = influence(law.design.matrix, sample.mean_s, fitted_times(law, sample))
    if found is None:
        return skipped(name, f"{law.name!r} leaves no residuals to judge a cell by", "measure more cells")
    threshold = 4 / found.freedom
    pulls = [
        i
        for i, p in enumerate(found.p)
        if p is not None and p < LEVEL and found.cook[i] > threshold and abs(found.relative[i]) >= MATTERS
    ]
    worst = max(pulls, key=lambda i: found.cook[i]) if pulls else int(np.nanargmax(found.cook))
    off = sample.mean_s[worst] / fitted_times(law, sample)[worst] - 1
    return judged(
        name,
        f"{sample.cells[worst]}{others(len(pulls) - 1)}",
        statistic=float(found.cook[worst]),
        p=found.p[worst],
        failed=bool(pulls),
        words=f"Cook's distance {found.cook[worst]:.2g} (alarm above {threshold:.2g}), "
        f"{100 * off:.2g} % off the law {law.name!r}",
        remedy="measure this cell again in a new sweep; if it stays, the law does not hold there, and its parameters "
        "are a compromise",
    )


def deciding_cell(
    table: LaunchTable, strategy: str, fits: LawFits, *, objective: str, reference: int, size: int
) -> Diagnostic:
    """Fit the law again without each cell in turn, and see whether its answers turn.

    An answer turns only where it makes a difference of ``MATTERS`` under the fit to all cells. Cells that a parameter
    rests on alone are not left out: without them there is no law.
    """
    name = "no cell decides the answer"
    law = chosen_law(fits)
    if law is None:
        return skipped(name, "no law was fitted")
    sample = Sample.of(table, strategy)
    cells, fitted_s = len(sample.cells), fitted_times(law, sample)
    free = np.flatnonzero((_basis(law.design.matrix, fitted_s) ** 2).sum(axis=1) < ALONE)
    if not free.size:
        return skipped(name, f"without any one cell {law.name!r} is not determined", "measure more cells")
    matrix = stack([law.design.matrix])
    weights = (1 - np.eye(cells)) / fitted_s**2
    times = np.broadcast_to(sample.mean_s, (cells + 1, cells))
    values = solve(np.repeat(matrix, cells + 1, axis=0), np.vstack([weights, 1 / fitted_s**2]), times)
    every = replace(law, values=values[:, : len(law.design.names)])
    counts = [n for n in table.devices("workload", strategy) if n >= reference]
    predicted = [every.latency_s(n, size) for n in counts]
    known = [one for one in predicted if one is not None]
    if len(known) < len(counts):
        return skipped(name, f"{law.name!r} has no number for every count without each cell")
    cost = np.array([t / n if objective == "throughput" else t for n, t in zip(counts, known, strict=True)])
    best = cost.argmin(axis=0)
    regret = cost[best, -1] / cost[best[-1], -1] - 1
    turned = [
        (f"the best count {counts[best[-1]]} becomes {counts[best[i]]}", i)
        for i in free
        if best[i] != best[-1] and regret[i] >= MATTERS
    ]
    turned += [(words, i) for words, i in _other_leader(every.causes(counts[-1], size)) if i in free]
    if not turned:
        return judged(
            name,
            f"any of {free.size} cells left out",
            statistic=float(regret.max()),
            p=None,
            failed=False,
            words=f"by the law {law.name!r}, best count and largest cause stay",
            remedy="",
        )
    words, worst = turned[0]
    return judged(
        name,
        f"{sample.cells[worst]}{others(len({i for _, i in turned}) - 1)}",
        statistic=float(regret.max()),
        p=None,
        failed=True,
        words=f"without it, by the law {law.name!r}, {words}",
        remedy="rest no answer on the law alone: measure this cell again, and one near it",
    )


def _other_leader(causes: dict[str, np.ndarray] | None) -> list[tuple[str, int]]:
    """Cells without which another cause is the largest; the last entry of each array is the fit to all cells."""
    if causes is None:
        return []
    names, times = list(causes), np.array(list(causes.values()))
    leads, whole = times.argmax(axis=0), times[:, -1]
    return [
        (f"the largest cause {names[leads[-1]]} becomes {names[lead]}", i)
        for i, lead in enumerate(leads[:-1])
        if lead != leads[-1] and whole[leads[-1]] - whole[lead] >= MATTERS * whole.sum()
    ]
