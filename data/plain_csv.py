"""Reading any CSV file with one row a measurement (or one row a mean) into a record.

What the file does not say is left out: no launch column, no launches. Which column means what is said by ``columns``,
which rows to take by ``where``, and whether the total or the share of a device stays fixed by ``scaling``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from pathlib import Path

from ..model.cell import AS_WRITTEN, ROLES, Cell
from .assumed import refuse_total_work, take_total_for_granted
from .bandwidths import check_bandwidths
from .columns import LEAVE_OUT, TARGETS, Source, parse_columns, parse_notes, parse_where
from .delimited import Row, Table, read_table
from .foreign import Measurement, to_record
from .mixtures import refuse_mixed_settings, refuse_mixed_text, refuse_repeats, values_in_words
from .rates import check_rates
from .schema import MAX_DEVICES, MAX_SIZE
from .store import Record, RecordError

SHORTEST_S = 100e-9
"""The record holds whole nanoseconds: below this, rounding would cost more than half a percent."""

LONGEST_S = 1e9

SIZES = frozenset({"size", "size_per_device"})


def read_csv(
    path: str | os.PathLike[str],
    *,
    columns: str | Mapping[str, str] | None = None,
    scaling: str | None = None,
    where: str | Mapping[str, str] | None = None,
) -> Record:
    """Read a CSV file as a record of foreign measurements.

    Parameters
    ----------
    path : of a file with a header, its values separated by commas (or as ``layout.lay_out`` finds)
    columns : str or mapping, optional
        What each column means: ``devices=gpus,latency_s=ms/1e3,size=batch``. Left: one of ``TARGETS``. Right: columns
        and numbers with ``*`` and ``/`` between: ``1/column`` for rates of calls, ``size/column`` for rates of elements
        (``latency_s=batch_per_gpu*gpus/images_per_s``), or one number for all rows.
        Columns that already bear a target's name need no mention.
    scaling : ``strong`` or ``weak``, optional
        Whether a series keeps the global size or the size per device. Needed unless the sizes leave no choice.
    where : str or mapping, optional
        Rows to take: ``workload=gmean,variant=strong``; ``variant~mean`` takes rows whose text contains it.

    Raises
    ------
    RecordError
        Naming file, line and column, when the file cannot be read as one set of series.
    """
    table = read_table(Path(path))
    sources, notes = parse_columns(columns, table), parse_notes(columns, table)
    table = _choose(table, where)
    said = sources.keys()
    sources = _with_defaults(sources, table, notes)
    unasked = sources.keys() - said
    _need(("devices", "latency_s"), sources, table)
    used = {name for target, source in sources.items() for name in _spoken_for(target, source)} | notes
    refuse_mixed_text(table, used)
    told = _told(table, scaling)
    path_kind = told or _path(table, sources)
    rows = [_measurement(row, table, sources, path_kind) for row in table.rows]
    refuse_mixed_settings(table, used, [row.cell.num_devices for row in rows], [row.cell for row in rows])
    refuse_repeats(rows, table, used)
    check_bandwidths(rows, table, notes)
    if "work" in unasked:
        refuse_total_work(rows, table, sources)
    assumed = check_rates(rows, table, sources, path_kind, told=told is not None)
    if told is None:
        assumed += take_total_for_granted(rows, table, sources, used)
    return to_record(table, rows, path_kind, assumed)


def _spoken_for(target: str, source: Source) -> tuple[str, ...]:
    """The columns that a target accounts for. What a time was computed from besides itself may still be a setting."""
    return source.below or source.above if target == "latency_s" else source.columns


def _need(targets: tuple[str, ...], sources: Mapping[str, Source], table: Table) -> None:
    for target in targets:
        if target not in sources:
            blank = target in table.index
            also = {
                "devices": " or devices=8 where all rows have 8",
                "latency_s": " or latency_s=1/throughput, where that counts elements latency_s=size/throughput",
            }
            raise RecordError(
                f"{table.path}: column {target!r} is {'blank in every row' if blank else 'missing'}. "
                f"{table.columns_in_words()}; say which one holds it, for example "
                f"--columns {target}=NAME{also[target]}."
            )


def _choose(table: Table, where: str | Mapping[str, str] | None) -> Table:
    for condition in parse_where(where, table):
        rows = tuple(row for row in table.rows if condition.holds(row.values[table.index[condition.column]]))
        if not rows:
            raise RecordError(
                f"{table.path}: no row is left with {condition}; "
                f"{condition.column} holds {values_in_words(table, condition.column)}."
            )
        table = replace(table, rows=rows)
    return table


def _with_defaults(sources: Mapping[str, Source], table: Table, notes: frozenset[str]) -> dict[str, Source]:
    """Add the columns that bear a target's name, hold something, and were not given another meaning."""
    found = dict(sources)
    used = {source.column for source in sources.values()} | notes
    for target, names in TARGETS.items():
        if target in found or (target in SIZES and SIZES & sources.keys()):
            continue
        for name in names:
            if name in table.index and name not in used and any(table.column(name)):
                found[target] = Source((name,))
                break
    if sources.keys().isdisjoint(SIZES) and found.keys() >= SIZES:
        raise RecordError(f"{table.path}: has size and size_per_device; say which to use, --columns size=size.")
    return found


def _told(table: Table, scaling: str | None) -> str | None:
    """The sweep's path as the user or the file's own ``scaling`` column says it."""
    if scaling is None and "scaling" in table.index:
        said = set(table.column("scaling"))
        scaling = said.pop() if len(said) == 1 else None
    if scaling not in ("strong", "weak", None):
        raise RecordError(f"{table.path}: scaling must be 'strong' or 'weak', got {scaling!r}.")
    return scaling


def _path(table: Table, sources: Mapping[str, Source]) -> str:
    """The sweep's path where the sizes leave no choice."""
    if "message_bytes" in sources or sources.keys().isdisjoint(SIZES):
        return "strong"
    if len({sources["devices"].number(row, table, "devices") for row in table.rows}) == 1:
        return "strong"
    strong, weak = (_series(table, sources, axis) for axis in ("size", "size_per_device"))
    # Sizes that meet by chance (64 on one device, 16 on each of four) are no series beside a full grid of the other.
    for told in (_Series.SOME, _Series.ALL):
        if (strong >= told) != (weak >= told):
            return "strong" if strong >= told else "weak"
    if strong and _one_value(table, sources):
        return "weak" if "size_per_device" in sources else "strong"
    raise RecordError(
        f"{table.path}: holds several sizes, and the answer depends on which of them form a series. "
        "Say --scaling strong (the global size stays, each device's share shrinks) or --scaling weak (the size per "
        "device stays, the total grows)."
    )


class _Series(IntEnum):
    """Whether sizes were measured on several counts: none, some of them, each on all counts."""

    NONE = 0
    SOME = 1
    ALL = 2


def _series(table: Table, sources: Mapping[str, Source], axis: str) -> _Series:
    """How far each ``size`` (or ``size_per_device``) was measured along the counts."""
    given = next(iter(SIZES & sources.keys()))
    counts: dict[float, set[float]] = {}
    for row in table.rows:
        devices = sources["devices"].number(row, table, "devices")
        value = sources[given].number(row, table, given)
        if given != axis:
            value = value * devices if axis == "size" else value / devices if devices else value
        # Rounded: a size may have been scaled from a fraction.
        counts.setdefault(float(f"{value:.9g}"), set()).add(devices)
    if not any(len(found) > 1 for found in counts.values()):
        return _Series.NONE
    return _Series.ALL if len(set(map(frozenset, counts.values()))) == 1 else _Series.SOME


def _one_value(table: Table, sources: Mapping[str, Source]) -> bool:
    """Whether the size that the file gives is the same in every row."""
    given = next(iter(SIZES & sources.keys()))
    return len({sources[given].number(row, table, given) for row in table.rows}) == 1


def _measurement(row: Row, table: Table, sources: Mapping[str, Source], path: str) -> Measurement:
    """Understand one row; every error names file, line and column."""

    def text(target: str) -> str | None:
        return sources[target].text(row, table) if target in sources else None

    devices = _whole(sources["devices"].number(row, table, "devices"), "devices", row, table, least=1)
    latency_s = sources["latency_s"].number(row, table, "latency_s")
    if latency_s <= 0:
        signal_below_noise = (
            " A difference of two timings below 0 is smaller than their noise, and its mean would be biased without "
            "the rows below 0: measure longer, or give both times (--columns role=NAME: workload, local, null)."
        )
        raise RecordError(
            f"{_at(row, table)}: latency_s is {latency_s:g}; a time must be above 0. Where a run failed, or took less "
            f"than its clock shows, {LEAVE_OUT}.{signal_below_noise if latency_s < 0 else ''}"
        )
    if latency_s > LONGEST_S:
        raise RecordError(
            f"{_at(row, table)}: latency_s is {latency_s:g} s, which is {LONGEST_S:g} or more. Is the unit right?"
        )
    if latency_s < SHORTEST_S:
        raise RecordError(
            f"{_at(row, table)}: latency_s is {latency_s:g} s; the record holds whole nanoseconds and takes no time "
            "below 100 ns. Is the unit right? --columns latency_s=NAME/1e3 reads milliseconds."
        )
    message = text("message_bytes")
    role = text("role") or ("chain" if message else "workload")
    if role not in ROLES:
        raise RecordError(f"{_at(row, table)}: role is {role!r}; it must be one of {', '.join(ROLES)}.")
    if role == "chain" and not message:
        raise RecordError(f"{_at(row, table)}: a chain row needs message_bytes.")
    payload = None
    if role == "chain":
        payload = _whole(
            sources["message_bytes"].number(row, table, "message_bytes"), "message_bytes", row, table, least=0
        )
    cell = Cell(
        role=role,
        strategy=text("strategy") or AS_WRITTEN,
        num_devices=devices,
        size=_size(row, table, sources, path, devices),
        k=1 if role == "chain" else None,
        payload_bytes=payload,
    )
    return Measurement(
        cell=cell,
        launch=text("launch") or "1",
        round=text("round"),
        replicate=text("replicate"),
        latency_ns=round(latency_s * 1e9),
        work=sources["work"].number(row, table, "work") if "work" in sources else None,
        flops=sources["flops"].number(row, table, "flops") if "flops" in sources else None,
        collective=text("collective"),
        line=row.line,
    )


def _size(row: Row, table: Table, sources: Mapping[str, Source], path: str, devices: int) -> int:
    """The global size S of a row; without one, 1 on the strong path and 1 a device on the weak."""
    if "size_per_device" in sources:
        share = sources["size_per_device"].number(row, table, "size_per_device")
        if path == "weak":
            return devices * _whole(share, "size_per_device", row, table, least=1)
        return _whole(share * devices, "size_per_device times devices", row, table, least=1)
    if "size" not in sources:
        return devices if path == "weak" else 1
    size = _whole(sources["size"].number(row, table, "size"), "size", row, table, least=1)
    if path == "weak" and size % devices:
        raise RecordError(
            f"{_at(row, table)}: size {size} is no multiple of {devices} devices; with --scaling weak the size must be "
            "the global one. If it is the size per device, say --columns size_per_device="
            f"{sources['size'].column}."
        )
    return size


def _whole(value: float, target: str, row: Row, table: Table, *, least: int) -> int:
    # Counts are exact up to a float's rounding; a size may have been scaled from a fraction.
    tolerance = 1e-9 if target == "devices" else 1e-6
    whole = round(value)
    if abs(value - whole) > tolerance * abs(value):
        raise RecordError(
            f"{_at(row, table)}: {target} is {value:g}, which is not a whole number."
            + ("" if target == "devices" else f" Choose a smaller unit, for example --columns {target}=NAME*1e6.")
        )
    largest = MAX_DEVICES if target == "devices" else MAX_SIZE
    if not least <= whole <= largest:
        raise RecordError(f"{_at(row, table)}: {target} is {value:g}; it must lie between {least} and {largest}.")
    return whole


def _at(row: Row, table: Table) -> str:
    return f"{table.path}, line {row.line}"
