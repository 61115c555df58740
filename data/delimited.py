"""A table in a text file: header, rows and the lines they stand on."""

from __future__ import annotations

import csv
from collections.abc import Iterator
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


COMMENT = "#"
DELIMITERS = ",;\t"


def read_table(path: Path) -> Table:
    """Read a file whose first line is the header.

    Values are separated by commas; by semicolons or tabs where the header holds none. Blank lines are passed over, and
    lines that begin with ``#``, unless one of them is the header (as numpy's ``savetxt`` writes it).

    Raises
    ------
    RecordError
        If the file is missing, no text, empty, without rows, or a row has more or fewer values than the header.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
        header, rows, delimiter = _header_and_rows(lines)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: no text file (byte {error.start} is not UTF-8).") from None
    except csv.Error as error:
        raise RecordError(f"{path}: no comma-separated file ({error}).") from None
    if header is None:
        raise RecordError(f"{path}: empty; the first line must name the columns.")
    twice = {name for name in header.values if header.values.count(name) > 1}
    if twice:
        raise RecordError(f"{path}, line {header.line}: column {sorted(twice)[0]!r} stands there twice.")
    if not rows:
        raise RecordError(f"{path}: no rows below the header.")
    for row in rows:
        if len(row.values) != len(header.values):
            raise RecordError(
                f"{path}, line {row.line}: {len(row.values)} values, but the header names {len(header.values)} columns."
            )
    return Table(path=path, header=header.values, rows=tuple(rows), decimal_comma=delimiter == ";")


def _header_and_rows(lines: list[str]) -> tuple[Row | None, list[Row], str]:
    """The header (None where the file is empty), the rows below it, and what separates values."""
    # Comments become blank lines, so that the lines that errors name stay those of the file.
    text = ["\n" if line.lstrip().startswith(COMMENT) else line for line in lines]
    first = next((i for i, line in enumerate(text) if line.strip()), len(lines))
    delimiter = _delimiter(text[first]) if first < len(lines) else ","
    rows = list(_rows(text, delimiter))
    if rows and all(map(_is_number, rows[0].values)):
        # No header among the rows: the comment that stands above them may be it.
        for i in range(first - 1, -1, -1):
            names = tuple(name.strip() for name in lines[i].strip().lstrip(COMMENT).split(delimiter))
            if len(names) == len(rows[0].values) > 1:
                return Row(i + 1, names), rows, delimiter
    return (rows[0], rows[1:], delimiter) if rows else (None, [], delimiter)


def _rows(lines: list[str], delimiter: str) -> Iterator[Row]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    for values in reader:
        if any(value.strip() for value in values):
            yield Row(reader.line_num, tuple(value.strip() for value in values))


def _delimiter(header: str) -> str:
    """The first of comma, semicolon and tab that the header holds."""
    return next((mark for mark in DELIMITERS if mark in header), ",")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
