"""Laws and rivals on the same hold-outs."""

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.fit.comparing.league import NOTHING_HELD_OUT, NOTHING_LEFT, TREND, league
from breakeven.fit.launches import LaunchTable
from breakeven.model import simulate
from breakeven.model.cell import Cell
from breakeven.model.rivals import amdahl_throughput, scalability_throughput
from scipy import stats


@pytest.fixture(scope="module")
def ring():
    """The table of a simulated ring sweep, and its league."""
    truth = simulate.truth("latency", devices=(1, 2, 3, 4, 6, 8))
    samples = simulate.sample(truth.times_s, launches=6, rounds=4, calls=7, seed=0)
    plan = Plan(
        workload="simulated",
        path="strong",
        objective="time",
        devices=truth.devices,
        sizes=truth.sizes,
        strategies=("jit",),
    )
    table = LaunchTable(
        plan=plan, cells=truth.cells, latency_s=np.median(samples, axis=3).mean(axis=2), facts=truth.facts
    )
    return table, league(table)


def log_of(times, *, counts=(1, 2, 4, 8, 16, 32), sizes=(10**6,), launches=6, sd=0.01, path="strong", seed=0):
    """A log from elsewhere: workload cells only, ``times(n, S)`` in seconds."""
    rng = np.random.default_rng(seed)
    places = [(n, s) for s in sizes for n in counts]
    cells = tuple(
        Cell(role="workload", strategy="as-written", num_devices=n, size=n * s if path == "weak" else s)
        for n, s in places
    )
    latency = np.array([times(n, s) for n, s in places])[:, None] * np.exp(rng.normal(0, sd, (len(places), launches)))
    plan = Plan(
        workload="log",
        path=path,
        objective="throughput" if path == "weak" else "time",
        devices=counts,
        sizes=sizes,
        strategies=("as-written",),
    )
    return LaunchTable(plan=plan, cells=cells, latency_s=latency, replicated=launches > 1, foreign=True)


def named(found, name):
    return next(one for one in found.contenders if one.name == name)


def test_the_true_law_wins_and_is_used(ring):
    _, found = ring
    assert found.held_out_counts == (6, 8)
    assert found.judged_on == "count"
    assert found.best == "ring, per-device"
    assert "ring, per-device" in found.used
    for name in ("log, per-device", "Amdahl", "Gustafson", "USL", TREND):
        assert named(found, name).p < 0.05
    # Free times predict no other count, so nothing is said of them there.
    assert named(found, "free, per-device").held_out_count is None
    assert named(found, "free, per-device").p is None


def test_every_family_is_there_once(ring):
    names = [one.name for one in ring[1].contenders]
    assert len(set(names)) == len(names)
    assert {"Amdahl", "Gustafson", "USL", "Ernest", "1, 1/n, n", TREND} <= set(names)


def test_p_is_a_paired_t_over_launches():
    table = log_of(lambda n, s: 1 / scalability_throughput(n, rate=50, contention=0.05, coherency=0.003))
    found = league(table)
    # By hand: Amdahl's mean absolute log error on the counts left out, against the best one's, launch by launch.
    seen, held = [0, 1, 2, 3], [4, 5]
    n = np.array([1, 2, 4, 8, 16, 32], dtype=float)
    from scipy.optimize import curve_fit

    def amdahl(n, rate, serial):
        return amdahl_throughput(n, rate=rate, serial=serial)

    losses = []
    for t in table.latency_s.T:
        constants, _ = curve_fit(amdahl, n[seen], 1 / t[seen], p0=(50, 0.05), bounds=(0, [np.inf, 1]), ftol=1e-14)
        losses.append(np.abs(np.log(1 / amdahl(n[held], *constants) / t[held])).mean())
    mine = named(found, "Amdahl")
    assert mine.loss.estimate == pytest.approx(np.mean(losses), rel=1e-4)
    low, high = stats.t.interval(0.95, 5, np.mean(losses), stats.sem(losses))
    assert mine.loss.interval == pytest.approx((low, high), rel=1e-3)
    assert mine.p < 0.05


def test_regret_is_what_the_recommended_count_costs_more():
    # The best count is 8 (by brute force); Amdahl never turns and recommends the largest.
    table = log_of(lambda n, s: 1 / n + 0.02 * n, sd=1e-6)
    times = table.latency_s.mean(axis=1)
    assert [1, 2, 4, 8, 16, 32][int(np.argmin(times))] == 8
    found = league(table)
    assert named(found, "1, 1/n, n").regret == pytest.approx(0, abs=1e-6)
    assert named(found, "Amdahl").regret == pytest.approx(times[5] / times[3] - 1, rel=1e-3)


def test_under_throughput_the_cost_is_the_time_per_unit_of_work():
    table = log_of(lambda n, s: 1 + 0.02 * n, sizes=(100,), path="weak", sd=1e-6)
    found = league(table)
    # T(n) / n falls up to the largest count, so that is the one to recommend, although T itself grows.
    assert named(found, "1, 1/n, n").regret == pytest.approx(0, abs=1e-9)


def test_constants_come_with_intervals_and_bounds():
    table = log_of(lambda n, s: 1 / amdahl_throughput(n, rate=50, serial=0.1), counts=(1, 2, 4, 8), sd=0.003)
    (curve,) = named(league(table), "USL").curves
    low, high = curve.parameters["contention"].interval
    assert low < 0.1 < high
    assert "coherency" not in curve.at_bound or curve.parameters["coherency"].estimate == 0.0
    if curve.optimum is None:
        assert "beyond the data" in curve.reason


def test_one_size_of_two_counts_leaves_little_to_judge():
    found = league(log_of(lambda n, s: 1 / n, counts=(1, 2)))
    assert named(found, "USL" if any(c.name == "USL" for c in found.contenders) else "Amdahl").held_out_count is None


def test_one_cell_cannot_be_judged_and_says_so():
    found = league(log_of(lambda n, s: 1.0, counts=(8,)))
    assert (found.judged_on, found.best) == (None, None)
    assert found.reason == NOTHING_HELD_OUT
    assert all(one.p is None for one in found.contenders)


def test_without_launches_there_is_no_p():
    found = league(log_of(lambda n, s: 1 / n + 0.1, launches=1))
    assert found.best is not None
    assert all(one.p is None for one in found.contenders)


def test_an_unknown_strategy_is_refused():
    with pytest.raises(ValueError, match="strategy 'pmap' was not measured; measured: as-written"):
        league(log_of(lambda n, s: 1 / n), "pmap")


@pytest.mark.parametrize(("counts", "said"), [((2, 8, 32), NOTHING_LEFT), ((2, 8, 16, 32), None)])
def test_a_curve_with_as_many_constants_as_counts_has_no_optimum(counts, said):
    """Three throughputs of which the last is the largest; the curve through them has its peak at 21."""
    table = log_of(
        lambda n, _: 1 / scalability_throughput(n, rate=97.6, contention=0.0231, coherency=0.00211),
        counts=counts,
        launches=1,
        sd=0,
    )
    (usl,) = named(league(table), "USL").curves
    assert usl.reason == said
    assert usl.optimum == (None if said else 21)
    assert usl.parameters["contention"].estimate == pytest.approx(0.0231, rel=1e-3)
