"""``breakeven figures FILE -o folder``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options, output
from .answering import Question, Source, answer_file

Folder = Annotated[
    Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder to write PDF and PNG files into.")
]


def command(
    file: options.File,
    folder: Folder = Path("figures"),
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
    """Draw the figures: time against devices, time by cause, the break-even map.

    \b
    Example:
      breakeven figures data:sin-reduce -o figures

    Each figure is written as PDF, for papers, and as PNG. The files written are listed on stdout.
    """
    options.output_folder("-o", folder)
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
    from ..figures.save import save_all

    paths = [str(path) for path in save_all(answer, folder)]
    if as_json:
        output.emit_json({"folder": str(folder), "files": paths})
    else:
        output.emit("\n".join(paths))
        output.warn_all(answer.warnings)
