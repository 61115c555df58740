"""What every committed table says of itself: seed, date, commit and version, on each of its lines."""

from __future__ import annotations

import csv
import datetime
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def stamp(seed: int) -> dict[str, str]:
    """Seed, date, and the commit and version that were measured."""
    return {
        "seed": str(seed),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        "version": version("breakeven"),
    }


def write_rows(path: Path, rows: Iterable[Mapping[str, object]], stamped: Mapping[str, str]) -> None:
    """Write a CSV file with the stamp on every line; all rows have the first one's columns."""
    lines = [{**row, **stamped} for row in rows]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)


def _commit() -> str:
    """The commit that is measured, with a plus sign where files differ from it; ``none`` outside a repository."""
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--dirty=+"],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "none"
