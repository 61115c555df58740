"""How the texts of options are read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from breakeven.cli import options


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("2m", 120), ("500ms", 0.5), ("1.5h", 5400), ("90", 90), ("2 min", 120)]
)
def test_times(text, seconds):
    assert options.seconds("--budget", text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "0s", "5 days", "1e400s"])
def test_no_time(text):
    with pytest.raises(typer.BadParameter, match="no positive time; write 60s, 2m, 500ms or 1h"):
        options.seconds("--budget", text)


@pytest.mark.parametrize(("text", "size"), [("4096", 4096), ("1e6", 10**6), ("64MiB", 2**26), ("8K", 8000)])
def test_sizes(text, size):
    assert options.size("--size", text) == size


@pytest.mark.parametrize("text", ["0", "-4", "1.5", "many", "3 rows", "1e400"])
def test_no_size(text):
    with pytest.raises(typer.BadParameter, match="no positive whole size"):
        options.size("--size", text)


def test_device_counts_come_in_order():
    assert options.device_counts("--devices", "8, 1,2") == (1, 2, 8)


@pytest.mark.parametrize("text", ["", "1,,2", "0,1", "two", "1-8", "1.5"])
def test_no_device_counts(text):
    with pytest.raises(typer.BadParameter, match="no list of device counts; write 1,2,4,8"):
        options.device_counts("--devices", text)


def test_a_count_named_twice():
    with pytest.raises(typer.BadParameter, match="names a count twice"):
        options.device_counts("--devices", "1,2,2")


def test_names():
    assert options.names("--strategies", "jit, pmap") == ("jit", "pmap")
    with pytest.raises(typer.BadParameter, match="names separated by commas, each once"):
        options.names("--strategies", "jit,jit")


def test_one_of():
    assert options.one_of("--objective", None, ("time",)) is None
    with pytest.raises(typer.BadParameter, match=r"'speed' is not one of time, throughput\."):
        options.one_of("--objective", "speed", ("time", "throughput"))


def test_output_must_be_writable_as_what_it_is(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(typer.BadParameter, match="is a folder; name a file"):
        options.output_file("-o", tmp_path)
    with pytest.raises(typer.BadParameter, match="one of its parents is a file"):
        options.output_file("-o", tmp_path / "file" / "sweep.jsonl")
    with pytest.raises(typer.BadParameter, match="is a file; name a folder"):
        options.output_folder("-o", tmp_path / "file")
    assert not (options.output_folder("-o", tmp_path / "new" / "folder")).exists()


def test_measuring_far_beyond_the_budget_is_said(capsys):
    from breakeven.cli.measure import warn_of_budget
    from breakeven.data.schema import Plan

    plan = Plan(
        workload="w", path="strong", objective="time", devices=(1, 2), sizes=(8,), strategies=("jit",), budget_s=40.0
    )
    warn_of_budget(plan, 50.0)
    assert capsys.readouterr().err == ""
    warn_of_budget(plan, 633.0)
    assert "this took 10 min 33 s, the budget was 40 s" in capsys.readouterr().err
