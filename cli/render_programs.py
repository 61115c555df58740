"""The text of ``inspect``: what the compiler says about each program, by size and device count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..data.schema import Failure, Plan, Program
from ..model.divided_work import repeated_work
from ..model.program import ProgramFacts
from . import units
from .render_explain import collective_text, counted
from .text import page, pairs, sentence, table

if TYPE_CHECKING:
    from ..model.cell import Cell


def inspect(plan: Plan, programs: Sequence[Program], failures: Sequence[Failure]) -> str:
    """Return the facts of every program, ready to print."""
    groups: dict[tuple[str, str], list[Program]] = {}
    for program in sorted(programs, key=lambda program: program.cell.sort_key):
        groups.setdefault((program.cell.role, program.cell.strategy), []).append(program)
    return page(
        sentence(f"{plan.workload} on {units.joined(plan.devices)} devices, {plan.platform}; nothing was timed"),
        *(_group(plan, role, strategy, found) for (role, strategy), found in groups.items()),
        failures_text(failures),
    )


def _group(plan: Plan, role: str, strategy: str, programs: Sequence[Program]) -> str:
    source = next((f", {program.control}" for program in programs if program.control), "")
    rows = [_row(plan, program) for program in programs]
    size = f"{plan.unit} per device" if plan.path == "weak" else plan.unit
    headers = (size, "devices", "flops", "bytes", "collectives", "remarks")
    compile_s = sum(program.compile_s or 0.0 for program in programs)
    title = f"{role} ({strategy}{source}), compiled in {units.duration(compile_s)}; flops and bytes of one device"
    lines = [title, table(headers, rows, numeric=(0, 1, 2, 3))]
    if role == "workload" and plan.path == "strong":
        repeated = repeated_work({program.cell: program.facts for program in programs})
        lines += [] if repeated is None else [sentence(str(repeated), indent=2)]
    return "\n".join(lines)


def _row(plan: Plan, program: Program) -> tuple[str, ...]:
    cell, facts = program.cell, program.facts
    size = f"{_axis_size(plan, cell):,}"
    if facts is None:
        return size, str(cell.num_devices), "unknown", "unknown", "unknown", "cannot be lowered"
    return (
        size,
        str(cell.num_devices),
        units.quantity(facts.flops),
        units.quantity(facts.bytes_accessed),
        "\n".join(counted(map(collective_text, facts.collectives))) or "none",
        ", ".join([*remarks(facts), *(["not jitted: compiled as one program"] if program.pieces else [])]),
    )


def remarks(facts: ProgramFacts) -> list[str]:
    """What else matters for communication or for timing."""
    found = []
    if facts.inline:
        found.append("inline")
    if facts.point_to_point:
        found.append(f"{facts.point_to_point} send/recv")
    if facts.callbacks:
        found.append(f"{facts.callbacks} callback{'s' if facts.callbacks > 1 else ''}")
    if facts.custom_calls:
        found.append(f"custom calls: {', '.join(facts.custom_calls)}")
    if facts.unknown_trip_counts:
        found.append("a loop of unknown length")
    if not facts.inputs_in_place:
        found.append("inputs are moved")
    if facts.work is not None:
        found.append(f"declared work {units.quantity(facts.work)}")
    return found


def _axis_size(plan: Plan, cell: Cell) -> int:
    return cell.size // cell.num_devices if plan.path == "weak" else cell.size


def failures_text(failures: Sequence[Failure]) -> str | None:
    """What could not be built, compiled or derived, and why."""
    if not failures:
        return None
    messages: dict[str, list[str]] = {}
    for failure in failures:
        where = f" {failure.cell}" if failure.cell else ""
        messages.setdefault(f"{failure.error}: {failure.message}", []).append(f"{failure.stage}{where}")
    return "could not be made\n" + pairs(
        (found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more", message)
        for message, found in messages.items()
    )
