"""Sweeps that could be measured next: which cells they hold, what they cost, and the command that runs them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import msgspec

from ...data.schema import MAX_SIZE, Plan
from ...model.cell import Cell
from ...model.law import collectives_of
from ...model.program import Collective, ProgramFacts
from ...model.unmeasured import facts_at
from ..launches import LaunchTable
from ..remedies import plan_words, system_options
from .launch_cost import VISIT_OVERHEAD_S, LaunchCost

CHAINS = ((0.25, (1, 16)), (1.0, (1, 4, 16)), (4.0, (1, 16)))
"""Payloads of the chains, in the workload's own, and how many collectives each chain has, as ``measure`` makes them."""
MOST_SUBSETS = 64
"""Sets of counts, and of sizes, that are tried; beyond it only pairs with the ends."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One sweep of a single strategy. ``pooled``: the pilot's own plan again, whose launches add to the pilot's."""

    devices: tuple[int, ...]
    sizes: tuple[int, ...]
    controls: bool
    probes: bool
    pooled: bool = False


@dataclass(frozen=True, kw_only=True)
class Programs:
    """The cells of a candidate, and what is known of their programs."""

    candidate: Candidate
    cells: tuple[Cell, ...]
    facts: dict[Cell, ProgramFacts | None]


def same_plan(table: LaunchTable) -> Candidate:
    """The pilot's own plan."""
    plan = table.plan
    return Candidate(devices=plan.devices, sizes=plan.sizes, controls=plan.controls, probes=plan.probes, pooled=True)


def workloads(table: LaunchTable, strategy: str, candidate: Candidate) -> Programs:
    """Cells of a candidate without controls and probes, whose facts nobody asks for."""
    if candidate.pooled:
        return Programs(candidate=candidate, cells=table.cells, facts={})
    cells = tuple(
        Cell(role="workload", strategy=strategy, num_devices=n, size=table.plan.global_size(n, size))
        for size in candidate.sizes
        for n in candidate.devices
    )
    return Programs(candidate=candidate, cells=cells, facts={})


def programs(table: LaunchTable, strategy: str, candidate: Candidate) -> Programs | None:
    """Cells of a candidate and the facts of their programs; None where those cannot be inferred from the pilot's."""
    if candidate.pooled:
        return Programs(
            candidate=candidate, cells=table.cells, facts={cell: table.facts.get(cell) for cell in table.cells}
        )
    facts: dict[Cell, ProgramFacts | None] = {}
    for size in candidate.sizes:
        for n in candidate.devices:
            workload = Cell(role="workload", strategy=strategy, num_devices=n, size=table.plan.global_size(n, size))
            found = facts_at(table.facts, workload)
            if found.reason is not None:
                return None
            facts[workload] = found.facts
            if candidate.controls:
                facts |= _controls(table, workload, found.facts)
            if candidate.probes:
                facts |= _probes(workload, found.facts, chains=size == candidate.sizes[-1])
    cells = tuple(sorted(facts, key=lambda cell: cell.sort_key))
    return Programs(candidate=candidate, cells=cells, facts={cell: facts[cell] for cell in cells})


def _controls(table: LaunchTable, workload: Cell, facts: ProgramFacts | None) -> dict[Cell, ProgramFacts | None]:
    """The same program without communication, and without work; no local control where it was refused."""
    local = {} if table.refused else {replace(workload, role="local"): facts and replace(facts, collectives=())}
    null = {replace(workload, role="null"): facts and replace(facts, collectives=(), flops=None, work=0.0)}
    return local | null


def _probes(workload: Cell, facts: ProgramFacts | None, *, chains: bool) -> dict[Cell, ProgramFacts | None]:
    collectives = collectives_of(workload, facts)
    if facts is None or not collectives or workload.num_devices == 1:
        return {}
    found: dict[Cell, ProgramFacts | None] = {replace(workload, role="replay"): replace(facts, flops=None, work=0.0)}
    if not chains:
        return found
    heaviest = max(collectives, key=lambda c: max(c.operand_bytes, default=c.message_bytes))
    own = max(heaviest.operand_bytes, default=heaviest.message_bytes)
    for factor, lengths in CHAINS:
        payload = max(1, round(own * factor))
        for k in lengths:
            cell = replace(workload, role="chain", k=k, payload_bytes=payload)
            chained = replace(heaviest, count=k, operands=1, message_bytes=payload, operand_bytes=(payload,))
            found[cell] = _only(chained)
    return found


def _only(collective: Collective) -> ProgramFacts:
    return ProgramFacts(flops=None, work=0.0, collectives=(collective,), inline=None, num_arguments=1)


def round_s(cost: LaunchCost, cells: Sequence[Cell], calls_s: Sequence[float]) -> float:
    """Wall time of one round, seconds; ``calls_s``: of one call of each cell."""
    return sum(cost.calls_of(c.role) * t + VISIT_OVERHEAD_S for c, t in zip(cells, calls_s, strict=True))


def round_device_s(cost: LaunchCost, cells: Sequence[Cell], calls_s: Sequence[float]) -> float:
    """Device-seconds of the calls of one round: seconds times the devices that they keep busy."""
    return sum(cost.calls_of(c.role) * t * c.num_devices for c, t in zip(cells, calls_s, strict=True))


def forced_count(plan: Plan) -> int | None:
    """The count that a smaller sweep must hold too: host devices are forced to the largest, which changes times."""
    return plan.devices[-1] if plan.platform == "cpu" and plan.visible_devices == plan.devices[-1] else None


def counts_with(plan: Plan, counts: Iterable[int]) -> tuple[int, ...]:
    """These counts, and the one that must be among them."""
    forced = forced_count(plan)
    return tuple(sorted({*counts, *([] if forced is None else [forced])}))


def dividing(plan: Plan, devices: Sequence[int], sizes: Iterable[float]) -> tuple[int, ...]:
    """The nearest sizes that divide by every count where they must, each once, ascending."""
    multiple = math.lcm(*devices) if plan.divides and plan.path == "strong" else 1
    most = MAX_SIZE // (multiple * max(devices))
    return tuple(sorted({min(most, max(1, round(size / multiple))) * multiple for size in sizes}))


def subsets(values: Sequence[int], least: int) -> Iterator[tuple[int, ...]]:
    """Sets of at least so many values; where they are many, all of them, and pairs and singles with the ends."""
    if 2 ** len(values) <= MOST_SUBSETS:
        for number in range(least, len(values) + 1):
            yield from combinations(values, number)
        return
    ends = {values[0], values[-1]}
    found = [(v,) for v in values] + [pair for pair in combinations(values, 2) if ends & set(pair)]
    yield from dict.fromkeys(s for s in [*found, tuple(values)] if len(s) >= least)


def command(
    table: LaunchTable, strategy: str, candidate: Candidate, *, launches: int, calls: int, budget_s: float, file: str
) -> str:
    """The command line that measures a candidate."""
    plan = table.plan
    chosen = msgspec.structs.replace(plan, devices=candidate.devices, sizes=candidate.sizes)
    words = plan_words(chosen, plan.strategies if candidate.pooled else (strategy,))
    words += ["--launches", str(launches), "--calls", str(calls), "--budget", f"{math.ceil(budget_s)}s"]
    if candidate.pooled:
        # A sweep of another plan may find its own warm-ups; launches of the same one must do the same.
        words += [] if plan.warmups is None else ["--warmups", str(plan.warmups)]
        words += ["--no-sentinel"] * (not plan.sentinel)
    words += ["--no-controls"] * (not candidate.controls) + ["--no-probes"] * (not candidate.probes)
    words += system_options(plan)
    return shlex.join([*words, "--seed", str(plan.seed + 1), "-o", file])
