"""The ring against a walk round it, a discrete-event simulator, a measurement, and its limits."""

import numpy as np
import pytest
from breakeven.model import ring


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("size", [0, 8, 2**33])
def test_time_equals_a_walk_round_the_ring(n, size):
    walk = sum(12e-6 + size / n / 180e9 for _phase in ("scatter", "gather") for _step in range(n - 1))
    # The same sum in another order: only rounding may differ.
    np.testing.assert_allclose(ring.all_reduce_time(n, size, alpha=12e-6, beta=1 / 180e9), walk, rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "message_bytes", "simulated_s"),
    [
        (2, 8, 4.000800000000001e-05),
        (2, 1048576, 0.001088576),
        (4, 65536, 0.00021830399999999995),
        (8, 1048576, 0.0021150079999999994),
        (8, 67108864, 0.11772051200000005),
        (16, 65536, 0.0007228800000000002),
    ],
)
def test_simgrid_finds_the_same_times(n, message_bytes, simulated_s):
    # A ring of actors in SimGrid 3.32 under its CM02 network model, 20 us a link and 1 GB/s.
    predicted = ring.all_reduce_time(n, message_bytes, alpha=20e-6, beta=1e-9)
    np.testing.assert_allclose(predicted, simulated_s, rtol=1e-12)


def test_a_forced_ring_on_one_node_has_a_base_and_two_steps_a_device():
    # One-channel ring on a DGX A100, 8 to 128 bytes, 2 to 8 GPUs, us: github.com/NVIDIA/nccl-tests/issues/123.
    measured = np.array([10, 13.76, 16.88, 20.8, 25.2, 29.5, 33.7])
    steps = ring.all_reduce_time(np.arange(2, 9), 0, alpha=1.0, beta=0.0)
    alpha, alpha0 = np.polyfit(steps, measured, 1)
    assert alpha0 == pytest.approx(5.56, abs=0.005)
    assert alpha == pytest.approx(1.98, abs=0.005)


def test_an_all_reduce_is_a_reduce_scatter_then_an_all_gather():
    n, size = np.array([1, 2, 5, 16])[:, None], np.array([1, 1000, 10**9])
    costs = {"alpha": 3e-6, "beta": 2e-10}
    halves = ring.reduce_scatter_time(n, size, **costs) + ring.all_gather_time(n, size, **costs)
    np.testing.assert_allclose(ring.all_reduce_time(n, size, **costs), halves, rtol=1e-14)


@pytest.mark.parametrize(
    ("kind", "time"),
    [
        ("all-reduce", ring.all_reduce_time),
        ("all-gather", ring.all_gather_time),
        ("reduce-scatter", ring.reduce_scatter_time),
    ],
)
def test_bus_bandwidth_of_large_messages_is_the_links(kind, time):
    n, size = np.array([2, 3, 8, 100]), 2**50
    latency = time(n, size, alpha=1e-5, beta=1 / 25e9)
    # Latency is below 1e-6 of the time at a petabyte.
    np.testing.assert_allclose(ring.busbw(n, size, latency, kind=kind), 25e9, rtol=1e-6)


def test_algorithm_bandwidth_is_bytes_over_seconds():
    assert ring.algbw(1e9, 0.5) == 2e9


def test_no_device_is_an_error():
    with pytest.raises(ValueError, match="num_devices must be at least 1, got 0"):
        ring.all_reduce_time([2, 0], 8, alpha=1e-6, beta=1e-9)


def test_bus_bandwidth_knows_the_kinds_of_nccl_tests():
    with pytest.raises(ValueError, match="kind must be one of all-reduce, all-gather"):
        ring.busbw(2, 8, 1.0, kind="all-remember")
