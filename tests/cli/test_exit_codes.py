"""The exit code follows the command's headline; the two channels stay apart."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest
from breakeven.cli import schema


@pytest.fixture
def answered(monkeypatch, run_cli):
    """Run a command whose answer is given."""

    def run(answer, command, *arguments):
        monkeypatch.setattr(f"breakeven.cli.{command}.answer_file", lambda source, question: answer)
        return run_cli(command, "sweep.jsonl", *arguments)

    return run


@pytest.mark.parametrize(
    ("verdict", "code"),
    [("dispatch", 0), ("communication", 0), ("compute", 0), ("input-transfer", 0), ("undecided", 1)],
)
def test_explain_follows_the_verdict(answered, weak_answer, verdict, code):
    found, out, err = answered(msgspec.structs.replace(weak_answer, verdict=verdict), "explain")
    assert found == code
    assert f"\nverdict: {verdict}\n" in out
    assert err == ""


@pytest.mark.parametrize(("outcome", "code"), [("found", 0), ("never", 0), ("undecided", 1)])
def test_predict_follows_the_optimum(answered, weak_answer, outcome, code):
    best = msgspec.structs.replace(weak_answer.optimal_devices, outcome=outcome)
    assert answered(msgspec.structs.replace(weak_answer, optimal_devices=best), "predict")[0] == code


@pytest.mark.parametrize(("outcome", "code"), [("found", 0), ("never", 0), ("undecided", 1)])
def test_predict_follows_break_even_when_asked(answered, weak_answer, outcome, code):
    first = msgspec.structs.replace(weak_answer.break_even.first, outcome=outcome)
    found = msgspec.structs.replace(weak_answer.break_even, first=first)
    answer = msgspec.structs.replace(weak_answer, break_even=found)
    assert answered(answer, "predict", "--for", "break-even")[0] == code
    assert answered(answer, "predict")[0] == 0  # a side answer that is undecided does not count


def test_fit_is_answered_whatever_was_found(answered, strong_answer):
    assert answered(msgspec.structs.replace(strong_answer, laws=(), parameters={}), "fit")[0] == 0


@pytest.mark.parametrize(("command", "code"), [("explain", 1), ("predict", 1), ("fit", 0)])
def test_json_is_the_whole_answer(answered, strong_answer, command, code):
    found, out, err = answered(strong_answer, command, "--json")
    assert (found, err) == (code, "")
    jsonschema.validate(json.loads(out), json.loads(schema.text()))
    assert msgspec.json.decode(out, type=type(strong_answer)) == strong_answer


def test_json_is_in_si_units(answered, weak_answer):
    answer = json.loads(answered(weak_answer, "explain", "--json")[1])
    assert answer["growth_range"]["latency_s"]["estimate"] == pytest.approx(67e-6)
    assert answer["growth_range"]["latency_s"]["interval"] == pytest.approx([60e-6, 74e-6])
    assert answer["growth"]["dispatch"]["estimate"] == 0.97


@pytest.mark.parametrize("command", ["explain", "predict", "fit"])
def test_warnings_go_to_stderr(answered, weak_answer, command):
    answer = msgspec.structs.replace(weak_answer, warnings=("the optimum may lie beyond 8",))
    _, out, err = answered(answer, command)
    assert err == "warning: the optimum may lie beyond 8\n"
    assert "warning" not in out


def test_library_warnings_are_one_line(answered, weak_answer, monkeypatch, capsys):
    import warnings

    from breakeven.cli import output

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    output.show_warnings()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = output._show
        warnings.warn("sweep.jsonl: the last line was cut", stacklevel=1)
    assert capsys.readouterr().err == "warning: sweep.jsonl: the last line was cut\n"
