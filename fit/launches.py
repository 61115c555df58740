"""What the fits read: one time per (cell, launch), with the facts of the programs beside it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import NamedTuple

import numpy as np

from ..data.machines import described, devices_differ
from ..data.rounds import TimedVisit, barred, select_sweeps, timed_visits
from ..data.same_programs import Unlike, mixed, programs_of
from ..data.schema import Closing, Failure, Launch, Plan, Trace
from ..data.store import Record, RecordError
from ..model.cell import Cell
from ..model.law import ONE_PROCESS, Spread
from ..model.program import ProgramFacts
from .impossible import leave_out_impossible
from .intervals import MIN_LAUNCHES
from .repeats import FarOff, leave_out_first, odd_repeats


@dataclass(frozen=True, kw_only=True)
class LaunchTable:
    """Times of C cells in G launches.

    Every complete round holds every cell, so the difference of two rows is the mean of the differences paired by
    launch and round.

    Attributes
    ----------
    plan : what was asked for
    cells : C cells, in printing order
    latency_s : ndarray, shape (C, G), seconds
        Mean over complete rounds of the visit medians. Where ``replicated`` is False: shape (C, 1), the mean over
        the replicates of a cell.
    replicated : whether the columns are launches (the unit of replication); False for foreign data without launches
    facts : of a cell's program, where known
    controls : where a control came from (``hand-written``, ``user``, ``automatic``)
    rounds_s : per launch, shape (C, rounds): the visit medians behind ``latency_s``
    queued_s : shape (C, G), seconds per call when calls are queued; NaN where not measured
    visible_devices, cores : of the processes that measured, cores of one node; None where not said
    refused : reason why there is no local control, or None
    failures, traces : lines of the record
    excluded_launches : launches without one complete round
    launches, closings : the record's lines of the G launches, and of those among them that said how they ended
    sentinel_s : per launch: when the sentinel was visited and its time, seconds, shape (2, rounds); empty where the
        plan has none. It is no cell: it answers how steady the machine was, not what the workload costs.
    impossible : what was left out because no device computes so fast, in words, one a cell
    first_left_out : that the first repeats of data from elsewhere were left out, in words; None where they were not
    odd_repeats : repeats of data from elsewhere that lie far off and are in the times, by the cell they shift
    changed_program : a cell of which the launches measured different programs; None where nothing says that they did
    partial_launches : why launches that are named give no intervals, in words; None where they do, or none is named
    moved_bytes : that each call of a cell moves to the devices first
    pieces : that a cell's function starts when it is called as it is, where it was compiled as one program
    assumed : what the reader of foreign data took for granted, a sentence each
    """

    plan: Plan
    cells: tuple[Cell, ...]
    latency_s: np.ndarray
    replicated: bool = True
    facts: Mapping[Cell, ProgramFacts | None] = field(default_factory=dict)
    controls: Mapping[Cell, str] = field(default_factory=dict)
    rounds_s: tuple[np.ndarray, ...] = ()
    queued_s: np.ndarray | None = None
    visible_devices: int | None = None
    cores: int | None = None
    platform: str | None = None
    refused: str | None = None
    failures: tuple[Failure, ...] = ()
    traces: tuple[Trace, ...] = ()
    excluded_launches: int = 0
    launches: tuple[Launch, ...] = ()
    closings: tuple[Closing, ...] = ()
    sentinel_s: tuple[np.ndarray, ...] = ()
    impossible: tuple[str, ...] = ()
    first_left_out: str | None = None
    odd_repeats: Mapping[Cell, FarOff] = field(default_factory=dict)
    partial_launches: str | None = None
    changed_program: Unlike | None = None
    moved_bytes: Mapping[Cell, int] = field(default_factory=dict)
    pieces: Mapping[Cell, int] = field(default_factory=dict)
    synthetic: bool = False
    foreign: bool = False
    assumed: tuple[str, ...] = ()
    source: str = "<memory>"

    @property
    def num_launches(self) -> int:
        """G; 1 where nothing was replicated."""
        return self.latency_s.shape[1]

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies of the workload, in the plan's order."""
        present = {cell.strategy for cell in self.cells if cell.role == "workload"}
        return tuple(s for s in self.plan.strategies if s in present) or tuple(sorted(present))

    @property
    def spread(self) -> Spread:
        """Devices that one process feeds, and that share one host."""
        if self.visible_devices is None or self.plan.processes == 1:
            return ONE_PROCESS
        nodes = max((launch.nodes for launch in self.launches), default=1)
        return Spread(per_process=self.visible_devices // self.plan.processes, per_node=self.visible_devices // nodes)

    @property
    def sentinel_log_s(self) -> np.ndarray | None:
        """Mean log time of the sentinel, shape (G,): how fast the machine was; None where a launch never visited it."""
        if not self.sentinel_s or not all(one.shape[1] for one in self.sentinel_s):
            return None
        return np.array([np.log(one[1]).mean() for one in self.sentinel_s])

    def row(self, cell: Cell) -> np.ndarray | None:
        """Times of one cell, shape (G,), seconds; None where it was not measured."""
        index = self._index.get(cell)
        return None if index is None else self.latency_s[index]

    def find(self, role: str, strategy: str, num_devices: int, size: int) -> Cell | None:
        """The cell of a workload, local, null or replay at global size S; None where it was not measured."""
        cell = Cell(role=role, strategy=strategy, num_devices=num_devices, size=size)
        return cell if cell in self._index else None

    def queued(self, cell: Cell) -> np.ndarray | None:
        """Times per queued call of one cell, shape (G,), seconds; None where not every launch has one."""
        index = self._index.get(cell)
        if index is None or self.queued_s is None or np.isnan(self.queued_s[index]).any():
            return None
        return self.queued_s[index]

    def time(self, role: str, strategy: str, num_devices: int, size: int) -> np.ndarray | None:
        """Times of a workload, local, null or replay cell at global size S, shape (G,); None where not measured."""
        return self.row(Cell(role=role, strategy=strategy, num_devices=num_devices, size=size))

    def devices(self, role: str = "workload", strategy: str | None = None) -> tuple[int, ...]:
        """Measured counts of a role (all strategies unless one is named), ascending."""
        return tuple(sorted({c.num_devices for c in self.select(role, strategy)}))

    def sizes(self, role: str = "workload", strategy: str | None = None) -> tuple[int, ...]:
        """Measured entries of the plan's size axis, ascending: global on the strong path, per device on the weak."""
        return tuple(sorted({self.axis_size(c) for c in self.select(role, strategy)}))

    def axis_size(self, cell: Cell) -> int:
        """The cell's place on the plan's size axis: S on the strong path, S / n on the weak one."""
        return cell.size // cell.num_devices if self.plan.path == "weak" else cell.size

    def select(self, role: str, strategy: str | None = None) -> tuple[Cell, ...]:
        """Cells of a role (and strategy), in printing order."""
        return tuple(c for c in self.cells if c.role == role and strategy in (None, c.strategy))

    def take(self, launches: np.ndarray) -> LaunchTable:
        """The same table with only the launches at these indices."""
        return replace(
            self,
            latency_s=self.latency_s[:, launches],
            rounds_s=tuple(self.rounds_s[i] for i in launches) if self.rounds_s else (),
            queued_s=None if self.queued_s is None else self.queued_s[:, launches],
            launches=tuple(self.launches[i] for i in launches) if self.launches else (),
            closings=_of(self.closings, [self.launches[i] for i in launches] if self.launches else ()),
            sentinel_s=tuple(self.sentinel_s[i] for i in launches) if self.sentinel_s else (),
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {cell: i for i, cell in enumerate(self.cells)})

    _index: dict[Cell, int] = field(init=False, repr=False, compare=False, default_factory=dict)


def from_record(record: Record, *, links: bool = False) -> LaunchTable:
    """Summarise a record.

    Parameters
    ----------
    record : Record
    links : whether it is to hold links between devices, and no workload

    Raises
    ------
    RecordError
        If sweeps that differ or launches on different kinds of device are in one file, if it is of the other kind, if
        nothing was measured, if a time is not positive, or if every time of a cell implies more than its device can do.
    """
    sweep = select_sweeps(record)
    if links != (sweep.plan.leading_role != "workload"):
        raise RecordError(f"{record.source}: {_NO_LINKS if links else _ONLY_LINKS.format(record.source)}")
    visits = timed_visits(record)
    # One impossible call is enough: the clock went wrong, and a median would hide it.
    bad = [v for v in visits if not min(v.visit.latency_ns[v.visit.warmups :]) > 0]
    if bad:
        raise RecordError(
            f"{record.source}: {len(bad)} of {len(visits)} visits hold times that are zero or negative (first: "
            f"{bad[0].cell}); a latency must be positive."
        )
    visits, impossible = leave_out_impossible(record, visits)
    complete = [v for v in visits if v.complete and v.cell.role != "sentinel"]
    if not complete:
        raise RecordError(f"{record.source}: {impossible[0] if impossible else _why_nothing(record)}.")
    first_left_out = None
    if sweep.foreign:
        complete, first_left_out = leave_out_first(complete)
    cells = tuple(sorted({v.cell for v in complete}, key=lambda cell: cell.sort_key))
    whole = _whole_launches(complete, len(cells)) if sweep.foreign else set()
    named = len({v.visit.launch for v in complete})
    replicated = not sweep.foreign or len(whole) >= min(named, MIN_LAUNCHES) > 1
    if sweep.foreign and replicated:
        complete = [v for v in complete if v.visit.launch in whole]
    blocks = _blocks(complete, cells, replicated)
    launches = _lines(record, complete) if replicated else ()
    _check_one_kind(launches, record.source)
    queued = np.column_stack([_mean(block.queued_s) for block in blocks])
    first_launch = record.launches[0] if record.launches else None
    return LaunchTable(
        plan=sweep.plan,
        cells=cells,
        latency_s=np.column_stack([_mean(block.latency_s) for block in blocks]),
        replicated=replicated,
        facts={p.cell: p.facts for p in record.programs},
        controls={p.cell: p.control for p in record.programs if p.control},
        rounds_s=tuple(block.latency_s for block in blocks) if replicated else (),
        queued_s=None if np.isnan(queued).all() else queued,
        visible_devices=first_launch.visible_devices if first_launch else None,
        cores=min((x.cores for x in record.launches if x.cores is not None), default=None),
        platform=first_launch.platform if first_launch else None,
        refused=next((f.message for f in record.failures if f.stage == "control"), None),
        failures=record.failures,
        traces=record.traces,
        excluded_launches=(named if sweep.foreign else len(record.launches)) - len(blocks) if replicated else 0,
        launches=launches,
        closings=_of(record.closings, launches),
        sentinel_s=_sentinel(visits, launches),
        impossible=impossible,
        first_left_out=first_left_out,
        odd_repeats=odd_repeats(complete, by_launch=replicated) if sweep.foreign else {},
        partial_launches=_partial(complete, cells) if named > 1 and not replicated else None,
        moved_bytes={p.cell: p.moved_bytes for p in record.programs if p.moved_bytes},
        pieces={p.cell: p.pieces for p in record.programs if p.pieces},
        changed_program=mixed(programs_of(launches, record.programs)),
        synthetic=any(s.synthetic for s in record.sweeps),
        foreign=sweep.foreign,
        assumed=sweep.assumed,
        source=record.source,
    )


def _lines(record: Record, complete: Sequence[TimedVisit]) -> tuple[Launch, ...]:
    """Launches that count, in the order of their blocks."""
    lines = {(line.sweep, line.launch): line for line in record.launches}
    return tuple(lines[key] for key in dict.fromkeys((v.visit.sweep, v.visit.launch) for v in complete))


def _of(closings: Sequence[Closing], launches: Sequence[Launch]) -> tuple[Closing, ...]:
    """Those of these launches, in their order."""
    known = {(line.sweep, line.launch): line for line in closings}
    return tuple(known[key] for line in launches if (key := (line.sweep, line.launch)) in known)


def _sentinel(visits: Sequence[TimedVisit], launches: Sequence[Launch]) -> tuple[np.ndarray, ...]:
    """When the sentinel was visited and its time, launch by launch, shape (2, rounds); nothing without a sentinel."""
    watched = [v for v in visits if v.complete and v.cell.role == "sentinel"]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {(line.sweep, line.launch): [] for line in launches}
    for v in watched:
        found[v.visit.sweep, v.visit.launch].append((v.visit.time, v.latency_s))
    return tuple(np.array(one).reshape(-1, 2).T for one in found.values()) if watched else ()


def _check_one_kind(launches: Sequence[Launch], source: str) -> None:
    """Raise RecordError where launches ran on different kinds of device: a mean of their times is nobody's time."""
    others = [(line, found) for line in launches if (found := devices_differ(launches[0], line))]
    if others:
        left_out = " ".join("-e " + quote(f'"launch":"{line.launch[:8]}') for line, _ in others)
        raise RecordError(
            f"{source}: {len(others)} of {len(launches)} launches ran on another kind of device than the first: "
            f"{described(others[0][1])}. They are never pooled; take them out with: "
            f"grep -v {left_out} {quote(source)} > one-kind.jsonl"
        )


_ONLY_LINKS = "a record of links between devices, without a workload; use: breakeven probe {}"
_NO_LINKS = "holds no links between devices; measure them with: breakeven probe --pairs -o links.jsonl"


def _why_nothing(record: Record) -> str:
    """Why no round counts: every cell failed, or none was long enough."""
    failed = [f for f in record.failures if f.cell is not None and f.stage in ("visit", "compile", "build")]
    if failed and {program.cell for program in record.programs} <= barred(record):
        first = failed[0]
        return f"every cell failed, and nothing was measured (first: {first.cell}: {first.error}: {first.message})"
    if found := mixed(programs_of(record.launches, record.programs)):
        words = found.told("some have", "others")
        return f"launches measured different programs, {words}, and none holds the cells of all; measure anew with -o"
    return "no launch has a complete round over all cells; measure again with a larger --budget"


class _Block(NamedTuple):
    """Visits of one launch, each array of shape (C, rounds); NaN where a cell was not visited."""

    latency_s: np.ndarray
    queued_s: np.ndarray


def _blocks(visits: Sequence[TimedVisit], cells: Sequence[Cell], replicated: bool) -> list[_Block]:
    """One block a launch, in file order; all visits in one where there are no launches, each a round of its own."""
    row = {cell: i for i, cell in enumerate(cells)}
    groups: dict[tuple[str, str] | None, list[TimedVisit]] = defaultdict(list)
    for v in visits:
        groups[(v.visit.sweep, v.visit.launch) if replicated else None].append(v)
    blocks = []
    for group in groups.values():
        columns: dict[tuple[Cell, int], list[TimedVisit]] = defaultdict(list)
        if replicated:
            number = {r: i for i, r in enumerate(dict.fromkeys(v.visit.round for v in group))}
            for v in group:
                columns[v.cell, number[v.visit.round]].append(v)
        else:
            times = Counter[Cell]()
            for v in group:
                columns[v.cell, times[v.cell]].append(v)
                times[v.cell] += 1
        shape = len(cells), 1 + max(column for _, column in columns)
        block = _Block(np.full(shape, np.nan), np.full(shape, np.nan))
        for (cell, column), found in columns.items():
            block.latency_s[row[cell], column] = sum(v.latency_s for v in found) / len(found)
            block.queued_s[row[cell], column] = sum(v.queued_s for v in found) / len(found)
        blocks.append(block)
    return blocks


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean over rounds, shape (C,), of those that are there; NaN where there is none."""
    there = ~np.isnan(values)
    count = there.sum(axis=1)
    return np.where(count > 0, np.where(there, values, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _whole_launches(visits: Sequence[TimedVisit], num_cells: int) -> set[str]:
    """Launches that foreign data name and that measured every cell."""
    seen: dict[str, set[Cell]] = defaultdict(set)
    for v in visits:
        seen[v.visit.launch].add(v.cell)
    return {launch for launch, cells in seen.items() if len(cells) == num_cells}


def _partial(visits: Sequence[TimedVisit], cells: Sequence[Cell]) -> str:
    """Which launches that foreign data name lack which cells, and what to do for intervals."""
    seen: dict[str, set[Cell]] = {}
    for v in visits:
        seen.setdefault(v.visit.launch, set()).add(v.cell)
    lacking = {launch: [cell for cell in cells if cell not in there] for launch, there in seen.items()}
    lacking = {launch: cells for launch, cells in lacking.items() if cells}
    launch, missing = next(iter(lacking.items()))
    whole = len(seen) - len(lacking)
    text = (
        f"{whole or 'none'} of the {len(seen)} launches named hold{'s' * (whole < 2)} every cell, and intervals take "
        f"{MIN_LAUNCHES} that do (launch {launch} lacks {missing[0]}"
        f"{f' and {len(missing) - 1} more' if len(missing) > 1 else ''})"
    )
    if all(len({cell.num_devices for cell in there}) == 1 for there in seen.values()):
        return (
            f"{text}: each measured one device count. Where they are independent runs, number them 1, 2, 3 ... anew "
            "for every count and name that column with --columns launch=NAME"
        )
    return f"{text}: measure the cells that are missing, or take only those that all launches hold, with --where"
