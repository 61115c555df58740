"""Where the laws that may predict differ most: the count and size that would tell them apart."""

from __future__ import annotations

import numpy as np

from .answer import Separation
from .launches import LaunchTable
from .lawfit import LawFits
from .objective import shares_cores

REACH = 2
"""Counts up to this many times the largest measured one are looked at: further off every law is a guess."""
MOST_COUNTS = 8
ROUNDING = 1e-9
"""Log ratio up to which two predictions are one."""


def separating_devices(table: LaunchTable, strategy: str, fits: LawFits) -> Separation | None:
    """Find the cell at which the kept laws differ most, against the noise of one launch.

    Parameters
    ----------
    table, strategy, fits : what was fitted

    Returns
    -------
    Separation, or None
        None where fewer than two laws are kept, or one predicts alone everywhere. ``reason`` stands where no count
        within reach tells them apart.
    """
    if len(fits.kept) < 2:
        return None
    sizes = table.sizes("workload", strategy)
    spreads = {
        (n, size): spread
        for size in dict.fromkeys((sizes[0], sizes[-1]))
        for n in _counts(table, strategy, size)
        if (spread := _spread(fits, n, size)) is not None
    }
    # Where the laws were fitted they were already compared: a new count says more than the same one again.
    measured = table.devices("workload", strategy)
    spreads = {place: spread for place, spread in spreads.items() if place[0] not in measured} or spreads
    if not spreads:
        return None
    (n, size), (spread, laws) = max(spreads.items(), key=lambda item: item[1][0])
    noise = _noise(table, strategy)
    reason = None
    difference = float(np.expm1(spread)) if spread > ROUNDING else 0.0
    if spread <= (noise or 0.0) or not difference:
        reach = max(n for n, _ in spreads)
        reason = f"up to {reach} devices they {'differ by less than launches do' if difference else 'say the same'}"
    return Separation(laws=laws, num_devices=n, size=size, difference=difference, noise=noise, reason=reason)


def _spread(fits: LawFits, num_devices: int, size: int) -> tuple[float, tuple[str, str]] | None:
    """Log ratio of the slowest to the fastest prediction, and the two laws; None where fewer than two predict."""
    known = {law.name: t for law in fits.kept if (t := law.latency_s(num_devices, size)) is not None}
    if len(known) < 2:
        return None
    logs = {name: float(np.log(t).mean()) for name, t in known.items()}
    low, high = min(logs, key=logs.__getitem__), max(logs, key=logs.__getitem__)
    return logs[high] - logs[low], (low, high)


def _counts(table: LaunchTable, strategy: str, size: int) -> list[int]:
    """Counts that could be measured, evenly on a log scale where they are many."""
    plan, measured = table.plan, table.devices("workload", strategy)
    last = measured[-1] if shares_cores(table) else REACH * measured[-1]
    fit = [n for n in range(measured[0], last + 1) if not plan.divides or plan.global_size(n, size) % n == 0]
    if len(fit) <= MOST_COUNTS:
        return fit
    wanted = np.geomspace(fit[0], fit[-1], MOST_COUNTS)
    return sorted({fit[i] for i in np.searchsorted(fit, wanted, side="right") - 1})


def _noise(table: LaunchTable, strategy: str) -> float | None:
    """Standard deviation of one launch's log time, pooled over the workload's cells; None without replication."""
    if not table.replicated or table.num_launches < 2:
        return None
    rows = [i for i, cell in enumerate(table.cells) if cell.role == "workload" and cell.strategy == strategy]
    logs = np.log(table.latency_s[rows])
    return float(np.sqrt(logs.var(axis=1, ddof=1).mean()))
