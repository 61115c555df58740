"""Whole texts of the answers, compared with files in ``texts/`` that were read by eye."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from breakeven.cli.render_explain import explain
from breakeven.cli.render_fit import fit
from breakeven.cli.render_predict import predict
from breakeven.cli.render_study import study
from breakeven.fit.answer import Estimate

TEXTS = Path(__file__).parent / "texts"


@pytest.mark.parametrize("kind", ["weak", "strong"])
@pytest.mark.parametrize("render", [explain, predict, fit], ids=lambda function: function.__name__)
def test_whole_text(render, kind, request):
    answer = request.getfixturevalue(f"{kind}_answer")
    expected = (TEXTS / f"{render.__name__}-{kind}.txt").read_text(encoding="utf-8")
    assert render(answer) + "\n" == expected


@pytest.mark.parametrize("kind", ["weak", "strong"])
@pytest.mark.parametrize("render", [explain, predict, fit, study], ids=lambda function: function.__name__)
def test_lines_fit_a_terminal(render, kind, request):
    lines = render(request.getfixturevalue(f"{kind}_answer")).splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)


def test_shared_cores_come_first(weak_answer):
    first = "your 8 devices share 2 cores: adding devices here adds no hardware"
    for render in (explain, predict, fit, study):
        assert render(weak_answer).splitlines()[0] == first
    assert "share" not in explain(msgspec.structs.replace(weak_answer, shared_cores=None)).splitlines()[0]
    two_nodes = msgspec.structs.replace(weak_answer, visible_devices=16)
    assert explain(two_nodes).startswith("your 8 devices a node share 2 cores: adding devices to a node adds no")


def test_study_answers_both_questions(weak_answer):
    text = study(weak_answer)
    assert text.startswith(explain(weak_answer))
    for said in ("objective: throughput", "optimal devices, 100 rows per device: 8", "helps up to: at least 8 devices"):
        assert said in text


def test_missing_numbers_are_never_printed(weak_answer):
    """With every estimate taken away only reasons are left: no time, no share, no rate."""
    reason = "fewer than three launches"

    def emptied(value):
        if isinstance(value, Estimate):
            return Estimate(reason=reason)
        if isinstance(value, msgspec.Struct):
            fields = {name: emptied(getattr(value, name)) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        if isinstance(value, dict):
            return {key: emptied(entry) for key, entry in value.items()}
        if isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            return tuple(map(emptied, value))
        return value

    text = explain(emptied(weak_answer))
    causes = text[text.index("what one call is made of") : text.index("communication bound?")]
    assert causes.count("cannot tell:") == 3
    assert not any(unit in text for unit in (" µs", " ms", "rows/s"))


def test_reasons_of_undecided_parts_are_said(strong_answer):
    text = predict(strong_answer)
    assert "helps up to: cannot tell: fewer than three launches" in text
    assert "undecided: the data cannot tell 2, 4 apart" in text
    assert "gamma: not identified: one size only; add --sizes" in fit(strong_answer)


def test_disagreement_of_routes_is_said(strong_answer):
    text = explain(strong_answer)
    assert "DISAGREE" in text
    assert "difference exceeds chain by a factor of 1.3" in text


def test_extrapolation_is_marked(weak_answer):
    measured = weak_answer.predictions[0]
    beyond = msgspec.structs.replace(measured, num_devices=16, kind="extrapolated", source="ring, per-device")
    text = predict(msgspec.structs.replace(weak_answer, predictions=(measured, beyond)))
    assert "24 % [22, 26]   EXTRAPOLATED\n" in text
    assert "  16 devices: extrapolated by ring, per-device\n" in text
