"""The text on what a sweep cannot tell apart: why, and the cheapest run that would."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from ..fit.answer import Answer, Unidentified
from . import units
from .text import WIDTH, sentence


def between_causes(answer: Answer) -> str | None:
    """Ties across causes: time that may be given to one cause or to another."""
    return _block(one for one in answer.unidentified if len(one.causes) > 1)


def every_tie(answer: Answer) -> str | None:
    """All ties between parameters."""
    return _block(answer.unidentified)


def _block(found: Iterable[Unidentified]) -> str | None:
    by_run: dict[str | None, list[Unidentified]] = {}
    for one in found:
        by_run.setdefault(one.command or one.remedy, []).append(one)
    if not by_run:
        return None
    lines = ["not told apart by what was measured"]
    for ties in by_run.values():
        lines += [sentence(text, indent=2) for text in dict.fromkeys(one.words for one in ties)]
        lines += _remedy(ties)
    return "\n".join(lines)


def _remedy(ties: list[Unidentified]) -> list[str]:
    remedies = dict.fromkeys(one.remedy for one in ties if one.remedy is not None)
    if not remedies:
        return ["    no control, probe, count or size that can be added on these devices would tell them apart"]
    what, first = units.joined(remedies), ties[0]
    if first.command is None or first.remedy_cost_s is None:
        return [sentence(f"remedy: {what}", indent=4)]
    cost = f"about {units.quantity(first.remedy_cost_s)} device-seconds in all"
    return [sentence(f"cheapest remedy: {what}; {cost}", indent=4), command_lines(first.command, indent=6)]


def command_lines(command: str, *, indent: int) -> str:
    """A command line to be copied, continued with a backslash where it is long."""
    lines = textwrap.wrap(command, WIDTH - indent - 6, break_long_words=False, break_on_hyphens=False)
    return " " * indent + (" \\\n" + " " * (indent + 4)).join(lines)
