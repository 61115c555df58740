"""The text of ``diagnose``, and the section of ``explain`` that says which checks failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..fit.answer import Answer, Diagnostic
from . import units
from .render_surroundings import surroundings
from .text import page, sentence, table

if TYPE_CHECKING:
    from ..fit.checks.diagnostics import Diagnosis, ResidualGroup
    from ..fit.checks.rules import Rule

OUTCOMES = {True: "ok", False: "FAILED", None: "not run"}
MET = {True: "met", False: "NOT MET", None: "yours to say"}


def failed_checks(answer: Answer) -> str | None:
    """The checks that failed, with the remedy; None where none did."""
    failed = [one for one in answer.diagnostics if one.passed is False]
    if not failed:
        return None
    return "\n".join(["diagnostics", *(sentence(_failed(one), indent=2) for one in failed)])


def diagnosis(found: Diagnosis) -> str:
    """Return all checks, the residuals by group, and the rules, ready to print."""
    return page(
        _heading(found),
        _checks(found.diagnostics),
        _remedies(found.diagnostics),
        _residuals(found.residuals, found.law),
        surroundings(found.surroundings),
        _rules(found.rules),
    )


def _heading(found: Diagnosis) -> str:
    failed = sum(one.passed is False for one in found.diagnostics)
    run = sum(one.passed is not None for one in found.diagnostics)
    launches = (
        "no launches"
        if found.num_launches is None
        else f"{found.num_launches} launch{'es' if found.num_launches > 1 else ''}"
    )
    lines = [
        f"{found.workload} ({found.strategy}): {found.num_cells} cell{'s' if found.num_cells > 1 else ''}, {launches}",
        f"{failed} of {run} checks failed; level {100 * found.level:g} % for each, after Holm over its cells; effects "
        f"below {100 * found.matters:g} % of the time are no alarm",
    ]
    return "\n".join(sentence(line) for line in lines)


def _checks(diagnostics: Sequence[Diagnostic]) -> str:
    rows = [(OUTCOMES[one.passed], one.name, units.probability(one.p), one.words) for one in diagnostics]
    return table(("", "check", "p", "finding"), rows, numeric=(2,))


def _remedies(diagnostics: Sequence[Diagnostic]) -> str | None:
    failed = [one for one in diagnostics if one.passed is False]
    if not failed:
        return None
    return "\n".join(["what failed", *(sentence(_failed(one), indent=2) for one in failed)])


def _failed(one: Diagnostic) -> str:
    where = "" if one.where == "all cells" else f"{one.where}: "
    return f"{one.name}: {where}{one.words}; {one.remedy}"


def _residuals(groups: Sequence[ResidualGroup], law: str | None) -> str | None:
    if not groups:
        return None
    rows = [
        (
            one.by if index == 0 or groups[index - 1].by != one.by else "",
            one.group,
            str(one.count),
            units.signed_percent(one.mean),
            "-" if one.spread is None else f"{100 * one.spread:.1f} %",
        )
        for index, one in enumerate(groups)
    ]
    of = "" if law is None else f"; by devices and size: cells against the law {law!r}"
    title = sentence(f"residuals, as shares of the time{of}; others: visits against their cell's mean")
    return f"{title}\n{table(('by', '', 'number', 'mean', 'spread'), rows, numeric=(1, 2, 3, 4))}"


def _rules(rules: Sequence[Rule]) -> str:
    rows = [(str(one.number), one.title, MET[one.met], one.words) for one in rules]
    title = "twelve rules for reporting parallel performance (after Hoefler and Belli, SC '15; docs/twelve-rules.md)"
    return f"{sentence(title)}\n{table(('', 'rule', '', 'by what'), rows, numeric=(0,))}"
