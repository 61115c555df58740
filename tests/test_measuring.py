"""The committed studies of measuring itself: the same answer twice, and a worker that costs nothing."""

# pyright: reportMissingImports=false
# A test run has the root on its path.

import csv
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.overhead import LEAST_S, MARGIN, PROCESSES
from benchmarks.repeats import DEVICES, LEAST, ROUTES, SWEEPS, Cost, held, markdown

DOCS = Path(__file__).parents[1] / "docs"


def rows_of(name):
    return list(csv.DictReader((DOCS / name).read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("name", ["repeats.csv", "overhead.csv"])
def test_the_tables_describe_this_version(name):
    rows = rows_of(name)
    assert {row["version"] for row in rows} == {version("breakeven")}
    assert all(row["date"] and row["commit"] for row in rows)


def test_sweeps_give_the_same_answer_twice():
    rows = rows_of("repeats.csv")
    for route in ROUTES:
        for n in DEVICES:
            ours = [row for row in rows if (row["route"], row["devices"]) == (route, str(n))]
            assert len(ours) == SWEEPS
            pooled = np.mean([float(row["cost_s"]) for row in ours])
            assert sum(float(r["lower_s"]) <= pooled <= float(r["upper_s"]) for r in ours) >= LEAST


def test_the_worker_costs_nothing():
    rows = rows_of("overhead.csv")
    for name in {(row["workload"], row["devices"]) for row in rows}:
        ours = [row for row in rows if (row["workload"], row["devices"]) == name]
        assert len(ours) == PROCESSES
        if np.median([float(row["latency_s"]) for row in ours]) >= LEAST_S:
            ratios = [float(row["log_ratio"]) for row in ours]
            low, high = stats.t.interval(0.95, len(ratios) - 1, np.mean(ratios), stats.sem(ratios))
            assert 1 - MARGIN < np.exp(low) < np.exp(high) < 1 + MARGIN


def test_intervals_that_hold_the_mean_are_counted():
    costs = [
        Cost(seed=i, route="chain", num_devices=2, estimate=1e-4 + i * 1e-6, lower=lower, upper=2e-4)
        for i, lower in enumerate((0.9e-4, 1.1e-4, 0.9e-4))
    ]
    assert held(costs, "chain", 2) == (2, pytest.approx(1.01e-4))
    others = [
        Cost(seed=i, route=route, num_devices=n, estimate=1e-4, lower=0.9e-4, upper=1.1e-4)
        for i in range(3)
        for route in ROUTES
        for n in DEVICES
        if (route, n) != ("chain", 2)
    ]
    assert "| chain | 2 | 101.0 µs | 2 of 3 |" in markdown([*costs, *others], {"seed": "0"})
