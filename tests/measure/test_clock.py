"""Clocks are faked: what is tested is what lies between which readings."""

import weakref

import pytest
from breakeven.measure.clock import MAX_IN_FLIGHT, time_calls, time_queued


class FakeClock:
    """Time passes only when work is done."""

    def __init__(self):
        self.now = 1_000_000

    def __call__(self):
        return self.now

    def work(self, nanoseconds):
        self.now += nanoseconds


class Outputs:
    """What a call returns; freeing it takes time too."""

    def __init__(self, clock, ready_ns, free_ns=0):
        self.clock, self.ready_ns, self.free_ns = clock, ready_ns, free_ns

    def wait(self):
        self.clock.work(self.ready_ns)

    def __del__(self):
        self.clock.work(self.free_ns)


def test_latency_ends_when_ready_and_dispatch_when_the_call_returns():
    clock = FakeClock()

    def call():
        clock.work(30)
        return Outputs(clock, ready_ns=500)

    latency, dispatch = time_calls(call, Outputs.wait, calls=3, clock=clock)
    assert latency == (530, 530, 530)
    assert dispatch == (30, 30, 30)


def test_freeing_the_outputs_is_not_timed():
    clock = FakeClock()

    def call():
        clock.work(10)
        return Outputs(clock, ready_ns=100, free_ns=7_000)

    latency, dispatch = time_calls(call, Outputs.wait, calls=4, clock=clock)
    assert latency == (110,) * 4
    assert dispatch == (10,) * 4


def test_queued_calls_are_waited_for_once():
    clock = FakeClock()
    waits = []

    def call():
        clock.work(20)
        return object()

    def wait(outputs):
        waits.append(len(outputs))
        clock.work(400)

    # Four dispatches of 20 and one wait of 400.
    assert time_queued(call, wait, calls=4, clock=clock) == (4 * 20 + 400) // 4
    assert waits == [4]


def test_of_calls_that_follow_from_each_other_only_the_last_is_kept():
    alive, waited = weakref.WeakSet(), []

    class Output:
        pass

    def call():
        output = Output()
        alive.add(output)
        most.append(len(alive))
        return output

    most = []
    time_queued(call, waited.append, calls=4, keep=False)
    assert max(most) == 2
    assert len(waited) == 1


@pytest.mark.parametrize("calls", [0, MAX_IN_FLIGHT + 1])
def test_more_calls_in_flight_than_are_safe_are_refused(calls):
    with pytest.raises(ValueError, match=f"from 1 to {MAX_IN_FLIGHT}, got {calls}"):
        time_queued(object, lambda outputs: None, calls=calls)
