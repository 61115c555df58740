"""How much of a quantity's spread lies between launches and how much between the rounds of one launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..intervals import MIN_LAUNCHES, why_no_interval

GRID, FINE_GRID = 15, 61
"""Quantiles of each mean square, for averages and for the ends of an interval."""
CANNOT_SEPARATE = (
    f"the noise of launches cannot be told from that of rounds with fewer than {MIN_LAUNCHES} launches: measure at "
    f"least {MIN_LAUNCHES}, or state the noise with --launch-sd and --round-sd"
)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Variance components of one number a round.

    The mean of R rounds of one launch has variance ``launch_var + round_var / R`` over launches.

    Attributes
    ----------
    launch_var, round_var : squared unit of the quantity. ``round_var`` None: every launch had one round, so both are
        in ``launch_var``
    between, within : mean squares they were computed from, with ``between_dof`` and ``within_dof`` degrees of freedom;
        stated components have none
    rounds : a launch, in the pilot
    """

    launch_var: float
    round_var: float | None
    between: float = 0.0
    within: float = 0.0
    between_dof: float = np.inf
    within_dof: float = np.inf
    rounds: float = 1.0

    def variance(self, rounds: int) -> float:
        """Of the mean of ``rounds`` rounds of one launch."""
        return self.launch_var + (self.round_var or 0.0) / rounds

    def likely(self, rounds: int, grid: int = GRID) -> np.ndarray:
        """Variances of the mean of ``rounds`` rounds that the pilot speaks for, of equal weight, any shape.

        Notes
        -----
        The generalised pivots of the components [1]_: each mean square times its degrees of freedom over chi2, on a
        grid of chi2's quantiles; a launch variance that comes out negative is 0. One number where they were stated.

        References
        ----------
        .. [1] S. Weerahandi, J. Amer. Statist. Assoc. 88(423), 899-905, 1993, doi:10.1080/01621459.1993.10476355.
        """
        if np.isinf(self.between_dof):
            return np.array([self.variance(rounds)])
        middle = (np.arange(grid) + 0.5) / grid
        between = self.between * self.between_dof / special.chdtri(self.between_dof, middle)
        if not self.within_dof:
            return between
        within = self.within * self.within_dof / special.chdtri(self.within_dof, middle)
        return np.maximum(0.0, between[:, None] - within) / self.rounds + within / rounds

    def interval(self, rounds: int, confidence: float) -> tuple[float, float] | None:
        """Generalised interval of that variance; None where it was stated.

        Where the launches may not differ at all, the lower end is that of the rounds alone: at the bound the
        generalised interval would lie above the truth too often (16 % instead of 5, with 16 rounds).
        """
        if np.isinf(self.between_dof):
            return None
        tails = np.array([0.5 - confidence / 2, 0.5 + confidence / 2])
        if not self.within_dof:
            lower, upper = self.between * self.between_dof / special.chdtri(self.between_dof, tails)
            return float(lower), float(upper)
        lower, upper = np.quantile(self.likely(rounds, FINE_GRID), tails)
        if self.within and special.fdtrc(self.between_dof, self.within_dof, self.between / self.within) > tails[0]:
            alone = self.within * self.within_dof / special.chdtri(self.within_dof, tails[0]) / rounds
            lower = min(lower, alone)
        return float(lower), float(upper)


def components(values: Sequence[np.ndarray]) -> Noise | str:
    """Estimate the components from a pilot, or say why they cannot be.

    Parameters
    ----------
    values : one array a launch, shape (R_g,), any unit
        One number a round.

    Notes
    -----
    Method of moments for a one-way layout: E[within] = round_var, E[between] = round_var + R0 launch_var, with
    R0 = (N - Σ R_g² / N) / (G - 1) where launches have different numbers of rounds [1]_. A negative launch variance is
    0, and both mean squares then estimate the round variance.

    References
    ----------
    .. [1] S. R. Searle, G. Casella and C. E. McCulloch, Variance Components, Wiley, 1992, section 3.6.
    """
    values = [one for one in values if one.size]
    if len(values) < MIN_LAUNCHES:
        return CANNOT_SEPARATE
    means = np.array([one.mean() for one in values])
    if reason := why_no_interval(means):
        return f"{reason}, so the pilot shows no noise to plan for"
    counts = np.array([one.size for one in values], dtype=float)
    total, launches = counts.sum(), len(values)
    rounds = float((total - (counts**2).sum() / total) / (launches - 1))
    grand = float((counts * means).sum() / total)
    between = float((counts * (means - grand) ** 2).sum() / (launches - 1))
    within_dof = float(total - launches)
    if not within_dof:
        return Noise(launch_var=between, round_var=None, between=between, between_dof=launches - 1, within_dof=0.0)
    squares = float(sum(((one - one.mean()) ** 2).sum() for one in values))
    within = squares / within_dof
    launch_var = (between - within) / rounds
    if launch_var <= 0:
        pooled = (squares + between * (launches - 1)) / (within_dof + launches - 1)
        launch_var, round_var = 0.0, pooled
    else:
        round_var = within
    return Noise(
        launch_var=launch_var,
        round_var=round_var,
        between=between,
        within=within,
        between_dof=launches - 1,
        within_dof=within_dof,
        rounds=rounds,
    )
