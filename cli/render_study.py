"""The text of ``study``: the explanation, then how many devices to use."""

from __future__ import annotations

from ..fit.answer import Answer
from .render_common import objective_text
from .render_explain import explain
from .render_predict import break_even, optimum
from .text import page, sentence


def study(answer: Answer) -> str:
    """Return the whole answer of a study, ready to print."""
    return page(explain(answer), sentence(objective_text(answer)), optimum(answer), break_even(answer))
