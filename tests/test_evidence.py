"""The committed tables describe this version and hold what they must; small versions of the studies behind them."""

# pyright: reportMissingImports=false
# A test run has the root on its path.

import csv
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from breakeven.study.until import judge, parse

from benchmarks.calibration.checks import Check
from benchmarks.calibration.questions import ask
from benchmarks.calibration.scenarios import DEVICES, SCENARIOS
from benchmarks.calibration.stopping import stopping
from benchmarks.calibration.study import pick, rows_of
from benchmarks.calibration.sweeps import draw, streams
from benchmarks.calibration.table import Row, markdown, summarise
from benchmarks.calibration.truths import causes_of, distances, true_tie

TABLE = Path(__file__).parents[1] / "docs" / "calibration.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
BY_NAME = {one.name: one for one in SCENARIOS}


def test_the_calibration_describes_this_version():
    assert {row["version"] for row in ROWS} == {version("breakeven")}
    assert all(row["seed"] and row["date"] and row["commit"] for row in ROWS)


def test_the_calibration_is_whole():
    assert {row["scenario"] for row in ROWS} == set(BY_NAME)
    assert min(max(int(r["sweeps"]) for r in ROWS if r["scenario"] == name) for name in BY_NAME) >= 2000


def test_what_misses_its_goal_is_explained():
    missed = [row for row in ROWS if row["verdict"] in ("too low", "too many")]
    assert [(row["scenario"], row["group"], row["quantity"]) for row in missed if not row["reason"]] == []


def test_a_small_calibration_passes():
    """The command behind the table, on 30 sweeps of a few scenarios instead of 2,000 of all."""
    names = ("latency", "bandwidth, 12 launches", "border: share", "border: tie", "stopping: optimum")
    scenarios = [BY_NAME[name] for name in names]
    rows = rows_of(scenarios, 30, seed=1, jobs=0, parts=None)
    assert {row.group for row in rows} >= {"share of the time", "counts", "parameters", "predictions", "tests"}
    assert [row for row in rows if row.missed] == []


def test_chunks_are_kept_and_taken_up(tmp_path):
    scenario = [BY_NAME["border: tie"]]
    first = rows_of(scenario, 25, seed=1, jobs=0, parts=tmp_path)
    (part,) = tmp_path.iterdir()
    assert _rates(rows_of(scenario, 25, seed=1, jobs=0, parts=tmp_path)) == _rates(first)
    # What is kept is not simulated again.
    part.write_text(part.read_text(encoding="utf-8").replace("True,nan", "False,nan"), encoding="utf-8")
    assert set(_rates(rows_of(scenario, 25, seed=1, jobs=0, parts=tmp_path)).values()) == {1.0}


def _rates(rows):
    return {row.quantity: row.rate for row in rows}


@pytest.mark.parametrize("name", [name for name, one in BY_NAME.items() if one.border])
def test_a_truth_at_the_border_lies_on_it(name):
    scenario = BY_NAME[name]
    sweep = draw(scenario, np.random.default_rng(0))
    assert distances(sweep.causes)[scenario.border] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("name", ["compute", "latency, n^1.4", "bandwidth, zeros", "latency, weak"])
def test_a_sweep_scatters_around_its_truth(name):
    scenario = BY_NAME[name]
    sweep = draw(scenario, np.random.default_rng(3))
    assert sweep.table.latency_s.shape == (len(sweep.true.cells), scenario.launches)
    # Launches spread by 7 %, so their mean by 3 %: 0.15 is five times that.
    np.testing.assert_allclose(np.log(sweep.table.latency_s.mean(axis=1) / sweep.true.times_s), 0, atol=0.15)
    assert sweep.true.devices == DEVICES
    assert not any(sweep.true.parameters[zero] for zero in scenario.zero)


@pytest.mark.parametrize(("best", "name"), [(True, "stopping: optimum"), (False, "stopping: first")])
def test_where_a_decision_is_hard_two_counts_nearly_tie(best, name):
    """Within a twentieth of the size at which they tie, times differ by less than that."""
    for seed in range(5):
        times = draw(BY_NAME[name], np.random.default_rng(seed)).totals
        ties_with_one = [n for n, t in times.items() if n > 1 and abs(t / times[1] - 1) < 0.051]
        least, second = sorted(times.values())[:2]
        if best:
            assert second / least < 1.051
        else:
            assert all(times[n] > times[1] for n in times if 1 < n < ties_with_one[0])


def test_a_sweep_stops_at_the_first_look_that_reaches_its_goal():
    scenario = replace(BY_NAME["stopping: widths"], until=("share ±5%",))
    stops = []
    for seed in range(12):
        sweep = draw(scenario, np.random.default_rng(seed))
        reached, covered = stopping(sweep)
        stops.append(stop := int(reached.width))
        looks = [judge(sweep.table.take(np.arange(g)), parse("share ±5%")) for g in range(6, stop + 1)]
        assert [one.reached for one in looks] == [False] * (stop - 6) + [reached.holds]
        low, high = looks[-1].look.interval
        causes = sweep.true.causes_at(8, sweep.largest)
        assert covered.holds == (low <= causes["communication"] / sum(causes.values()) <= high)
    assert len(set(stops)) > 1


def test_a_decision_that_the_truth_belies_is_wrong():
    sweep = draw(replace(BY_NAME["compute"], until=("optimum", "first")), np.random.default_rng(0))
    # Without work to divide, one device is the best and no count ever helps.
    idle = replace(sweep.true, parameters={**sweep.true.parameters, "gamma": 0.0})
    for true, holds in ((sweep.true, True), (idle, False)):
        tests = [check for check in stopping(replace(sweep, true=true)) if check.kind == "error"]
        assert [(check.answered, check.holds) for check in tests] == [(True, holds)] * 2


@pytest.mark.parametrize("name", ["compute", "latency, n^1.4", "bandwidth, step", "latency, weak"])
def test_true_times_at_once_are_those_one_by_one(name):
    sweep = draw(BY_NAME[name], np.random.default_rng(3))
    for (n, size), causes in causes_of(sweep.true, (1, 2, 8), sweep.true.sizes).items():
        assert causes == pytest.approx(sweep.true.causes_at(n, size))
    tie = true_tie(sweep.true, 1, 8, ratio=0.9)
    if np.isfinite(tie) and tie > 1e4:
        gap = sweep.true.latency_s(8, round(tie)) / sweep.true.latency_s(1, round(tie))
        assert gap == pytest.approx(0.9, rel=1e-3)


@pytest.mark.parametrize("name", ["bandwidth, 12 launches", "stopping: widths", "stopping: first", "breaks"])
def test_every_check_belongs_to_a_table(name):
    checks = list(ask(draw(BY_NAME[name], streams(BY_NAME[name], 0, 0))))
    page = markdown(summarise(name, checks, least=1), {"seed": "0"})
    for check in checks:
        assert check.quantity in page


def row_of(kind, outcomes, answered=None):
    answered = answered or [True] * len(outcomes)
    checks = [
        Check(group="counts", quantity="x", kind=kind, answered=a, holds=h)
        for h, a in zip(outcomes, answered, strict=True)
    ]
    (row,) = summarise("compute", checks, least=1)
    return row


@pytest.mark.parametrize(
    ("kind", "held", "verdict"),
    [
        ("interior", 930, "within"),
        ("interior", 929, "too low"),
        ("interior", 971, "conservative"),
        ("set", 1000, "within"),
        ("set", 929, "too low"),
        ("error", 950, "within"),
        ("error", 930, "too many"),
        ("choice", 0, ""),
    ],
)
def test_a_row_is_judged_by_its_goal(kind, held, verdict):
    assert row_of(kind, [True] * held + [False] * (1000 - held)).verdict == verdict


def test_an_answer_that_was_not_given_is_neither_right_nor_wrong():
    row = row_of("interior", [True, False, False, False], [True, True, False, False])
    assert (row.rate, row.answered, row.sweeps) == (0.5, 2, 4)
    # A test that did not decide has not erred.
    row = row_of("error", [True, False, True, True], [True, True, False, False])
    assert (row.rate, row.sweeps) == (0.25, 4)


def test_the_monte_carlo_error_is_that_of_a_proportion():
    row: Row = row_of("set", [True] * 1900 + [False] * 100)
    assert row.monte_carlo_error == pytest.approx(np.sqrt(0.95 * 0.05 / 2000), rel=0.01)
    assert row_of("set", [True] * 2000).monte_carlo_error > 0


def test_an_unknown_scenario_is_named():
    with pytest.raises(ValueError, match="no scenario is called 'tpu'; there are: compute; dispatch"):
        pick("tpu")
