"""What a file leaves unsaid of the work of a call: asked for where something hints at it, else said aloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .columns import Source
from .delimited import Table
from .foreign import Measurement
from .names import ELEMENTS, of_one_device, words
from .numerals import is_number
from .rates import counts_elements
from .store import RecordError

SAME_TOTAL = (
    "no column says how much work a call is: taken as the same total on every count (--scaling strong); if each device "
    "keeps its share, say --scaling weak, or name it with --columns size_per_device=NAME"
)


def take_total_for_granted(
    rows: Sequence[Measurement], table: Table, sources: Mapping[str, Source], used: set[str]
) -> tuple[str, ...]:
    """What is assumed of calls whose size nobody gave, on a path that nobody named.

    Raises
    ------
    RecordError
        If a column that nobody named looks like the share of each device, which stays.
    """
    counts = {row.cell.num_devices for row in rows if row.cell.role == "workload"}
    if len(counts) < 2 or not sources.keys().isdisjoint({"size", "size_per_device", "work", "flops"}):
        return ()
    latency = sources["latency_s"]
    if latency.reciprocal and counts_elements(latency.below[0]):
        return ()  # what rates.py says of it holds whatever stays
    for name in table.header:
        values = set(table.column(name))
        if name not in used and _is_a_share(name) and len(values) == 1 and is_number(*values):
            raise RecordError(
                f"{table.path}: column {name!r} is {values.pop()} on every count, and looks like the share of each "
                f"device. Say --columns size_per_device={name} if a call works on that much on each device, or "
                "--scaling strong if latency_s is the time for the same total on every count, as an epoch is."
            )
    return (SAME_TOTAL,)


def refuse_total_work(rows: Sequence[Measurement], table: Table, sources: Mapping[str, Source]) -> None:
    """A column ``work`` that nobody spoke of is that of one device, which falls as devices are added to a total.

    Raises
    ------
    RecordError
        If it is the same part of the global size on every count, as the work of all devices is.
    """
    rows = [row for row in rows if row.cell.role == "workload" and row.work]
    if len({row.cell.num_devices for row in rows}) < 2:
        return
    parts = [row.work / row.cell.size for row in rows if row.work]
    if max(parts) - min(parts) <= 1e-6 * max(parts):
        raise RecordError(
            f"{table.path}: column 'work' grows with the size of a call alone, as that of all devices together does, "
            f"but is read as the work of one. Say --columns work=work/{sources['devices']}, or work=work if each "
            "device does that much."
        )


def _is_a_share(name: str) -> bool:
    """Whether a name is that of a size on one device: ``imgs_per_gpu``, ``batch/device``, ``local_batch``."""
    size = ELEMENTS | {"batch", "batchsize", "bs", "size", "problem"}
    return bool(size & set(words(name))) and (of_one_device(name) or "local" in words(name))
