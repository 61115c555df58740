"""Where the two channels lead nowhere, or to a terminal that lacks letters: real commands under a real shell."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from breakeven.cli import output
from breakeven.cli.progress import Bar
from breakeven.data import store
from breakeven.measure.sweep import Progress
from rich.console import Console

MEASURE = (
    "measure sin-reduce --platform cpu --devices 1 --sizes 64 --launches 2 --budget 2s --no-controls --no-probes "
    "--no-sentinel --calls 2 --queue 0 -o sweep.jsonl"
)


@pytest.fixture
def shell(tmp_path):
    """``shell("explain FILE 2>&-")``: the command in a folder of its own."""

    def run(command, **environment):
        line = f"{sys.executable} -P -m breakeven.cli {command}"
        with_path = {**os.environ, **environment}
        return subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, env=with_path, stdin=subprocess.DEVNULL
        )

    return run


@pytest.mark.parametrize("lost", ["2>&-", "2>/dev/full"])
def test_a_sweep_nobody_listens_to_goes_on(shell, tmp_path, lost):
    done = shell(f"{MEASURE} {lost}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("next:  breakeven explain sweep.jsonl\n")
    assert len(store.read(tmp_path / "sweep.jsonl").launches) == 2


def test_warnings_never_stand_among_the_answer(shell):
    heard, closed = shell("explain data:mean-all"), shell("explain data:mean-all 2>&-")
    assert "warning: " in heard.stderr
    assert (closed.returncode, closed.stdout) == (heard.returncode, heard.stdout)


def test_an_answer_that_is_lost_is_an_error_all_the_same(shell):
    done = shell("explain data:mean-all >/dev/full")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "error: writing the output: No space left on device.")


def test_a_terminal_without_the_letters_gets_words(shell):
    text = shell("explain data:mean-all", PYTHONIOENCODING="ascii").stdout
    assert "290 us [281, 299]" in text
    found = json.loads(shell("explain data:mean-all --json", PYTHONIOENCODING="ascii").stdout)
    assert found["verdict"] == "communication"


def test_letters_without_a_word_are_spelled_as_in_json(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    output.open_channels()
    output.emit_json({"file": "é.jsonl", "unit": "µs"})
    written = sys.stdout.buffer.getvalue()
    assert json.loads(written) == {"file": "é.jsonl", "unit": "us"}


def test_a_file_of_another_encoding_is_told_in_both_forms(shell, tmp_path):
    name = os.fsdecode(b"o\xff.jsonl")
    shipped = Path(output.__file__).parents[1] / "data" / "recorded"
    (tmp_path / name).write_bytes(next(shipped.glob("*.jsonl")).read_bytes())
    text, found = (shell(f"show $'o\\xff.jsonl'{more}", PYTHONIOENCODING="utf-8:strict") for more in ("", " --json"))
    assert text.stdout.startswith(r"o\udcff.jsonl: measured")
    assert json.loads(found.stdout)["source"] == name


class Gone(io.StringIO):
    """A terminal that was closed, under some number."""

    def __init__(self, number):
        super().__init__()
        self._number = number

    def write(self, text):
        raise OSError(5, "Input/output error")

    def fileno(self):
        return self._number


def test_a_bar_on_a_terminal_that_is_gone_costs_nothing(monkeypatch, tmp_path):
    with (tmp_path / "terminal").open("w") as file:
        gone = Gone(file.fileno())
        monkeypatch.setattr("sys.stderr", gone)
        monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=gone, force_terminal=True))
        with Bar() as bar:
            bar(Progress(launch=1, launches=2, round=0, seconds_left=3.0, what="compile"))
            bar.say("so far")
        os.write(file.fileno(), b"goes nowhere from now on")
    assert (tmp_path / "terminal").read_bytes() == b""
