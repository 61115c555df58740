"""The two sides of a comparison, and how their programs and machines differ before any time is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...model.cell import Cell
from ...model.program import ProgramFacts
from ..launches import LaunchTable

SAME_WORK = 0.1
"""Works that differ by less share are the same: compilers count a little differently."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison: ``label`` names it; ``setup`` is what else is known of its machine (versions)."""

    label: str
    table: LaunchTable
    strategy: str
    setup: Mapping[str, str | None] = field(default_factory=dict)

    def facts(self, num_devices: int, axis_size: int) -> ProgramFacts | None:
        """Facts of the workload's program at one place, where known."""
        size = self.table.plan.global_size(num_devices, axis_size)
        cell = Cell(role="workload", strategy=self.strategy, num_devices=num_devices, size=size)
        return self.table.facts.get(cell)


def unlike_programs(first: Side, second: Side, common: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """How the compiled programs differ, by counts; equal sentences once."""
    found: dict[str, list[int]] = {}
    for n, size in common:
        a, b = (side.facts(n, size) for side in (first, second))
        if a is None or b is None:
            continue
        for words in _program_differences(first.label, second.label, a, b):
            found.setdefault(words, []).append(n)
    return tuple(f"on {', '.join(map(str, dict.fromkeys(counts)))} devices: {words}" for words, counts in found.items())


def _program_differences(one: str, other: str, a: ProgramFacts, b: ProgramFacts) -> list[str]:
    found = []
    known = a.collectives_known and b.collectives_known
    if known and (x := _collectives(a)) != (y := _collectives(b)):
        found.append(f"{one} has {x}, {other} has {y}")
    if a.point_to_point != b.point_to_point:
        found.append(f"{one} has {a.point_to_point} sends and receives, {other} has {b.point_to_point}")
    works = a.compute_work, b.compute_work
    if None not in works and abs(works[0] - works[1]) > SAME_WORK * max(works):  # pyright: ignore
        found.append(f"the work of one device is {works[0]:g} in {one} and {works[1]:g} in {other}")
    return found


def _collectives(facts: ProgramFacts) -> str:
    """Number and bytes of each kind, in words: ``2 all-reduce of 4,096 B``."""
    totals: dict[str, list[int | None]] = {}
    for one in facts.collectives:
        count, size = totals.setdefault(one.kind, [0, 0])
        known = count is not None and one.count is not None and size is not None
        totals[one.kind] = (
            [count + one.count * one.operands, size + one.count * one.message_bytes] if known else [None, None]  # pyright: ignore
        )
    if not totals:
        return "no collective"
    return ", ".join(
        f"{kind} of unknown number" if count is None else f"{count} {kind} of {size:,} B in all"
        for kind, (count, size) in sorted(totals.items())
    )


def same_system(first: Side, second: Side) -> bool:
    """Whether both were measured on one kind of machine with the same versions and flags."""
    names = ("device kind", "cpu", "jax", "jaxlib", "xla flags")
    same = all(first.setup.get(name) == second.setup.get(name) for name in names)
    return same and first.table.platform == second.table.platform


def setup_differences(first: Side, second: Side) -> tuple[str, ...]:
    """How plan and machine differ."""
    a, b = first.table, second.table
    known = {
        # A log from elsewhere is named after its file.
        "workload": (a.plan.workload, a.plan.workload if a.foreign and b.foreign else b.plan.workload),
        "platform": (a.platform, b.platform),
        "visible devices": (a.visible_devices, b.visible_devices),
        "cores": (a.cores, b.cores),
        "unit of size": (a.plan.unit, b.plan.unit),
    }
    known |= {name: (first.setup.get(name), second.setup.get(name)) for name in first.setup}
    return tuple(
        f"{name}: {'not said' if x is None else x} against {'not said' if y is None else y}"
        for name, (x, y) in known.items()
        if x != y
    )
