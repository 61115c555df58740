"""A comma-separated file as text: header, rows and the lines they stand on."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .store import RecordError


@dataclass(frozen=True, slots=True)
class Row:
    """Values of one row, stripped, and the line on which it ends."""

    line: int
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """The text of a file; every row has one value a column."""

    path: Path
    header: tuple[str, ...]
    rows: tuple[Row, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each column."""
        return {name: i for i, name in enumerate(self.header)}

    def column(self, name: str) -> list[str]:
        """Values of one column, row by row."""
        i = self.index[name]
        return [row.values[i] for row in self.rows]


def read_table(path: Path) -> Table:
    """Read a file whose first line is the header; blank lines are passed over.

    Raises
    ------
    RecordError
        If the file is missing, no text, empty, without rows, or a row has more or fewer values than the header.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            rows = [Row(reader.line_num, tuple(v.strip() for v in values)) for values in reader if any(values)]
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: no text file (byte {error.start} is not UTF-8).") from None
    except csv.Error as error:
        raise RecordError(f"{path}: no comma-separated file ({error}).") from None
    if not rows:
        raise RecordError(f"{path}: empty; the first line must name the columns.")
    header, *rest = rows
    twice = {name for name in header.values if header.values.count(name) > 1}
    if twice:
        raise RecordError(f"{path}, line {header.line}: column {sorted(twice)[0]!r} stands there twice.")
    if not rest:
        raise RecordError(f"{path}: no rows below the header.")
    for row in rest:
        if len(row.values) != len(header.values):
            raise RecordError(
                f"{path}, line {row.line}: {len(row.values)} values, but the header names {len(header.values)} columns."
            )
    return Table(path=path, header=header.values, rows=tuple(rest))
