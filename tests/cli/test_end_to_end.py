"""The commands as a user runs them, with real JAX in real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from breakeven.cli import schema
from breakeven.cli.template import TEMPLATE
from breakeven.data.store import read

SHORT = ["--devices", "1,2", "--launches", "3", "--budget", "1s", "--platform", "cpu"]


def breakeven(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    return subprocess.run(
        [sys.executable, "-m", "breakeven.cli", *arguments],
        cwd=cwd,
        env=environment | {"XDG_CACHE_HOME": str(cwd / "cache")},
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the template was measured: a study."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "mine.py").write_text(TEMPLATE, encoding="utf-8")
    done = breakeven("study", "mine.py:build", "--sizes-per-device", "64", *SHORT, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "stdout.txt").write_text(done.stdout, encoding="utf-8")
    (folder / "stderr.txt").write_text(done.stderr, encoding="utf-8")
    return folder


def test_study_leaves_record_answer_and_figures(folder):
    names = {path.name for path in (folder / "study-mine-build").iterdir()}
    assert {"sweep.jsonl", "answer.json", "scaling.pdf", "scaling.png"} <= names
    answer = json.loads((folder / "study-mine-build" / "answer.json").read_text(encoding="utf-8"))
    jsonschema.validate(answer, json.loads(schema.text()))
    assert answer["workload"] == "mine.py:build"
    assert [(c["kind"], c["group_size"]) for c in answer["collectives"]] == [("all-reduce", 2)]


def test_study_prints_the_verdict_and_where_things_are(folder):
    text, progress = ((folder / name).read_text(encoding="utf-8") for name in ("stdout.txt", "stderr.txt"))
    for said in ("mine.py:build (as-written) on 1 and 2 devices, 64 rows per device", "\nverdict: ", "\nobjective: "):
        assert said in text
    assert "launch 3 of 3" in progress
    assert "written to study-mine-build: sweep.jsonl, answer.json, " in progress


@pytest.mark.parametrize("command", ["explain", "predict", "fit"])
def test_answers_in_json(folder, command):
    done = breakeven(command, "study-mine-build/sweep.jsonl", "--json", cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, json.loads(schema.text()))
    assert answer["num_launches"] == 3
    assert (folder / "cache" / "breakeven").is_dir(), "compiled fits are kept"


def test_same_study_again_measures_nothing_new(folder):
    record = folder / "study-mine-build" / "sweep.jsonl"
    before = record.read_bytes()
    done = breakeven("study", "mine.py:build", "--sizes-per-device", "64", *SHORT, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert record.read_bytes() == before
    jsonschema.validate(json.loads(done.stdout), json.loads(schema.text()))


def test_another_plan_into_the_same_file_is_refused(folder):
    done = breakeven("study", "mine.py:build", "--sizes-per-device", "128", *SHORT, cwd=folder)
    assert done.returncode == 2
    assert "holds a sweep of another plan; they differ in sizes" in done.stderr
    assert "merge" not in done.stderr
    more = breakeven("study", "mine.py:build", "--sizes-per-device", "64", *SHORT, "--launches", "4", cwd=folder)
    assert more.returncode == 2
    assert "they differ in launches (3 there, 4 now)" in more.stderr
    assert "another file with -o; breakeven merge then joins the two" in " ".join(more.stderr.split())


def test_show_counts_what_is_there(folder):
    record = read(folder / "study-mine-build" / "sweep.jsonl")
    done = breakeven("show", "study-mine-build/sweep.jsonl", "--json", cwd=folder)
    summary = json.loads(done.stdout)
    assert summary["samples"] == sum(len(visit.latency_ns) for visit in record.visits)
    assert len(summary["launches"]) == 3
    assert {entry["cell"]["role"] for entry in summary["cells"]} >= {"workload", "null"}
    text = breakeven("show", "study-mine-build/sweep.jsonl", cwd=folder).stdout
    assert f"{summary['samples']:,} calls in {summary['visits']:,} visits" in text


def test_inspect_compiles_and_times_nothing(tmp_path):
    done = breakeven(
        *("inspect", "mean-all", "--devices", "1,2", "--sizes-per-device", "100", "--platform", "cpu", "--json"),
        cwd=tmp_path,
    )
    found = json.loads(done.stdout)
    collectives = {
        (entry["cell"]["role"], entry["cell"]["num_devices"]): entry["facts"]["collectives"]
        for entry in found["programs"]
    }
    assert collectives["workload", 1] == collectives["local", 2] == collectives["null", 2] == []
    assert [(c["kind"], c["message_bytes"]) for c in collectives["workload", 2]] == [("all-reduce", 4)]
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_dry_run_says_what_would_run_and_writes_nothing(tmp_path):
    arguments = ("measure", "sin-reduce", "--devices", "1,2", "--sizes", "256", "--platform", "cpu", "--dry-run")
    done = breakeven(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sin-reduce (jit) on 1 and 2 devices, cpu" in done.stdout
    assert "about 60 s for 6 launches" in done.stdout
    assert "parameters of the law" in done.stdout
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_interrupted_measurement_closes_cleanly_and_goes_on(tmp_path):
    arguments = [
        *("measure", "sin-reduce", "--devices", "1,2", "--sizes", "256", "--launches", "2", "--budget", "40s"),
        *("--platform", "cpu", "--no-controls", "--no-probes"),
    ]
    child = subprocess.Popen(
        [sys.executable, "-m", "breakeven.cli", *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    record = tmp_path / "sweep.jsonl"
    give_up = time.monotonic() + 60
    while not (record.exists() and record.stat().st_size > 4000) and time.monotonic() < give_up:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert re.search(r"interrupted: sweep\.jsonl holds \d of 2 launches; the same command goes on\.", said)
    assert "Traceback" not in said
    assert read(record).visits
