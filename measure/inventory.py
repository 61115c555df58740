"""Which cells a sweep has: the plan gives those of the workload and its controls, its compiled program the probes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from ..data.schema import Plan
from ..model.cell import AS_WRITTEN, Cell
from ..model.program import Collective

CHAIN_LENGTHS = (1, 4, 16)
"""Dependent collectives in a chain at the workload's own payload; the first and last at the other payloads."""
PAYLOAD_FACTORS = (0.25, 1, 4)
LINK_LENGTHS = (2, 8)
"""Dependent messages, or all-reduces, in one program of a sweep of links; their slope is the cost of one."""
SENTINEL_SIDE = 96
"""Side of the sentinel's matrices: on one core of a server a call takes about 0.2 ms, long against its dispatch and
short against a round."""
_ELEMENT_BYTES = 4


def grid(plan: Plan) -> Iterator[tuple[int, int]]:
    """Pairs (n, global S) of a plan."""
    for size in plan.sizes:
        for num_devices in plan.devices:
            yield num_devices, plan.global_size(num_devices, size)


def link_cells(plan: Plan) -> tuple[Cell, ...]:
    """Messages between every two devices, or all-reduces over the devices in several orders; else none."""
    if not plan.pairs and not plan.orders:
        return ()
    places = tuple(itertools.combinations(range(plan.devices[-1]), 2)) if plan.pairs else (None,)
    return tuple(
        Cell(
            role=plan.leading_role,
            strategy=strategy,
            num_devices=plan.devices[-1],
            size=payload,
            k=k,
            payload_bytes=payload,
            pair=pair,
        )
        for strategy in plan.strategies
        for pair in places
        for payload in plan.sizes
        for k in LINK_LENGTHS
    )


def workload_cells(plan: Plan) -> tuple[Cell, ...]:
    """The workload in every strategy; none where links are measured."""
    if plan.leading_role != "workload":
        return ()
    return tuple(
        Cell(role="workload", strategy=strategy, num_devices=n, size=size)
        for strategy in plan.strategies
        for n, size in grid(plan)
    )


def sentinel_cells(plan: Plan) -> tuple[Cell, ...]:
    """One fixed program on one device, where the plan wants it."""
    cell = Cell(role="sentinel", strategy=AS_WRITTEN, num_devices=1, size=SENTINEL_SIDE)
    return (cell,) if plan.sentinel else ()


def traced_cells(plan: Plan) -> tuple[Cell, ...]:
    """The workload in the primary strategy at the largest size, at every count."""
    return tuple(
        Cell(role="workload", strategy=plan.strategies[0], num_devices=n, size=plan.global_size(n, plan.sizes[-1]))
        for n in plan.devices
    )


def control_cells(plan: Plan) -> tuple[Cell, ...]:
    """Local and null, of the primary strategy."""
    if not plan.controls:
        return ()
    return tuple(
        Cell(role=role, strategy=plan.strategies[0], num_devices=n, size=size)
        for role in ("local", "null")
        for n, size in grid(plan)
    )


def probe_cells(plan: Plan, workload: Cell, collectives: tuple[Collective, ...]) -> tuple[Cell, ...]:
    """Replay of a workload's collectives; at the plan's largest size also chains of the heaviest."""
    if not plan.probes or not collectives or workload.num_devices == 1:
        return ()
    replay = Cell(role="replay", strategy=workload.strategy, num_devices=workload.num_devices, size=workload.size)
    if workload.size != plan.global_size(workload.num_devices, plan.sizes[-1]):
        return (replay,)
    chains = (
        Cell(
            role="chain",
            strategy=workload.strategy,
            num_devices=workload.num_devices,
            size=workload.size,
            k=k,
            payload_bytes=payload,
        )
        for payload, lengths in _payloads(heaviest(collectives))
        for k in lengths
    )
    return (replay, *chains)


def heaviest(collectives: Iterable[Collective]) -> Collective:
    """The collective that moves most in one operand: the one that a chain repeats."""
    return max(collectives, key=lambda c: max(c.operand_bytes, default=c.message_bytes))


def _payloads(collective: Collective) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Payloads of the chains, whole elements, each once: the workload's own, a quarter and four times."""
    own = max(collective.operand_bytes, default=collective.message_bytes)
    seen = set()
    for factor in sorted(PAYLOAD_FACTORS, key=lambda factor: factor != 1):
        payload = max(1, round(own * factor / _ELEMENT_BYTES)) * _ELEMENT_BYTES
        if payload not in seen:
            seen.add(payload)
            yield payload, CHAIN_LENGTHS if factor == 1 else (CHAIN_LENGTHS[0], CHAIN_LENGTHS[-1])
