"""``diagnose``: every check and rule in words, as JSON, and the section that ``explain`` prints."""

import json
import re

import pytest
from breakeven.cli.app import app
from breakeven.cli.render_diagnose import failed_checks
from breakeven.fit.answer import Diagnostic
from typer.testing import CliRunner


def run(*arguments):
    return CliRunner().invoke(app, ["diagnose", *map(str, arguments)])


@pytest.fixture(scope="module")
def text():
    return run("data:mean-all").stdout


def test_the_visits_of_one_device_are_two_populations(text):
    assert re.search(r"FAILED +one population", text)
    assert "one population: workload/jit on 1 device, size" in text


def test_the_page_is_at_most_a_hundred_wide(text):
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert not [line for line in lines if line != line.rstrip()]


def test_json_holds_checks_residuals_and_rules():
    result = run("data:issue-21411-tpu", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [rule["number"] for rule in found["rules"]] == list(range(1, 13))
    assert found["num_launches"] is None
    assert {one["name"] for one in found["diagnostics"]} >= {"steady series", "no cell pulls the law"}


def test_one_count_is_enough(tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("devices,ms\n" + "".join(f"1,{20 - i}\n" for i in range(8)))
    result = run(path, "--columns", "latency_s=ms/1e3")
    assert result.exit_code == 0
    assert "not steady, extend warm-up" in result.stdout


def test_a_strategy_not_measured_is_refused():
    result = run("data:mean-all", "--strategy", "pmap")
    assert result.exit_code == 2
    assert "'pmap' was not measured; measured: jit" in " ".join(result.output.split())


def test_explain_prints_only_what_failed(weak_answer):
    import msgspec

    checks = (
        Diagnostic(name="drift", where="all cells", passed=False, words="times rise by 9 %", remedy="let it rest"),
        Diagnostic(name="copies", where="all cells", passed=True, words="none"),
        Diagnostic(name="warm-up", where="one cell", passed=None, words="too few calls"),
    )
    assert failed_checks(weak_answer) is None
    answer = msgspec.structs.replace(weak_answer, diagnostics=checks)
    assert failed_checks(answer) == "diagnostics\n  drift: times rise by 9 %; let it rest"
