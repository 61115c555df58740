"""Intervals against scipy.stats and statsmodels, which the code under test does not call for t."""

import numpy as np
import pytest
from breakeven.fit.intervals import (
    EXACT_FIT,
    IDENTICAL,
    NOT_POSITIVE,
    RESIDUALS,
    TOO_FEW,
    fits_exactly,
    holm,
    log_t_estimate,
    p_above,
    p_below,
    p_differs,
    residual_estimate,
    t_estimate,
    tost,
    without_rounding,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

VALUES = np.array([3.1, 2.7, 3.9, 3.3, 2.2, 4.0])
samples = st.lists(st.floats(0.1, 10), min_size=3, max_size=8, unique_by=lambda x: round(x, 4)).map(np.array)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_interval_is_the_one_sample_t_interval(confidence):
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(confidence)
    answer = t_estimate(VALUES, confidence)
    assert answer.estimate == pytest.approx(np.mean(VALUES))
    assert answer.interval == pytest.approx((expected.low, expected.high), rel=1e-10)
    assert answer.reason is None


def test_log_interval_is_that_of_the_logarithms():
    expected = stats.ttest_1samp(np.log(VALUES), 0).confidence_interval(0.95)
    answer = log_t_estimate(VALUES)
    assert answer.estimate == pytest.approx(stats.gmean(VALUES))
    assert answer.interval == pytest.approx((np.exp(expected.low), np.exp(expected.high)), rel=1e-10)


@pytest.mark.parametrize("null", [-1.0, 2.0, 3.2, 5.0])
def test_p_values_are_those_of_scipy(null):
    assert p_above(VALUES, null) == pytest.approx(stats.ttest_1samp(VALUES, null, alternative="greater").pvalue)
    assert p_below(VALUES, null) == pytest.approx(stats.ttest_1samp(VALUES, null, alternative="less").pvalue)
    assert p_differs(VALUES, null) == pytest.approx(stats.ttest_1samp(VALUES, null).pvalue)


@given(samples, st.floats(1e-7, 1e7))
def test_unit_does_not_matter(values, unit):
    in_unit, scaled = t_estimate(values), t_estimate(values * unit)
    assert in_unit.interval is not None
    assert scaled.interval == pytest.approx(tuple(unit * end for end in in_unit.interval), rel=1e-9, abs=1e-9 * unit)
    assert p_above(values * unit, 3 * unit) == pytest.approx(p_above(values, 3), rel=1e-6)


@given(samples, st.randoms(use_true_random=False))
def test_order_of_launches_does_not_matter(values, random):
    shuffled = values.copy()
    random.shuffle(shuffled)
    assert log_t_estimate(shuffled).interval == pytest.approx(log_t_estimate(values).interval, rel=1e-12)


@given(samples)
def test_inverse_of_a_ratio_has_the_inverse_interval(values):
    there, back = log_t_estimate(values), log_t_estimate(1 / values)
    assert back.interval == pytest.approx((1 / there.interval[1], 1 / there.interval[0]), rel=1e-9)


@pytest.mark.parametrize("launches", [1, 2])
@pytest.mark.parametrize("estimate", [t_estimate, log_t_estimate])
def test_fewer_than_three_launches_give_no_interval(estimate, launches):
    answer = estimate(VALUES[:launches])
    assert answer.estimate is not None
    assert answer.interval is None
    assert answer.reason == TOO_FEW
    assert p_above(VALUES[:launches]) is None


@pytest.mark.parametrize("estimate", [t_estimate, log_t_estimate])
def test_identical_replicates_give_no_zero_width_interval(estimate):
    answer = estimate(np.array([0.1 + 0.2, 0.3, 0.3]))
    assert answer.interval is None
    assert answer.reason == IDENTICAL
    assert answer.estimate == pytest.approx(0.3)
    assert p_below(np.zeros(5)) is None


def test_what_is_missing_or_has_no_logarithm_is_said():
    assert t_estimate(np.array([1.0, np.nan, 2.0])).estimate is None
    assert log_t_estimate(np.array([1.0, -1.0, 2.0])).reason == NOT_POSITIVE
    assert t_estimate(np.array([])).reason == "not measured in every launch"


def test_holm_by_hand_and_what_is_undefined_does_not_count():
    # Sorted: .01 * 3, max(.03, .02 * 2), max(.04, .04 * 1).
    assert holm([0.02, None, 0.01, 0.04]) == pytest.approx((0.04, None, 0.03, 0.04))
    assert holm([None, None]) == (None, None)
    assert holm([]) == ()


def test_equivalence_agrees_with_statsmodels():
    from statsmodels.stats.weightstats import DescrStatsW

    values = np.array([0.01, -0.02, 0.015, 0.002, -0.004])
    expected = DescrStatsW(values).ttost_mean(-0.03, 0.03)[0]
    answer = tost(values, 0.03)
    assert answer.p == pytest.approx(expected)
    assert answer.equivalent is True
    assert tost(values, 0.005).equivalent is False
    assert tost(values[:2], 0.03).equivalent is None
    with pytest.raises(ValueError, match="margin must be positive"):
        tost(values, 0.0)


def test_residual_intervals_are_labelled():
    answer = residual_estimate(2.0, 0.5, 4)
    assert answer.interval == pytest.approx(stats.t.interval(0.95, 4, loc=2.0, scale=0.5))
    assert answer.reason == RESIDUALS
    logs = residual_estimate(np.log(2.0), 0.5, 4, log=True)
    assert logs.interval == pytest.approx(
        tuple(np.exp(end) for end in stats.t.interval(0.95, 4, loc=np.log(2.0), scale=0.5))
    )
    without = residual_estimate(2.0, 0.5, 0)
    assert without.interval is None
    assert "no degrees of freedom" in without.reason


@pytest.mark.parametrize("log", [False, True])
def test_residuals_that_are_rounding_give_no_interval(log):
    answer = residual_estimate(0.5, 1e-15, 4, log=log, exact=True)
    assert answer.estimate == pytest.approx(np.exp(0.5) if log else 0.5)
    assert (answer.interval, answer.reason) == (None, EXACT_FIT)
    # Without freedom a fit is exact whatever was measured.
    assert "no degrees of freedom" in residual_estimate(0.5, 0.0, 0, exact=True).reason


def test_a_formula_read_back_from_whole_nanoseconds_fits_exactly():
    n = np.array([1, 3, 6, 7, 9, 11])
    formula = 10e-6 + 90e-6 / n
    stored = np.round(formula * 1e9) / 1e9
    assert fits_exactly(stored - formula, stored)
    # Seconds that differ in the seventh digit were measured.
    assert not fits_exactly(np.array([1e-7, -1e-7]), np.array([1.0, 2.0]))


def test_a_term_that_is_rounding_in_every_cell_is_0_and_a_small_one_that_matters_somewhere_stays():
    matrix = np.array([[1.0, 1.0, 1e3], [1.0, 2.0, 1e12]])
    values = np.array([[1.0], [1e-16], [2e-12]])
    found = without_rounding(values, matrix, matrix @ values[:, 0])
    assert found.ravel().tolist() == [1.0, 0.0, 2e-12]


def test_confidence_must_be_a_fraction():
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, got 95"):
        t_estimate(VALUES, 95)


def test_interval_over_three_launches_covers():
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(1000):
        low, high = t_estimate(rng.normal(5, 1, size=3)).interval
        hits += low <= 5 <= high
    # Nominal 950, binomial sd 6.9.
    assert 925 <= hits <= 975
