"""``power`` as a user runs it: pilots of files, stated noise, and questions that have no answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from breakeven.cli.power import fraction
from breakeven.data.schema import Plan
from breakeven.data.simulated import write_simulated
from breakeven.model.cell import Cell
from scipy import stats


def pilot(path: Path, *, launches: int = 5, seed: int = 0) -> str:
    """Two counts and three sizes, noise of 2 % between launches and 3 % between rounds."""
    plan = Plan(
        workload="mine.py:build",
        path="strong",
        objective="time",
        devices=(1, 4),
        sizes=(512, 1024, 2048),
        strategies=("jit",),
        visible_devices=4,
    )
    cells = [Cell(role="workload", strategy="jit", num_devices=n, size=s) for s in plan.sizes for n in plan.devices]
    rng = np.random.default_rng(seed)
    times = np.array([1e-3 * (1 if c.num_devices == 1 else (c.size / 1024) ** -0.5) for c in cells])
    noise = 0.02 * rng.standard_normal((6, launches, 1, 1)) + 0.03 * rng.standard_normal((6, launches, 3, 1))
    write_simulated(path, plan, cells, times[:, None, None, None] * np.exp(noise))
    return str(path)


def test_text(run_cli, tmp_path):
    code, out, err = run_cli("power", pilot(tmp_path / "pilot.jsonl"), "--difference", "5%", "--at", "4")
    assert (code, err) == (0, "")
    for said in (
        "to tell a loss of 5 % on 4 devices against 1 device from none, size 2,048",
        "noise of the log ratio of the costs on 4 and 1 device: ",
        "from a pilot of 5 launches: a launch's mean varies by ",
        "recommended: ",
        "launches needed if the noise lies at either end of its interval: ",
        "probability of success by launches and rounds a launch, and the time it takes",
    ):
        assert said in out
    command = "breakeven measure mine.py:build --devices 1,4 --sizes 512,1024,2048 --strategies jit --launches"
    assert command in " ".join(out.replace("\\\n", " ").split())
    assert all(len(line) <= 100 and line == line.rstrip() for line in out.splitlines())


def test_json_of_stated_noise(run_cli):
    code, out, _ = run_cli("power", "--difference", "5%", "--launch-sd", "0.03", "--round-sd", "0.04", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["goal"] == "difference"
    assert answer["target"] == 0.05
    assert answer["chosen"]["power"] >= 0.8
    assert answer["chosen"]["seconds"] is None
    assert answer["launches_range"] is None
    # One entry of the table by another route: the noncentral t distribution.
    row = next(one for one in answer["table"] if (one["launches"], one["rounds"]) == (8, 2))
    shift = np.log(1.05) * np.sqrt(8 / (0.03**2 + 0.04**2 / 2))
    critical = stats.t.ppf(0.975, 7)
    expected = stats.nct.sf(critical, 7, shift) + stats.nct.cdf(-critical, 7, shift)
    assert row["power"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("goal", ["--break-even", "--share"])
def test_other_goals_from_stated_noise(run_cli, goal):
    slope = ["--slope=-0.5"] if goal == "--break-even" else []
    code, out, _ = run_cli("power", goal, "10%", *slope, "--launch-sd", "0.02", "--round-sd", "0.05")
    assert code == 0
    assert "recommended: " in out


def test_break_even_size(run_cli, tmp_path):
    code, out, _ = run_cli("power", pilot(tmp_path / "pilot.jsonl"), "--break-even", "10%")
    assert code == 0
    assert "to know the break-even size on 4 devices against 1 device to within 10 % of it" in out


@pytest.mark.parametrize("launches", [1, 2])
def test_too_few_launches(run_cli, tmp_path, launches):
    code, out, err = run_cli("power", pilot(tmp_path / "pilot.jsonl", launches=launches))
    assert (code, err) == (1, "")
    assert "cannot tell: the noise of launches cannot be told from that of rounds with fewer than 3 launches" in out


def test_share_without_controls(run_cli, tmp_path):
    code, out, _ = run_cli("power", pilot(tmp_path / "pilot.jsonl"), "--share", "5%")
    assert code == 1
    assert "cannot tell: no null control was measured" in out


def test_csv_without_launches(run_cli, tmp_path):
    file = tmp_path / "times.csv"
    file.write_text("devices,latency_s,size\n1,0.4,64\n2,0.3,64\n4,0.2,64\n", encoding="utf-8")
    code, out, _ = run_cli("power", str(file))
    assert code == 1
    assert "measure at least 3" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a pilot sweep, or state its noise with --launch-sd and --round-sd."),
        (["--launch-sd", "0.1"], "give a pilot sweep, or state its noise"),
        (["--launch-sd", "0", "--round-sd", "0"], "without any noise one call tells everything"),
        (["--launch-sd", "-1", "--round-sd", "0"], "--launch-sd"),
        (["--launch-sd", "0.1", "--round-sd", "0", "--break-even", "10%"], "--break-even needs it"),
        (["--difference", "5%", "--share", "5%"], "ask one question at a time, --difference or --share."),
        (["--difference", "5 percent"], "'5 percent' is no share between 0 and 100 %; write 5% or 0.05."),
        (["--difference", "0"], "'0' is no share"),
        (["--break-even", "100%"], "'100%' is no share"),
        (["--of", "luck"], "'luck' is not one of communication, dispatch, compute."),
        (["--power", "1"], "--power"),
        (["absent.jsonl"], "absent.jsonl: No such file or directory."),
        (["pilot.jsonl", "--at", "3"], "at 3 was not measured; measured: 1, 4."),
        (["pilot.jsonl", "--at", "1"], "the count 1 would be compared with itself"),
        (["pilot.jsonl", "--launch-sd", "0.1", "--round-sd", "0.1"], "the pilot FILE shows the noise"),
    ],
)
def test_questions_that_have_no_answer(run_cli, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    pilot(tmp_path / "pilot.jsonl")
    code, out, err = run_cli("power", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), (" 7.5 % ", 0.075), ("0.1", 0.1), (".5%", 0.005)])
def test_shares_are_read(text, value):
    assert fraction("--difference", text) == pytest.approx(value)
