"""The best device count: the counts the data do not exclude, how often each wins, and what each would cost too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .answer import Estimate, Optimum
from .comparison import Comparison
from .intervals import MIN_LAUNCHES, holm
from .launches import LaunchTable
from .objective import Costs, CountCost, Objective
from .resample import draw_counts

if TYPE_CHECKING:
    from .lawfit import LawFits

DRAWS = 10_000


def optimum(
    table: LaunchTable,
    strategy: str,
    fits: LawFits | None,
    *,
    axis_size: int,
    objective: Objective | None = None,
    reference: int | None = None,
    max_devices: int | None = None,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    seed: int = 0,
) -> Optimum:
    """Find the admissible count of least cost.

    Parameters
    ----------
    axis_size : S on the strong path, per device on the weak one
    tolerance : float
        ``within_tolerance`` is the smallest count whose estimated cost exceeds the least one by at most this share.

    Returns
    -------
    Optimum
        ``found`` when the regret of ``estimate`` is at most ``tolerance`` with the stated confidence, or no other
        count is left in the set. Of a single known count nothing is said: it was compared with none.

    Notes
    -----
    ``set``: a count is excluded when one of its log ratios to the other counts lies significantly above 0 (one-sided
    t over launches, Holm over its comparisons). Only the comparisons of the truly best count can exclude it wrongly,
    so the set holds that count with the stated confidence.
    ``regret``: cost over the least cost, less 1. Its upper end is the largest upper end of the log ratios to the
    other counts (valid as it stands, since the best is one of them), its lower end the largest lower end after
    Bonferroni's correction.
    ``estimate``: of the counts measured the cheapest, unless a prediction undercuts it by more than its law errs on
    held-out cells.
    ``win_frequency`` resamples launches; a predicted count also draws its law's error.
    """
    costs = Costs.of(table, strategy, fits, objective=objective, reference=reference, max_devices=max_devices)
    counts = costs.known(axis_size)
    if not counts:
        return no_optimum(axis_size, tolerance, "no admissible count was measured at this size; measure it")
    within, counts = _candidates(costs, axis_size, counts, tolerance)
    if len(counts) == 1:
        return no_optimum(axis_size, tolerance, "only one count is known at this size; measure others")
    means = np.array([c.log_cost().estimate for c in counts])
    best = _best(counts)
    ratios = [[a.log_ratio(b) for b in counts if b is not a] for a in counts]
    excesses = np.maximum(means - means[best], 0.0)
    regret = [_regret(row, excess, confidence) for row, excess in zip(ratios, excesses, strict=True)]
    chosen = counts[best].num_devices
    left = tuple(c.num_devices for c, row in zip(counts, ratios, strict=True) if not _excluded(row, confidence))
    reason = _why_undecided(ratios, left, regret[best], tolerance)
    return Optimum(
        size=axis_size,
        estimate=chosen,
        set=left,
        win_frequency=_win_frequency(counts, seed),
        within_tolerance=within,
        tolerance=tolerance,
        regret={c.num_devices: r for c, r in zip(counts, regret, strict=True)},
        outcome="undecided" if reason else "found",
        # Where smaller counts do as well, nothing suggests that more devices would do better.
        at_upper_end=chosen == counts[-1].num_devices and (reason is not None or len(left) == 1),
        reason=_joined(reason, _estimate_predicted(counts[best]))
        or _tie(left, within, tolerance)
        or _predicted(counts, left),
    )


def no_optimum(axis_size: int, tolerance: float, reason: str) -> Optimum:
    """Say that nothing is known of any count, and why."""
    return Optimum(
        size=axis_size,
        estimate=None,
        set=(),
        win_frequency={},
        within_tolerance=None,
        tolerance=tolerance,
        regret={},
        outcome="undecided",
        reason=reason,
    )


def _candidates(
    costs: Costs, axis_size: int, counts: tuple[CountCost, ...], tolerance: float
) -> tuple[int, tuple[CountCost, ...]]:
    """Smallest count within tolerance of the least cost, and the counts to compare pair by pair."""
    feared = _feared(counts)
    best = _best(counts)
    within = next(c.num_devices for c, m in zip(counts, feared, strict=True) if m <= feared[best] + np.log1p(tolerance))
    shown = {*costs.shown(axis_size), counts[best].num_devices, within}
    return within, tuple(c for c in counts if c.num_devices in shown)


def _best(counts: Sequence[CountCost]) -> int:
    """Index of the least cost; a predicted count must undercut a measured one by more than its law errs."""
    return int(np.argmin(_feared(counts)))


def _feared(counts: Sequence[CountCost]) -> list[float]:
    """Log costs, those predicted with the error of their law on top."""
    return [c.log_cost().estimate + (c.routes[0].discrepancy or 0.0) for c in counts]


def _excluded(ratios: Sequence[Comparison], confidence: float) -> bool:
    """Whether some other count is significantly cheaper."""
    adjusted = holm([r.p_above() for r in ratios])
    return any(p is not None and p <= 1 - confidence for p in adjusted)


def _regret(ratios: Sequence[Comparison], excess: float, confidence: float) -> Estimate:
    """Cost over the least cost, less 1; ``excess`` is the estimate on the log scale."""
    estimate = float(np.expm1(excess))
    if reason := next((r.reason for r in ratios if r.reason), None):
        return Estimate(estimate=estimate, reason=reason)
    corrected = 1 - (1 - confidence) / len(ratios)
    lower = max(0.0, *(_end(r, corrected, 0) for r in ratios))
    upper = max(0.0, *(_end(r, confidence, 1) for r in ratios))
    return Estimate(estimate=estimate, interval=(float(np.expm1(lower)), float(np.expm1(upper))))


def _end(ratio: Comparison, confidence: float, side: int) -> float:
    interval = ratio.interval(confidence)
    assert interval is not None, "ratios with a reason were turned away"
    return interval[side]


def _why_undecided(
    ratios: Sequence[Sequence[Comparison]], left: Sequence[int], regret: Estimate, tolerance: float
) -> str | None:
    if reason := next((r.reason for row in ratios for r in row if r.reason), None):
        return reason
    if len(left) == 1 or (regret.interval and regret.interval[1] is not None and regret.interval[1] <= tolerance):
        return None
    counts = ", ".join(map(str, left))
    upper = (regret.interval and regret.interval[1]) or 0.0
    return (
        f"the data cannot tell {counts} apart: the estimate may cost up to {100 * upper:.0f} % more than the best count"
    )


def _tie(left: Sequence[int], within: int, tolerance: float) -> str | None:
    """What "found" means where several counts are left: close enough, not different."""
    if len(left) == 1:
        return None
    return f"no difference detected among the counts not excluded; {within} is within {100 * tolerance:g} % of the best"


def _win_frequency(counts: Sequence[CountCost], seed: int) -> dict[int, float]:
    """How often each count is the cheapest over resampled launches; empty without enough launches."""
    log_cost = np.array([c.routes[0].log_cost for c in counts])
    launches = log_cost.shape[1]
    if launches < MIN_LAUNCHES:
        return {}
    rng = np.random.default_rng(seed)
    means = log_cost @ draw_counts(launches, DRAWS, seed=rng).T / launches
    errors = np.array([c.routes[0].discrepancy for c in counts], dtype=float)
    means += errors[:, None] * rng.standard_normal(means.shape)
    wins = np.bincount(means.argmin(axis=0), minlength=len(counts)) / DRAWS
    return {c.num_devices: float(w) for c, w in zip(counts, wins, strict=True)}


def _estimate_predicted(best: CountCost) -> str | None:
    return None if best.kind == "measured" else f"predicted, not measured: {best.num_devices}"


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(reason for reason in reasons if reason) or None


def _predicted(counts: Sequence[CountCost], left: Sequence[int]) -> str | None:
    """Which counts of the set were not measured."""
    names = [str(c.num_devices) for c in counts if c.num_devices in left and c.kind != "measured"]
    return f"predicted, not measured: {', '.join(names)}" if names else None
