"""The JSON Schema of ``--json``; ``python -m breakeven.cli.schema`` prints it as docs/answer.schema.json holds it."""

from __future__ import annotations

import json

import msgspec

from ..fit.answer import Answer


def text() -> str:
    """The schema of ``Answer``, as a file's text."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "breakeven answer"}
    schema |= msgspec.json.schema(Answer)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(text(), end="")
