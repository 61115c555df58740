"""How a column writes its numbers: which mark is the decimal one, and which only parts thousands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_TELLING = {
    (".", ","): re.compile(r"[+-]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,})"),
    (",", "."): re.compile(r"[+-]?\d{1,3}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})"),
}
"""Numbers that show both of their marks: ``1,234.5`` or ``1,234,567``, and ``1.234,5`` or ``1.234.567``."""

_COMMA = re.compile(r"[+-]?\d+,\d+")
_NUMBER = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?")
"""Anything that was meant as a number, whatever its marks."""


class Marks(NamedTuple):
    """The decimal mark of a column, and the one that parts thousands (empty: none does)."""

    decimal: str = "."
    thousands: str = ""

    def plain(self, text: str) -> str:
        """A number as Python writes it; anything else as it stands."""
        if (self.decimal, self.thousands) == (".", "") or not self.reads(text):
            return text
        return text.replace(self.thousands, "").replace(self.decimal, ".")

    def reads(self, text: str) -> bool:
        """Whether a text is a number written with these marks."""
        decimal, thousands = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"(?:\d+|\d{{1,3}}(?:{thousands}\d{{3}})+)" if thousands else r"\d+"
        return re.fullmatch(rf"[+-]?(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?", text) is not None


class Ambiguous(NamedTuple):
    """Positions of two values that cannot both be read with one decimal mark."""

    first: int
    second: int


def marks(texts: Sequence[str], *, decimal_comma: bool) -> Marks | Ambiguous:
    """The marks of a column.

    Parameters
    ----------
    texts : the column's values
    decimal_comma : whether a comma is the decimal mark where nothing shows otherwise, as in files that separate values
        by semicolons
    """
    if not any("," in text or text.count(".") > 1 for text in texts):
        return Marks()
    for pair, telling in _TELLING.items():
        if (at := _first(texts, telling.fullmatch)) is not None:
            found = Marks(*pair)
            break
    else:
        at = _first(texts, _COMMA.fullmatch) if decimal_comma else None
        if at is None:
            return Marks()
        found = Marks(decimal=",")
    other = _first(texts, lambda text: _NUMBER.fullmatch(text) and not found.reads(text))
    return found if other is None else Ambiguous(at, other)


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first(texts: Sequence[str], test: Callable[[str], object]) -> int | None:
    return next((i for i, text in enumerate(texts) if test(text)), None)
