"""Predictions: published ratios, identities between columns, intervals from data and from laws."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.fit.intervals import TOO_FEW
from breakeven.fit.predictions import predictions
from scipy import stats


def law(n: int, size: int) -> tuple[float, float, float]:
    return 1e-5 * n, 0.0, 1e-6 * size / n


class Law:
    """Any law, exact about nothing."""

    def __init__(self, name: str, seconds: float, discrepancy: float | None) -> None:
        self.name, self.seconds, self.discrepancy = name, seconds, discrepancy

    def latency_s(self, num_devices: int, axis_size: int) -> np.ndarray:
        return self.seconds * np.array([1.0, 1.02, 0.98, 1.01, 0.99, 1.0])


class Fits:
    def __init__(self, *kept: Law) -> None:
        self.kept, self.baseline = kept, Law("baseline", 2e-4, 0.3)


@pytest.fixture
def strong(make_table):
    return make_table(law, path="strong", sizes=(240, 480), devices=(1, 2, 4), roles=("workload",))


def by_place(found):
    return {(p.size, p.num_devices): p for p in found}


@pytest.mark.parametrize(
    ("times", "throughput_ratio", "efficiency"),
    [({1: 0.789, 4: 1.390}, 2.27, 0.57), ({1: 0.0215, 2: 0.0523}, 0.82, 0.41), ({1: 0.45, 4: 2.0}, 0.90, 0.225)],
)
def test_published_weak_steps(make_table, times, throughput_ratio, efficiency):
    """OpenSeq2Seq 191, dlbench 32, DenseDepth 104: seconds a step at a fixed batch per device."""
    table = make_table(
        lambda n, s: (0, 0, times[n]),
        path="weak",
        sizes=(32,),
        devices=tuple(times),
        launches=1,
        replicated=False,
        cell_sd=0,
        launch_sd=0,
    )
    last = predictions(table, "jit", None)[-1]
    assert last.speedup.estimate == pytest.approx(throughput_ratio, abs=0.006)
    assert last.efficiency.estimate == pytest.approx(efficiency, abs=0.006)
    assert last.throughput.estimate == pytest.approx(32 * last.num_devices / times[last.num_devices])
    assert last.speedup.interval is None
    assert last.speedup.reason == TOO_FEW


def test_strong_efficiency_is_speedup_per_device(make_table):
    milliseconds = {1: 138.9, 2: 101.5, 4: 91.9, 8: 94.3}
    table = make_table(lambda n, s: (0, 0, milliseconds[n]), path="strong", sizes=(256,), cell_sd=0, launch_sd=0)
    found = by_place(predictions(table, "jit", None))
    assert found[256, 4].speedup.estimate == pytest.approx(1.511, abs=1e-3)
    assert found[256, 4].efficiency.estimate == pytest.approx(0.378, abs=1e-3)
    from_two = by_place(predictions(table, "jit", None, reference=2))
    assert from_two[256, 8].efficiency.estimate == pytest.approx(101.5 / 94.3 * 2 / 8)


def test_measured_intervals_are_t_on_the_log_scale(strong):
    found = by_place(predictions(strong, "jit", None))[480, 4]
    times = strong.time("workload", "jit", 4, 480)
    low, high = stats.ttest_1samp(np.log(times), 0).confidence_interval(0.95)
    assert found.latency_s.interval == pytest.approx((np.exp(low), np.exp(high)), rel=1e-9)
    assert found.kind == found.source == "measured"
    low, high = stats.ttest_rel(np.log(strong.time("workload", "jit", 1, 480)), np.log(times)).confidence_interval(0.95)
    assert found.speedup.interval == pytest.approx((np.exp(low), np.exp(high)), rel=1e-9)
    # A slow launch is slow everywhere, so the ratio is surer than the time.
    assert np.ptp(np.log(found.speedup.interval)) < np.ptp(np.log(found.latency_s.interval))


def test_the_reference_is_exactly_as_fast_as_itself(strong):
    found = by_place(predictions(strong, "jit", None))[240, 1]
    assert found.speedup.estimate == found.efficiency.estimate == 1
    assert found.speedup.interval == (1, 1)


def test_the_interval_of_a_prediction_holds_its_discrepancy(strong):
    found = by_place(predictions(strong, "jit", Fits(Law("ring", 2e-4, 0.1))))[480, 3]
    assert (found.kind, found.source) == ("interpolated", "ring")
    assert found.latency_s.estimate == pytest.approx(2e-4, rel=1e-3)
    logs = np.log([1.0, 1.02, 0.98, 1.01, 0.99, 1.0])
    own, law_s = np.var(logs, ddof=1) / 6, 0.01
    # Satterthwaite: five degrees of freedom of six launches, five of the discrepancy.
    half = stats.t.ppf(0.975, (own + law_s) ** 2 / (own**2 / 5 + law_s**2 / 5)) * np.sqrt(own + law_s)
    assert np.ptp(np.log(found.latency_s.interval)) == pytest.approx(2 * half)


def test_several_laws_give_the_union_and_none_the_baseline(strong):
    ring, log = Law("ring", 2e-4, 0.05), Law("log", 3e-4, 0.1)
    one, other, both, none = (
        by_place(predictions(strong, "jit", Fits(*laws)))[480, 3].latency_s for laws in ([ring], [log], [log, ring], [])
    )
    assert both.interval == (one.interval[0], other.interval[1])
    assert both.estimate == one.estimate
    assert np.ptp(np.log(none.interval)) > np.ptp(np.log(one.interval))


def test_counts_beyond_the_measured_ones_are_extrapolated(strong):
    found = by_place(predictions(strong, "jit", Fits(Law("ring", 1e-4, 0.1)), axis_sizes=[480], max_devices=8))
    assert [n for _, n in found] == [1, 2, 3, 4, 5, 6, 8]
    assert [found[480, n].kind for n in (4, 5, 8)] == ["measured", "extrapolated", "extrapolated"]


def test_data_from_elsewhere_are_told_no_row_for_every_count_between(make_table):
    table = make_table(law, path="weak", sizes=(100,), devices=(1, 4, 32), roles=("workload",), foreign=True)
    found = predictions(table, "jit", Fits(Law("ring", 1e-4, 0.1)), max_devices=128)
    kinds = {p.num_devices: p.kind for p in found}
    assert kinds == {
        **dict.fromkeys((1, 4, 32), "measured"),
        **dict.fromkeys((2, 8, 16), "interpolated"),
        **dict.fromkeys((64, 128), "extrapolated"),
    }


def test_a_size_that_was_not_measured_is_predicted_for_the_reference_too(strong):
    found = by_place(predictions(strong, "jit", Fits(Law("ring", 1e-4, 0.1)), axis_sizes=[960]))
    assert found[960, 4].kind == "extrapolated"
    assert found[960, 4].speedup.estimate == pytest.approx(1)


def test_what_nothing_reaches_is_refused_with_a_reason(strong):
    class Silent(Law):
        def latency_s(self, num_devices: int, axis_size: int) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            return None

    fits = Fits(Silent("ring", 1e-4, 0.1))
    fits.baseline = Silent("baseline", 1e-4, 0.1)
    found = by_place(predictions(strong, "jit", fits))[480, 3]
    assert (found.kind, found.latency_s.estimate) == ("refused", None)
    assert "measure it" in found.latency_s.reason


def test_shared_cores_refuse_without_a_number(strong):
    found = by_place(predictions(replace(strong, cores=2), "jit", Fits(Law("ring", 1e-4, 0.1)), max_devices=8))
    for n in (3, 8):
        refused = found[240, n]
        assert refused.kind == "refused"
        for estimate in (refused.latency_s, refused.cost, refused.speedup, refused.efficiency, refused.throughput):
            assert estimate.estimate is None
            assert "share cores" in estimate.reason
    assert found[240, 4].kind == "measured"


def test_columns_agree_with_each_other(make_table):
    table = make_table(law, path="weak", sizes=(100, 400), roles=("workload",))
    found = by_place(predictions(table, "jit", None))
    for (size, n), p in found.items():
        if p.kind == "refused":
            continue
        assert p.size_per_device == size
        assert p.cost.estimate == pytest.approx(p.latency_s.estimate / n)
        assert p.throughput.estimate * p.latency_s.estimate == pytest.approx(size * n)
        assert p.speedup.estimate == pytest.approx(found[size, 1].cost.estimate / p.cost.estimate)
        assert p.efficiency.estimate == pytest.approx(p.speedup.estimate / n)
