"""A second witness: what a profiler saw on the devices, beside the communication that the launches give without a law.

A trace is one launch, and tracing slows its calls down: it has no interval over launches, and no time is taken from
it. What it shows is of which order the collectives' time is, and how much of that is waiting for the last device.
The law-free communication, workload - local, must lie near what the trace shows between the exchange alone and the
exchange with all waiting: the control waits for its slowest device as well, but not in the middle of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..data.schema import Failure, Trace, TracedOp
from .answer import Estimate, Traced
from .collective_cost import difference_route
from .launches import LaunchTable

SAME_ORDER = 3.0
"""Times within this factor are of the same order: half a decade."""


def traced_calls(
    table: LaunchTable, strategy: str, *, largest: int | None = None, confidence: float = 0.95
) -> tuple[Traced, ...]:
    """Summarise the traces of one strategy and set each beside workload - local at the same count and size.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    largest : int, optional
        Largest count of interest.

    Returns
    -------
    tuple of Traced
        One a traced cell, the last trace of it, by size and count.
    """
    last = {trace.cell: trace for trace in table.traces}
    found = (
        trace
        for cell, trace in last.items()
        if cell.strategy == strategy and (largest is None or cell.num_devices <= largest)
    )
    ordered = sorted(found, key=lambda trace: (table.axis_size(trace.cell), trace.cell.num_devices))
    return tuple(_summary(table, trace, confidence) for trace in ordered)


def why_not_traced(table: LaunchTable) -> list[str]:
    """What was to be traced and was not, with the reason."""
    there = {trace.cell for trace in table.traces}
    missed = [f for f in table.failures if f.stage == "trace" and (f.cell not in there if f.cell else not there)]
    return list(dict.fromkeys(f"not traced{_where(f)}: {f.message}" for f in missed))


def _where(failure: Failure) -> str:
    return f" ({failure.cell})" if failure.cell is not None else ""


def _summary(table: LaunchTable, trace: Trace, confidence: float) -> Traced:
    cell, axis_size = trace.cell, table.axis_size(trace.cell)
    duration = _by_device([(op, op.duration_ns) for op in trace.ops])
    # A sum in which one collective's waiting is missing would pass for all of it.
    waiting = _by_device([(op, op.wait_ns) for op in trace.ops]) if all(op.wait_ns for op in trace.ops) else None
    mean = None if duration is None else duration.mean(axis=0)
    exchange = None if mean is None or waiting is None else float(np.median(mean - waiting.mean(axis=0)))
    collective = None if mean is None else float(np.median(mean))
    law_free = Estimate(reason="one device does not communicate")
    if cell.num_devices > 1:
        law_free = difference_route(table, cell.strategy, cell.num_devices, axis_size).estimate(confidence)
    factor, agree, reason = _compare(exchange, collective, law_free, trace)
    latency = _median_s(trace.latency_ns)
    untraced = _median_s(trace.untraced_latency_ns)
    return Traced(
        num_devices=cell.num_devices,
        size=axis_size,
        calls=trace.calls,
        collective_s=collective,
        quartiles_within_launch_s=None if mean is None else _quartiles(mean),
        longest_s=None if duration is None else float(np.median(duration.max(axis=0))),
        waiting_s=None if waiting is None else float(np.median(waiting.mean(axis=0))),
        exchange_s=exchange,
        busy_share=float(np.mean(trace.busy_ns)) * 1e-9 / latency if trace.busy_ns and latency else None,
        slowdown=latency / untraced - 1 if latency and untraced else None,
        law_free_s=law_free,
        factor=factor,
        agree=agree,
        reason=reason,
    )


def _by_device(entries: Sequence[tuple[TracedOp, tuple[int, ...]]]) -> np.ndarray | None:
    """Seconds of all collectives, shape (devices, calls); None without any."""
    totals: dict[int, np.ndarray] = {}
    for op, times_ns in entries:
        totals[op.device] = totals.get(op.device, 0.0) + np.array(times_ns) * 1e-9
    return np.array(list(totals.values())) if totals else None


def _quartiles(values: np.ndarray) -> tuple[float, float]:
    lower, upper = np.percentile(values, (25, 75))
    return float(lower), float(upper)


def _median_s(times_ns: Sequence[int]) -> float | None:
    return float(np.median(times_ns)) * 1e-9 if times_ns else None


def _compare(
    exchange: float | None, collective: float | None, law_free: Estimate, trace: Trace
) -> tuple[float | None, Literal["yes", "no", "undecided"] | None, str]:
    """Factor by which workload - local lies outside exchange..collective, whether that is the same order, and words."""
    told = f"; {trace.remark}" if trace.remark else ""
    if collective is None:
        return None, *_nothing_shown(trace.cell.num_devices, law_free, told)
    if law_free.estimate is None:
        return None, None, f"nothing to compare with: {law_free.reason}{told}"
    # Where waiting is not told apart, how much less than all of it there is remains open.
    low = collective if exchange is None else exchange
    value = law_free.estimate
    open_below = exchange is None and value < collective
    factor = None if value <= 0 or low <= 0 or open_below else max(1.0, low / value, value / collective)
    if law_free.interval is None or None in law_free.interval:
        return factor, "undecided", f"workload − local has no interval: {law_free.reason}{told}"
    below, above = law_free.interval
    assert below is not None
    assert above is not None
    if low / SAME_ORDER <= below and above <= collective * SAME_ORDER:
        return factor, "yes", f"{_distance(value, exchange, collective)}{told}"
    if below > collective * SAME_ORDER or (above < low / SAME_ORDER and exchange is not None):
        return factor, "no", f"{_distance(value, exchange, collective)}{told}"
    if above < low / SAME_ORDER:
        words = f"{_distance(value, None, collective)}, but the collectives' time may be waiting for the most part"
        return factor, "undecided", f"{words}{told}"
    return factor, "undecided", f"the interval of workload − local reaches beyond a factor of {SAME_ORDER:g}{told}"


def _nothing_shown(num_devices: int, law_free: Estimate, told: str) -> tuple[Literal["undecided"] | None, str]:
    """A trace without collectives: right for one device, else perhaps one that does not name them."""
    if num_devices == 1:
        return None, f"no collective ran{told}"
    lower = None if law_free.interval is None else law_free.interval[0]
    if lower is not None and lower > 0:
        return "undecided", f"the trace shows no collective, and workload − local lies above 0{told}"
    return None, f"the trace shows no collective{told}"


def _distance(value: float, exchange: float | None, collective: float) -> str:
    """Where workload - local lies; ``exchange`` is None where waiting is not told apart."""
    if value > collective:
        return f"workload − local is {value / collective:.2g} times what the collectives take with all waiting"
    if value <= 0:
        return "workload − local shows no communication"
    if exchange is None:
        return f"workload − local is {collective / value:.2g} times shorter than the collectives with all waiting"
    if value >= exchange:
        return "workload − local lies between the exchange alone and the exchange with all waiting"
    return f"workload − local is {exchange / value:.2g} times shorter than the exchange without waiting"
