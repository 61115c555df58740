"""When a sweep stops by itself: goals as they are written, one look at a table, and real launches."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from breakeven.data.schema import SCHEMA_VERSION, Plan, Sweep
from breakeven.data.simulated import simulated_record
from breakeven.data.store import Record
from breakeven.fit.launches import LaunchTable, from_record
from breakeven.fit.planning.stopping import MIN_LAUNCHES_AT_LOOK
from breakeven.model.simulate import Truth, sample, truth
from breakeven.study.until import Goal, GoalError, check, judge, judge_record, launches_within, parse
from hypothesis import given
from hypothesis import strategies as st


def table_of(true: Truth, launches: int, *, seed: int = 0, spread: float = 0.01) -> LaunchTable:
    samples = sample(
        true.times_s, launches=launches, rounds=2, calls=4, seed=seed, launch_sd=0.05, cell_launch_sd=spread
    )
    return from_record(simulated_record(plan_of(true, launches), true.cells, samples, facts=true.facts))


def plan_of(true: Truth, launches: int = 30) -> Plan:
    return Plan(
        workload="simulated",
        path=true.path,
        objective="time",
        devices=true.devices,
        sizes=true.sizes,
        strategies=(true.strategy,),
        launches=launches,
    )


COMPUTE = truth("compute", sizes=(512, 2048, 8192, 32768), probes=False)
"""More devices help from a size between the measured ones on."""


@given(
    target=st.sampled_from(["break-even", "share"]),
    percent=st.decimals(min_value="0.01", max_value="99.9", places=2),
    sign=st.sampled_from(["±", "+-", "+/-", " ± ", " +- "]),
)
def test_a_precision_is_read_as_written(target, percent, sign):
    goal = parse(f"{target}{sign}{percent}%")
    assert goal == Goal(target=target, precision=float(percent) / 100)
    assert parse(str(goal)).precision == pytest.approx(goal.precision)


def test_a_count_is_read():
    assert parse("Break-even at 4 ±10 %") == Goal(target="break-even", precision=0.1, num_devices=4)
    assert [parse(name).target for name in ("optimum", "first")] == ["optimum", "first"]


@pytest.mark.parametrize(("budget_s", "launches"), [(1, 6), (30, 6), (95, 9), (300, 30), (3600, 30)])
def test_a_short_budget_is_not_spent_on_starting(budget_s: float, launches: int) -> None:
    assert launches_within(budget_s) == launches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no goal. Write 'break-even ±10%'"),
        ("speed ±10%", "is no goal"),
        ("break-even", "break-even takes a precision, as in 'break-even ±10%'"),
        ("break-even 10%", "is no goal"),
        ("optimum ±10%", "optimum takes no precision: write 'optimum'"),
        ("share at 4 ±5%", "only break-even is asked at a count"),
        ("break-even ±0%", "must lie between 0 and 100 %"),
        ("break-even ±100%", "must lie between 0 and 100 %"),
    ],
)
def test_a_goal_that_cannot_be_read_says_what_to_write(text, message):
    with pytest.raises(GoalError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("goal", "change", "message"),
    [
        (parse("optimum"), {"devices": (1,)}, "at least two with --devices"),
        (parse("break-even ±10%"), {"sizes": (512,)}, "at least two, below and above"),
        (parse("share ±5%"), {"controls": False, "probes": False}, "needs a control: leave out --no-controls"),
        (parse("break-even at 3 ±10%"), {}, "3 is not compared here; counts are 2, 4, 8"),
        (parse("optimum"), {"launches": 5}, "--launches 5: the first look is after 6"),
    ],
)
def test_a_goal_out_of_reach_of_the_plan_is_said_before_measuring(goal, change, message):
    with pytest.raises(GoalError, match=message):
        check(goal, Plan(**{name: getattr(plan_of(COMPUTE), name) for name in Plan.__struct_fields__} | change))


@pytest.mark.parametrize("text", ["break-even ±50%", "share ±30%", "optimum", "first"])
def test_no_look_before_the_sixth_launch(text):
    goal = parse(text)
    looks = [judge(table_of(COMPUTE, launches), goal) for launches in range(3, 9)]
    assert [look.reached for look in looks[: MIN_LAUNCHES_AT_LOOK - 3]] == [False] * (MIN_LAUNCHES_AT_LOOK - 3)
    assert looks[-1].reached
    assert all(look.reason for look in looks if not look.reached)


def test_the_answers_are_those_of_the_truth():
    best = {n: COMPUTE.latency_s(n, 32768) for n in COMPUTE.devices}
    assert judge(table_of(COMPUTE, 12), parse("optimum")).count == min(best, key=best.__getitem__)
    assert judge(table_of(COMPUTE, 12), parse("first")).count == next(n for n in (2, 4, 8) if best[n] < best[1])
    found = judge(table_of(COMPUTE, 12), parse("share ±30%")).look
    assert found.interval[0] <= COMPUTE.causes_at(8, 32768)["communication"] / best[8] <= found.interval[1]


def test_a_wide_interval_goes_on_and_says_how_wide():
    seen = judge(table_of(COMPUTE, 8, spread=0.4), parse("break-even ±1%"))
    assert not seen.reached
    assert "±1 % asked" in seen.reason or "break-even sizes" in seen.reason or "not sure" in seen.reason


def test_without_a_crossing_there_is_nothing_to_wait_for():
    dispatch = truth({"c0": 1e-5, "dispatch": 1e-3, "gamma": 1e-12}, sizes=(512, 2048), probes=False)
    seen = judge(table_of(dispatch, 6), parse("break-even ±10%"))
    assert (seen.reached, seen.look) == (True, None)
    assert "costs more than the reference" in seen.reason
    assert not judge(table_of(dispatch, 5), parse("break-even ±10%")).reached


def test_a_record_without_a_complete_round_has_not_reached_its_goal():
    seen = judge_record(
        Record(sweeps=(Sweep(schema=SCHEMA_VERSION, sweep="s", created="", version="", plan=plan_of(COMPUTE)),)),
        parse("optimum"),
    )
    assert not seen.reached
    assert seen.reason


def without(table, gone):
    """The table without the cells of which ``gone`` says so."""
    kept = [i for i, cell in enumerate(table.cells) if not gone(cell)]
    return dataclasses.replace(
        table,
        cells=tuple(table.cells[i] for i in kept),
        latency_s=table.latency_s[kept],
        rounds_s=tuple(block[kept] for block in table.rounds_s),
        queued_s=None,
    )


@pytest.mark.parametrize(
    ("text", "lost"),
    [("break-even at 4 ±10%", [(4, s) for s in COMPUTE.sizes]), ("share ±5%", [(8, COMPUTE.sizes[-1])])],
)
def test_cells_that_failed_are_no_answer_and_no_crash(text, lost):
    part = without(table_of(COMPUTE, 7), lambda c: c.role == "workload" and (c.num_devices, c.size) in lost)
    seen = judge(part, parse(text))
    assert not seen.reached
    assert "was not measured on" in seen.reason


def test_a_workload_whose_every_cell_failed_is_no_answer_and_no_crash():
    seen = judge(without(table_of(COMPUTE, 7), lambda cell: cell.role == "workload"), parse("optimum"))
    assert (seen.reached, seen.reason) == (False, "no program of the workload was measured")


def test_looks_do_not_depend_on_the_unit_of_time():
    table = table_of(COMPUTE, 9)
    scaled = dataclasses.replace(table, latency_s=table.latency_s * 1e6)
    for text in ("break-even ±10%", "share ±5%", "optimum", "first"):
        ours, theirs = (judge(t, parse(text)) for t in (table, scaled))
        assert (ours.reached, ours.count) == (theirs.reached, theirs.count)
        if ours.look and ours.look.half_width:
            assert theirs.look.half_width == pytest.approx(ours.look.half_width)


@pytest.mark.slow
def test_real_launches_stop_when_the_goal_is_reached(tmp_path):
    """A tiny product is faster on one device, by a factor that six launches cannot miss."""
    command = ["measure", "mean-all", "--devices", "1,2", "--sizes", "64", "--until", "optimum", "--calls", "4"]
    quick = ["--no-controls", "--no-probes", "--budget", "90s", "--launches", "12", "-o", "u.jsonl", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "breakeven.cli", *command, *quick],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["goal"] == "optimum"
    assert said["outcome"]["reached"]
    assert said["outcome"]["count"] == 1
    assert MIN_LAUNCHES_AT_LOOK <= said["launches"] < 12
    assert np.isfinite(said["samples"])
