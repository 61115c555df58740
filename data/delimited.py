"""A table in a text file: header, rows and the lines they stand on."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .layout import Row, lay_out
from .numerals import Ambiguous, Marks, marks
from .store import RecordError


@dataclass(frozen=True, kw_only=True)
class Table:
    """The text of a file; every row has one value a column.

    ``decimal_comma``: values are separated by semicolons, as where the comma is the decimal mark (``812,4``).
    """

    path: Path
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    decimal_comma: bool = False

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each column."""
        return {name: i for i, name in enumerate(self.header)}

    def column(self, name: str) -> list[str]:
        """Values of one column, row by row."""
        i = self.index[name]
        return [row.values[i] for row in self.rows]

    def columns_in_words(self) -> str:
        """What to choose from, for messages."""
        found = f"The columns are {', '.join(self.header)}"
        blanks = len(self.header) == 1 and any(" " in text for row in self.rows for text in row.values)
        return f"{found} (blanks part values where every line has as many of them)" if blanks else found

    @cached_property
    def marks(self) -> dict[str, Marks | Ambiguous]:
        """How each column writes its numbers."""
        return {name: marks(self.column(name), decimal_comma=self.decimal_comma) for name in self.header}

    def plain(self, name: str) -> list[str]:
        """Values of one column, numbers as Python writes them where their marks can be told."""
        found = self.marks[name]
        return self.column(name) if isinstance(found, Ambiguous) else [found.plain(text) for text in self.column(name)]


def read_table(path: Path) -> Table:
    """Read a file whose first line is the header.

    ``layout.lay_out`` says how values may be separated. Blank lines are passed over, and lines that begin with ``#``,
    unless one of them is the header (as numpy's ``savetxt`` writes it).

    Raises
    ------
    RecordError
        If the file is missing, no text, empty, without rows, or a row has more or fewer values than the header.
    """
    try:
        found = lay_out(path.read_text(encoding="utf-8-sig").splitlines(keepends=True))
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: no text file (byte {error.start} is not UTF-8).") from None
    except csv.Error as error:
        raise RecordError(f"{path}: no comma-separated file ({error}).") from None
    header = found.header
    if header is None:
        raise RecordError(f"{path}: empty; the first line must name the columns.")
    if twice := [repr(name) for name, count in Counter(header.values).items() if count > 1]:
        stand = f"column {twice[0]} stands" if len(twice) == 1 else f"columns {', '.join(twice)} stand"
        raise RecordError(
            f"{path}, line {header.line}: {stand} there twice. Give each a name of its own in the file, so that "
            "--columns can say which is meant."
        )
    if not found.rows:
        raise RecordError(f"{path}: no rows below the header.")
    for row in found.rows:
        if len(row.values) != len(header.values):
            raise RecordError(
                f"{path}, line {row.line}: {len(row.values)} values, but the header names {len(header.values)} columns."
            )
    return Table(path=path, header=header.values, rows=found.rows, decimal_comma=found.separator == ";")
