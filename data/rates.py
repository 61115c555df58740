"""Refusing a rate of elements (images a second) where a rate of calls is meant."""

from __future__ import annotations

from collections.abc import Sequence

from .columns import Source
from .delimited import Table
from .foreign import Measurement
from .store import RecordError

FASTER = 1.5
"""More often than this, against the fewest devices, no call runs whose share of each device stays the same."""


def refuse_rate_of_elements(rows: Sequence[Measurement], table: Table, latency: Source, path: str) -> None:
    """One over a rate is the time of a call only where the rate counts calls; images a second grow with the devices."""
    if path != "weak" or not latency.reciprocal:
        return
    for share in {row.cell.size_per_device for row in rows}:
        times: dict[int, list[int]] = {}
        for row in rows:
            if row.cell.size_per_device == share and row.cell.role == "workload":
                times.setdefault(row.cell.num_devices, []).append(row.latency_ns)
        if not times:
            continue
        first, last = min(times), max(times)
        if min(times[first]) > FASTER * max(times[last]):
            raise RecordError(
                f"{table.path}: {latency.column!r} grows {min(times[first]) / max(times[last]):.1f} times from {first} "
                f"to {last} devices although the size per device stays, so it counts elements and not calls. Say "
                f"latency_s=SIZE/{latency.column}, SIZE being the column of the global size of a call."
            )
