"""All processes pass a barrier, but who is near the service that opens it hears so first: how long each then waits.

Messages are taken to travel as long one way as the other, so that half the difference of two round trips is what one
process is ahead of another. No clock is compared, and what a barrier's own unevenness adds stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

PINGS = 20
"""Round trips of which the shortest counts: what else happens only adds to one."""
_WAKING_S = 2e-4
"""A process that sleeps wakes late; the last stretch is not slept."""


def round_trip_s(ping: Callable[[], object], *, clock: Callable[[], float] = time.perf_counter) -> float:
    """Shortest of several round trips to the service, seconds."""
    shortest = float("inf")
    for _ in range(PINGS):
        start = clock()
        ping()
        shortest = min(shortest, clock() - start)
    return shortest


def head_starts_s(round_trips_s: Sequence[float]) -> tuple[float, ...]:
    """How long before the last one each process hears that the barrier is open, seconds.

    Parameters
    ----------
    round_trips_s : of the processes that meet at the barrier
    """
    return tuple((max(round_trips_s) - own) / 2 for own in round_trips_s)


def wait(seconds: float) -> None:
    """Wait to the microsecond."""
    until = time.perf_counter() + seconds
    if seconds > _WAKING_S:
        time.sleep(seconds - _WAKING_S)
    while time.perf_counter() < until:
        pass
