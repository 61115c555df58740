"""The committed tables describe this version, and hold what they must."""

import csv
from importlib.metadata import version
from pathlib import Path

TABLE = Path(__file__).parents[1] / "docs" / "calibration.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))


def test_the_calibration_describes_this_version():
    assert {row["version"] for row in ROWS} == {version("breakeven")}
    assert all(row["seed"] and row["date"] and row["commit"] for row in ROWS)


def test_a_small_calibration_passes():
    """The command behind the table, on 40 sweeps a regime instead of 500."""
    from benchmarks.calibration import run  # pyright: ignore[reportMissingImports] - a test run has the root on its path

    rows = run(40, seed=1)
    assert len(rows) >= len(ROWS) - 2
    assert [row for row in rows if not row.passed] == []
