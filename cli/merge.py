"""``breakeven merge FILE FILE...``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options, output

Records = Annotated[
    list[str],
    typer.Argument(metavar="FILE FILE…", help="Records (.jsonl) of the same plan, or data:NAME.", show_default=False),
]
Target = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Record to write.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace the file where it exists.")]


def command(
    records: Records,
    target: Target,
    force: Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Join records of one plan into one: launches of several days or of equal machines.

    \b
    Example:
      breakeven merge monday.jsonl tuesday.jsonl -o both.jsonl

    What stands in several of them counts once. Records that must not be pooled are refused, with what differs.
    """
    options.output_record("-o", target)
    if len(records) < 2:
        output.bad_argument("FILE FILE…", "give at least two records to join.")
    from ..data.merge import merge

    merged = merge(records, target, replace=force)
    if as_json:
        output.emit_json(
            {
                "path": str(target),
                "launches": merged.launches,
                "rounds": merged.rounds,
                "duplicate_lines": merged.duplicates,
            }
        )
        return
    twice = f"; {merged.duplicates} lines that stood in several files are there once" if merged.duplicates else ""
    output.emit(
        f"{target}: {merged.launches} complete launches, {merged.rounds} complete rounds, "
        f"joined from {len(records)} records{twice}"
    )
