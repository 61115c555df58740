"""Time, cost, speedup, efficiency and throughput at every admissible count, measured or predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .answer import Estimate, Prediction
from .launches import LaunchTable
from .objective import Costs, CountCost, Objective

if TYPE_CHECKING:
    from .lawfit import LawFits


def predictions(
    table: LaunchTable,
    strategy: str,
    fits: LawFits | None,
    *,
    axis_sizes: Sequence[int] | None = None,
    objective: Objective | None = None,
    reference: int | None = None,
    max_devices: int | None = None,
    confidence: float = 0.95,
) -> tuple[Prediction, ...]:
    """Say what a call takes at every admissible count (where they are many, at a selection: ``Costs.shown``).

    Where the replication is unknown, at measured counts, doublings and ``max_devices`` (``Costs.admissible``).

    Parameters
    ----------
    axis_sizes : default: every measured size

    Returns
    -------
    tuple of Prediction, by size, then by count
        ``size`` is the entry of the plan's size axis; ``cost``, seconds a call (time) or a unit (throughput);
        ``speedup``, c(n0) / c(n); ``efficiency``, on the strong path T(n0) n0 / (T(n) n), on the weak one
        T(n0) / T(n); ``throughput``, S / T(n) in units a second. A refused count has no number.
    """
    costs = Costs.of(table, strategy, fits, objective=objective, reference=reference, max_devices=max_devices)
    sizes = table.sizes("workload", strategy) if axis_sizes is None else axis_sizes
    result = []
    for size in sizes:
        at_reference = costs.at(costs.reference, size)
        counts = (costs.at(n, size) for n in costs.shown(size))
        result += [_prediction(costs, c, at_reference, confidence) for c in counts]
    return tuple(result)


def _prediction(costs: Costs, count: CountCost, at_reference: CountCost, confidence: float) -> Prediction:
    n, plan = count.num_devices, costs.table.plan
    global_size = plan.global_size(n, count.axis_size)
    if count.routes:
        latency = count.log_latency()
        estimates = {
            "latency_s": latency.natural(confidence),
            "cost": count.log_cost().natural(confidence),
            "throughput": (-latency).plus(float(np.log(global_size))).natural(confidence),
        }
    else:
        estimates = dict.fromkeys(("latency_s", "cost", "throughput"), Estimate(reason=count.source))
    return Prediction(
        num_devices=n,
        size=count.axis_size,
        size_per_device=global_size / n,
        kind=count.kind,
        source=count.source,
        **estimates,
        **_ratios(costs, count, at_reference, confidence),
    )


def _ratios(costs: Costs, count: CountCost, at_reference: CountCost, confidence: float) -> dict[str, Estimate]:
    """Speedup and efficiency."""
    if count.num_devices == costs.reference:
        one = Estimate(estimate=1.0, interval=(1.0, 1.0), reason="the reference count itself")
        return {"speedup": one, "efficiency": one}
    if not (count.routes and at_reference.routes):
        source = at_reference.source if count.routes else count.source
        return dict.fromkeys(("speedup", "efficiency"), Estimate(reason=source))
    speedup = -count.log_ratio(at_reference)
    faster = speedup.plus(float(np.log(at_reference.units / count.units)))
    shrunk = np.log(costs.reference / count.num_devices) if costs.table.plan.path == "strong" else 0.0
    return {"speedup": speedup.natural(confidence), "efficiency": faster.plus(float(shrunk)).natural(confidence)}
