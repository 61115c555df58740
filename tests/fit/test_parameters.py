"""Parameters from launches: exact cases, textbook least squares, coverage, and the traps of rank, scale and bounds."""

import numpy as np
import pytest
import statsmodels.regression.linear_model as textbook
from breakeven.fit.intervals import EXACT_FIT
from breakeven.fit.parameters import AS_MANY, BELOW_ALONE, PUSHED_BELOW, SIMULATED_DEVICE, fit_launches, parameters
from breakeven.model.law import Design
from scipy import stats


def design_of(**columns):
    matrix = np.array(list(columns.values()), dtype=float).T
    names = tuple(columns)
    return Design(matrix=matrix, names=names, units=("s",) * len(names), causes=("dispatch",) * len(names))


N = np.arange(2, 9)
RING = {"c0": np.ones(7), "alpha": 2.0 * (N - 1)}
NCCL = np.array([10, 13.76, 16.88, 20.8, 25.2, 29.5, 33.7]) * 1e-6


def estimate(design, latency_s, *, replicated=True, weights=None, **options):
    weights = np.ones(len(design.matrix)) if weights is None else weights
    return parameters(design, fit_launches(design, weights, latency_s), replicated=replicated, **options)


def launches(values, *, spread, count=6, seed=0):
    """Launch-wise times of a design's cells under parameters that vary by launch, additively."""
    rng = np.random.default_rng(seed)
    return np.asarray(values)[:, None] + spread * rng.normal(size=(len(values), count))


def test_residual_intervals_are_those_of_the_textbook():
    design = design_of(**RING)
    found = estimate(design, NCCL[:, None], replicated=False)
    book = textbook.OLS(NCCL, design.matrix).fit()
    for j, name in enumerate(design.names):
        assert found[name].estimate == pytest.approx(book.params[j], rel=1e-9)
        np.testing.assert_allclose(found[name].interval, book.conf_int()[j], rtol=1e-9)
    assert found["alpha"].reason == "residuals, replication unknown"


def test_weighted_fit_is_that_of_the_textbook():
    design, weights = design_of(**RING), 1 / NCCL**2
    found = estimate(design, NCCL[:, None], replicated=False, weights=weights)
    book = textbook.WLS(NCCL, design.matrix, weights=weights).fit()
    np.testing.assert_allclose(found["alpha"].interval, book.conf_int()[1], rtol=1e-9)


def test_intervals_over_launches_are_t_intervals_of_each_launch_fitted_alone():
    design = design_of(**RING)
    times = launches(design.matrix @ [5e-6, 2e-6], spread=2e-7)
    alone = np.array([np.linalg.lstsq(design.matrix, times[:, g], rcond=None)[0][1] for g in range(6)])
    expected = stats.t.interval(0.95, 5, loc=alone.mean(), scale=stats.sem(alone))
    np.testing.assert_allclose(estimate(design, times)["alpha"].interval, expected, rtol=1e-9)


def test_two_launches_give_an_estimate_and_no_interval():
    design = design_of(**RING)
    found = estimate(design, launches(design.matrix @ [5e-6, 2e-6], spread=2e-7, count=2))["alpha"]
    assert found.estimate == pytest.approx(2e-6, rel=0.2)
    assert found.interval is None
    assert found.reason == "fewer than three launches"


def test_as_many_parameters_as_points_give_no_interval():
    design = design_of(c0=[1, 1], alpha=[2, 4])
    found = estimate(design, np.array([[10e-6], [14e-6]]), replicated=False)["alpha"]
    assert (found.estimate, found.interval, found.reason) == (pytest.approx(2e-6), None, AS_MANY)


def test_an_exact_fit_with_freedom_left_has_no_interval():
    design = design_of(**RING)
    found = estimate(design, (design.matrix @ [5e-6, 2e-6])[:, None], replicated=False)["alpha"]
    assert found.estimate == pytest.approx(2e-6, rel=1e-9)
    assert (found.interval, found.upper_limit, found.reason) == (None, None, EXACT_FIT)


def test_a_parameter_that_a_formula_leaves_out_is_0_and_no_limit_of_femtoseconds():
    design = design_of(c0=np.ones(5), dispatch=[1, 2, 4, 8, 16], gamma=[1, 1 / 2, 1 / 4, 1 / 8, 1 / 16])
    found = estimate(design, (design.matrix @ [10, 0, 90])[:, None], replicated=False)
    assert {name: one.estimate for name, one in found.items()} == pytest.approx({"c0": 10, "dispatch": 0, "gamma": 90})
    assert found["dispatch"].estimate == 0
    assert {(one.interval, one.upper_limit, one.reason) for one in found.values()} == {(None, None, EXACT_FIT)}


def test_at_the_bound_there_is_a_one_sided_limit_and_never_nan():
    # Mean -0.1 and spread 0.5 of a parameter: its interval covers 0.
    design = design_of(c0=[1, 1, 1], beta=[0, 1, 2])
    values = -0.1 + 0.5 * np.array([-1.5, -0.9, -0.3, 0.3, 0.9, 1.5])
    found = estimate(design, np.array([10 + x * values for x in (0, 1, 2)]))["beta"]
    expected = values.mean() + stats.t.ppf(0.975, 5) * stats.sem(values)
    assert found.estimate == 0
    assert found.interval is None
    assert found.upper_limit == pytest.approx(expected, rel=1e-9)
    assert found.identified


def test_a_positive_estimate_whose_interval_reaches_zero_keeps_its_estimate():
    design = design_of(c0=[1, 1, 1], beta=[0, 1, 2])
    values = 0.1 + 0.5 * np.array([-1.5, -0.9, -0.3, 0.3, 0.9, 1.5])
    found = estimate(design, np.array([10 + x * values for x in (0, 1, 2)]))["beta"]
    assert found.estimate == pytest.approx(0.1)
    assert found.interval is None
    assert found.upper_limit > 0.1


def test_a_parameter_pushed_below_zero_has_no_number():
    design = design_of(c0=[1, 1, 1], beta=[0, 1, 2])
    values = -1 + 0.01 * np.arange(6)
    found = estimate(design, np.array([10 + x * values for x in (0, 1, 2)]))["beta"]
    assert (found.estimate, found.upper_limit, found.identified) == (None, None, False)
    assert found.reason == PUSHED_BELOW


def test_below_zero_without_an_interval_there_is_no_number():
    """Neither 0 nor a limit: with two launches nothing says how far above 0 it may lie."""
    two = estimate(design_of(c0=[1, 1, 1], beta=[0, 1, 2]), np.array([[10, 10], [9, 9.5], [8, 9]]))["beta"]
    assert (two.estimate, two.interval, two.upper_limit, two.identified) == (None, None, None, False)
    assert two.reason == f"{BELOW_ALONE}: fewer than three launches"
    points = estimate(design_of(c0=[1, 1], alpha=[2, 4]), np.array([[14e-6], [10e-6]]), replicated=False)["alpha"]
    assert (points.estimate, points.reason) == (None, f"{BELOW_ALONE}: {AS_MANY}")


def test_tied_parameters_are_named_and_not_guessed():
    design = design_of(c0=np.ones(7), dispatch=N, alpha=2.0 * (N - 1))
    found = estimate(design, launches(design.matrix @ [5e-6, 1e-6, 2e-6], spread=1e-7))
    for name in ("c0", "dispatch", "alpha"):
        assert found[name].estimate is None
        assert not found[name].identified
    assert "cannot be told" in found["alpha"].reason
    assert "dispatch" in found["alpha"].reason


def test_the_sum_of_equal_columns_is_determined():
    design = design_of(c0=np.ones(7), floor=np.ones(7), alpha=2.0 * (N - 1))
    found = estimate(design, launches(design.matrix @ [3e-6, 2e-6, 2e-6], spread=1e-8))
    assert found["c0"].estimate is None
    assert found["c0 + floor"].estimate == pytest.approx(5e-6, rel=0.02)
    assert found["alpha"].estimate == pytest.approx(2e-6, rel=0.02)


def test_a_design_without_full_rank_never_returns_huge_coefficients():
    # Weighted normal equations returned -1.5e13 for such a design (statsmodels issue 10126).
    design = design_of(a=np.ones(7), b=N, c=N + 1e-13 * N**2, d=3.0 * N - 1)
    fitted = fit_launches(design, 1 / NCCL**2, NCCL[:, None])
    assert np.abs(fitted.values).max() < 1e-3
    assert fitted.known.rank == 2


@pytest.mark.parametrize("unit", [1e6, 1e9])
def test_units_of_time_only_rescale(unit):
    design = design_of(c0=np.ones(7), alpha=2.0 * (N - 1), beta=1e9 * (N - 1) / N)
    times = launches(design.matrix @ [5e-6, 2e-6, 1e-15], spread=1e-7)
    seconds, other = estimate(design, times), estimate(design, times * unit)
    for name in design.names:
        assert (seconds[name].identified, seconds[name].reason) == (other[name].identified, other[name].reason)
        for field in ("estimate", "upper_limit"):
            ours, theirs = getattr(seconds[name], field), getattr(other[name], field)
            assert theirs == (None if ours is None else pytest.approx(ours * unit, rel=1e-9))


def test_shared_cores_are_said_beside_dispatch():
    design = design_of(c0=np.ones(7), dispatch=N)
    times = launches(design.matrix @ [5e-6, 2e-6], spread=1e-8)
    found = estimate(design, times, shared_resource=True, remark="no law passes")
    assert found["dispatch"].reason == f"{SIMULATED_DEVICE}; no law passes"
    assert found["c0"].reason == "no law passes"


def test_intervals_cover():
    design = design_of(**RING)
    hits = 0
    for seed in range(400):
        low, high = estimate(design, launches(design.matrix @ [5e-6, 2e-6], spread=2e-7, seed=seed))["alpha"].interval
        hits += low <= 2e-6 <= high
    # 400 trials at 95 %: four standard errors of a proportion are 4.4 %.
    assert abs(hits / 400 - 0.95) < 0.044
