import numpy as np
import pytest
from breakeven.fit.trend import Baseline


def baseline(counts, sizes, time):
    return Baseline(times_s={(n, s): np.array([time(n, s), 2 * time(n, s)]) for n in counts for s in sizes})


def test_measured_cells_come_back_launch_by_launch():
    trend = baseline((1, 2, 4), (10, 100), lambda n, s: n + s)
    np.testing.assert_allclose(trend.latency_s(2, 100), [102, 204])


def test_a_power_law_is_followed_exactly_between_sizes_and_counts():
    trend = baseline((2, 8), (10, 1000), lambda n, s: n**0.5 * s**0.7)
    np.testing.assert_allclose(trend.latency_s(4, 100), np.array([1, 2]) * 4**0.5 * 100**0.7)


def test_beyond_the_largest_count_the_slope_is_damped():
    trend = baseline((2, 4, 8), (10,), lambda n, s: n)
    # One doubling at slope 1, damped to 0.85 of it.
    np.testing.assert_allclose(trend.latency_s(16, 10), 8 * 2**0.85 * np.array([1, 2]))


def test_one_device_gives_no_slope():
    assert baseline((1, 2), (10,), lambda n, s: n).latency_s(4, 10) is None
    slow_on_one = baseline((1, 2, 4), (10,), lambda n, s: 100 if n == 1 else n)
    np.testing.assert_allclose(slow_on_one.latency_s(8, 10), 4 * 2**0.85 * np.array([1, 2]))


def test_an_empty_message_has_no_place_between_others():
    trend = baseline((2, 4), (0, 10, 1000), lambda n, s: n * max(s, 1))
    np.testing.assert_allclose(trend.latency_s(2, 0), [2, 4])
    np.testing.assert_allclose(trend.latency_s(2, 100), [200, 400])
    assert baseline((2, 4), (10, 1000), lambda n, s: n * s).latency_s(2, 0) is None


@pytest.mark.parametrize(("n", "size"), [(1, 10), (4, 20)])
def test_what_nothing_measured_bears_on_has_no_number(n, size):
    assert baseline((2, 4), (10,), lambda n, s: n).latency_s(n, size) is None


def test_slopes_are_pooled_over_neighbouring_sizes():
    # One size out of five bends; the median of the five slopes does not.
    trend = baseline((2, 4), (1, 2, 3, 4, 5), lambda n, s: n**2 if s == 3 else n)
    np.testing.assert_allclose(trend.latency_s(8, 3), 16 * 2**0.85 * np.array([1, 2]))
