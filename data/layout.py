"""How a text file lays a table out: what separates its values, and which line names its columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .numerals import is_number

COMMENT = "#"
MARKDOWN = "|"
DELIMITERS = ",;\t" + MARKDOWN
ALIGNED = (r"\s{2,}", r"\s+")
"""What parts the values of a table that is set with blanks: two or more of them first, since a name may hold one."""

_RULE = re.compile(r"[|:\s-]*-[|:\s-]*")
"""The line under the header of a Markdown table."""


@dataclass(frozen=True, slots=True)
class Row:
    """Values of one row, stripped, and the line on which it ends."""

    line: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The header (None where the file is empty), the rows below it, and the pattern that separates values."""

    header: Row | None
    rows: tuple[Row, ...]
    separator: str


def lay_out(lines: Sequence[str]) -> Layout:
    """Find header and rows.

    Values are separated by what a first line ``sep=;`` says; else by commas; by semicolons, tabs, bars (a Markdown
    table) or blanks where the header holds none.

    Raises
    ------
    csv.Error
        If quotes are left open.
    """
    # Lines that are no rows become blank, so that the lines that errors name stay those of the file.
    text = ["\n" if line.lstrip().startswith(COMMENT) else line for line in lines]
    first = next((i for i, line in enumerate(text) if line.strip()), None)
    if first is None:
        return Layout(None, (), ",")
    separator = None
    if said := re.fullmatch(r'"?sep=(.)"?', text[first].strip()):
        text[first], separator = "\n", said[1]
    separator, rows = _rows(text, separator)
    if rows and sum(is_number(value.replace(",", ".")) for value in rows[0].values) > len(rows[0].values) / 2:
        # Numbers are no names: the comment that stands above them may hold those.
        for i in range(first - 1, -1, -1):
            names = re.split(separator, lines[i].strip().lstrip(COMMENT).strip())
            if len(names) == len(rows[0].values) > 1:
                return Layout(Row(i + 1, tuple(name.strip() for name in names)), rows, separator)
    return Layout(rows[0], rows[1:], separator) if rows else Layout(None, (), separator)


def _rows(text: Sequence[str], separator: str | None) -> tuple[str, tuple[Row, ...]]:
    """What separates values, as a pattern, and all rows."""
    header = next((line.strip() for line in text if line.strip()), "")
    if separator is None:
        marks = MARKDOWN if header.startswith(MARKDOWN) else DELIMITERS
        separator = next((mark for mark in marks if mark in header), None)
    if separator is None:
        for pattern in ALIGNED:
            rows = tuple(_row(i, re.split(pattern, line.strip())) for i, line in enumerate(text, 1) if line.strip())
            if len({len(row.values) for row in rows}) == 1 and len(rows[0].values) > 1:
                return pattern, rows
        separator = ","
    if separator == MARKDOWN:
        text = ["\n" if _RULE.fullmatch(line.strip()) else line.strip().strip(MARKDOWN) + "\n" for line in text]
    reader = csv.reader(text, delimiter=separator, strict=True)
    rows = tuple(_row(reader.line_num, values) for values in reader if any(value.strip() for value in values))
    return re.escape(separator), rows


def _row(line: int, values: Sequence[str]) -> Row:
    return Row(line, tuple(value.strip() for value in values))
