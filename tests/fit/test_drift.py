"""Drift of the sentinel: recovery of known drifts, false alarms, and what it leaves alone."""

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.data.simulated import simulated_lines
from breakeven.data.store import Record
from breakeven.fit.checks.drift import LEVEL, MATTERS, OVER, WITHIN, drift_over, drift_within, machine_drift
from breakeven.fit.launches import LaunchTable, from_record
from breakeven.model.cell import Cell
from msgspec.structs import replace

PLAN = Plan(
    workload="made",
    path="weak",
    objective="time",
    devices=(1,),
    sizes=(8,),
    strategies=("jit",),
    sentinel=True,
)
WORKLOAD = Cell(role="workload", strategy="jit", num_devices=1, size=8)
SENTINEL = Cell(role="sentinel", strategy="as-written", num_devices=1, size=96)


def table(rng, *, launches=6, rounds=20, over=0.0, within=0.0, launch_sd=0.01, round_sd=0.05, gap_s=15.0, round_s=0.3):
    """A sweep whose machine gets slower by ``over`` a minute between launches and by ``within`` a second inside."""
    found = []
    for g in range(launches):
        times = g * gap_s + round_s * np.arange(rounds) + rng.uniform(0, round_s, rounds)
        logs = over / 60 * g * gap_s + within * (times - g * gap_s) + rng.normal(0, launch_sd)
        found.append(np.array([1e9 + times, 2e-4 * np.exp(logs + rng.normal(0, round_sd, rounds))]))
    return LaunchTable(plan=PLAN, cells=(), latency_s=np.empty((0, launches)), sentinel_s=tuple(found))


def test_a_known_drift_over_the_sweep_is_recovered():
    rng = np.random.default_rng(0)
    found = drift_over(table(rng, launches=12, over=0.1, launch_sd=0.001))
    assert found is not None
    # 0.1 a minute over 11 gaps of 15 s; launches of 0.1 % and visits of 5 % / sqrt(20) leave 0.5 % on the slope's ends.
    assert found.change == pytest.approx(0.1 * 11 * 15 / 60, abs=0.025)
    assert found.seconds == pytest.approx(165, abs=1)
    assert found.alarms()
    assert "a minute)" in found.words


def test_a_known_drift_in_a_launch_is_recovered():
    rng = np.random.default_rng(1)
    found = drift_within(table(rng, within=0.03, round_sd=0.01))
    assert found is not None
    assert found.change == pytest.approx(0.03 * 6, abs=0.01)
    assert found.alarms()
    assert drift_over(table(rng, within=0.03, round_sd=0.01)).alarms() is False  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize("launches", [3, 6, 12])
def test_false_alarms_are_as_many_as_the_level_says(launches):
    rng = np.random.default_rng(launches)
    tables = [table(rng, launches=launches, launch_sd=0.03) for _ in range(500)]
    for drift in (drift_within, drift_over):
        p = np.array([found.p for one in tables if (found := drift(one)) is not None])
        # Uniform under "no drift": three standard deviations of 500 tries at 5 % are 2.9 %, at 1 % 1.3 %.
        assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.029)
        assert np.mean(p < LEVEL) < 0.024


def test_a_small_drift_is_no_alarm_however_sure():
    rng = np.random.default_rng(2)
    found = drift_over(table(rng, launches=12, over=0.5 * MATTERS / (11 * 15 / 60), launch_sd=1e-5, round_sd=1e-4))
    assert found is not None
    assert found.p is not None
    assert found.p < 1e-6
    assert not found.alarms()


@pytest.mark.parametrize(
    ("options", "within", "over"),
    [({"launches": 2}, None, None), ({"rounds": 3}, None, "known"), ({"launches": 3}, "known", "known")],
)
def test_too_little_to_tell(options, within, over):
    one = table(np.random.default_rng(3), **options)
    assert (drift_within(one) is None) == (within is None)
    assert (drift_over(one) is None) == (over is None)


def test_launches_that_are_copies_give_no_p_value():
    times = np.arange(5.0)
    same = tuple(np.array([times + 10 * g, np.full(5, 2e-4)]) for g in range(4))
    one = LaunchTable(plan=PLAN, cells=(), latency_s=np.empty((0, 4)), sentinel_s=same)
    assert drift_over(one).p is None  # pyright: ignore[reportOptionalMemberAccess]
    assert [check.passed for check in machine_drift(one)] == [None, None]


def test_as_checks():
    found = machine_drift(table(np.random.default_rng(4), launches=12, over=0.2, launch_sd=0.001))
    assert [one.name for one in found] == [WITHIN, OVER]
    assert [one.passed for one in found] == [True, False]
    assert "times and fitted parameters do not" in found[1].remedy
    few = machine_drift(table(np.random.default_rng(4), launches=2))
    assert [one.passed for one in few] == [None, None]
    old = LaunchTable(plan=replace(PLAN, sentinel=False), cells=(), latency_s=np.empty((0, 1)))
    assert machine_drift(old) == []


def test_the_sentinel_stands_beside_the_cells_but_its_rounds_must_be_complete():
    samples = np.full((2, 3, 4, 5), 1e-4) * np.exp(np.random.default_rng(5).normal(0, 0.01, (2, 3, 4, 5)))
    lines = simulated_lines(PLAN, [WORKLOAD, SENTINEL], samples)
    found = from_record(Record.from_lines(lines))
    assert found.cells == (WORKLOAD,)
    assert [one.shape for one in found.sentinel_s] == [(2, 4)] * 3
    np.testing.assert_allclose(found.sentinel_s[1][1], np.median(samples[1, 1], axis=1), atol=1e-9)
    # Without its last visit the last round of the last launch does not count, for the workload neither.
    cut = from_record(Record.from_lines(lines[:-1]))
    assert [block.shape[1] for block in cut.rounds_s] == [4, 4, 3]
    assert [one.shape[1] for one in cut.sentinel_s] == [4, 4, 3]
