"""``breakeven predict FILE``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import options, output
from .answering import Question, Source, answer_file

if TYPE_CHECKING:
    from ..fit.answer import Answer

HEADLINES = ("optimum", "break-even")
Headline = Annotated[
    str, typer.Option("--for", metavar="optimum|break-even", help="The headline, which decides the exit code.")
]


def command(
    file: options.File,
    headline: Headline = "optimum",
    strategy: options.Strategy = None,
    size: options.Size = None,
    objective: options.Objective = None,
    reference: options.Reference = None,
    max_devices: options.MaxDevices = None,
    tolerance: options.Tolerance = 0.05,
    confidence: options.Confidence = 0.95,
    margin: options.Margin = 0.10,
    columns: options.Columns = None,
    scaling: options.Scaling = None,
    where: options.Where = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Say how many devices to use, and from where on adding devices helps.

    \b
    Example:
      breakeven predict data:sin-reduce --for break-even
      breakeven predict times.csv --columns devices=gpus,latency_s=ms/1e3 --scaling strong

    Counts and sizes that were not measured are predicted by the laws that err least on cells left out, and marked.
    "Never" is an answer. Exit code 1: the headline is undecided.
    """
    options.one_of("--for", headline, HEADLINES)
    answer = answer_file(
        Source(file=file, columns=columns, scaling=scaling, where=where),
        Question(
            strategy=strategy,
            size=size,
            objective=objective,
            reference=reference,
            max_devices=max_devices,
            tolerance=tolerance,
            confidence=confidence,
            margin=margin,
            seed=seed,
        ),
    )
    if as_json:
        output.emit_json(answer)
    else:
        from .render_predict import predict

        output.emit(predict(answer))
        output.warn_all(answer.warnings)
    raise typer.Exit(exit_code(answer, headline))


def exit_code(answer: Answer, headline: str) -> int:
    """1 when what was asked for is undecided; ``never`` is decided."""
    decided = answer.optimal_devices.outcome if headline == "optimum" else answer.break_even.first.outcome
    return output.UNDECIDED if decided == "undecided" else output.DECIDED
