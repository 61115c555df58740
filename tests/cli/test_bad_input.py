"""Bad input ends with exit code 2 and one clear message; nothing is written and nothing stands on stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.data.simulated import write_simulated
from breakeven.model.cell import Cell

USER_FILE = """
import jax.numpy as jnp

def nan(mesh, size):
    return lambda x: x / 0.0 - x / 0.0, (jnp.ones(size),)

def nothing(mesh, size):
    return lambda x: None, (jnp.ones(size),)

def no_build(mesh, size):
    pass

def raises(mesh, size):
    raise KeyError("my own mistake")

WORKLOADS = {}
"""


def simulated(path: Path, devices: tuple[int, ...]) -> Path:
    """A record of four launches whose times halve with the devices."""
    plan = Plan(
        workload="mine.py:build", path="strong", objective="time", devices=devices, sizes=(64, 128), strategies=("jit",)
    )
    cells = [Cell(role="workload", strategy="jit", num_devices=n, size=size) for n in devices for size in plan.sizes]
    times = np.array([1e-6 * cell.size / cell.num_devices for cell in cells])
    noise = np.random.default_rng(0).lognormal(sigma=0.01, size=(len(cells), 4, 3, 5))
    return write_simulated(path, plan, cells, times[:, None, None, None] * noise, cores=8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a user who has one file."""
    (tmp_path / "mine.py").write_text(USER_FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])  # importing a user's file adds its folder
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    # It would configure JAX for every test that runs after this one.
    monkeypatch.setattr("breakeven.fit.compilation.enable_cache", lambda: None)
    return tmp_path


def refused(run_cli, folder: Path, arguments: list[str], message: str) -> None:
    """The command ends with 2, says ``message`` on stderr, and leaves the folder as it was."""
    before = sorted(folder.rglob("*.jsonl")), sorted(folder.glob("study-*"))
    code, out, err = run_cli(*arguments)
    assert (code, out) == (2, "")
    # Lines may be wrapped: the words count.
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert (sorted(folder.rglob("*.jsonl")), sorted(folder.glob("study-*"))) == before


MEASURING = ["measure", "study", "inspect"]


@pytest.mark.parametrize("command", MEASURING)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mean-al"], "unknown workload 'mean-al'. Did you mean mean-all?"),
        (["absent.py:build"], "absent.py: no such file."),
        (["mine.py"], "'mine.py': name the function too, as in mine.py:build."),
        (["mine.py:build"], "mine.py: no function 'build' in it; it has nan, nothing, no_build, raises."),
        (["mine.py:WORKLOADS"], "mine.py: no function 'WORKLOADS' in it"),
        (["mine.py:nan"], "mine.py:nan declares no path: give --sizes"),
        (["sin-reduce", "--devices", "1,2000"], "2000 asked for, but at most 256 host devices can be forced"),
        (["sin-reduce", "--devices", "one"], "'one' is no list of device counts"),
        (["sin-reduce", "--devices", "1,3", "--sizes", "256"], "size 256 (numbers) does not divide by 3 devices"),
        (["sin-reduce", "--sizes", "256", "--sizes-per-device", "64"], "global sizes (strong scaling) or"),
        (["sin-reduce", "--sizes", "few"], "'few' is no positive whole number"),
        (["sin-reduce", "--strategies", "mpi"], "sin-reduce has no strategy 'mpi'; it has jit."),
        (["sin-reduce", "--platform", "abacus"], "'abacus' is not one of cpu, gpu, tpu."),
        (["sin-reduce", "--timeout", "never"], "'never' is no positive time"),
        (["sin-reduce", "--timeout", "1e10s"], "--timeout: '1e10s' is longer than 30 days; write 120s, 10m or 1h."),
        (["sin-reduce", "--timeout", "1e308h"], "--timeout: '1e308h' is longer than 30 days"),
        (["sin-reduce", "--frobnicate"], "No such option"),
    ],
)
def test_what_cannot_be_measured(run_cli, folder, command, arguments, message):
    platform = [] if "--platform" in arguments else ["--platform", "cpu"]
    refused(run_cli, folder, [command, *arguments, *platform], message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "soon"], "'soon' is no positive time"),
        (["--launches", "0"], "--launches"),
        (["--objective", "speed"], "'speed' is not one of time, throughput."),
        (["-o", "."], "is a folder; name a file in it."),
        (["-o", "mine.py/sweep.jsonl"], "one of its parents is a file"),
        (
            ["-o", "sweep.csv"],
            "a file in .csv is read as a table, and this is a record; name it sweep.jsonl.",
        ),
    ],
)
def test_options_of_measure(run_cli, folder, arguments, message):
    refused(run_cli, folder, ["measure", "sin-reduce", "--platform", "cpu", *arguments], message)


def test_study_needs_two_counts_and_a_folder(run_cli, folder):
    refused(run_cli, folder, ["study", "sin-reduce", "--devices", "2", "--platform", "cpu"], "give at least two")
    refused(run_cli, folder, ["study", "sin-reduce", "-o", "mine.py"], "mine.py is a file; name a folder.")


def test_platform_that_is_not_there(run_cli, folder, monkeypatch):
    from breakeven.measure import devices

    found = devices.Devices(platform="cpu", count=1, kind="cpu")
    monkeypatch.setattr(devices, "detect", lambda: found)
    refused(run_cli, folder, ["measure", "sin-reduce", "--platform", "gpu"], "JAX finds no gpu here, but cpu (cpu).")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nan", "the function returned NaN"),
        ("nothing", "the function returned nothing"),
        ("no_build", "build returned nothing"),
        ("raises", "my own mistake"),
    ],
)
def test_programs_whose_time_would_mean_nothing(run_cli, folder, function, message):
    arguments = ["measure", f"mine.py:{function}", "--devices", "1,2", "--sizes", "8", "--platform", "cpu"]
    refused(run_cli, folder, arguments, message)


def test_users_own_frames_are_shown(run_cli, folder):
    code, _, err = run_cli("inspect", "mine.py:raises", "--devices", "1", "--sizes", "8", "--platform", "cpu")
    assert code == 2
    assert 'mine.py", line 14, in raises: raise KeyError("my own mistake")' in err
    assert "site-packages" not in err


READING = ["show", "fit", "explain", "predict", "figures"]


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "sweep.jsonl: No such file or directory."),
        ("", "sweep.jsonl: empty; nothing was measured into it."),
        ("hello\nworld\n", "sweep.jsonl: not a breakeven record (line 1"),
        ('{"kind":"sweep","schema":99}\n', "sweep.jsonl, line 1: schema 99; this breakeven reads up to"),
        ("spoilt", "sweep.jsonl, line 5: spoilt"),
    ],
)
def test_files_that_are_no_record(run_cli, folder, command, content, message):
    file = folder / "sweep.jsonl"
    if content == "spoilt":
        lines = simulated(file, (1, 2)).read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join([*lines[:4], lines[4][:20] + "\n", *lines[5:]]), encoding="utf-8")
    elif content is not None:
        file.write_text(content, encoding="utf-8")
    refused(run_cli, folder, [command, str(file)], message)
    assert not (folder / "figures").exists()


def test_a_name_in_another_encoding(run_cli, folder):
    file = folder / os.fsdecode(b"m\xff.py")
    file.write_text(USER_FILE, encoding="utf-8")
    arguments = ["measure", f"{file.name}:nothing", "--devices", "1", "--sizes", "8", "--platform", "cpu"]
    refused(run_cli, folder, arguments, r"m\udcff.py:nothing: the name is not in UTF-8, as a record is; rename")


def test_warnings_of_ours_are_said_where_python_makes_errors_of_them(folder):
    file = simulated(folder / "sweep.jsonl", (1, 2))
    file.write_bytes(file.read_bytes()[:-20])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-P", "-m", "breakeven.cli", "show", "sweep.jsonl"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert done.stderr == "warning: sweep.jsonl: the last line was cut while being written; it is skipped.\n"


def test_unknown_recorded_sweep(run_cli, folder):
    refused(run_cli, folder, ["explain", "data:nothing"], "no recorded sweep of that name ships; there are")


@pytest.mark.parametrize("command", ["fit", "explain", "predict", "figures"])
def test_record_with_one_count(run_cli, folder, command):
    file = simulated(folder / "sweep.jsonl", (4,))
    refused(run_cli, folder, [command, str(file)], "holds 4 devices only, and nothing to compare with.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--strategy", "pmap"], "strategy 'pmap' was not measured; measured: jit."),
        (["--size", "100"], "size 100 was not measured; measured: 64, 128."),
        (["--size", "big"], "'big' is no positive whole size"),
        (["--reference", "3"], "reference 3 was not measured; measured: 1, 2."),
        (["--reference", "2", "--max-devices", "1"], "max_devices 1 lies below the reference count 2."),
        (["--objective", "speed"], "'speed' is not one of time, throughput."),
        (["--confidence", "95"], "--confidence"),
        (["--confidence", "nan"], "--confidence"),
        (["--tolerance", "nan"], "--tolerance"),
        (["--margin", "nan"], "--margin"),
        (["--equivalence", "nan"], "--equivalence"),
        (["--columns", "devices=n"], "--columns says how to read a .csv file"),
        (["--scaling", "sideways"], "'sideways' is not one of strong, weak."),
    ],
)
def test_questions_that_have_no_answer(run_cli, folder, arguments, message):
    file = simulated(folder / "sweep.jsonl", (1, 2))
    refused(run_cli, folder, ["explain", str(file), *arguments], message)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--launch-sd", "nan"), ("--round-sd", "inf"), ("--launch-sd", "1e200"), ("--slope", "nan"), ("--power", "nan")],
)
def test_noise_that_is_no_number(run_cli, folder, option, value):
    stated = {"--launch-sd": "0.03", "--round-sd": "0.05", "--slope": "1", option: value}
    refused(
        run_cli, folder, ["power", "--break-even", "10%", *(word for pair in stated.items() for word in pair)], option
    )


def test_noise_too_small_to_be_any(run_cli, folder):
    refused(run_cli, folder, ["power", "--launch-sd", "1e-170", "--round-sd", "0"], "without any noise one call tells")


def test_headline_must_be_one_of_two(run_cli, folder):
    file = simulated(folder / "sweep.jsonl", (1, 2))
    refused(run_cli, folder, ["predict", str(file), "--for", "luck"], "'luck' is not one of optimum, break-even.")


def test_cut_last_line_is_a_warning(folder):
    """In a process of its own: pytest turns warnings into errors."""
    file = simulated(folder / "sweep.jsonl", (1, 2))
    file.write_bytes(file.read_bytes()[:-40])
    done = subprocess.run(
        [sys.executable, "-m", "breakeven.cli", "show", str(file), "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr == f"warning: {file}: the last line was cut while being written; it is skipped.\n"
    assert json.loads(done.stdout)["visits"] == 4 * 4 * 3 - 1


def test_bug_is_not_hidden(run_cli, monkeypatch):
    """A ValueError that is nobody's bad input keeps its traceback."""
    from breakeven.data import catalog

    def broken(*arguments, **options):
        raise ValueError("a bug of ours")

    monkeypatch.setattr(catalog, "open_record", broken)
    with pytest.raises(ValueError, match="a bug of ours"):
        run_cli("show", "sweep.jsonl")


def test_answers_survive_a_reader_that_leaves(folder):
    """``| head`` ends quietly, with the answer's own exit code."""
    file = simulated(folder / "sweep.jsonl", (1, 2))
    child = subprocess.Popen(
        [sys.executable, "-m", "breakeven.cli", "show", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 0
    child.stderr.close()
