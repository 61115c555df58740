"""Data on which statistics break, through every command that reads a file: an answer or one clear message.

Never a traceback, a warning of a library, or a number that is none.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from breakeven.data.schema import Failure, Launch, Line, Plan, Program, Visit
from breakeven.data.simulated import simulated_lines
from breakeven.data.store import Writer
from breakeven.model.cell import Cell

COMMANDS = ("show", "fit", "explain", "predict", "figures", "power")
COUNTS, SIZES = (1, 2, 4), (512, 1024)
Edit = Callable[[list[Line]], list[Line]]


def sweep(path: Path, *, sizes: tuple[int, ...] = SIZES, launches: int = 4, sd: float = 0.02, edit: Edit | None = None):
    """Workload and both controls on three counts; compute halves with the devices, dispatch rises."""
    plan = Plan(
        workload="mine.py:build",
        path="strong",
        objective="time",
        devices=COUNTS,
        sizes=sizes,
        strategies=("jit",),
        visible_devices=4,
    )
    cells, times = [], []
    for role in ("workload", "local", "null"):
        for size in sizes:
            for n in COUNTS:
                cells.append(Cell(role=role, strategy="jit", num_devices=n, size=size))
                compute = 0.0 if role == "null" else 1e-12 * size / n + 1e-4 / n
                times.append(1e-5 + 1e-6 * n + compute + (2e-6 * (n - 1) if role == "workload" else 0.0))
    rng = np.random.default_rng(0)
    noise = sd * (rng.standard_normal((len(cells), launches, 2, 3)) + rng.standard_normal((1, launches, 1, 1)))
    lines = simulated_lines(plan, cells, np.array(times)[:, None, None, None] * np.exp(noise), cores=8)
    with Writer(path) as writer:
        for line in edit(lines) if edit else lines:
            writer.write(line)


def retimed(lines: list[Line], times_ns: Callable[[Visit], tuple[int, ...]]) -> list[Line]:
    return [
        msgspec.structs.replace(line, latency_ns=times_ns(line)) if isinstance(line, Visit) else line for line in lines
    ]


def times_of_program_one(*times_ns: int) -> Edit:
    def edit(lines: list[Line]) -> list[Line]:
        return [
            msgspec.structs.replace(line, latency_ns=times_ns)
            if isinstance(line, Visit) and line.program == 1
            else line
            for line in lines
        ]

    return edit


def failing(*roles: str) -> Edit:
    """Every launch fails at these roles' cells, and measures the others."""

    def edit(lines: list[Line]) -> list[Line]:
        lost = {line.program: line for line in lines if isinstance(line, Program) and line.cell.role in roles}
        kept = [line for line in lines if not (isinstance(line, Visit) and line.program in lost)]
        launches = [line.launch for line in lines if isinstance(line, Launch)]
        failures = [
            Failure(
                sweep=program.sweep,
                launch=launch,
                stage="visit",
                error="XlaRuntimeError",
                message="RESOURCE_EXHAUSTED",
                cell=program.cell,
            )
            for launch in launches
            for program in lost.values()
        ]
        return kept + failures

    return edit


def constant(lines: list[Line]) -> list[Line]:
    return [
        msgspec.structs.replace(line, latency_ns=(100_000 + 1000 * line.program,) * 3)
        if isinstance(line, Visit)
        else line
        for line in lines
    ]


ALL = ("workload", "local", "null")

# The exit codes of show, fit, explain, predict, figures and power, and what must be said: for 2 on stderr, for 1 on
# stdout.
RECORDS = {
    "constant replicates": ({"edit": constant}, (0, 0, 1, 1, 0, 1), "identical"),
    "one launch": ({"launches": 1}, (0, 0, 1, 1, 0, 1), "fewer than (three|3) launches"),
    "two launches": ({"launches": 2}, (0, 0, 1, 1, 0, 1), "fewer than (three|3) launches"),
    "zero times": (
        {"edit": times_of_program_one(0, 0, 0)},
        (0, 2, 2, 2, 2, 2),
        "zero or negative",
    ),
    "one zero call": (
        {"edit": times_of_program_one(9, 0, 9)},
        (0, 2, 2, 2, 2, 2),
        "zero or negative",
    ),
    "negative times": ({"edit": times_of_program_one(-5, -5, -5)}, (0, 2, 2, 2, 2, 2), "zero or negative"),
    "all cells failed": ({"edit": failing(*ALL)}, (0, 2, 2, 2, 2, 2), "every cell failed, .*: RESOURCE_EXHAUSTED"),
    "workload failed": ({"edit": failing("workload")}, (0, 2, 2, 2, 2, 2), "no (cell of a workload|program)"),
    "controls failed": ({"edit": failing("local", "null")}, (0, 0, None, 0, 0, 0), ""),
    "sizes apart by 1e12": ({"sizes": (8, 8 * 10**12)}, (0, 0, None, 0, 0, 0), ""),
}
HEADER = "devices,latency_s,size\n"
FILES = {
    "NaN time": (HEADER + "1,0.1,64\n2,nan,64\n", (2,) * 6, "line 3, column 'latency_s': 'nan' is no finite number"),
    "infinite time": (HEADER + "1,0.1,64\n2,inf,64\n", (2,) * 6, "line 3, column 'latency_s': 'inf' is no finite"),
    "NaN size": (HEADER + "1,0.1,64\n2,0.1,nan\n", (2,) * 6, "line 3, column 'size': 'nan' is no finite number"),
    "blank time": (HEADER + "1,0.1,64\n2,,64\n", (2,) * 6, "line 3, column 'latency_s': blank"),
    "zero time": (HEADER + "1,0.1,64\n2,0,64\n", (2,) * 6, "line 3: latency_s is 0; a time must be above 0"),
    "negative time": (HEADER + "1,0.1,64\n2,-1,64\n", (2,) * 6, "line 3: latency_s is -1.*; a time must be above 0"),
    "two points": (HEADER + "1,0.1,64\n2,0.06,64\n", (0, 0, 1, 1, 0, 1), "cannot tell"),
    "one count": (HEADER + "2,0.1,64\n2,0.11,64\n", (0, 2, 2, 2, 2, 2), "and nothing to compare with"),
    "constant replicates": (
        HEADER.replace("\n", ",launch\n") + "".join(f"{n},{0.1 / n},64,{g}\n" for g in range(4) for n in COUNTS),
        (0, 0, 1, 1, 0, 1),
        "identical|cannot tell",
    ),
    "sizes apart by 1e12": (
        HEADER + "".join(f"{n},{1e-5 + 1e-12 * s / n + 1e-6 * n},{s}\n" for s in (8, 8 * 10**12) for n in COUNTS),
        (0, 0, 1, 1, 0, 1),
        "cannot tell|replication unknown",
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    # It would configure JAX for every test that runs after this one.
    monkeypatch.setattr("breakeven.fit.compilation.enable_cache", lambda: None)
    return tmp_path


def check(run_cli, file: str, codes: tuple[int | None, ...], said: str) -> None:
    reading = ["--scaling", "strong"] if file.endswith(".csv") else []
    for command, expected in zip(COMMANDS, codes, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code, out, err = run_cli(command, file, *reading)
        assert code in ((0, 1) if expected is None else (expected,)), (command, err)
        assert "Traceback" not in err
        assert not re.search(r"\b(nan|inf|None)\b|± 0\b", out), (command, out)
        if code == 2:
            assert out == ""
            assert re.search(said, " ".join(err.split())), (command, err)
        elif code == 1:
            assert re.search(said, " ".join(out.split())), (command, out)


@pytest.mark.parametrize("name", RECORDS)
def test_records(run_cli, name):
    arguments, codes, said = RECORDS[name]
    sweep(Path("sweep.jsonl"), **arguments)
    check(run_cli, "sweep.jsonl", codes, said)


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_tools(run_cli, name):
    content, codes, said = FILES[name]
    Path("times.csv").write_text(content, encoding="utf-8")
    check(run_cli, "times.csv", codes, said)


def test_show_says_what_the_others_refuse(run_cli):
    sweep(Path("sweep.jsonl"), edit=times_of_program_one(0, 0, 0))
    code, _, err = run_cli("show", "sweep.jsonl")
    assert code == 0
    assert "8 visits hold times that are zero or negative: other commands refuse this record" in err


@pytest.mark.parametrize("launches", [1, 2])
def test_few_launches_give_estimates_and_no_interval(run_cli, launches):
    sweep(Path("sweep.jsonl"), launches=launches)
    _, out, _ = run_cli("explain", "sweep.jsonl", "--json")
    answer = json.loads(out)
    assert answer["verdict"] == "undecided"
    shares = answer["growth_range"]["shares"].values()
    assert all(share["interval"] is None and share["reason"] for share in shares)
    assert all(one["interval"] is None and one["upper_limit"] is None for one in answer["parameters"].values())


def test_as_many_parameters_as_points_give_estimates_only(run_cli):
    """Three points and three parameters: c0 + floor, dispatch with entry, and the work of one device."""
    Path("times.csv").write_text(HEADER + "1,0.254,2\n1,0.109,1\n2,0.370,2\n", encoding="utf-8")
    _, out, _ = run_cli("fit", "times.csv", "--scaling", "strong", "--json")
    answer = json.loads(out)
    identified = [one for one in answer["parameters"].values() if one["identified"]]
    assert identified
    assert all(one["interval"] is None and "as many parameters as points" in one["reason"] for one in identified)
