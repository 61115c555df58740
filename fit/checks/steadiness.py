"""Whether times stand still: drift over rounds and launches, a slow start, rounds that remember each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from ..answer import Diagnostic
from ..intervals import MIN_LAUNCHES, TOO_FEW, p_above
from .residuals import LEVEL, MATTERS, Residuals, judged, percent, skipped

MIN_ROUNDS = 4
MIN_TREND_LAUNCHES = 5
MIN_MEMORY = 8
REMEMBERS = 0.3
"""Autocorrelation at which a round tells about half as much as an independent one, (1 - r)/(1 + r)."""


def steadiness(residuals: Residuals) -> list[Diagnostic]:
    """All checks of this module, in order."""
    return [
        drift_over_rounds(residuals),
        drift_over_launches(residuals),
        slow_start(residuals),
        autocorrelation(residuals),
    ]


def drift_over_rounds(residuals: Residuals) -> Diagnostic:
    """Test the rounds' common effect for a trend inside launches (Kendall's S, summed over launches)."""
    name = "drift over rounds"
    effects = _enough(residuals.round_effects)
    if not effects:
        return skipped(name, f"no launch has {MIN_ROUNDS} rounds", "give the sweep a larger --budget")
    p = trend_p(effects)
    change = float(np.mean([_change(one) for one in effects]))
    return judged(
        name,
        "all cells",
        statistic=change,
        p=p,
        failed=p < LEVEL and abs(change) >= MATTERS,
        words=f"times change by {percent(change)} from the first to the last round of a launch",
        remedy="warm the machine up, or leave it alone while measuring; comparisons stand (rounds are interleaved), "
        "absolute times do not",
    )


def drift_over_launches(residuals: Residuals) -> Diagnostic:
    """Test the launches' common effect for a trend in file order (Kendall's S)."""
    name = "drift over launches"
    effects = residuals.launch_effects
    if effects.size < MIN_TREND_LAUNCHES:
        return skipped(name, f"fewer than {MIN_TREND_LAUNCHES} launches", "measure more launches with --launches 8")
    p = trend_p([effects])
    change = _change(effects)
    return judged(
        name,
        "all cells",
        statistic=change,
        p=p,
        failed=p < LEVEL and abs(change) >= MATTERS,
        words=f"times change by {percent(change)} from the first to the last launch",
        remedy="the launches are no independent repeats of one state: let the machine settle (heat, other users) and "
        "measure again; shares and comparisons inside a launch stand",
    )


def slow_start(residuals: Residuals) -> Diagnostic:
    """Test whether a launch's first round is slower than the rest (t over launches)."""
    name = "first round of a launch"
    effects = _enough(residuals.round_effects)
    if len(effects) < MIN_LAUNCHES:
        reason = TOO_FEW if len(residuals.round_effects) < MIN_LAUNCHES else f"fewer than {MIN_ROUNDS} rounds a launch"
        return skipped(name, reason, "measure more launches, or with a larger --budget")
    excess = np.array([one[0] - one[1:].mean() for one in effects])
    p = p_above(excess)
    mean = float(excess.mean())
    return judged(
        name,
        "all cells",
        statistic=mean,
        p=p,
        failed=p is not None and p < LEVEL and mean >= MATTERS,
        words=f"the first round differs by {percent(mean)} from the later ones",
        remedy="not steady, extend warm-up: more --warmups, or a larger --budget so that the first round weighs less",
    )


def autocorrelation(residuals: Residuals) -> Diagnostic:
    """Test whether neighbouring rounds of a launch resemble each other.

    Notes
    -----
    The lag-1 coefficient r of R independent rounds about their own mean has mean -1/R and variance
    (R - 2)² / (R² (R - 1)) [1]_; over launches both add up. Of rounds with correlation ρ its mean is near
    ρ - (1 + 4 ρ) / R [2]_, so (R r + 1) / (R - 4) is printed.

    References
    ----------
    .. [1] P. A. P. Moran, Biometrika 35, 255-260, 1948, doi:10.1093/biomet/35.3-4.255.
    .. [2] F. H. C. Marriott, J. A. Pope, Biometrika 41, 390-402, 1954, doi:10.1093/biomet/41.3-4.390.
    """
    name = "autocorrelation of rounds"
    effects = [one for one in residuals.round_effects if one.size >= MIN_MEMORY and np.ptp(one) > 1e-12]
    if not effects:
        return skipped(name, f"no launch has {MIN_MEMORY} rounds that differ", "give the sweep a larger --budget")
    lengths = np.array([one.size for one in effects], dtype=float)
    lag = np.array([(one[1:] * one[:-1]).sum() / (one**2).sum() for one in effects])
    variance = (lengths - 2) ** 2 / (lengths**2 * (lengths - 1))
    p = float(special.ndtr(-(lag + 1 / lengths).sum() / np.sqrt(variance.sum())))
    mean = float(np.mean((lengths * lag + 1) / (lengths - 4)))
    return judged(
        name,
        "all cells",
        statistic=mean,
        p=p,
        failed=p < LEVEL and mean >= REMEMBERS,
        words=f"the lag-1 correlation of rounds is {mean:.2f}",
        remedy="intervals stand (they go over launches), but more rounds add little: spend the time on launches",
    )


def trend_p(series: Sequence[np.ndarray]) -> float:
    """Two-sided p-value of "no trend" by Mann and Kendall, S and its variance summed over independent series.

    Parameters
    ----------
    series : each of shape (R,), in order of time

    Notes
    -----
    Normal approximation with continuity and tie correction. Written out because scipy.stats takes longer to import than
    a whole answer may take.

    References
    ----------
    R. M. Hirsch, J. R. Slack, R. A. Smith, Water Resour. Res. 18, 107-121, 1982, doi:10.1029/WR018i001p00107.
    """
    score = variance = 0.0
    for one in series:
        n = one.size
        score += np.sign(one[None, :] - one[:, None])[np.triu_indices(n, 1)].sum()
        ties = np.unique(one, return_counts=True)[1].astype(float)
        variance += (n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18
    if score == 0 or variance <= 0:
        return 1.0
    return float(2 * special.ndtr(-(abs(score) - 1) / np.sqrt(variance)))


def _enough(effects: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [one for one in effects if one.size >= MIN_ROUNDS]


def _change(effects: np.ndarray) -> float:
    """Change from the first to the last by the least-squares line."""
    place = np.arange(effects.size) - (effects.size - 1) / 2
    return float(place @ effects / (place @ place) * (effects.size - 1))
