"""Small versions of the studies of measuring itself: what they count."""

# pyright: reportMissingImports=false
# A test run has the root on its path.

import numpy as np
import pytest
from scipy import stats

from benchmarks.overhead import Ratio, compare
from benchmarks.repeats import DEVICES, ROUTES, Cost, held, markdown


def test_a_loop_that_takes_longer_is_found():
    """Two loops that only claim their times: the mean log ratio is that of the claims."""
    ratio, latency_s = compare(lambda: [1.02e-4] * 5, lambda: [1e-4] * 5, seconds=0.02, seed=0)
    assert ratio == pytest.approx(np.log(1.02))
    assert latency_s == 1e-4


def test_the_margin_is_judged_by_the_interval():
    found = np.array([0.001, 0.003, -0.002, 0.004])
    low, high = stats.t.interval(0.95, 3, found.mean(), stats.sem(found))
    ratio = Ratio(workload="made", num_devices=1, latency_s=1e-4, log_ratios=tuple(found))
    assert ratio.interval == pytest.approx((np.exp(low), np.exp(high)))
    assert ratio.within
    assert not Ratio(workload="made", num_devices=1, latency_s=1e-4, log_ratios=tuple(found + 0.02)).within
    assert Ratio(workload="made", num_devices=1, latency_s=1e-5, log_ratios=tuple(found + 0.02)).within


def test_intervals_that_hold_the_mean_are_counted():
    costs = [
        Cost(seed=i, route="chain", num_devices=2, estimate=1e-4 + i * 1e-6, lower=lower, upper=2e-4)
        for i, lower in enumerate((0.9e-4, 1.1e-4, 0.9e-4))
    ]
    assert held(costs, "chain", 2) == (2, pytest.approx(1.01e-4))
    others = [
        Cost(seed=i, route=route, num_devices=n, estimate=1e-4, lower=0.9e-4, upper=1.1e-4)
        for i in range(3)
        for route in ROUTES
        for n in DEVICES
        if (route, n) != ("chain", 2)
    ]
    assert "| chain | 2 | 101.0 µs | 2 of 3 |" in markdown([*costs, *others], {"seed": "0"})
