"""Foreign measurements as a record: what their file says, and nothing that it does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..model.cell import Cell
from ..model.program import Collective, ProgramFacts
from .delimited import Table
from .schema import SCHEMA_VERSION, Launch, Line, Plan, Program, Sweep, Visit
from .store import Record, RecordError

KINDS = {
    "allreduce": "all-reduce",
    "psum": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "psumscatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "ppermute": "collective-permute",
    "collectivepermute": "collective-permute",
    "sendrecv": "collective-permute",
    "reducescatterblock": "reduce-scatter",
    "broadcast": "collective-broadcast",
    "bcast": "collective-broadcast",
    "collectivebroadcast": "collective-broadcast",
}
"""Names of collectives in other tools, letters only, without the tool's own (``MPI_``, ``nccl``, ``_perf``)."""

_TOOLS = re.compile(r"^(?:mpi|osu|nccl|rccl|lax|jaxlax)|perf$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """One row, understood."""

    cell: Cell
    launch: str
    round: str | None
    replicate: str | None
    latency_ns: int
    work: float | None
    flops: float | None
    collective: str | None
    line: int


def to_record(table: Table, rows: Sequence[Measurement], path: str, assumed: tuple[str, ...] = ()) -> Record:
    """Measurements as a record of one foreign sweep on a ``strong`` or ``weak`` path."""
    return Record.from_lines(_lines(table, rows, _plan(table, rows, path), assumed), source=str(table.path))


def _plan(table: Table, rows: Sequence[Measurement], path: str) -> Plan:
    cells = [row.cell for row in rows]
    axis = {c.size // c.num_devices if path == "weak" else c.size for c in cells}
    devices = sorted({c.num_devices for c in cells})
    roles = {c.role for c in cells}
    return Plan(
        workload=_common(table, "workload") or table.path.stem,
        path=path,
        objective="throughput" if path == "weak" else "time",
        devices=tuple(devices),
        sizes=tuple(sorted(axis)),
        strategies=tuple(dict.fromkeys(c.strategy for c in cells)),
        unit=_common(table, "size_unit") or "elements",
        divides=False,
        platform="unknown",
        visible_devices=devices[-1],
        launches=len({row.launch for row in rows}),
        warmups=0,
        queued_calls=0,
        controls=bool(roles & {"local", "null"}),
        probes=bool(roles & {"chain", "replay"}),
    )


def _lines(table: Table, rows: Sequence[Measurement], plan: Plan, assumed: tuple[str, ...]) -> list[Line]:
    """The record's lines: one program a cell and launch, one visit a round (without rounds, a replicate)."""
    sweep = str(table.path)
    kind = _common(table, "device_kind")
    facts = _facts(table, rows)
    lines: list[Line] = [
        Sweep(
            schema=SCHEMA_VERSION,
            sweep=sweep,
            created="",
            version="",
            plan=plan,
            foreign=True,
            source=_common(table, "source") or str(table.path),
            assumed=assumed,
        )
    ]
    lines += [
        Launch(sweep=sweep, launch=name, started="", device_kind=kind) for name in dict.fromkeys(r.launch for r in rows)
    ]
    programs: dict[tuple[str, Cell], int] = {}
    for row in rows:
        if (row.launch, row.cell) not in programs:
            number = programs[row.launch, row.cell] = len(programs)
            lines.append(
                Program(sweep=sweep, launch=row.launch, program=number, cell=row.cell, facts=facts.get(row.cell))
            )
    for (launch, cell), visits in _visits(rows).items():
        for number, calls in enumerate(visits):
            lines.append(
                Visit(
                    sweep=sweep,
                    launch=launch,
                    program=programs[launch, cell],
                    round=number,
                    position=0,
                    time=0.0,
                    warmups=0,
                    latency_ns=tuple(calls),
                )
            )
    return lines


def _visits(rows: Sequence[Measurement]) -> dict[tuple[str, Cell], list[list[int]]]:
    """Times by (launch, cell) and visit: rows of one named round are one visit, every other row is its own."""
    grouped: dict[tuple[str, Cell], dict[object, list[int]]] = {}
    for row in rows:
        visits = grouped.setdefault((row.launch, row.cell), {})
        visits.setdefault(row.line if row.round is None else row.round, []).append(row.latency_ns)
    return {key: list(visits.values()) for key, visits in grouped.items()}


def _facts(table: Table, rows: Sequence[Measurement]) -> dict[Cell, ProgramFacts]:
    """What the file says of the programs: the collective of a chain row; of others their work and their lack of one."""
    _refuse_mixed_collectives(table, rows)
    kind = timed_kind(table, rows) if any(row.cell.role == "chain" for row in rows) else ""
    facts: dict[Cell, ProgramFacts] = {}
    for row in rows:
        cell, payload = row.cell, row.cell.payload_bytes
        known = facts.get(cell)
        for name in ("work", "flops"):
            now, before = getattr(row, name), getattr(known, name, None)
            if known is not None and now is not None and before != now:
                raise RecordError(
                    f"{table.path}, line {row.line}: {name} is {now}, but {before} on an earlier line for the same "
                    "devices and size; the work of one device must not differ between repeats."
                )
        if payload is not None:
            collective = Collective(
                kind=kind,
                count=1,
                operands=1,
                message_bytes=payload,
                operand_bytes=(payload,),
                group_size=cell.num_devices,
            )
            facts[cell] = ProgramFacts(flops=row.flops, work=row.work, collectives=(collective,))
        elif row.work is not None or row.flops is not None or _is_none(row.collective):
            # Without a column of either it is the share of a device, as for programs of which nothing is said.
            work = cell.size_per_device if row.work is None and row.flops is None else row.work
            facts[cell] = ProgramFacts(flops=row.flops, work=work, collectives_known=_is_none(row.collective))
    return facts


def _refuse_mixed_collectives(table: Table, rows: Sequence[Measurement]) -> None:
    """One device needs no collective; on more, programs with different ones are different programs."""
    alone = [row for row in rows if row.cell.role == "chain"]
    if alone and all(row.cell.num_devices == 1 for row in alone):
        raise RecordError(
            f"{table.path}: every collective was timed on 1 device, where nothing is exchanged. Processes that did not "
            "find each other (a build without MPI) look like this, each its own rank 0; a bus bandwidth of 0 is a sign."
        )
    seen: dict[str, str | None] = {}
    for row in rows:
        if row.cell.num_devices == 1 and row.cell.role != "chain":
            continue
        first = seen.setdefault(row.cell.role, row.collective)
        if first != row.collective:
            raise RecordError(
                f"{table.path}, line {row.line}: the collective is {row.collective or 'blank'}, but "
                f"{first or 'blank'} on an earlier line, and they would be mixed; take one with --where."
            )


def _is_none(collective: str | None) -> bool:
    return collective is not None and _letters(collective) == "none"


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalpha())


def timed_kind(table: Table, rows: Sequence[Measurement]) -> str:
    """Kind of the collectives that were timed, one for the whole file; all-reduce when the file does not say."""
    name = next((row.collective for row in rows if row.cell.role == "chain"), None) or "all-reduce"
    key = _TOOLS.sub("", _letters(name))
    if key not in KINDS:
        known = ", ".join(sorted(set(KINDS.values())))
        raise RecordError(
            f"{table.path}: column 'collective' holds {name!r}, which is none of {known}; leave "
            "such rows out with --where, or measure them as a workload with --columns size=NAME."
        )
    return KINDS[key]


def _common(table: Table, column: str) -> str | None:
    """The one value of a column that is the same in every row; None otherwise."""
    values = set(table.column(column)) if column in table.index else set()
    return values.pop() or None if len(values) == 1 else None
