"""Progress on stderr: a bar on a terminal, one line a launch elsewhere."""

from __future__ import annotations

import io

import pytest
from breakeven.cli.progress import Bar, Lines, reporter
from breakeven.measure.sweep import Progress
from rich.console import Console


def report(launch: int, round_number: int, left: float | None) -> Progress:
    return Progress(launch=launch, launches=6, round=round_number, seconds_left=left, what="compile local/jit")


def test_one_line_a_launch(capsys):
    with Lines() as lines:
        for progress in (
            report(1, 0, 60.0),
            report(1, 1, 58.0),
            report(2, 0, 50.4),
            report(3, 0, None),
            report(4, 0, 0.0),
        ):
            lines(progress)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (
        printed.err
        == "launch 1 of 6, 60 s left\nlaunch 2 of 6, 50 s left\nlaunch 3 of 6\nlaunch 4 of 6, past the budget\n"
    )


def test_lines_where_nobody_looks():
    assert isinstance(reporter(), Lines)


@pytest.fixture
def terminal(monkeypatch) -> io.StringIO:
    """A terminal 100 columns wide that remembers what was drawn."""
    drawn = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=100, color_system=None)
    )
    return drawn


def test_bar_shows_what_is_done_and_the_time_left(terminal):
    with Bar() as bar:
        bar(report(1, 0, 60.0))
        bar(report(2, 3, 48.0))
    assert "launch 1 of 6" in terminal.getvalue()
    assert "compile local/jit, 60 s left" in terminal.getvalue()
    assert "round 3, 48 s left" in terminal.getvalue()


def test_bar_follows_the_time_where_it_is_bounded_and_the_launches_elsewhere(terminal):
    with Bar() as bar:
        bar(report(1, 0, 60.0))
        bar(report(2, 3, 15.0))
        assert bar._bar.tasks[0].completed == pytest.approx(0.75)
        bar(report(4, 0, None))
        assert bar._bar.tasks[0].completed == pytest.approx(0.5)


def test_nothing_draws_by_itself(terminal):
    """A drawing thread would run beside the measurement."""
    assert Bar()._bar.live.auto_refresh is False
