"""Lays plain text out: aligned tables and wrapped sentences, the same on every terminal."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 100


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Sequence[int] = ()) -> str:
    """Align rows under headers; cells too long for the page are wrapped.

    Parameters
    ----------
    headers : one text a column
    rows : cells as text, one sequence a row
    numeric : columns that are aligned to the right
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    page = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), expand=False)
    for index, header in enumerate(headers):
        page.add_column(Text(header), justify="right" if index in numeric else "left", overflow="fold")
    for row in rows:
        page.add_row(*(Text(cell) for cell in row))
    console = Console(
        file=io.StringIO(), width=WIDTH - 2, color_system=None, force_terminal=False, legacy_windows=False
    )
    console.print(page)
    lines = console.file.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue]
    return "\n".join(f"  {line}".rstrip() for line in lines)


def sentence(text: str, *, indent: int = 0) -> str:
    """Wrap one sentence; the lines after the first stand two columns further in."""
    first = " " * indent
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=first + "  ", break_on_hyphens=False)


def pairs(entries: Iterable[tuple[str, str]], *, indent: int = 2) -> str:
    """``name   value`` lines with the values under each other; long values are wrapped under themselves."""
    entries = list(entries)
    width = max((len(name) for name, _ in entries), default=0) + 2
    return "\n".join(_pair(name, value, width, indent) for name, value in entries)


def page(*blocks: str | None) -> str:
    """Join the blocks that say something, with an empty line between."""
    return "\n\n".join(block for block in blocks if block)


def _pair(name: str, value: str, width: int, indent: int) -> str:
    margin = " " * (indent + width)
    head = f"{' ' * indent}{name:<{width}}"
    return textwrap.fill(value, WIDTH, initial_indent=head, subsequent_indent=margin, break_on_hyphens=False).rstrip()
