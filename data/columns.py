"""What the columns of a foreign file mean: ``devices=gpus,latency_s=ms/1e3``, and which rows to take."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .delimited import Row, Table
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
"""Targets that may be one column over another."""

LEAVE_OUT = "leave the row out (a # in front makes it a comment)"

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_LEADING = re.compile(rf"({_NUMBER})\s*([*/])\s*(.+)")
_TRAILING = re.compile(rf"(.+?)\s*([*/])\s*({_NUMBER})")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from: ``factor * column / over``, ``factor / column``, or one number or word for all rows."""

    column: str | None = None
    factor: float = 1.0
    reciprocal: bool = False
    word: str | None = None
    over: str | None = None

    def text(self, row: Row, table: Table) -> str | None:
        """The value as it stands; None where blank."""
        if self.column is None:
            return self.word or f"{self.factor:g}"
        return row.values[table.index[self.column]] or None

    def number(self, row: Row, table: Table, target: str) -> float:
        """The value after arithmetic.

        Raises
        ------
        RecordError
            If it is blank, no number, not finite, or 0 under a fraction.
        """
        if self.column is None:
            return self.factor
        value = _read(self.column, row, table, target)
        if self.over is not None:
            value = value / self._below(self.over, row, table, target)
        if self.reciprocal:
            return self.factor / self._below(self.column, row, table, target)
        return value if self.factor == 1 else value * self.factor

    def _below(self, column: str, row: Row, table: Table, target: str) -> float:
        if (value := _read(column, row, table, target)) == 0:
            raise RecordError(
                f"{table.path}, line {row.line}, column {column!r}: 0 under a fraction gives no {target}."
            )
        return value


def _read(column: str, row: Row, table: Table, target: str) -> float:
    """The number in a column, whole where it is written so: a size above 2**53 must not go through a float."""
    text = row.values[table.index[column]]
    where = f"{table.path}, line {row.line}, column {column!r}"
    if not text:
        raise RecordError(f"{where}: blank, but {target} is needed in every row; fill it, or {LEAVE_OUT}.")
    if table.decimal_comma and re.fullmatch(r"[+-]?\d+,\d+", text):
        text = text.replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        raise RecordError(
            f"{where}: {text!r} is no number. Name another column for {target} with --columns {target}=NAME"
            + (" (or size=1 when all rows have the same size)." if target == "size" else ".")
        ) from None
    if not math.isfinite(value):
        raise RecordError(f"{where}: {text!r} is no finite number; {LEAVE_OUT}.")
    return int(text) if re.fullmatch(r"\d+", text) else value


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
    found = (_source("note", name, table).column for said, name in _pairs(columns, "--columns") if said == "note")
    return frozenset(column for column in found if column is not None)


def _source(target: str, expression: str, table: Table) -> Source:
    """An existing column's name wins over arithmetic, at every step; so ``ns/op/1e9`` works when ``ns/op`` exists."""
    name, factor, reciprocal = expression, 1.0, False
    if (column := _column(name, table)) is not None:
        return Source(column)
    if re.fullmatch(_NUMBER, name):
        return Source(factor=float(name))
    if target in WORDS and re.fullmatch(r"[A-Za-z][\w-]*", name):
        return Source(word=name)
    if match := _TRAILING.fullmatch(name):
        name, operator, number = match.groups()
        factor = _factor(operator, number, target, expression)
    if (column := _column(name, table)) is None and (match := _LEADING.fullmatch(name)):
        number, operator, name = match.groups()
        reciprocal = operator == "/"
        factor *= float(number)
        column = _column(name, table)
    if column is None and target in NUMBERS and not reciprocal and (ratio := _ratio(name, table)):
        return Source(ratio[0], factor, over=ratio[1])
    if column is None:
        raise RecordError(
            f"{table.path}: no column {name!r} (from --columns {target}={expression}). "
            f"The columns are {', '.join(table.header)}."
        )
    return Source(column, factor, reciprocal)


def _factor(operator: str, number: str, target: str, expression: str) -> float:
    value = float(number)
    if value == 0:
        raise RecordError(f"--columns {target}={expression}: a factor of 0.")
    return value if operator == "*" else 1 / value


def _ratio(name: str, table: Table) -> tuple[str, str] | None:
    """Two columns with a slash between, whose own names may hold slashes (``batch/img/s``)."""
    for slash in re.finditer("/", name):
        above, below = _column(name[: slash.start()], table), _column(name[slash.end() :], table)
        if above is not None and below is not None:
            return above, below
    return None


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
