"""Student t over launches: estimates with intervals, one-sided tests, Holm, equivalence.

The replicate is the launch, so every function takes one number per launch, shape (G,). Fewer than three launches, or
launches that agree to the last digit, give no interval and no p-value, and a reason instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from .answer import Estimate

MIN_LAUNCHES = 3
TOO_FEW = "fewer than three launches"
IDENTICAL = "replicates are identical"
NOT_FINITE = "not measured in every launch"
NOT_POSITIVE = "not positive in every launch, so it has no logarithm"
RESIDUALS = "residuals, replication unknown"
NO_FREEDOM = "no degrees of freedom are left"
EXACT = 1e-9
RESOLUTION_S = 0.5e-9
"""A record holds whole nanoseconds, so a time that a formula gives is up to half of one off."""
EXACT_FIT = "the numbers fit to the last digit (made by a formula, or rounded and too few)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """Two one-sided tests against ``-margin`` and ``+margin``; ``equivalent`` is None where they could not run."""

    margin: float
    p: float | None
    equivalent: bool | None
    reason: str | None = None


def why_no_interval(values: np.ndarray) -> str | None:
    """Reason why values, shape (G,), carry no interval and no p-value; None where they do."""
    values = np.asarray(values, dtype=float)
    if not np.isfinite(values).all():
        return NOT_FINITE
    if values.size < MIN_LAUNCHES:
        return TOO_FEW
    # Rounding must not pass for spread: the same numbers in seconds and in microseconds differ in the last digit.
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return IDENTICAL
    return None


def t_estimate(values: np.ndarray, confidence: float = 0.95) -> Estimate:
    """Mean over launches with its two-sided t interval, G - 1 degrees of freedom.

    Parameters
    ----------
    values : ndarray, shape (G,), any unit
        One number per launch.
    confidence : float

    Returns
    -------
    Estimate
        In the unit of ``values``. Without an interval where ``why_no_interval`` gives a reason.
    """
    values = np.asarray(values, dtype=float)
    reason = why_no_interval(values)
    if values.size == 0 or reason == NOT_FINITE:
        return Estimate(reason=NOT_FINITE)
    mean = float(values.mean())
    if reason:
        return Estimate(estimate=mean, reason=reason)
    half = _quantile(confidence, values.size - 1) * _standard_error(values)
    return Estimate(estimate=mean, interval=(mean - half, mean + half))


def log_t_estimate(values: np.ndarray, confidence: float = 0.95) -> Estimate:
    """Geometric mean over launches, t interval on the log scale: for times and ratios of times.

    Parameters
    ----------
    values : ndarray, shape (G,), any unit, positive

    Returns
    -------
    Estimate
        On the natural scale; nothing but the reason where a value is not positive.
    """
    values = np.asarray(values, dtype=float)
    if values.size == 0 or not np.isfinite(values).all():
        return Estimate(reason=NOT_FINITE)
    if values.min() <= 0:
        return Estimate(reason=NOT_POSITIVE)
    if reason := why_no_interval(values):
        return Estimate(estimate=float(np.exp(np.log(values).mean())), reason=reason)
    logs = np.log(values)
    half = _quantile(confidence, logs.size - 1) * _standard_error(logs)
    centre = logs.mean()
    return Estimate(
        estimate=float(np.exp(centre)), interval=(float(np.exp(centre - half)), float(np.exp(centre + half)))
    )


def p_above(values: np.ndarray, null: float = 0.0) -> float | None:
    """One-sided t p-value of "the mean is at most ``null``" (small: it lies above); None where there is no interval."""
    values = np.asarray(values, dtype=float)
    if why_no_interval(values):
        return None
    return float(special.stdtr(values.size - 1, (null - values.mean()) / _standard_error(values)))


def p_below(values: np.ndarray, null: float = 0.0) -> float | None:
    """One-sided t p-value of "the mean is at least ``null``" (small: it lies below); None as for ``p_above``."""
    return p_above(-np.asarray(values, dtype=float), -null)


def p_differs(values: np.ndarray, null: float = 0.0) -> float | None:
    """Two-sided t p-value of "the mean is ``null``"; None where there is no interval."""
    above, below = p_above(values, null), p_below(values, null)
    return None if above is None or below is None else min(1.0, 2 * min(above, below))


def holm(pvalues: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's adjusted p-values, in the order given; those that are None stay None and do not count.

    The same numbers as statsmodels' ``multipletests``, which collects garbage at each call (50 ms with jax loaded).

    References
    ----------
    S. Holm, Scand. J. Statist. 6(2), 65-70, 1979.
    """
    known = np.array([p for p in pvalues if p is not None])
    order = np.argsort(known)
    adjusted = np.empty(known.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(known[order] * np.arange(known.size, 0, -1)), 1.0)
    left = iter(adjusted.tolist())
    return tuple(None if p is None else next(left) for p in pvalues)


def tost(values: np.ndarray, margin: float, *, null: float = 0.0, confidence: float = 0.95) -> Equivalence:
    """Test whether the mean lies within ``margin`` of ``null``, by two one-sided t tests.

    Parameters
    ----------
    values : ndarray, shape (G,)
    margin : float, in the unit of ``values``, positive
        Largest difference that does not matter. It has no default because only the question can say it.

    Raises
    ------
    ValueError
        If ``margin`` is not positive.

    References
    ----------
    D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 657-680, 1987, doi:10.1007/BF01068419.
    """
    if not margin > 0:
        raise ValueError(f"margin must be positive, got {margin}. Give the largest difference that does not matter.")
    lower, upper = p_above(values, null - margin), p_below(values, null + margin)
    if lower is None or upper is None:
        return Equivalence(margin=margin, p=None, equivalent=None, reason=why_no_interval(values))
    p = max(lower, upper)
    return Equivalence(margin=margin, p=p, equivalent=p < 1 - confidence)


def fits_exactly(residual_s: np.ndarray, time_s: np.ndarray) -> bool:
    """Whether residuals are the rounding of the times, both of shape (C,), seconds: then they tell of no error."""
    return bool(np.all(np.abs(residual_s) <= np.maximum(EXACT * np.abs(time_s), RESOLUTION_S)))


def without_rounding(values: np.ndarray, matrix: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """Coefficients, shape (P, G), with those set to 0 whose terms are rounding in every cell.

    Parameters
    ----------
    values : ndarray, shape (P, G)
    matrix : ndarray, shape (C, P), of which ``matrix @ values`` are times, seconds
    time_s : ndarray, shape (C,), seconds
    """
    share = (np.abs(matrix) / np.abs(time_s)[:, None]).max(axis=0)
    return np.where(np.abs(values) * share[:, None] <= EXACT, 0.0, values)


def residual_estimate(
    estimate: float,
    standard_error: float,
    dof: int,
    confidence: float = 0.95,
    *,
    log: bool = False,
    exact: bool = False,
) -> Estimate:
    """Interval from the residuals of a fit, for foreign data whose replication is unknown.

    Parameters
    ----------
    estimate, standard_error : float
        Of the quantity, or with ``log`` of its logarithm.
    dof : int
        Points minus parameters; without any there is no interval.
    log : bool
        Return the exponentials.
    exact : bool
        The residuals are rounding (``fits_exactly``): there is no interval.

    Returns
    -------
    Estimate
        Its ``reason`` says that the interval comes from residuals.
    """
    scale = np.exp if log else float
    if dof < 1:
        return Estimate(estimate=float(scale(estimate)), reason=f"{RESIDUALS}: {NO_FREEDOM}")
    if exact:
        return Estimate(estimate=float(scale(estimate)), reason=EXACT_FIT)
    half = _quantile(confidence, dof) * standard_error
    interval = (float(scale(estimate - half)), float(scale(estimate + half)))
    return Estimate(estimate=float(scale(estimate)), interval=interval, reason=RESIDUALS)


def _quantile(confidence: float, dof: int) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}. Use 0.95 for 95 %.")
    return float(special.stdtrit(dof, 0.5 + confidence / 2))


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size))
