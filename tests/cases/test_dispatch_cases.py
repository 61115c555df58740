"""Work of the host: once a device, once a thread, once a call."""

import numpy as np
import pytest
import statsmodels.api as sm

SHARDS = "devices=shards,size_per_device=arguments,latency_s=seconds,collective=none"
THREADS = "devices=threads,latency_s=seconds,note=how,collective=none"


def line(counts, seconds):
    """Slope, half width of its 95 % interval, intercept: statsmodels' least squares."""
    fit = sm.OLS(seconds, sm.add_constant(np.array(counts, dtype=float))).fit()
    lower, upper = fit.conf_int()[1]
    return fit.params[1], (upper - lower) / 2, fit.params[0]


def test_handing_over_arguments_costs_30_ms_a_shard(ask):
    found = ask("c21_shard_args.csv", SHARDS)
    slope, half, intercept = line((2, 4, 8), (0.136431, 0.198815, 0.31788))
    assert (slope, half, intercept) == pytest.approx((0.0302, 0.0045, 0.0769), rel=0.02)
    per_shard = found.slope.per_device_s
    assert per_shard.estimate == pytest.approx(slope)
    assert per_shard.interval == pytest.approx((slope - half, slope + half))
    assert "residuals" in per_shard.reason
    assert found.slope.intercept_s.estimate == pytest.approx(intercept)
    assert found.slope.straight
    assert found.slope.remark is None


def test_dispatch_is_the_parameter_that_grows_with_the_shards(ask):
    dispatch = ask("c21_shard_args.csv", SHARDS).parameters["dispatch"]
    assert dispatch.identified
    assert dispatch.estimate == pytest.approx(0.0302, rel=0.01)
    assert dispatch.interval == pytest.approx((0.0302 - 0.0045, 0.0302 + 0.0045), rel=0.02)


def test_a_program_without_a_collective_does_not_communicate(ask):
    found = ask("c21_shard_args.csv", SHARDS)
    assert found.verdict != "communication"
    assert found.collectives == ()
    for parts in found.causes.values():
        assert parts["communication"].latency_s.estimate == 0
        assert parts["communication"].source == "the file says that the program has no collective"
    bound = found.communication_bound
    assert bound.rejected_outright == "the file says that the program has no collective"
    assert {bound.share.holds, bound.exceeds_compute.holds, bound.growth.holds} == {"no"}
    assert not {"alpha", "beta", "alpha0"} & found.parameters.keys()


def test_without_that_word_the_slope_stays_but_its_cause_is_open(ask):
    found = ask("c21_shard_args.csv", SHARDS.removesuffix(",collective=none"))
    assert found.slope.per_device_s.estimate == pytest.approx(0.0302, rel=0.01)
    assert found.collectives is None
    assert found.communication_bound.rejected_outright is None
    assert found.verdict == "undecided"


def test_threads_that_slow_a_program_down_are_plausible_not_significant(ask):
    found = ask("c13_threads.csv", THREADS)
    slope, half, intercept = line((1, 16, 32), (5.1, 8.4, 13.3))
    assert (slope, half, intercept) == pytest.approx((0.265, 0.32, 4.6), rel=0.02)
    per_thread = found.slope.per_device_s
    assert per_thread.estimate == pytest.approx(slope)
    assert per_thread.interval == pytest.approx((slope - half, slope + half))
    assert found.slope.remark == "direction plausible, not significant on 3 single runs; add replicates"


def test_one_thread_is_best_of_those_tried(ask):
    found = ask("c13_threads.csv", THREADS)
    assert found.optimal_devices.estimate == found.optimal_devices.within_tolerance == 1
    # Three single runs prove nothing, and the answer says so.
    assert found.optimal_devices.outcome == found.break_even.first.outcome == "undecided"
    assert found.break_even.first.estimate is None
    assert "no count up to 32 beat the reference, but that may be chance" in found.break_even.first.reason


@pytest.mark.parametrize("columns", [THREADS, THREADS.removesuffix(",collective=none")])
def test_one_process_is_never_called_communication_bound(ask, columns):
    found = ask("c13_threads.csv", columns)
    assert found.verdict != "communication"
    bound = found.communication_bound
    meanings = (bound.share, bound.exceeds_compute, bound.growth, bound.no_gain_even_with_free_dispatch)
    assert all(meaning.holds != "yes" for meaning in meanings)
