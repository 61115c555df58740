"""Weak efficiency T(n0, n0 s) / T(n, n s), and the per-device size at which it reaches 90 %."""

from __future__ import annotations

import numpy as np

from .answer import Estimate, WeakEfficiency
from .crossover import Crossover, crossover
from .intervals import log_t_estimate
from .launches import LaunchTable
from .objective import Costs

TARGET = 0.9
REACHED = "reached at every size"
NOT_REACHED = "not reached"


def weak_efficiency(
    table: LaunchTable,
    strategy: str,
    *,
    reference: int | None = None,
    max_devices: int | None = None,
    confidence: float = 0.95,
) -> tuple[WeakEfficiency, ...]:
    """Weak efficiency at every measured count and per-device size; empty for a strong sweep.

    Returns
    -------
    tuple of WeakEfficiency, by count, then by size
        ``size_for_90_percent`` belongs to the count: the per-device size from which on the efficiency is at least
        90 % at every larger measured size, with the hull of the confidence set of sizes where it equals 90 %.
    """
    if table.plan.path != "weak":
        return ()
    costs = Costs.of(table, strategy, None, objective="time", reference=reference, max_devices=max_devices)
    result = []
    for n in table.devices("workload", strategy):
        if not costs.reference < n <= costs.max_devices:
            continue
        efficiency = _efficiency(costs, n)
        reached = _reached(efficiency, confidence)
        result += [
            WeakEfficiency(
                num_devices=n,
                size_per_device=size,
                efficiency=log_t_estimate(values, confidence),
                size_for_90_percent=reached,
            )
            for size, values in efficiency.items()
        ]
    return tuple(result)


def _efficiency(costs: Costs, num_devices: int) -> dict[int, np.ndarray]:
    """T(n0, n0 s) / T(n, n s) by launch, at each per-device size s where both were measured."""
    plan, result = costs.table.plan, {}
    for size in costs.table.sizes("workload", costs.strategy):
        times = [
            costs.table.time("workload", costs.strategy, n, plan.global_size(n, size))
            for n in (costs.reference, num_devices)
        ]
        if times[0] is not None and times[1] is not None:
            result[size] = times[0] / times[1]
    return result


def _reached(efficiency: dict[int, np.ndarray], confidence: float) -> Estimate:
    """Per-device size from which on the efficiency is at least 90 %."""
    if len(efficiency) < 2:
        return Estimate(reason="one size: not known how efficiency changes with size")
    sizes = np.array(list(efficiency))
    above_target = np.log(np.array(list(efficiency.values()))) - np.log(TARGET)
    found = crossover(sizes, above_target, confidence=confidence)
    if above_target[-1].mean() < 0:
        return Estimate(interval=_hull(found), reason=f"{NOT_REACHED} up to {sizes[-1]} per device")
    if not found.roots:
        return Estimate(interval=_hull(found), reason=f"{REACHED} from {sizes[0]} per device on")
    return Estimate(estimate=found.roots[-1].estimate, interval=_hull(found), reason=found.reason)


def _hull(found: Crossover) -> tuple[float | None, float | None] | None:
    """From the lowest to the highest size in the confidence set; None where it is empty or there is none."""
    if found.reason or not found.pieces:
        return None
    return found.pieces[0][0], found.pieces[-1][1]
