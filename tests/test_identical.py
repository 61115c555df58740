"""The committed A/A study: identical programs are called different no more often than chance allows."""

import csv
from importlib.metadata import version
from pathlib import Path

import numpy as np
from breakeven.data.schema import Plan
from breakeven.fit.launches import LaunchTable
from breakeven.model.cell import Cell
from scipy import stats

from benchmarks.identical import (  # pyright: ignore[reportMissingImports] - a test run has the root on its path
    LAUNCHES,
    LEVEL,
    MOST,
    TESTS,
    Comparison,
    alarms,
    comparisons,
    markdown,
)

TABLE = Path(__file__).parents[1] / "docs" / "identical.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))


def log_ratios(row):
    return [float(row[f"log_ratio_{i + 1}"]) for i in range(LAUNCHES)]


def test_the_committed_study_describes_this_version():
    assert {row["version"] for row in ROWS} == {version("breakeven")}
    assert all(row["date"] and row["commit"] for row in ROWS)


def test_identical_programs_are_called_different_no_more_often_than_chance_allows():
    assert len(ROWS) == TESTS
    assert MOST == 18
    pvalues = [stats.ttest_1samp(log_ratios(row), 0).pvalue for row in ROWS]
    assert sum(p < LEVEL for p in pvalues) <= MOST
    np.testing.assert_allclose(pvalues, [float(row["p"]) for row in ROWS], rtol=2e-3)


def table_of(ratio: float) -> LaunchTable:
    """Twelve launches of one cell and its control, which differ by a factor."""
    cells = tuple(Cell(role=role, strategy="jit", num_devices=2, size=64) for role in ("workload", "local"))
    times = np.exp(0.05 * np.random.default_rng(0).standard_normal((2, 12))) * [[ratio], [1.0]]
    plan = Plan(workload="matmul", path="strong", objective="time", devices=(2,), sizes=(64,), strategies=("jit",))
    return LaunchTable(plan=plan, cells=cells, latency_s=times)


def test_programs_that_differ_are_called_so():
    found = list(comparisons(table_of(2.0)))
    assert (len(found), alarms(found)) == (2, 2)
    assert [len(one.log_ratios) for one in found] == [LAUNCHES, LAUNCHES]
    assert alarms(list(comparisons(table_of(1.0)))) == 0


def test_the_page_counts_the_alarms():
    same = Comparison(num_devices=1, size=64, group=0, log_ratios=(0.01, -0.01, 0.02, -0.02, 0.03, -0.03))
    other = Comparison(num_devices=1, size=64, group=1, log_ratios=(0.50, 0.51, 0.52, 0.48, 0.49, 0.5))
    assert "in **1** of them" in markdown([same, other], {"seed": "0"})
