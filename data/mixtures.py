"""Refusing to pool rows that differ in something the user did not speak of."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from .delimited import Table
from .foreign import Measurement
from .names import words
from .numerals import is_number
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
        *("call", "epoch", "iter", "iteration", "job", "launch", "rank", "rep", "repeat", "repetition", "replicate"),
        *(
            "round",
            "run",
            "sample",
            "step",
            "trial",
            "attempt",
            "id",
            "idx",
            "index",
            "order",
            "position",
            "row",
            "seed",
        ),
    }
)
"""Names of numbers that count repeats of the same thing."""

LAST_WORDS = COUNTERS - {"call", "order", "position", "rank", "row", "sample"}
"""Those that also close a longer name of one: ``global_step``, ``run_id``."""

MEASURED = frozenset(
    {
        *("time", "latency", "duration", "elapsed", "wall", "ns", "us", "usec", "ms", "msec", "sec", "secs"),
        *(
            "seconds",
            "throughput",
            "rate",
            "speedup",
            "efficiency",
            "bandwidth",
            "bw",
            "algbw",
            "busbw",
            "flops",
            "tflops",
            "mfu",
        ),
        *("loss", "accuracy", "error", "err", "norm", "perplexity", "score", "lr"),
        *("mem", "memory", "util", "utilization", "usage", "used", "power", "watt", "watts", "energy", "temp"),
        *("temperature", "std", "stdev", "sd", "sem", "variance", "percent", "pct"),
    }
)
"""Words for what came out of a run, or changes in its course."""

SETTINGS = frozenset(
    {
        *("batch", "batchsize", "microbatch", "bs", "accum", "accumulation", "threads", "processes", "workers"),
        *("nodes", "nnodes", "hosts", "ppn", "rails", "nics", "channels", "streams", "tp", "pp", "dp"),
        *("seqlen", "seq_len", "seq_length", "sequence_length", "context_length"),
        *("layers", "hidden", "heads", "dim", "resolution", "mhz", "ghz"),
    }
)
"""Words, and names, for whole numbers that were set before a run, however seldom they recur."""


def refuse_mixed_text(table: Table, used: set[str]) -> None:
    """Text that differs between rows names different things, unless the user said what it is."""
    mixed = [
        name
        for name in table.header
        if name not in used and name.lower() not in NOTES and _is_text(table.plain(name)) and _differs(table, name)
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
    """Numbers that differ within one cell are a setting nobody mentioned, unless they count repeats or were measured.

    A name tells which; where it does not, values that each recur at several counts are set, and so are powers of two
    that do not just count 1, 2.

    Parameters
    ----------
    devices, cells : of each row
    """
    for name in table.header:
        said = words(name)
        if name in used or name.lower() in NOTES or _counts_repeats(said) or _was_measured(said):
            continue
        values = table.plain(name)
        if not all(map(is_number, values)):
            continue
        within: dict[Hashable, set[str]] = defaultdict(set)
        for value, cell in zip(values, cells, strict=True):
            within[cell].add(value)
        if max(map(len, within.values())) < 2:
            continue
        if _was_set(said, values) or _recur(values, devices) or _are_powers_of_two(values):
            raise RecordError(
                f"{table.path}: rows with the same devices and size differ in {name} "
                f"({values_in_words(table, name)}) and would be mixed. Say what it is: --columns size={name} (or "
                f"message_bytes, size_per_device) if it is the size, --columns strategy={name} to compare them, "
                f"--columns replicate={name} if it counts repeats, --columns note={name} if it changes nothing, or "
                f"take one with --where {name}={table.column(name)[0]}."
            )


def _counts_repeats(name: tuple[str, ...]) -> bool:
    return "_".join(name) in COUNTERS or (len(name) > 1 and name[-1] in LAST_WORDS and "per" not in name)


def _was_measured(name: tuple[str, ...]) -> bool:
    return not MEASURED.isdisjoint(name) and {"limit", "cap"}.isdisjoint(name)


def _was_set(name: tuple[str, ...], values: Sequence[str]) -> bool:
    joined = "_".join(name)
    named = not SETTINGS.isdisjoint({*name, joined}) or re.search(r"per_(?:node|host)", joined)
    return bool(named) and all(map(_is_whole, values))


def _recur(values: Sequence[str], devices: Sequence[int]) -> bool:
    """Whether every value stands in several rows, and at several counts where there are any."""
    several = min(2, len(set(devices)))
    at: dict[str, set[int]] = defaultdict(set)
    for value, n in zip(values, devices, strict=True):
        at[value].add(n)
    occurs = Counter(values)
    # One count is the log of one run, where what is read off may stand still for a while; settings are whole there.
    return all(len(where) >= several and occurs[value] > 1 for value, where in at.items()) and (
        several > 1 or all(map(_is_whole, values))
    )


def _are_powers_of_two(values: Sequence[str]) -> bool:
    """Whether all are whole powers of two, and not just the 1 and 2 that a counter of repeats starts with."""
    numbers = {int(value) for value in values if _is_whole(value)}
    return all(map(_is_whole, values)) and max(numbers) > 2 and all(n > 0 and n & (n - 1) == 0 for n in numbers)


def refuse_repeats(rows: Sequence[Measurement], table: Table, used: set[str]) -> None:
    """Rows of one cell that bear the same replicate are two things: some column that was not named differs."""
    seen: dict[tuple[object, ...], Measurement] = {}
    for row in rows:
        if row.replicate is None:
            return
        first = seen.setdefault((row.cell, row.launch, row.round, row.replicate), row)
        if first is not row:
            a, b = (next(r for r in table.rows if r.line == line) for line in (first.line, row.line))
            differ = [
                column
                for column, x, y in zip(table.header, a.values, b.values, strict=True)
                if x != y and column not in used
            ]
            if not differ:
                continue
            raise RecordError(
                f"{table.path}: lines {first.line} and {row.line} have the same devices, size and replicate "
                f"({row.replicate}); they differ in {', '.join(differ)}. Take some rows with "
                "--where, or name the column that tells repeats apart with --columns replicate=NAME (or round=NAME)."
            )


def values_in_words(table: Table, name: str, shown: int = 4) -> str:
    """What a column holds: ``jit (8 rows), pmap (8 rows)``."""
    counts = Counter(table.column(name))
    words = [
        f"{value[:40] or '(blank)'} ({count} row{'s' * (count > 1)})" for value, count in counts.most_common(shown)
    ]
    return ", ".join(words) + (f" and {len(counts) - shown} more" if len(counts) > shown else "")


def _differs(table: Table, name: str) -> bool:
    return len(set(table.column(name))) > 1


def _is_text(values: Sequence[str]) -> bool:
    return any(value and not is_number(value) for value in values)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _quoted(value: str) -> str:
    return f'"{value}"' if {",", " "} & set(value) else value
