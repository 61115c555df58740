"""What the columns of a foreign file mean: ``devices=gpus,latency_s=ms/1e3``, and which rows to take."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .delimited import Table
from .layout import Row
from .numerals import Ambiguous, is_number
from .store import RecordError

TARGETS = {
    "devices": ("devices", "num_devices"),
    "latency_s": ("latency_s",),
    "size": ("size",),
    "size_per_device": ("size_per_device",),
    "message_bytes": ("message_bytes",),
    "work": ("work",),
    "flops": (),
    "round": ("round",),
    "replicate": ("replicate",),
    "launch": ("launch",),
    "strategy": ("strategy",),
    "role": ("role",),
    "collective": ("collective",),
    "note": (),
}
"""What a column can mean, and the column names taken for it unasked."""

WORDS = frozenset({"strategy", "role", "collective"})
"""Targets that may be given as one word for all rows, where no column bears that name."""

NUMBERS = frozenset({"devices", "latency_s", "size", "size_per_device", "message_bytes", "work", "flops"})
"""Targets that may be made of several columns."""

LEAVE_OUT = "leave the row out (a # in front makes it a comment)"

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from: a factor times the columns ``above`` over those ``below``, or one word for all rows."""

    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    factor: float = 1.0
    word: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the value is made of."""
        return self.above + self.below

    @property
    def column(self) -> str | None:
        """The one column that the value is made of, whatever its factor; None where there are several, or none."""
        return self.columns[0] if len(self.columns) == 1 else None

    @property
    def reciprocal(self) -> bool:
        """Whether it is a number over columns."""
        return bool(self.below) and not self.above

    def __mul__(self, other: Source) -> Source:
        return Source(self.above + other.above, self.below + other.below, self.factor * other.factor)

    def __truediv__(self, other: Source) -> Source:
        return Source(self.above + other.below, self.below + other.above, self.factor / other.factor)

    def __str__(self) -> str:
        """As ``--columns`` takes it."""
        number = [f"{self.factor:g}"] if self.factor != 1 or not self.above else []
        above = [f'"{name}"' if "," in name else name for name in self.above]
        return "/".join(["*".join([*number, *above]), *(f'"{name}"' if "," in name else name for name in self.below)])

    def text(self, row: Row, table: Table) -> str | None:
        """The value as it stands; None where blank."""
        if not self.columns:
            return self.word or f"{self.factor:g}"
        return row.values[table.index[self.columns[0]]] or None

    def number(self, row: Row, table: Table, target: str) -> float:
        """The value after arithmetic.

        Raises
        ------
        RecordError
            If it is blank, no number, not finite, or 0 under a fraction.
        """
        if not self.columns:
            return self.factor
        value = math.prod(_read(column, row, table, target) for column in self.above)
        under = [self._below(column, row, table, target) for column in self.below]
        # A whole number stays one: a size above 2**53 must not go through a float.
        value = value if self.factor == 1 else value * self.factor
        return value / math.prod(under) if under else value

    def _below(self, column: str, row: Row, table: Table, target: str) -> float:
        if (value := _read(column, row, table, target)) == 0:
            raise RecordError(
                f"{table.path}, line {row.line}, column {column!r}: 0 under a fraction gives no {target}."
            )
        return value


def _read(column: str, row: Row, table: Table, target: str) -> float:
    """The number in a column, whole where it is written so."""
    text = row.values[table.index[column]]
    where = f"{table.path}, line {row.line}, column {column!r}"
    if not text:
        raise RecordError(f"{where}: blank, but {target} is needed in every row; fill it, or {LEAVE_OUT}.")
    marks = table.marks[column]
    if isinstance(marks, Ambiguous):
        first, second = (table.rows[i] for i in marks)
        raise RecordError(
            f"{table.path}, column {column!r}: line {first.line} holds {first.values[table.index[column]]!r} and line "
            f"{second.line} {second.values[table.index[column]]!r}, which no one decimal mark explains. Write all of "
            "them with the same one, and nothing between thousands."
        )
    text = marks.plain(text)
    try:
        value = float(text)
    except ValueError:
        raise RecordError(f"{where}: {text!r} is no number. {_what_to_do(column, text, table, target)}") from None
    if not math.isfinite(value):
        raise RecordError(f"{where}: {text!r} is no finite number; {LEAVE_OUT}.")
    return int(text) if re.fullmatch(r"\d+", text) else value


def _what_to_do(column: str, text: str, table: Table, target: str) -> str:
    """What helps with a value that is no number."""
    bad = [
        row.line for row, value in zip(table.rows, table.plain(column), strict=True) if value and not is_number(value)
    ]
    one = " (or size=1 when all rows have the same size)" if target == "size" else ""
    if match := re.fullmatch(rf"({_NUMBER})\s*[a-zA-Zµμ%/]+", text):
        return f"Write {match[1]} alone; its unit is for --columns to say, as in {target}={column}/1e3 or *1e6{one}."
    if re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+", text):
        return "Write it with nothing between thousands, and with a point for the decimal mark."
    if len(bad) < len(table.rows):
        also = f" (as on {_lines(bad)})" if len(bad) > 1 else ""
        return (
            f"Where there is no value, as of a run that failed, {LEAVE_OUT}{also}; if {target} stands in another "
            f"column, name it with --columns {target}=NAME{one}."
        )
    return f"Name another column for {target} with --columns {target}=NAME{one}."


def _lines(numbers: Sequence[int], shown: int = 5) -> str:
    more = f" and {len(numbers) - shown} more" if len(numbers) > shown else ""
    return f"lines {', '.join(map(str, numbers[:shown]))}{more}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A row is taken when its column equals ``value`` (``=``) or contains it (``~``)."""

    column: str
    operator: str
    value: str

    def holds(self, text: str) -> bool:
        """Whether a value meets the condition; numbers are compared as numbers."""
        if self.operator == "~":
            return self.value in text
        return text == self.value or _number(text) == _number(self.value) != None  # noqa: E711

    def __str__(self) -> str:
        return f"{self.column}{self.operator}{self.value}"


def parse_columns(columns: str | Mapping[str, str] | None, table: Table) -> dict[str, Source]:
    """Read ``target=expression`` items.

    Raises
    ------
    RecordError
        If a target is unknown or said twice, or a column is not in the file; the message lists those that are.
    """
    sources: dict[str, Source] = {}
    for target, expression in _pairs(columns, "--columns"):
        if target not in TARGETS:
            raise RecordError(f"--columns {target}={expression}: {target!r} is none of {', '.join(TARGETS)}.")
        if target in sources:
            raise RecordError(f"--columns {target}={expression}: {target} was said before; only note may be repeated.")
        if target != "note":
            sources[target] = _source(target, expression, table)
    if {"size", "size_per_device"} <= sources.keys():
        raise RecordError("--columns: give size or size_per_device, not both.")
    return sources


def parse_notes(columns: str | Mapping[str, str] | None, table: Table) -> frozenset[str]:
    """The columns that only describe rows: ``note=machine,note=remark``.

    Raises
    ------
    RecordError
        If a column is not in the file; the message lists those that are.
    """
    said = (_source("note", name, table).columns for target, name in _pairs(columns, "--columns") if target == "note")
    return frozenset(column for names in said for column in names)


def _source(target: str, expression: str, table: Table) -> Source:
    """An existing column's name wins over arithmetic, at every step; so ``ns/op/1e9`` works when ``ns/op`` exists."""
    if target in WORDS and _column(expression, table) is None and re.fullmatch(r"[A-Za-z][\w-]*", expression):
        return Source(word=expression)
    try:
        source = _product(expression, table)
    except ZeroDivisionError:
        raise RecordError(f"--columns {target}={expression}: a factor of 0.") from None
    if source is None or (target not in NUMBERS and len(source.columns) > 1):
        name = re.sub(rf"^{_NUMBER}\s*[*/]\s*|\s*[*/]\s*{_NUMBER}$", "", expression)
        raise RecordError(
            f"{table.path}: no column {name!r} (from --columns {target}={expression}). {table.columns_in_words()}."
        )
    return source


def _product(text: str, table: Table) -> Source | None:
    """A column, a number, or several of them with ``*`` and ``/`` between; the longest name wins."""
    if (atom := _atom(text, table)) is not None:
        return atom
    for sign in re.finditer(r"[*/]", text):
        left, right = text[: sign.start()], text[sign.end() :]
        if (last := _atom(right, table)) is not None and (before := _product(left, table)) is not None:
            if last.factor == 0:
                raise ZeroDivisionError
            return before * last if sign[0] == "*" else before / last
    return None


def _atom(text: str, table: Table) -> Source | None:
    if (column := _column(text, table)) is not None:
        return Source((column,))
    return Source(factor=float(text)) if re.fullmatch(_NUMBER, text.strip()) else None


def _column(name: str, table: Table) -> str | None:
    for candidate in (name, name.strip(), name.strip().strip('"')):
        if candidate in table.index:
            return candidate
    return None


def parse_where(where: str | Mapping[str, str] | None, table: Table) -> list[Condition]:
    """Read ``column=value`` and ``column~text`` items.

    Raises
    ------
    RecordError
        If a column is not in the file; the message lists those that are.
    """
    if isinstance(where, Mapping):
        where = ",".join(f'"{column}"="{value}"' for column, value in where.items())
    conditions = []
    for item in _items(where or ""):
        match = re.fullmatch(r'\s*("[^"]*"|[^"=~]*?)\s*([=~])\s*(.*?)\s*', item, re.DOTALL)
        column = None if match is None else _column(match[1], table)
        if match is None or column is None:
            raise RecordError(
                f"{table.path}: --where {item.strip()}: no such column. Write COLUMN=VALUE or COLUMN~TEXT with one of "
                f"{', '.join(table.header)}."
            )
        conditions.append(Condition(column, match[2], match[3].strip('"')))
    return conditions


def _pairs(text: str | Mapping[str, str] | None, option: str) -> Iterator[tuple[str, str]]:
    if isinstance(text, Mapping):
        yield from text.items()
        return
    for item in _items(text or ""):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not (name and equals and value):
            raise RecordError(f"{option} {item.strip()}: write NAME=COLUMN, for example latency_s=ms/1e3.")
        yield name, value


def _items(text: str) -> list[str]:
    """Split at commas outside double quotes."""
    return [item for item in re.findall(r'(?:"[^"]*"|[^,"])+', text) if item.strip()]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
