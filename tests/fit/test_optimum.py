"""The optimum: sets that hold it, regret that bounds it, and what thin data may say."""

import numpy as np
import pytest
from breakeven.fit.intervals import TOO_FEW
from breakeven.fit.optimum import optimum


def u_shaped(n: int, size: int) -> tuple[float, float, float]:
    """Seconds; least at n = 4 among 1, 2, 4, 8 for size 1: 10.5, 6, 4.5, 5.25."""
    return 0.5 * n, 0.0, 10.0 * size / n


def flat_pair(n: int, size: int) -> tuple[float, float, float]:
    """2 and 4 cost the same."""
    return 0.0, 0.0, {1: 2.0, 2: 1.0, 4: 1.0, 8: 1.5}[n]


def make(make_table, truth, **options):
    options = {"path": "strong", "sizes": (8,), "roles": ("workload",), **options}
    return make_table(truth, **options)


def test_a_clear_interior_optimum_is_found(make_table):
    table = make(make_table, u_shaped, sizes=(8,), seed=1)
    # 80/n + n/2 is least at 12.6: beyond the counts, so the largest wins.
    assert optimum(table, "jit", None, axis_size=8).at_upper_end
    table = make(make_table, lambda n, s: u_shaped(n, 1), seed=1)
    found = optimum(table, "jit", None, axis_size=8)
    assert (found.estimate, found.set, found.outcome, found.at_upper_end) == (4, (4,), "found", False)
    assert found.reason is None
    assert found.win_frequency[4] == pytest.approx(1.0)
    for n, seconds in ((1, 10.5), (2, 6.0), (8, 5.25)):
        lower, upper = found.regret[n].interval
        assert lower < seconds / 4.5 - 1 < upper
    # Nothing is cheaper than the best.
    assert found.regret[4].interval[0] == 0


def test_counts_that_tie_stay_in_the_set_and_their_regret_says_what_is_at_stake(make_table):
    table = make(make_table, flat_pair, seed=2, cell_sd=0.005)
    found = optimum(table, "jit", None, axis_size=8)
    assert found.set == (2, 4)
    assert found.within_tolerance == 2
    # At 0.5 % noise no more than 5 % is at stake, so either count will do.
    assert found.outcome == "found"
    noisy = optimum(make(make_table, flat_pair, seed=2, cell_sd=0.2), "jit", None, axis_size=8)
    assert noisy.outcome == "undecided"
    assert "cannot tell" in noisy.reason
    assert sum(noisy.win_frequency.values()) == pytest.approx(1)


def test_within_tolerance_is_the_smallest_count_that_is_nearly_best(make_table):
    table = make(make_table, lambda n, s: (0, 0, {1: 2.0, 2: 1.06, 4: 1.0, 8: 1.01}[n]), cell_sd=1e-4)
    assert optimum(table, "jit", None, axis_size=8, tolerance=0.05).within_tolerance == 4
    assert optimum(table, "jit", None, axis_size=8, tolerance=0.07).within_tolerance == 2


@pytest.mark.parametrize("tie", [flat_pair, lambda n, s: (0, 0, {1: 2.0, 2: 1.01, 4: 1.0, 8: 1.02}[n])])
def test_the_set_holds_the_best_count_as_often_as_it_says(make_table, tie):
    # 200 sweeps of nominal 95 %: fewer than 181 has probability below 1 % (binomial).
    sweeps = [make(make_table, tie, seed=seed) for seed in range(200)]
    answers = [optimum(table, "jit", None, axis_size=8) for table in sweeps]
    assert sum(4 in a.set for a in answers) >= 181
    best = min(tie(n, 8)[2] for n in (1, 2, 4, 8))
    for n in (1, 2, 8):
        regret = tie(n, 8)[2] / best - 1
        assert sum(a.regret[n].interval[0] <= regret <= a.regret[n].interval[1] for a in answers) >= 181


def test_the_objective_decides_for_a_weak_sweep(make_table):
    """Per call one device is best, per unit of work eight: the case behind the two objectives."""
    table = make_table(lambda n, s: (10e-6 + 14e-6 * n, 0.0, 8e-6), path="weak", sizes=(100,))
    assert optimum(table, "jit", None, axis_size=100, objective="time").set == (1,)
    assert optimum(table, "jit", None, axis_size=100, objective="throughput").set == (8,)


RESNET_152 = {1: 138.9, 2: 101.5, 4: 91.9, 8: 94.3}
VIT_B = {1: 174.6, 2: 101.2, 4: 65.8, 8: 62.1}


@pytest.mark.parametrize(("milliseconds", "best", "at_end"), [(RESNET_152, 4, False), (VIT_B, 8, True)])
def test_published_strong_scaling_on_v100_without_replicates(make_table, milliseconds, best, at_end):
    """github.com/willgpaik/pytorch-ddp-scaling-benchmark: one number a cell, so no interval."""
    table = make(
        make_table, lambda n, s: (0, 0, milliseconds[n] / 1e3), launches=1, replicated=False, cell_sd=0, launch_sd=0
    )
    found = optimum(table, "jit", None, axis_size=8)
    assert (found.estimate, found.at_upper_end, found.outcome, found.reason) == (best, at_end, "undecided", TOO_FEW)
    assert found.set == (1, 2, 4, 8)
    assert found.win_frequency == {}
    assert found.regret[8].estimate == pytest.approx(milliseconds[8] / milliseconds[best] - 1)
    assert found.regret[8].interval is None
    # 94.3 ms is 2.6 % above 91.9; 101.5 is 10 % above.
    assert found.within_tolerance == (4 if best == 4 else 8)


def test_one_count_or_none_decides_nothing(make_table):
    one = optimum(make(make_table, flat_pair, devices=(2,)), "jit", None, axis_size=8)
    assert (one.estimate, one.set, one.within_tolerance, one.outcome) == (None, (), None, "undecided")
    assert "only one count" in one.reason
    none = optimum(make(make_table, flat_pair), "jit", None, axis_size=16)
    assert (none.estimate, none.set, none.outcome) == (None, (), "undecided")
    assert "measure it" in none.reason


def test_the_same_seed_gives_the_same_frequencies(make_table):
    table = make(make_table, flat_pair, cell_sd=0.05)
    a, b = (optimum(table, "jit", None, axis_size=8, seed=3).win_frequency for _ in range(2))
    assert a == b
    assert 0 < a[2] < 1


class Law:
    """Predicts the count between."""

    name, discrepancy = "ring", 0.02

    def latency_s(self, num_devices, axis_size):
        return np.full(6, 0.9) * np.array([1, 1.01, 0.99, 1, 1.02, 0.98])


class Fits:
    kept = (Law(),)
    baseline = Law()


def test_a_predicted_count_may_win_and_is_said_to_be_predicted(make_table):
    table = make(make_table, flat_pair, sizes=(24,), devices=(1, 2, 4), cell_sd=0.005)
    found = optimum(table, "jit", Fits(), axis_size=24)
    assert found.estimate == 3
    assert "predicted, not measured: 3" in found.reason
    assert 0 < found.win_frequency[3] <= 1


def test_a_count_between_wins_nothing_where_the_replication_is_unknown(make_table):
    options = {"sizes": (24,), "devices": (1, 4), "cell_sd": 0.005}
    own, foreign = (make(make_table, flat_pair, **options, foreign=foreign) for foreign in (False, True))
    assert {2, 3} <= set(optimum(own, "jit", Fits(), axis_size=24).regret)
    found = optimum(foreign, "jit", Fits(), axis_size=24)
    assert set(found.regret) == set(found.win_frequency) == {1, 4}
    assert (found.estimate, found.set, found.within_tolerance) == (4, (4,), 4)
    assert found.reason is None


def test_a_prediction_that_undercuts_by_less_than_its_error_does_not_win(make_table):
    class Doubtful(Law):
        discrepancy = 0.5

    class DoubtfulFits:
        kept = (Doubtful(),)
        baseline = Doubtful()

    table = make(make_table, flat_pair, sizes=(24,), devices=(1, 2, 4), cell_sd=0.005)
    measured = optimum(table, "jit", None, axis_size=24).estimate
    found = optimum(table, "jit", DoubtfulFits(), axis_size=24)
    assert found.estimate == measured
    assert 3 in found.set
    assert all(regret.estimate >= 0 for regret in found.regret.values())
