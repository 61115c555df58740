"""What it costs to leave a strategy's inputs where the user put them: a call then moves them first."""

from __future__ import annotations

from .answer import InputTransfer
from .attribution import counts_at, headline_size, placed_twin
from .intervals import t_estimate
from .launches import LaunchTable


def input_transfers(
    table: LaunchTable, *, size: int | None = None, largest: int | None = None, confidence: float = 0.95
) -> tuple[InputTransfer, ...]:
    """Time of each strategy ``X-unplaced`` less that of ``X``, paired by launch, at the largest count and size.

    Parameters
    ----------
    table : LaunchTable
    size : int, optional
        Entry of the plan's size axis; by default the largest at which the strategy was measured.
    largest : int, optional
        Largest count of interest.

    Returns
    -------
    tuple of InputTransfer
        Seconds a call, and share of the unplaced strategy's time; one for each pair measured in a common cell.
    """
    found = []
    for strategy in table.strategies:
        placed = placed_twin(table, strategy)
        axis_size = headline_size(table, strategy, size)
        if placed is None or axis_size is None:
            continue
        for n in reversed(counts_at(table, strategy, axis_size, largest=largest)):
            place = n, table.plan.global_size(n, axis_size)
            moved, still = table.time("workload", strategy, *place), table.time("workload", placed, *place)
            if moved is not None and still is not None:
                found.append(
                    InputTransfer(
                        strategy=strategy,
                        placed=placed,
                        num_devices=n,
                        size=axis_size,
                        latency_s=t_estimate(moved - still, confidence),
                        share=t_estimate((moved - still) / moved, confidence),
                    )
                )
                break
    return tuple(found)
