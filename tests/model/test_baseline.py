"""The damped trend against sums carried out doubling by doubling, and its limits."""

import numpy as np
import pytest
from breakeven.model.baseline import damped_trend, last_slope, pooled_slope


def test_each_doubling_keeps_a_part_of_the_slope():
    counts, times = [1, 2, 4], [16.0, 12.0, 6.0]
    predicted, slope, now = [], -1.0, 6.0
    for _ in range(3):
        slope *= 0.85
        now *= 2.0**slope
        predicted.append(now)
    np.testing.assert_allclose(damped_trend(counts, times, [8, 16, 32]), predicted, rtol=1e-12)


def test_undamped_it_is_the_power_law():
    counts = np.array([2, 4, 8])
    predicted = damped_trend(counts, 3.0 * counts**-0.7, [8, 13, 64], damping=1.0)
    np.testing.assert_allclose(predicted, 3.0 * np.array([8, 13, 64]) ** -0.7, rtol=1e-12)


def test_measured_counts_come_back_and_between_them_it_is_a_power_law():
    np.testing.assert_allclose(damped_trend([1, 4], [8.0, 2.0], [1, 2, 4]), [8.0, 4.0, 2.0], rtol=1e-12)


def test_a_given_slope_replaces_the_last_one_for_each_series():
    times = np.array([[4.0, 2.0], [1.0, 1.0]])
    predicted = damped_trend([1, 2], times, [4], slope=np.array([0.0, 1.0]), damping=0.5)
    np.testing.assert_allclose(predicted, [[2.0], [2.0**0.5]], rtol=1e-12)


def test_far_away_it_stops():
    # d + d^2 + ... tends to d / (1 - d) doublings of slope.
    far = damped_trend([1, 2], [2.0, 1.0], [2.0**200], damping=0.8)
    np.testing.assert_allclose(far, 2.0**-4, rtol=1e-9)


def test_one_wild_size_does_not_move_the_pooled_slope():
    slopes = np.array([-1.0, -0.9, 5.0, -0.9, -0.8, -0.7])
    np.testing.assert_allclose(pooled_slope(slopes), [-0.9, -0.9, -0.9, -0.8, -0.75, -0.8])
    assert pooled_slope([0.3])[0] == 0.3


def test_slope_is_that_of_the_largest_two_counts():
    assert last_slope([1, 2, 8], [99.0, 4.0, 1.0]) == pytest.approx(-1.0)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="at least 2 device counts, got 1"):
        damped_trend([2], [1.0], [4])
    with pytest.raises(ValueError, match="targets must not lie below the smallest measured count 2, got 1"):
        damped_trend([2, 4], [1.0, 1.0], [1])
    with pytest.raises(ValueError, match="damping must lie"):
        damped_trend([2, 4], [1.0, 1.0], [8], damping=0.0)
    with pytest.raises(ValueError, match="ascending"):
        last_slope([4, 2], [1.0, 1.0])
    with pytest.raises(ValueError, match="its last axis must have the 2 device counts"):
        last_slope([2, 4], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="must be positive"):
        last_slope([2, 4], [1.0, 0.0])
