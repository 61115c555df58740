"""Waiting for those who hear later that a barrier is open."""

import itertools
import time

import pytest
from breakeven.measure.processes.gate import Gate
from breakeven.measure.processes.head_start import PINGS, head_starts_s, round_trip_s, wait
from breakeven.measure.processes.team import Team


def test_the_shortest_round_trip_counts():
    """A fake clock: pings take 5, 4, 3, 4, 5 ms and so on."""
    lengths = itertools.cycle([5e-3, 4e-3, 3e-3, 4e-3])
    times = itertools.accumulate(itertools.chain.from_iterable((0.1, next(lengths)) for _ in range(PINGS)))
    pinged = []
    assert round_trip_s(lambda: pinged.append(1), clock=lambda: next(times)) == pytest.approx(3e-3)
    assert len(pinged) == PINGS


def test_all_begin_together():
    """The release takes half a round trip to each; after waiting they are at the same point."""
    round_trips = [2e-4, 4e-3, 1e-2, 1e-2]
    waits = head_starts_s(round_trips)
    assert [r / 2 + w for r, w in zip(round_trips, waits, strict=True)] == pytest.approx([5e-3] * 4)
    assert min(waits) == 0


@pytest.mark.parametrize("seconds", [0.0, 1e-4, 5e-3])
def test_waiting_is_never_short(seconds):
    start = time.perf_counter()
    wait(seconds)
    assert time.perf_counter() - start >= seconds


class Distant(Team):
    """Rank 0 of three, next to the service; the other two are 20 and 40 ms away."""

    size = 3
    round_trips_s = (0.0, 20e-3, 40e-3)


@pytest.mark.parametrize(("members", "least_s"), [((0, 1), 10e-3), ((0, 1, 2), 20e-3)])
def test_a_gate_waits_for_the_furthest_of_its_members(members, least_s):
    gate = Gate(Distant(), members)
    gate()
    # Starts are noted after the wait: the time of a call does not hold it.
    assert gate.waited_s >= least_s
