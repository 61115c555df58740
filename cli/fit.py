"""``breakeven fit FILE``."""

from __future__ import annotations

from . import options, output
from .answering import Question, Source, answer_file


def command(
    file: options.File,
    strategy: options.Strategy = None,
    confidence: options.Confidence = 0.95,
    margin: options.Margin = 0.10,
    columns: options.Columns = None,
    scaling: options.Scaling = None,
    where: options.Where = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Fit the cost law: its parameters with intervals, and which laws may predict.

    \b
    Example:
      breakeven fit data:mean-all
      breakeven fit sweep.jsonl --strategy shard_map

    A parameter that the data do not determine is "not identified", with the reason. A law predicts only when its error
    on cells left out is below --margin and not above that of a simple trend.
    """
    answer = answer_file(
        Source(file=file, columns=columns, scaling=scaling, where=where),
        Question(strategy=strategy, confidence=confidence, margin=margin, seed=seed),
    )
    if as_json:
        output.emit_json(answer)
    else:
        from .render_fit import fit

        output.emit(fit(answer))
        output.warn_all(answer.warnings)
