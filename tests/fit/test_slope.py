"""What each further device adds: a line, against statsmodels, launch by launch and from residuals."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from breakeven.fit.intervals import EXACT_FIT
from breakeven.fit.slope import device_slope
from scipy import stats


def affine(n, _size):
    return 1e-3 + 2e-4 * n, 0.0, 0.0


def times_of(table):
    return {c.num_devices: t for c, t in zip(table.cells, table.latency_s, strict=True) if c.role == "workload"}


def test_single_runs_give_the_interval_of_least_squares(make_table):
    table = make_table(affine, devices=(1, 2, 4, 8), launches=1, replicated=False, foreign=True)
    found = device_slope(table, "jit", 1000)
    times = times_of(table)
    fit = sm.OLS([t.item() for t in times.values()], sm.add_constant(np.array(list(times), dtype=float))).fit()
    assert found.devices == (1, 2, 4, 8)
    assert (found.intercept_s.estimate, found.per_device_s.estimate) == pytest.approx(tuple(fit.params))
    assert found.intercept_s.interval == pytest.approx(tuple(fit.conf_int()[0]))
    assert found.per_device_s.interval == pytest.approx(tuple(fit.conf_int()[1]))
    assert "residuals" in found.per_device_s.reason


def test_launches_are_the_replicates_and_one_device_stays_out(make_table):
    table = make_table(affine, devices=(1, 2, 4, 8))
    found = device_slope(table, "jit", 1000)
    times = times_of(table)
    slopes = [stats.linregress((2, 4, 8), [times[n][g] for n in (2, 4, 8)]).slope for g in range(6)]
    expected = stats.t.interval(0.95, 5, np.mean(slopes), stats.sem(slopes))
    assert found.devices == (2, 4, 8)
    assert found.per_device_s.interval == pytest.approx(expected)
    assert found.straight
    assert found.remark is None


def test_the_line_covers_the_true_slope(make_table):
    inside = 0
    for seed in range(200):
        slope = device_slope(make_table(affine, seed=seed, launch_sd=0.0), "jit", 1000).per_device_s
        inside += slope.interval[0] <= 2e-4 <= slope.interval[1]
    # 95 % of 200: fewer than 181 or all of them happens less than once in 500.
    assert 181 <= inside <= 199


def test_two_counts_have_no_interval_without_launches(make_table):
    table = make_table(affine, devices=(2, 4), launches=1, replicated=False)
    found = device_slope(table, "jit", 1000)
    assert found.per_device_s.interval is None
    assert found.misfit == pytest.approx(0, abs=1e-12)
    assert "no degrees of freedom" in found.per_device_s.reason
    assert found.remark == found.per_device_s.reason


def test_times_on_a_line_to_the_last_digit_have_no_interval(make_table):
    options = {"launches": 1, "replicated": False, "foreign": True, "cell_sd": 0, "launch_sd": 0}
    found = device_slope(make_table(lambda n, s: (1e-3 * n, 0.0, 0.0), devices=(1, 2, 4, 8), **options), "jit", 1000)
    assert found.per_device_s.estimate == pytest.approx(1e-3, rel=1e-9)
    assert found.intercept_s.estimate == 0
    for one in (found.per_device_s, found.intercept_s):
        assert (one.interval, one.reason) == (None, EXACT_FIT)
    assert found.remark == EXACT_FIT


def test_one_count_has_no_slope(make_table):
    assert device_slope(make_table(affine, devices=(4,)), "jit", 1000) is None


def test_counts_outside_the_question_do_not_enter(make_table):
    found = device_slope(make_table(affine, devices=(1, 2, 4, 8)), "jit", 1000, reference=2, largest=4)
    assert found.devices == (2, 4)


def test_flat_times_change_not_significantly(make_table):
    table = make_table(lambda n, s: (1e-3, 0.0, 0.0), seed=1)
    assert device_slope(table, "jit", 1000).remark == "the time does not change significantly with the device count"
    single = replace(table.take(np.array([0])), replicated=False)
    assert "not significant on 3 single runs; add replicates" in device_slope(single, "jit", 1000).remark


def test_a_valley_is_no_straight_line(make_table):
    table = make_table(lambda n, s: (0.0, 1e-4 * n, 8e-3 / n), devices=(1, 2, 4, 8, 16, 32), path="strong")
    assert not device_slope(table, "jit", 1000).straight
