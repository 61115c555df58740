"""Tests without a normal distribution: the sign test, and the Hodges-Lehmann estimate with Wilcoxon's interval.

Exact for any number of values, shape (G,), one per launch; scipy.stats has both, and takes half a second to import.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from .answer import Estimate
from .intervals import NOT_FINITE


def sign_p(values: np.ndarray) -> float | None:
    """Two-sided exact p-value of "above 0 is as likely as below"; zeros do not count, and None without any other."""
    values = np.asarray(values, dtype=float)
    above, below = int((values > 0).sum()), int((values < 0).sum())
    if above + below == 0:
        return None
    return min(1.0, 2 * float(special.bdtr(min(above, below), above + below, 0.5)))


def hodges_lehmann(values: np.ndarray, confidence: float = 0.95) -> Estimate:
    r"""Median of the means of all pairs of values, each with itself included, and its interval.

    Parameters
    ----------
    values : ndarray, shape (G,), any unit
    confidence : float
        What the interval reaches at least; where even the smallest and largest mean do not, there is none.

    Notes
    -----
    With :math:`A_{(1)} \le \dots \le A_{(M)}` the M = G (G + 1) / 2 means and k the largest number for which
    Wilcoxon's signed-rank sum is below k with probability (1 - confidence) / 2 at most, the interval is
    :math:`[A_{(k)}, A_{(M + 1 - k)}]` [1]_. It holds for any symmetric distribution.

    References
    ----------
    .. [1] M. Hollander and D. A. Wolfe, Nonparametric Statistical Methods, 2nd ed., Wiley, 1999, sections 3.2-3.3.
    """
    values = np.asarray(values, dtype=float)
    if values.size == 0 or not np.isfinite(values).all():
        return Estimate(reason=NOT_FINITE)
    first, second = np.triu_indices(values.size)
    means = np.sort((values[first] + values[second]) / 2)
    rank = int(np.searchsorted(np.cumsum(_rank_sums(values.size)), (1 - confidence) / 2, side="right"))
    if rank == 0:
        return Estimate(estimate=float(np.median(means)), reason=too_few(confidence))
    return Estimate(estimate=float(np.median(means)), interval=(float(means[rank - 1]), float(means[-rank])))


def too_few(confidence: float) -> str:
    """Why fewer values than this carry no interval."""
    needed = int(np.ceil(1 - np.log2(1 - confidence)))
    return f"signs and ranks need {needed} launches for {100 * confidence:g} %"


def _rank_sums(count: int) -> np.ndarray:
    """Probabilities of Wilcoxon's signed-rank sum, shape (G (G + 1) / 2 + 1,): each rank is in it or not."""
    probability = np.ones(1)
    for rank in range(1, count + 1):
        probability = (np.pad(probability, (0, rank)) + np.pad(probability, (rank, 0))) / 2
    return probability
