"""Costs under an objective: which counts are admissible, what is measured, predicted or refused."""

from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import pytest
from breakeven.fit.comparison import NOT_JUDGED, Route, alone, ratio
from breakeven.fit.intervals import IDENTICAL, TOO_FEW
from breakeven.fit.objective import MOST_COUNTS, Costs, shares_cores
from scipy import stats


@dataclass
class Predictor:
    """A law with a known curve."""

    name: str
    factor: float
    discrepancy: float | None = 0.05

    def latency_s(self, num_devices: int, axis_size: int) -> np.ndarray:
        return self.factor * axis_size / num_devices * np.array([1.0, 1.1, 0.9])


@dataclass
class Fits:
    """What the costs read of fitted laws."""

    kept: tuple[Predictor, ...] = ()
    baseline: Predictor = field(default_factory=lambda: Predictor("baseline", 2.0))


def truth(n: int, size: int) -> tuple[float, float, float]:
    return 1e-5, 0.0, 1e-6 * size / n


@pytest.fixture
def strong(make_table):
    return make_table(truth, path="strong", sizes=(24, 48), devices=(1, 2, 4), launches=3)


@pytest.mark.parametrize(("size", "counts"), [(24, (1, 2, 3, 4, 6, 8)), (48, (1, 2, 3, 4, 6, 8))])
def test_admissible_counts_divide_the_size(strong, size, counts):
    assert Costs.of(strong, "jit", None, max_devices=8).admissible(size) == counts


def test_a_measured_count_is_admissible_whatever_divides(make_table):
    table = make_table(truth, path="strong", sizes=(25,), devices=(1, 2, 4))
    assert Costs.of(table, "jit", None, max_devices=8).admissible(25) == (1, 2, 4, 5)


def test_every_count_is_admissible_where_the_size_need_not_divide_or_grows_with_the_count(strong, make_table):
    free = replace(strong, plan=msgspec.structs.replace(strong.plan, divides=False))
    assert Costs.of(free, "jit", None).admissible(25) == (1, 2, 3, 4)
    weak = make_table(truth, path="weak", sizes=(25,), devices=(2, 4))
    assert Costs.of(weak, "jit", None).admissible(25) == (2, 3, 4)


def powers(make_table, **fields):
    table = make_table(
        lambda n, s: (1e-5 * n, 0.0, 1e-6 * s / n), path="strong", sizes=(720720,), devices=(1, 2, 4, 8, 64), **fields
    )
    return replace(table, plan=msgspec.structs.replace(table.plan, divides=False))


@pytest.mark.parametrize("fields", [{"foreign": True}, {"launches": 1, "replicated": False}])
@pytest.mark.parametrize(
    ("most", "counts", "considered"),
    [
        (None, (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 64)),
        (64, (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 64)),
        (300, (1, 2, 4, 8, 16, 32, 64, 128, 256, 300), (1, 2, 4, 8, 64, 128, 256, 300)),
        (10, (1, 2, 4, 8, 10), (1, 2, 4, 8)),
    ],
)
def test_unknown_replication_considers_measured_counts_and_what_is_asked_beyond(
    make_table, fields, most, counts, considered
):
    costs = Costs.of(powers(make_table, **fields), "jit", Fits(), max_devices=most)
    assert costs.admissible(720720) == costs.shown(720720) == counts
    assert tuple(c.num_devices for c in costs.known(720720)) == considered
    # A sweep of our own over the same counts is asked about every count.
    own = Costs.of(powers(make_table), "jit", Fits(), max_devices=most)
    assert own.admissible(720720) == tuple(range(1, counts[-1] + 1))
    assert {c.num_devices for c in own.known(720720)} == set(range(1, counts[-1] + 1))


def test_unknown_replication_still_asks_only_for_counts_that_divide(make_table):
    table = make_table(truth, path="strong", sizes=(24,), devices=(1, 3, 6), foreign=True)
    assert Costs.of(table, "jit", Fits(), max_devices=40).admissible(24) == (1, 2, 3, 4, 6, 8)


def test_a_size_that_was_not_measured_still_has_the_measured_counts(make_table):
    table = make_table(truth, path="strong", sizes=(24, 96), devices=(1, 2, 8), foreign=True)
    known = Costs.of(table, "jit", Fits()).known(48)
    assert [(c.num_devices, c.kind) for c in known] == [(n, "interpolated") for n in (1, 2, 8)]


def test_throughput_divides_the_time_of_a_call_by_the_work_it_does(make_table):
    weak = make_table(truth, path="weak", sizes=(100,), devices=(1, 4), cell_sd=0, launch_sd=0)
    seconds = weak.time("workload", "jit", 4, 400)[0]
    for objective, cost in (("throughput", seconds / 4), ("time", seconds)):
        at = Costs.of(weak, "jit", None, objective=objective).at(4, 100)
        assert np.exp(at.log_cost().estimate) == pytest.approx(cost)
        assert np.exp(at.log_latency().estimate) == pytest.approx(seconds)


def test_defaults_come_from_the_plan(make_table):
    costs = Costs.of(make_table(truth, devices=(2, 4, 8)), "jit", None)
    assert (costs.objective, costs.reference, costs.max_devices) == ("throughput", 2, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "pmap"}, "strategy 'pmap' was not measured; measured: jit"),
        ({"strategy": "jit", "reference": 3}, "reference 3 is not a measured count; choose one of 1, 2, 4"),
        ({"strategy": "jit", "reference": 4, "max_devices": 2}, "max_devices 2 lies below the reference count 4"),
    ],
)
def test_a_question_that_cannot_be_asked_says_why(strong, arguments, message):
    strategy = arguments.pop("strategy")
    with pytest.raises(ValueError, match=message):
        Costs.of(strong, strategy, None, **arguments)


def test_a_measured_cell_is_never_predicted(strong):
    at = Costs.of(strong, "jit", Fits(kept=(Predictor("ring", 1.0),))).at(2, 48)
    assert at.kind == at.source == "measured"
    np.testing.assert_allclose(np.exp(at.routes[0].log_cost), strong.time("workload", "jit", 2, 48))


def test_kept_laws_predict_the_closest_first_and_the_baseline_only_without_them(strong):
    laws = (Predictor("ring", 1.0, 0.08), Predictor("log", 1.2, 0.03))
    at = Costs.of(strong, "jit", Fits(kept=laws)).at(3, 48)
    assert (at.kind, at.source) == ("interpolated", "log, ring")
    assert [r.discrepancy for r in at.routes] == [0.03, 0.08]
    assert Costs.of(strong, "jit", Fits()).at(3, 48).source == "baseline"


def test_a_law_that_was_not_judged_never_extrapolates(strong):
    costs = Costs.of(strong, "jit", Fits(kept=(Predictor("ring", 1.0, None),)), max_devices=8)
    assert costs.at(3, 48).source == "ring"
    assert (costs.at(8, 48).kind, costs.at(8, 48).source) == ("extrapolated", "baseline")
    assert 3 not in [c.num_devices for c in costs.known(48)]


def ladder(make_table, **fields):
    """Small sizes on one device, middle ones on two, the largest on four: three corners of the range are empty."""
    table = make_table(truth, path="strong", sizes=(24, 48, 96), devices=(1, 2, 4), roles=("workload",), **fields)
    taken = {(1, 24), (1, 48), (2, 48), (2, 96), (4, 96)}
    rows = [i for i, cell in enumerate(table.cells) if (cell.num_devices, cell.size) in taken]
    return replace(
        table, cells=tuple(table.cells[i] for i in rows), latency_s=table.latency_s[rows], rounds_s=(), queued_s=None
    )


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ((1, 96), "extrapolated"),
        ((4, 24), "extrapolated"),
        ((2, 24), "extrapolated"),
        ((4, 48), "extrapolated"),
        ((3, 96), "interpolated"),
        ((2, 72), "interpolated"),
        ((1, 36), "interpolated"),
    ],
)
def test_beyond_the_sizes_of_a_count_and_the_counts_of_a_size_is_extrapolation(make_table, place, kind):
    assert Costs.of(ladder(make_table), "jit", Fits(kept=(Predictor("ring", 1.0),))).at(*place).kind == kind


def test_a_trend_beyond_the_sizes_of_a_count_decides_nothing_of_single_runs(make_table):
    single = Costs.of(ladder(make_table, foreign=True), "jit", Fits())
    assert (single.at(1, 96).kind, single.at(1, 96).source) == ("extrapolated", "baseline")
    assert [c.num_devices for c in single.known(96)] == [2, 4]
    # A law that was judged on sizes left out may: and launches of our own say how well it is known.
    judged = Costs.of(ladder(make_table, foreign=True), "jit", Fits(kept=(Predictor("ring", 1.0),)))
    assert [c.num_devices for c in judged.known(96)] == [1, 2, 4]
    assert 1 in [c.num_devices for c in Costs.of(ladder(make_table), "jit", Fits()).known(96)]


def test_shared_cores_refuse_what_was_not_measured(make_table):
    table = make_table(truth, path="strong", sizes=(24,), devices=(1, 2, 4), cores=2)
    assert shares_cores(table)
    assert not shares_cores(replace(table, cores=4))
    assert not shares_cores(replace(table, platform="gpu"))
    assert not shares_cores(replace(table, cores=None))
    costs = Costs.of(table, "jit", Fits())
    assert costs.at(3, 24).kind == "refused"
    assert "share cores" in costs.at(3, 24).source
    assert [c.num_devices for c in costs.known(24)] == [1, 2, 4]


def test_without_fits_only_measured_counts_are_known(strong):
    costs = Costs.of(strong, "jit", None)
    assert (costs.at(3, 24).kind, costs.at(3, 24).source) == ("refused", "not measured, and no law was fitted")
    assert [c.num_devices for c in costs.known(24)] == [1, 2, 4]


def test_a_measured_ratio_is_the_paired_t_test_of_logs():
    a, b = np.array([1.0, 1.3, 1.1, 1.25]), np.array([1.2, 1.35, 1.3, 1.3])
    compared = ratio([Route(source="measured", log_cost=np.log(a))], [Route(source="measured", log_cost=np.log(b))])
    expected = stats.ttest_rel(np.log(a), np.log(b))
    assert compared.interval(0.9) == pytest.approx(expected.confidence_interval(0.9), rel=1e-9)
    assert compared.p_below() == pytest.approx(stats.ttest_rel(np.log(a), np.log(b), alternative="less").pvalue)
    assert compared.p_above() == pytest.approx(stats.ttest_rel(np.log(a), np.log(b), alternative="greater").pvalue)


def test_routes_are_united_and_the_least_sure_one_tests():
    near = Route(source="ring", log_cost=np.array([0.9, 1.0, 1.1]), discrepancy=0.0)
    far = Route(source="log", log_cost=np.array([1.9, 2.0, 2.1]), discrepancy=1.0)
    both, one, other = alone([near, far]), alone([near]), alone([far])
    assert both.estimate == one.estimate
    lower, upper = both.interval(0.95)
    assert lower == min(one.interval(0.95)[0], other.interval(0.95)[0])
    assert upper == other.interval(0.95)[1]
    assert both.p_above() == max(one.p_above(), other.p_above())
    # The law's own error keeps the interval open however well launches agree. A discrepancy is worth five degrees of
    # freedom: t(5) = 2.571, not the t(2) = 4.303 of three launches.
    assert 2.5 < upper - other.estimate < 2.6


def test_two_predictions_are_compared_law_by_law():
    a = [Route(source=s, log_cost=np.array([x, x, x]), discrepancy=0.3) for s, x in (("ring", 1.0), ("log", 5.0))]
    b = [Route(source=s, log_cost=np.array([x, x, x]), discrepancy=0.4) for s, x in (("ring", 0.0), ("log", 4.0))]
    compared = ratio(a, b)
    np.testing.assert_allclose(compared.means, [1, 1])
    np.testing.assert_allclose(compared.errors, [0.5, 0.5])


@pytest.mark.parametrize(
    ("values", "discrepancy", "reason"),
    [([1.0], 0.0, TOO_FEW), ([1.0, 1.2], 0.1, TOO_FEW), ([1.0] * 3, 0.0, IDENTICAL), ([1, 2, 3], None, NOT_JUDGED)],
)
def test_no_interval_comes_with_a_reason(values, discrepancy, reason):
    compared = alone([Route(source="x", log_cost=np.array(values, dtype=float), discrepancy=discrepancy)])
    assert (compared.reason, compared.interval(0.95), compared.p_above(), compared.p_below()) == (
        reason,
        None,
        None,
        None,
    )
    assert compared.natural(0.95).reason == reason
    assert compared.natural(0.95).estimate == pytest.approx(np.exp(np.mean(values)))


def test_hundreds_of_counts_are_shown_by_a_selection_that_holds_the_measured_ones(make_table):
    table = make_table(lambda n, s: (1.0, 0.0, s / n), devices=(1, 3, 500), sizes=(3000,), path="weak")
    costs = Costs.of(table, "jit", None)
    shown = costs.shown(3000)
    assert len(costs.admissible(3000)) == 500
    assert {1, 3, 500} <= set(shown)
    assert MOST_COUNTS / 2 < len(shown) <= MOST_COUNTS + 3
    assert costs.shown(3000) == tuple(sorted(set(shown)))


def test_a_billion_counts_are_asked_for_on_a_grid(make_table):
    table = make_table(lambda n, s: (1.0, 0.0, s / n), devices=(1, 2, 3), sizes=(3000,), path="weak")
    counts = Costs.of(table, "jit", None, max_devices=10**9).admissible(3000)
    assert {1, 2, 3, 4, 1024, 2**29, 10**9} <= set(counts)
    assert len(counts) < 600
