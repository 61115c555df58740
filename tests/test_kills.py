"""The committed kills, and a few more made here."""

# pyright: reportMissingImports=false
# A test run has the root on its path.

import csv
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks.kills import KILLS, PAIRS, Kill, markdown, run, summarise

TABLE = Path(__file__).parents[1] / "docs" / "kills.csv"


def test_every_committed_sweep_survived():
    rows = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
    assert {row["version"] for row in rows} == {version("breakeven")}
    assert Counter(row["processes"] for row in rows) == {"1": KILLS, "2": PAIRS}
    assert [row["why"] for row in rows if row["why"]] == []
    assert all(int(row["kept"]) >= int(row["said"]) for row in rows)


@pytest.mark.parametrize(("processes", "kills"), [(1, 2), (2, 1)])
def test_sweeps_that_are_killed_here_survive(tmp_path, processes, kills):
    assert [kill.why for kill in run(kills, processes, seed=3, folder=tmp_path, rounds=12)] == [""] * kills


def test_what_did_not_survive_is_told():
    fine = Kill(processes=1, victim="leader", moment=0.5, said=3, kept=3, cut=True, left=0, rounds=9, why="")
    lost = Kill(processes=1, victim="leader", moment=0.7, said=3, kept=2, cut=False, left=0, rounds=8, why="2 of 3")
    (row,) = summarise([fine, lost])
    assert (row.kills, row.survived, row.rounds_kept, row.cut_lines, row.least_rounds) == (2, 1, 5, 1, 8)
    page = markdown([fine, lost], {"seed": "0"})
    assert "| 1 | leader | 2 | 1 | 0 | 6 | 5 | 1 | 8 |" in page
    assert "- 1 processes, leader at 0.7: 2 of 3" in page
