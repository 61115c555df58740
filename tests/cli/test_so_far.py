"""What a long sweep says between its launches."""

import subprocess
import sys
from dataclasses import replace

import pytest
from breakeven.cli.progress import Bar, Lines
from breakeven.cli.so_far import SoFar, so_far
from breakeven.data.catalog import load
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer
from rich.console import Console


def first(record, launches):
    """A record as it was after some launches."""
    kept = {launch.launch for launch in record.launches[:launches]}
    lines = {
        kind: tuple(x for x in getattr(record, kind) if x.launch in kept)
        for kind in ("launches", "programs", "visits", "failures", "closings", "traces")
    }
    return replace(record, **lines)


@pytest.mark.parametrize("name", ["issue-21411", "sin-reduce"])
def test_it_agrees_with_the_answer_at_the_end(name):
    record = load(name)
    text = so_far(record)
    whole = answer(from_record(record))
    assert f"so far, {whole.num_launches} launches, " in text
    if whole.path == "weak":
        share, of = whole.growth_range.shares["communication"], "of the growth from"
    else:
        share, of = (
            whole.causes[whole.largest_devices]["communication"].share,
            f"of the call on {whole.largest_devices}",
        )
    low, high = (round(100 * end) for end in share.interval)
    assert f"communication {round(100 * share.estimate)} % [{low}, {high}] {of}" in text
    (counts,) = [part for part in text.split("; ") if "best count" in part]
    # Laws, which may add counts that were not measured, are left for the end.
    assert int(counts.rpartition("best count ")[2].split()[0]) in whole.devices


def test_below_three_launches_there_is_nothing_to_say():
    record = load("mean-all")
    assert so_far(first(record, 2)) is None
    assert "so far, 3 launches" in so_far(first(record, 3))
    assert so_far(first(record, 0)) is None


def test_it_speaks_once_a_minute(capsys):
    now, record = [0.0], load("mean-all")
    with Lines() as report:
        said = SoFar(report, clock=lambda: now[0])
        for now[0] in (10.0, 59.0, 61.0, 90.0, 122.0):
            said(record)
    assert capsys.readouterr().err.count("so far, ") == 2


def test_half_a_sweep_that_fits_badly_ends_nothing(monkeypatch):
    def fails(*_arguments, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr("breakeven.fit.optimum.optimum", fails)
    assert so_far(load("mean-all")) is None


def test_the_bar_shows_it_above(monkeypatch, tmp_path):
    with (tmp_path / "drawn").open("w") as drawn:
        monkeypatch.setattr(
            "rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=100, color_system=None)
        )
        with Bar() as bar:
            bar.say("so far [2, 4]")
    assert "so far [2, 4]\n" in (tmp_path / "drawn").read_text()


def test_nothing_of_jax_is_loaded_for_it():
    """It is said by the process that starts the measuring ones, which must leave accelerators alone."""
    code = (
        "import sys; from breakeven.cli.so_far import so_far; from breakeven.data.catalog import load\n"
        "assert so_far(load('mean-all')); print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
