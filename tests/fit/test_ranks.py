"""Sign test and Hodges-Lehmann estimate, against scipy and by enumerating every sign."""

import itertools

import numpy as np
import pytest
from breakeven.fit.ranks import hodges_lehmann, sign_p
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats


@given(st.lists(st.floats(-100, 100, allow_nan=False), min_size=1, max_size=30))
def test_the_sign_test_is_that_of_scipy(values):
    positive, negative = sum(v > 0 for v in values), sum(v < 0 for v in values)
    if positive + negative == 0:
        assert sign_p(np.array(values)) is None
    else:
        expected = stats.binomtest(positive, positive + negative).pvalue
        assert sign_p(np.array(values)) == pytest.approx(expected, rel=1e-9)


def test_six_launches_of_one_sign_are_significant_and_five_are_not():
    assert sign_p(np.arange(1, 7)) == pytest.approx(2 / 64)
    assert sign_p(-np.arange(1, 6)) == pytest.approx(2 / 32)


def test_the_estimate_is_the_median_of_pairwise_means():
    values = np.array([3.0, -1.0, 10.0, 4.0])
    pairs = [np.mean(pair) for pair in itertools.combinations_with_replacement(values, 2)]
    assert hodges_lehmann(values).estimate == np.median(pairs)


@pytest.mark.parametrize("count", [6, 7, 8, 11, 15])
@pytest.mark.parametrize("confidence", [0.95, 0.9])
def test_the_interval_holds_what_wilcoxons_test_does_not_reject(count, confidence):
    values = np.random.default_rng(count).normal(1, 2, count)
    low, high = hodges_lehmann(values, confidence).interval
    step = 1e-9

    def p(null):
        return stats.wilcoxon(values - null, method="exact").pvalue

    assert min(p(low + step), p(high - step)) > 1 - confidence
    assert max(p(low - step), p(high + step)) <= 1 - confidence


def test_fewer_than_six_values_have_no_95_percent_interval():
    five = hodges_lehmann(np.arange(5.0))
    assert (five.estimate, five.interval) == (2.0, None)
    assert five.reason == "signs and ranks need 6 launches for 95 %"
    assert hodges_lehmann(np.arange(5.0), 0.9).interval == (0.0, 4.0)
    assert hodges_lehmann(np.arange(6.0), 0.99).reason == "signs and ranks need 8 launches for 99 %"


@pytest.mark.parametrize("values", [[], [1.0, np.nan]])
def test_what_was_not_measured_has_no_estimate(values):
    assert hodges_lehmann(np.array(values)).estimate is None


@pytest.mark.parametrize("count", [6, 9])
def test_intervals_cover_a_symmetric_truth_with_heavy_tails(count):
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(1000):
        low, high = hodges_lehmann(5 + rng.standard_t(2, count)).interval
        hits += low <= 5 <= high
    # Never below 95 %; three standard errors are 2 %.
    assert hits >= 930


@given(st.integers(0, 1000), st.floats(0.1, 100), st.floats(-100, 100))
def test_shift_scale_and_sign_carry_over(seed, scale, shift):
    values = np.random.default_rng(seed).normal(size=8)
    ours, moved = hodges_lehmann(values), hodges_lehmann(shift - scale * values)
    assert moved.estimate == pytest.approx(shift - scale * ours.estimate, rel=1e-9, abs=1e-9)
    low, high = ours.interval
    assert moved.interval == pytest.approx((shift - scale * high, shift - scale * low), rel=1e-9, abs=1e-9)
