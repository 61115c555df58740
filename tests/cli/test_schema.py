"""docs/answer.schema.json is in step with the code, and accepts what ``--json`` prints."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from breakeven.cli import schema

FILE = Path(__file__).parents[2] / "docs" / "answer.schema.json"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(FILE.read_text(encoding="utf-8")))


def test_file_is_in_step():
    assert FILE.read_text(encoding="utf-8") == schema.text(), (
        "regenerate it: python -m breakeven.cli.schema > docs/answer.schema.json"
    )


@pytest.mark.parametrize("name", ["weak_answer", "strong_answer"])
def test_answers_are_valid(validator, name, request):
    validator.validate(json.loads(msgspec.json.encode(request.getfixturevalue(name))))


@pytest.mark.parametrize(
    ("key", "value"),
    [("verdict", "network"), ("communication_bound", None), ("objective", "speed"), ("reference_devices", "one")],
)
def test_what_is_no_answer_is_refused(validator, weak_answer, key, value):
    answer = json.loads(msgspec.json.encode(weak_answer))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(answer | {key: value})


def test_missing_key_is_refused(validator, weak_answer):
    answer = json.loads(msgspec.json.encode(weak_answer))
    del answer["verdict"]
    with pytest.raises(jsonschema.ValidationError, match="'verdict' is a required property"):
        validator.validate(answer)
