"""Programs that could be measured besides those of a sweep, and what a sweep with them would take.

Only what ``breakeven measure`` can run is offered: the controls, the probes, one more count, one more size.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from ..data.schema import QUEUED_CALLS, Plan
from ..model.cell import Cell, devices
from ..model.program import Collective, ProgramFacts
from ..model.simulate import CHAIN_LENGTHS, PAYLOAD_FACTORS
from ..model.unmeasured import facts_at
from .launches import LaunchTable

START_UP_S = 2.0
"""Of a process that imports jax and finds its devices."""
COMPILE_S = 0.2
"""Of one program, compiled and run once."""
CALLS, WARMUPS, ROUNDS, LAUNCHES = 8, 2, 4, 6
"""Of a sweep whose plan does not say."""

UNKNOWN_PAYLOAD = 2**20
"""Stands for the message of a program that nobody compiled; any constant gives the same columns up to their scale."""

_WORDS = {
    "local": "a local control (the same work without communication)",
    "null": "a null control (the same arguments and outputs, no work)",
    "chain": "probes (chains of collectives of several lengths and payloads)",
}


@dataclass(frozen=True, kw_only=True)
class Addition:
    """Programs that one more run would add.

    Attributes
    ----------
    words : what it is
    cells : the added ones; facts : of their programs
    time_s : of one call of each cell, an upper bound from the measured ones
    plan : what to measure: the sweep's plan with the addition
    """

    words: str
    cells: tuple[Cell, ...]
    facts: Mapping[Cell, ProgramFacts]
    time_s: Mapping[Cell, float]
    plan: Plan

    def __add__(self, other: Addition) -> Addition:
        """Both in one run."""
        return Addition(
            words=f"{self.words} and {other.words}",
            cells=tuple(dict.fromkeys((*self.cells, *other.cells))),
            facts={**self.facts, **other.facts},
            time_s={**self.time_s, **other.time_s},
            plan=_joined(self.plan, other.plan),
        )

    def cost_s(self, table: LaunchTable) -> float:
        """Device-seconds of a sweep over the measured cells and the added ones.

        A sweep over other cells is never pooled with this one, so it measures the old cells again. All devices are
        held from the start of a launch to its end.
        """
        return max(self.plan.visible_devices, max(self.plan.devices)) * self.wall_s(table)

    def wall_s(self, table: LaunchTable) -> float:
        """Seconds of that sweep, one launch after the other."""
        number = len(table.cells) + len(self.time_s)
        a_round = calls(self.plan) * (float(table.latency_s.mean(axis=1).sum()) + sum(self.time_s.values()))
        a_launch = START_UP_S + COMPILE_S * number + rounds(table) * a_round
        return launches(self.plan) * a_launch

    def command(self, table: LaunchTable) -> str:
        """The command line of that sweep, with its seconds as the budget."""
        return measure_command(self.plan, launches(self.plan), self.wall_s(table))


def additions(table: LaunchTable, strategy: str, facts: Mapping[Cell, ProgramFacts]) -> tuple[Addition, ...]:
    """List what one more run could add, each by itself.

    Parameters
    ----------
    table : LaunchTable
    strategy : whose cells are to be told apart
    facts : of the measured programs, or what is assumed of them
    """
    works = [cell for cell in table.cells if cell.role == "workload" and cell.strategy == strategy]
    if not works:
        return ()
    maker = _Maker(table, strategy, tuple(works), facts)
    found = [maker.control("local"), maker.control("null"), maker.chains()]
    found += [maker.count(n) for n in _more_counts([cell.num_devices for cell in works])]
    found += [maker.size(size) for size in _more_sizes(table, strategy)]
    return tuple(one for one in found if one is not None)


def measure_command(plan: Plan, num_launches: int, wall_s: float) -> str:
    """``breakeven measure WORKLOAD`` with the options that make this plan, so many launches, and a budget."""
    words = plan_words(plan) + ["--no-controls"] * (not plan.controls) + ["--no-probes"] * (not plan.probes)
    words += ["--launches", str(num_launches), "--budget", f"{math.ceil(wall_s)}s"]
    words += [] if plan.calls is None else ["--calls", str(plan.calls)]
    return shlex.join([*words, *system_options(plan)])


def plan_words(plan: Plan, strategies: Sequence[str] | None = None) -> list[str]:
    """``breakeven measure WORKLOAD`` and the options for a plan's cells, of these strategies or all of its own."""
    words = ["breakeven", "measure", plan.workload, "--devices", ",".join(map(str, plan.devices))]
    words += ["--sizes-per-device" if plan.path == "weak" else "--sizes", ",".join(map(str, plan.sizes))]
    return [*words, "--strategies", ",".join(plan.strategies if strategies is None else strategies)]


def system_options(plan: Plan) -> list[str]:
    """Options without which ``measure`` would time another system, queue otherwise, or ask another question."""
    words = ["--platform", plan.platform]
    words += ["--objective", plan.objective] * (plan.objective != ("throughput" if plan.path == "weak" else "time"))
    words += ["--processes", str(plan.processes)] * (plan.processes > 1)
    return words + ["--queue", str(plan.queued_calls)] * (plan.queued_calls != QUEUED_CALLS)


def launches(plan: Plan) -> int:
    """Launches of the sweep to come: enough for an interval, whatever the last one had."""
    return max(plan.launches, LAUNCHES)


def calls(plan: Plan) -> int:
    """Calls a visit, warm-ups included."""
    return (plan.calls or CALLS) + (WARMUPS if plan.warmups is None else plan.warmups)


def rounds(table: LaunchTable) -> int:
    """Rounds a launch, as in the sweep at hand."""
    return round(float(np.mean([block.shape[1] for block in table.rounds_s]))) if table.rounds_s else ROUNDS


@dataclass(frozen=True)
class _Maker:
    """Makes additions to the cells of one strategy's workload."""

    table: LaunchTable
    strategy: str
    works: tuple[Cell, ...]
    facts: Mapping[Cell, ProgramFacts]

    def control(self, role: str) -> Addition | None:
        """A control beside every cell of the workload."""
        cells = [replace(cell, role=role) for cell in self.works]
        cells = [cell for cell in cells if self.table.row(cell) is None]
        if not cells:
            return None
        return self._addition(_WORDS[role], cells, replace_plan(self.table.plan, controls=True))

    def chains(self) -> Addition | None:
        """Chains of collectives on every count above 1, at the largest size."""
        if any(cell.role == "chain" and cell.strategy == self.strategy for cell in self.table.cells):
            return None
        largest = {cell.num_devices: cell for cell in self.works if cell.num_devices > 1}
        cells = []
        for cell in largest.values():
            known = self.facts.get(cell)
            payload = max((c.message_bytes for c in known.collectives), default=0) if known else UNKNOWN_PAYLOAD
            if payload:
                cells += [
                    replace(cell, role="chain", k=k, payload_bytes=max(1, round(payload * factor)))
                    for factor in PAYLOAD_FACTORS
                    for k in CHAIN_LENGTHS
                ]
        return self._addition(_WORDS["chain"], cells, replace_plan(self.table.plan, probes=True)) if cells else None

    def count(self, num_devices: int) -> Addition | None:
        """Every role of the sweep on one more count."""
        plan, cells = self.table.plan, []
        for size in sorted({self.table.axis_size(cell) for cell in self.works}):
            total = plan.global_size(num_devices, size)
            if plan.divides and total % num_devices:
                return None
            cells += [
                Cell(role=role, strategy=self.strategy, num_devices=num_devices, size=total) for role in self._roles
            ]
        counts = tuple(sorted({*plan.devices, num_devices}))
        more = replace_plan(plan, devices=counts, visible_devices=max(plan.visible_devices, num_devices))
        return self._addition(f"a run on {devices(num_devices)} too", cells, more)

    def size(self, axis_size: int) -> Addition | None:
        """Every role of the sweep at one more size."""
        plan = self.table.plan
        counts = sorted({cell.num_devices for cell in self.works})
        cells = [
            Cell(role=role, strategy=self.strategy, num_devices=n, size=plan.global_size(n, axis_size))
            for role in self._roles
            for n in counts
        ]
        if plan.divides and any(cell.size % cell.num_devices for cell in cells):
            return None
        more = replace_plan(plan, sizes=tuple(sorted({*plan.sizes, axis_size})))
        words = f"size {axis_size:,} {plan.unit}{' per device' if plan.path == 'weak' else ''} too"
        return self._addition(words, cells, more)

    @property
    def _roles(self) -> tuple[str, ...]:
        have = {cell.role for cell in self.table.cells if cell.strategy == self.strategy}
        return tuple(role for role in ("workload", "local", "null") if role in have)

    def _addition(self, words: str, cells: Sequence[Cell], plan: Plan) -> Addition | None:
        facts = {}
        for cell in cells:
            known = self._facts(cell)
            if known is None:
                return None
            facts[cell] = known
        times = {cell: self._at_most(cell) for cell in cells}
        return Addition(words=words, cells=tuple(cells), facts=facts, time_s=times, plan=plan)

    def _facts(self, cell: Cell) -> ProgramFacts | None:
        """What the program would contain; None where the measured ones do not say."""
        if cell.role == "chain":
            payload = cell.payload_bytes or 0
            return ProgramFacts(work=0.0, collectives=(_all_reduce(cell.k or 1, payload),))
        if self.table.foreign:
            work = 0.0 if cell.role == "null" else cell.size_per_device
            known = self.facts.get(replace(cell, role="workload")) or next(iter(self.facts.values()), None)
            collectives = known.collectives if known is not None and cell.role == "workload" else ()
            return ProgramFacts(work=work, collectives=collectives)
        like = self._like(replace(cell, role="workload"))
        if like is None or like.compute_work is None:
            return None
        work = 0.0 if cell.role == "null" else like.compute_work
        return ProgramFacts(work=work, collectives=like.collectives if cell.role == "workload" else ())

    def _like(self, cell: Cell) -> ProgramFacts | None:
        """Facts of the workload at a cell; where they cannot be inferred, work in proportion and the same messages."""
        found = facts_at(self.facts, cell).facts
        if found is not None and found.compute_work is not None:
            return found
        near = self.facts.get(self._nearest(cell))
        if near is None or near.compute_work is None:
            return None
        share = cell.size_per_device / self._nearest(cell).size_per_device
        collectives = tuple(replace(c, group_size=None) for c in near.collectives)
        return ProgramFacts(work=near.compute_work * share, collectives=collectives)

    def _at_most(self, cell: Cell) -> float:
        """A time that the cell should not exceed: controls take less than the workload, a chain k times as much."""
        near = self._nearest(cell)
        row = self.table.row(near)
        assert row is not None, "works are measured cells"
        return float(row.mean()) * max(1.0, cell.size / near.size) * (cell.k or 1)

    def _nearest(self, cell: Cell) -> Cell:
        """The measured workload cell that is most like it; one with collectives where it has several devices."""

        def distance(other: Cell) -> tuple[bool, float]:
            away = abs(math.log(other.num_devices / cell.num_devices)) + abs(math.log(other.size / cell.size))
            return (other.num_devices > 1) != (cell.num_devices > 1), away

        return min(self.works, key=distance)


def _more_counts(measured: Sequence[int]) -> list[int]:
    """One device, the smallest power of two in between, and twice the largest count."""
    largest = max(measured)
    between = next((n for n in (2**i for i in range(1, 31)) if n < largest and n not in measured), None)
    odd = next((n for n in range(3, largest) if n not in measured), None)
    found = [None if 1 in measured else 1, between, odd, 2 * largest]
    return list(dict.fromkeys(n for n in found if n is not None))


def _more_sizes(table: LaunchTable, strategy: str) -> list[int]:
    """A quarter of the smallest size and four times the largest."""
    sizes = table.sizes("workload", strategy)
    return [size for size in (sizes[0] // 4, 4 * sizes[-1]) if size >= 1 and size not in sizes]


def replace_plan(plan: Plan, **changes: object) -> Plan:
    """The same plan with some fields changed."""
    return msgspec.structs.replace(plan, **changes)


def _joined(first: Plan, second: Plan) -> Plan:
    return replace_plan(
        first,
        devices=tuple(sorted({*first.devices, *second.devices})),
        sizes=tuple(sorted({*first.sizes, *second.sizes})),
        visible_devices=max(first.visible_devices, second.visible_devices),
        controls=first.controls or second.controls,
        probes=first.probes or second.probes,
    )


def _all_reduce(count: int, message_bytes: int) -> Collective:
    return Collective(
        kind="all-reduce",
        count=count,
        operands=1,
        message_bytes=message_bytes,
        operand_bytes=(message_bytes,),
        group_size=None,
    )
