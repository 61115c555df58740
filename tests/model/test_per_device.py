"""Rings of unequal devices against their limits and the ring of equal ones."""

import numpy as np
import pytest
from breakeven.model import per_device
from breakeven.model.ring import all_reduce_time
from hypothesis import given
from hypothesis import strategies as st

rings = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0, 1e-4), min_size=n, max_size=n), st.lists(st.floats(0, 1e-8), min_size=n, max_size=n)
    )
)


@pytest.mark.parametrize("time", [per_device.blocking_time, per_device.overlapped_time])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_equal_devices_are_the_plain_ring(time, n):
    found = time(1e6, alpha=np.full(n, 3e-6), beta=np.full(n, 1e-9))
    np.testing.assert_allclose(found, all_reduce_time(n, 1e6, alpha=3e-6, beta=1e-9), rtol=1e-12)


@given(rings, st.integers(0, 10**7))
def test_blocking_sends_go_at_the_slowest_devices_pace(ring, message_bytes):
    alpha, beta = ring
    found = per_device.blocking_time(message_bytes, alpha=alpha, beta=beta)
    limit = per_device.blocking_limit(message_bytes, alpha=alpha, beta=beta)
    assert found == pytest.approx(limit, rel=1e-12, abs=1e-20)


@given(rings, st.integers(0, 10**7))
def test_overlapped_sends_cost_between_the_bound_and_half_as_much_again(ring, message_bytes):
    alpha, beta = ring
    found = per_device.overlapped_time(message_bytes, alpha=alpha, beta=beta)
    bound = per_device.overlapped_bound(message_bytes, alpha=alpha, beta=beta)
    # Below 1e-20 s there is no time, only floats too small to be relative to.
    assert bound * (1 - 1e-12) - 1e-20 <= found <= 1.5 * bound * (1 + 1e-12) + 1e-20


def test_half_as_much_again_is_reached():
    # Two devices, one of which costs as much in flight as on the link; the other is free.
    found = per_device.overlapped_time(2.0, alpha=[1.0, 0.0], beta=[1.0, 0.0])
    assert found == 1.5 * per_device.overlapped_bound(2.0, alpha=[1.0, 0.0], beta=[1.0, 0.0]) == 3.0


def test_an_overlapped_ring_is_the_longest_path_of_its_events():
    # Three devices, four steps: enumerate every way a chunk may have been held up (wait for the link or travel on).
    alpha, transfer = np.array([5.0, 1.0, 2.0]), np.array([1.0, 4.0, 2.0])

    def longest(device, step):
        if step == 0:
            return 0.0, 0.0
        free, _ = longest(device, step - 1)
        _, arrived = longest((device - 1) % 3, step - 1)
        start = max(free, arrived)
        return start + transfer[device], start + transfer[device] + alpha[device]

    expected = max(longest(device, 4)[1] for device in range(3))
    assert per_device.overlapped_time(3.0, alpha=alpha, beta=transfer) == expected


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="one value a device, got shapes"):
        per_device.blocking_time(1.0, alpha=[1.0], beta=[1.0, 2.0])
    with pytest.raises(ValueError, match="must not be negative"):
        per_device.overlapped_bound(1.0, alpha=[-1.0], beta=[1.0])
