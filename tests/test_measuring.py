"""The committed tables of measuring itself hold what they must; small versions of the studies behind them."""

# pyright: reportMissingImports=false
# A test run has the root on its path.

import csv
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import truth
from benchmarks.overhead import CELLS, LEAST_S, MARGIN, PROCESSES, Ratio, compare
from benchmarks.repeats import DEVICES, LEAST, ROUTES, SWEEPS, Cost, at_one_speed, held, markdown

DOCS = Path(__file__).parents[1] / "docs"


def rows(name):
    """The committed rows of one study."""
    found = list(csv.DictReader((DOCS / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["version"] for row in found} == {version("breakeven")}
    assert all(row["seed"] and row["date"] and row["commit"] for row in found)
    return found


def test_the_committed_overhead_is_inside_the_margin():
    ratios = {}
    for row in rows("overhead"):
        ratios.setdefault((row["workload"], int(row["devices"])), []).append(row)
    assert set(ratios) == {(workload, n) for workload, n, *_ in CELLS}
    for program, ours in ratios.items():
        assert len(ours) == PROCESSES
        logs = [float(row["log_ratio"]) for row in ours]
        interval = np.exp(stats.t.interval(0.95, PROCESSES - 1, np.mean(logs), stats.sem(logs)))
        if float(ours[0]["latency_s"]) >= LEAST_S:
            assert np.all(np.abs(interval - 1) < MARGIN), program


def test_the_committed_sweeps_say_the_same():
    costs = {}
    for row in rows("repeats"):
        costs.setdefault((row["route"], int(row["devices"])), []).append(row)
    assert set(costs) == {(route, n) for route in ROUTES for n in DEVICES}
    for ours in costs.values():
        assert {int(row["sweep_seed"]) for row in ours} == set(range(SWEEPS))
        cost, lower, upper, sentinel = (
            np.array([float(row[name]) for row in ours]) for name in ("cost_s", "lower_s", "upper_s", "sentinel_s")
        )
        # At one speed of the machine, which the sentinel tells.
        pooled = np.mean(cost / sentinel)
        assert np.sum((lower / sentinel <= pooled) & (pooled <= upper / sentinel)) >= LEAST


def test_the_committed_sweeps_found_what_was_imposed():
    found = rows("truth")
    numbers = Counter(row["setting"] for row in found)
    assert len(numbers) == len(truth.SETTINGS)
    # alpha, beta and gamma, the best count of every size, and the break-even size of every count above 1.
    assert set(numbers.values()) == {3 + len(one.sizes) + len(one.devices) - 1 for one in truth.SETTINGS}
    assert [row for row in found if row["passed"] != "True"] == []
    relative = {"alpha": 0.05, "beta": 0.04}
    for row in found:
        if row["quantity"] in relative:
            assert abs(float(row["found"]) / float(row["imposed"]) - 1) <= relative[row["quantity"]]
        if row["quantity"].startswith("break-even"):
            assert float(row["lower"]) <= float(row["imposed"]) <= float(row["upper"])


def test_a_loop_that_takes_longer_is_found():
    """Two loops that only claim their times: the mean log ratio is that of the claims."""
    ratio, latency_s = compare(lambda: [1.02e-4] * 5, lambda: [1e-4] * 5, seconds=0.02, seed=0)
    assert ratio == pytest.approx(np.log(1.02))
    assert latency_s == 1e-4


def test_the_margin_is_judged_by_the_interval():
    found = np.array([0.001, 0.003, -0.002, 0.004])
    low, high = stats.t.interval(0.95, 3, found.mean(), stats.sem(found))
    ratio = Ratio(workload="made", num_devices=1, latency_s=1e-4, log_ratios=tuple(found))
    assert ratio.interval == pytest.approx((np.exp(low), np.exp(high)))
    assert ratio.within
    assert not Ratio(workload="made", num_devices=1, latency_s=1e-4, log_ratios=tuple(found + 0.02)).within
    assert Ratio(workload="made", num_devices=1, latency_s=1e-5, log_ratios=tuple(found + 0.02)).within


def test_intervals_that_hold_the_mean_are_counted():
    costs = [
        Cost(seed=i, route="chain", num_devices=2, estimate=1e-4 + i * 1e-6, lower=lower, upper=2e-4, sentinel_s=3e-4)
        for i, lower in enumerate((0.9e-4, 1.1e-4, 0.9e-4))
    ]
    assert held(costs, "chain", 2) == (2, pytest.approx(1.01e-4))
    others = [
        Cost(seed=i, route=route, num_devices=n, estimate=1e-4, lower=0.9e-4, upper=1.1e-4, sentinel_s=3e-4)
        for i in range(3)
        for route in ROUTES
        for n in DEVICES
        if (route, n) != ("chain", 2)
    ]
    assert "| chain | 2 | 101.0 µs | 2 of 3 | 2 of 3 | 1.0% | 1.0% |" in markdown([*costs, *others], {"seed": "0"})


def test_costs_at_one_speed_do_not_depend_on_the_machines():
    """Sweep 1 ran at twice the speed."""
    costs = [
        Cost(seed=i, route="chain", num_devices=2, estimate=c, lower=0.9 * c, upper=1.1 * c, sentinel_s=3 * c)
        for i, c in enumerate((1e-4, 0.5e-4))
    ]
    assert held(costs, "chain", 2)[0] == 0
    level = at_one_speed(costs)
    assert held(level, "chain", 2) == (2, pytest.approx(1e-4 / 2**0.5))
    assert [one.upper / one.lower for one in level] == pytest.approx([1.1 / 0.9] * 2)
