"""A log cost, or the log ratio of two costs, known by one or several routes.

A measured cell is its own only route; elsewhere every kept law is one. What is said holds for all routes: intervals
are unions over them, p-values the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from .answer import Estimate
from .intervals import IDENTICAL, why_no_interval

DISCREPANCY_DOF = 5
"""Degrees of freedom of a discrepancy: a median of a dozen absolute errors is worth as much as five squares."""

NOT_JUDGED = "the law behind it could not be judged on held-out cells"


@dataclass(frozen=True, kw_only=True)
class Route:
    """One way to know a log cost: launch-wise values, shape (G,), and the discrepancy of the law behind them.

    ``source`` names the law, or is ``measured``; ``discrepancy`` (d, log scale) is 0 for a measured cell and None
    for a law that was not judged.
    """

    source: str
    log_cost: np.ndarray
    discrepancy: float | None = 0.0


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Mean and standard error sqrt(s²/G + d²) of a log cost or log ratio, one entry a route.

    Attributes
    ----------
    means, errors : ndarray, shape (R,)
    dof : ndarray, shape (R,)
        Degrees of freedom of the errors: G - 1 for a measurement. With a discrepancy they are Satterthwaite's [1]_:
        with three launches, two degrees of freedom are those of s²/G alone.
    reason : why there is no interval and no p-value; None where there is

    References
    ----------
    .. [1] F. E. Satterthwaite, Biometrics Bulletin 2(6), 110-114, 1946, doi:10.2307/3002019.
    """

    means: np.ndarray
    errors: np.ndarray
    dof: np.ndarray
    reason: str | None = None

    @property
    def estimate(self) -> float:
        """The mean by the first route."""
        return float(self.means[0])

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Student t, the union over the routes."""
        if self.reason:
            return None
        half = special.stdtrit(self.dof, 0.5 + confidence / 2) * self.errors
        return float((self.means - half).min()), float((self.means + half).max())

    def p_above(self) -> float | None:
        """p-value of "at most 0" (small: it lies above), the largest over the routes."""
        return None if self.reason else float(special.stdtr(self.dof, -self.means / self.errors).max())

    def p_below(self) -> float | None:
        """p-value of "at least 0" (small: it lies below), the largest over the routes."""
        return (-self).p_above()

    def natural(self, confidence: float) -> Estimate:
        """The same on the natural scale: exp of estimate and interval."""
        estimate = float(np.exp(self.estimate))
        if (interval := self.interval(confidence)) is None:
            return Estimate(estimate=estimate, reason=self.reason)
        return Estimate(estimate=estimate, interval=(float(np.exp(interval[0])), float(np.exp(interval[1]))))

    def plus(self, offset: float) -> Comparison:
        """With a known number added."""
        return replace(self, means=self.means + offset)

    def __neg__(self) -> Comparison:
        return replace(self, means=-self.means)


def alone(routes: Sequence[Route]) -> Comparison:
    """A log cost by itself."""
    return _summary([(r.log_cost, r.discrepancy) for r in routes])


def ratio(routes: Sequence[Route], others: Sequence[Route]) -> Comparison:
    """Log of one cost over another's, paired by launch.

    Two predictions are compared law by law (the discrepancies add in squares); a prediction and a measurement
    route by route.
    """
    pairs = []
    for a in routes:
        for b in others:
            if a.source == b.source or "measured" in (a.source, b.source):
                pairs.append((a.log_cost - b.log_cost, _joint(a.discrepancy, b.discrepancy)))
    return _summary(pairs)


def _joint(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else float(np.hypot(a, b))


def _summary(values: list[tuple[np.ndarray, float | None]]) -> Comparison:
    log_costs = np.array([v for v, _ in values])
    discrepancies = np.array([np.nan if d is None else d for _, d in values])
    launches = log_costs.shape[1]
    variance = log_costs.var(axis=1, ddof=1) / launches if launches > 1 else np.full(len(values), np.nan)
    return Comparison(
        means=log_costs.mean(axis=1),
        errors=np.sqrt(variance + discrepancies**2),
        dof=_dof(variance, discrepancies**2, launches),
        reason=next(filter(None, (_why_none(v, d) for v, d in values)), None),
    )


def _dof(variance: np.ndarray, squared: np.ndarray, launches: int) -> np.ndarray:
    """Satterthwaite's degrees of freedom of a sum of variances; G - 1 where there is nothing to add."""
    own = max(launches - 1, 1)
    parts = variance**2 / own + squared**2 / DISCREPANCY_DOF
    return np.where(squared > 0, (variance + squared) ** 2 / np.where(parts > 0, parts, 1.0), own)


def _why_none(values: np.ndarray, discrepancy: float | None) -> str | None:
    if discrepancy is None:
        return NOT_JUDGED
    reason = why_no_interval(values)
    # Launches that agree to the last digit say nothing about a measurement, but a law's own error still does.
    return None if reason == IDENTICAL and discrepancy > 0 else reason
