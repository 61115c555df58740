"""Refusing to pool rows that differ in something the user did not speak of."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence

from .delimited import Table
from .store import RecordError

NOTES = frozenset(
    {
        *("comment", "comments", "note", "notes"),
        *("created", "date", "time", "timestamp"),
        *("file", "filename", "source", "url", "licence", "license"),
    }
)
"""Columns that describe a row: rows that differ in them are still one series."""

COUNTERS = frozenset(
    {
        *(
            "call",
            "iter",
            "iteration",
            "job",
            "launch",
            "rank",
            "rep",
            "repeat",
            "repetition",
            "replicate",
            "round",
            "run",
            "sample",
            "step",
            "trial",
        ),
        *("id", "index", "order", "position", "row", "seed"),
    }
)
"""Numeric columns that count repeats of the same thing."""

SETTINGS = frozenset(
    {
        *("batch", "batch_size", "batchsize", "global_batch", "threads", "num_threads", "processes"),
        *("nodes", "num_nodes", "nnodes", "hosts", "num_hosts"),
        *("ppn", "gpus_per_node", "devices_per_node", "ranks_per_node", "tasks_per_node", "processes_per_node"),
    }
)
"""Numeric columns that set what is measured, however seldom their values recur."""


def refuse_mixed_text(table: Table, used: set[str]) -> None:
    """Text that differs between rows names different things, unless the user said what it is."""
    mixed = [
        name
        for name in table.header
        if name not in used and name.lower() not in NOTES and _is_text(table.column(name)) and _differs(table, name)
    ]
    if mixed:
        first = mixed[0]
        raise RecordError(
            f"{table.path}: rows that differ in {', '.join(mixed)} would be mixed "
            f"({'; '.join(f'{name}: {values_in_words(table, name)}' for name in mixed)}). "
            f"Take one with --where {first}={_quoted(table.column(first)[0])} (or {first}~PART OF THE TEXT), or say "
            f"what it is: --columns strategy={first} to compare them, --columns replicate={first} for repeats of the "
            f"same thing, --columns note={first} where it only describes the rows."
        )


def refuse_mixed_settings(table: Table, used: set[str], devices: Sequence[int], cells: Sequence[Hashable]) -> None:
    """Whole numbers that recur at several counts and differ within one cell are a setting nobody mentioned.

    Parameters
    ----------
    devices, cells : of each row
    """
    counts = min(2, len(set(devices)))
    for name in table.header:
        if name in used or name.lower() in NOTES | COUNTERS or not _all(table.column(name), _is_whole):
            continue
        at: dict[str, set[int]] = defaultdict(set)
        within: dict[Hashable, set[str]] = defaultdict(set)
        for value, n, cell in zip(table.column(name), devices, cells, strict=True):
            at[value].add(n)
            within[cell].add(value)
        occurs = Counter(table.column(name))
        recur = all(len(where) >= counts and occurs[value] > 1 for value, where in at.items())
        if (recur or _words(name) in SETTINGS) and max(map(len, within.values())) > 1:
            raise RecordError(
                f"{table.path}: rows with the same devices and size differ in {name} "
                f"({values_in_words(table, name)}) and would be mixed. Say what it is: --columns size={name} (or "
                f"message_bytes, size_per_device) if it is the size, --columns strategy={name} to compare them, "
                f"--columns replicate={name} if it counts repeats, or take one with --where "
                f"{name}={table.column(name)[0]}."
            )


def values_in_words(table: Table, name: str, shown: int = 4) -> str:
    """What a column holds: ``jit (8 rows), pmap (8 rows)``."""
    counts = Counter(table.column(name))
    words = [
        f"{value[:40] or '(blank)'} ({count} row{'s' * (count > 1)})" for value, count in counts.most_common(shown)
    ]
    return ", ".join(words) + (f" and {len(counts) - shown} more" if len(counts) > shown else "")


def _words(name: str) -> str:
    """A column's name as ``SETTINGS`` spells it: ``GPUs per node`` is ``gpus_per_node``."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _differs(table: Table, name: str) -> bool:
    return len(set(table.column(name))) > 1


def _is_text(values: Sequence[str]) -> bool:
    return any(value and not _is_number(value) for value in values)


def _all(values: Sequence[str], test: Callable[[str], bool]) -> bool:
    return all(test(value) for value in values)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _quoted(value: str) -> str:
    return f'"{value}"' if {",", " "} & set(value) else value
