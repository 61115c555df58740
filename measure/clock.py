"""Timing calls: until the result is ready, until the call returns, and per call when several are queued."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MAX_IN_FLIGHT = 16
"""More calls in flight than this can deadlock collectives on forced host devices (seen from about 34 on)."""
MIN_CALLS, MAX_CALLS = 3, 16
"""Timed calls of a visit, where the time that is left decides."""

Clock = Callable[[], int]


def time_calls(
    call: Callable[[], Any],
    wait: Callable[[Any], Any],
    *,
    calls: int,
    before: Callable[[], None] | None = None,
    clock: Clock = time.perf_counter_ns,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Time single calls, each waited for before the next begins.

    Parameters
    ----------
    call : starts one call and returns its outputs, maybe before they are ready
    wait : blocks until outputs are ready
    calls : how many
    before : done before each call, outside the times
    clock : nanoseconds; a parameter so that tests can fake it

    Returns
    -------
    latency_ns, dispatch_ns : tuple of int, length ``calls``
        Until the result is ready, and until the call returned.
    """
    latency_ns, dispatch_ns = [], []
    for _ in range(calls):
        if before is not None:
            before()
        start = clock()
        outputs = call()
        returned = clock()
        wait(outputs)
        ready = clock()
        # Freed here, outside the times: otherwise the next call would pay for it.
        del outputs
        latency_ns.append(ready - start)
        dispatch_ns.append(returned - start)
    return tuple(latency_ns), tuple(dispatch_ns)


def time_queued(
    call: Callable[[], Any],
    wait: Callable[[Any], Any],
    *,
    calls: int,
    keep: bool = True,
    clock: Clock = time.perf_counter_ns,
) -> int:
    """Time per call, nanoseconds, when ``calls`` (1 to ``MAX_IN_FLIGHT``) are queued and then waited for once.

    ``keep``: all outputs are kept and waited for; else the last one's alone, where each call needs the one before.

    Raises
    ------
    ValueError
        If ``calls`` is out of range.
    """
    if not 1 <= calls <= MAX_IN_FLIGHT:
        raise ValueError(f"calls must be from 1 to {MAX_IN_FLIGHT}, got {calls}.")
    start = clock()
    if keep:
        outputs = [call() for _ in range(calls)]
    else:
        for _ in range(calls):
            outputs = call()
    wait(outputs)
    return (clock() - start) // calls
