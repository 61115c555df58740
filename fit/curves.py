"""Measured times against device counts, one curve a role, strategy and size: for figures and tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .answer import Curve, Estimate
from .intervals import log_t_estimate
from .launches import LaunchTable


def program_curves(table: LaunchTable, confidence: float) -> tuple[Curve, ...]:
    """The workload in every strategy, and its controls, by size."""
    found = []
    for role in ("workload", "local", "null"):
        for strategy in sorted({cell.strategy for cell in table.select(role)}):
            by_size: dict[int, dict[int, np.ndarray]] = {size: {} for size in table.sizes(role, strategy)}
            for i, cell in enumerate(table.cells):
                if cell.role == role and cell.strategy == strategy:
                    by_size[table.axis_size(cell)][cell.num_devices] = table.latency_s[i]
            found += [_curve(table, role, strategy, size, times, confidence) for size, times in by_size.items()]
    return tuple(found)


def collective_curves(table: LaunchTable, strategy: str, confidence: float) -> tuple[Curve, ...]:
    """One collective, by message bytes, where only collectives were measured."""
    by_payload: dict[int, dict[int, np.ndarray]] = {}
    for i, cell in enumerate(table.cells):
        if cell.role == "chain" and cell.strategy == strategy and cell.k == 1:
            by_payload.setdefault(cell.payload_bytes or 0, {})[cell.num_devices] = table.latency_s[i]
    return tuple(
        _curve(table, "chain", strategy, payload, times, confidence) for payload, times in sorted(by_payload.items())
    )


def _curve(
    table: LaunchTable, role: str, strategy: str, size: int, times: Mapping[int, np.ndarray], confidence: float
) -> Curve:
    """One curve; ``times`` by device count, each shape (G,), seconds."""
    counts = tuple(sorted(times))
    return Curve(
        strategy=strategy,
        role=role,
        size=size,
        num_devices=counts,
        latency_s=tuple(
            log_t_estimate(times[n], confidence)
            if table.replicated
            else Estimate(estimate=float(times[n].mean()), reason="replication unknown")
            for n in counts
        ),
    )
