"""``breakeven explain FILE``."""

from __future__ import annotations

import typer

from . import options, output
from .answering import Question, Source, answer_file


def command(
    file: options.File,
    strategy: options.Strategy = None,
    size: options.Size = None,
    objective: options.Objective = None,
    reference: options.Reference = None,
    max_devices: options.MaxDevices = None,
    tolerance: options.Tolerance = 0.05,
    confidence: options.Confidence = 0.95,
    margin: options.Margin = 0.10,
    equivalence: options.Equivalence = 0.05,
    columns: options.Columns = None,
    scaling: options.Scaling = None,
    where: options.Where = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Say what the time and its growth are made of, and what holds the program back.

    \b
    Example:
      breakeven explain data:mean-all
      breakeven explain sweep.jsonl --size 4096 --json

    The verdict is the cause that leads at the largest count and size: by the time it would save (objective time), or by
    its share of the growth (objective throughput): dispatch, communication, compute or
    input transfer. "Communication bound" has four meanings; each is answered yes, no or undecided. Exit code 1: the
    verdict is undecided.
    """
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
            equivalence=equivalence,
            seed=seed,
        ),
    )
    if as_json:
        output.emit_json(answer)
    else:
        from .render_explain import explain

        output.emit(explain(answer))
        output.warn_all(answer.warnings)
    raise typer.Exit(output.UNDECIDED if answer.verdict == "undecided" else output.DECIDED)
