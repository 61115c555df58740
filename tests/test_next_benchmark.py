"""The committed comparison of the proposed sweep with a fixed grid holds what it must, and can be made again."""

import csv
from importlib.metadata import version
from pathlib import Path

TABLE = Path(__file__).parents[1] / "docs" / "next.csv"


def test_the_committed_table_passes_and_describes_this_version():
    rows = {row["way"]: row for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())}
    assert {row["version"] for row in rows.values()} == {version("breakeven")}
    assert all(row["passed"] == "True" and row["seed"] and row["date"] and row["commit"] for row in rows.values())
    assert float(rows["grid"]["ratio_timed"]) <= 0.5
    assert int(rows["proposed"]["held"]) >= 0.93 * int(rows["proposed"]["coverage_sweeps"])


def test_a_small_comparison_passes():
    from benchmarks.next_point import run  # pyright: ignore[reportMissingImports] - a test run has the root on its path

    assert [row for row in run(12, 40, seed=1) if not row.passed] == []
