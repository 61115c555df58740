"""The text of ``--dry-run``: what a plan runs, how long, and which parameters it can identify."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..model.cell import ROLES
from . import units
from .render_explain import collectives_text
from .render_programs import failures_text
from .text import page, pairs, sentence

if TYPE_CHECKING:
    from ..data.schema import Plan
    from ..measure.planning import DryRun


def dry_run(found: DryRun) -> str:
    """Return the whole description, ready to print."""
    plan = found.plan
    return page(
        _what(plan),
        _how_long(found),
        collectives_text(found.collectives, plan.devices[-1]),
        _identifiable(found),
        failures_text(found.failures),
    )


def _what(plan: Plan) -> str:
    sizes = ", ".join(units.size_text(size, "", per_device=False).strip() for size in plan.sizes)
    per_device = " per device" if plan.path == "weak" else ""
    lines = [
        f"{plan.workload} ({', '.join(plan.strategies)}) on {units.joined(plan.devices)} devices, {plan.platform}",
        f"sizes: {sizes} {plan.unit}{per_device} ({plan.path} scaling), objective {plan.objective}",
    ]
    return "\n".join(sentence(line) for line in lines)


def _how_long(found: DryRun) -> str:
    roles = Counter(cell.role for cell in found.cells)
    cells = units.joined(f"{roles[role]} {role}" for role in ROLES if roles[role])
    launches = found.plan.launches
    return "\n".join(
        [
            f"about {units.duration(round(found.seconds))} for {launches} launch{'es' if launches != 1 else ''}",
            pairs(
                [
                    ("start", f"{units.duration(found.startup_s)} a launch, to start and compile"),
                    ("round", f"{units.duration(found.round_s)}: {found.calls} calls of every cell"),
                    ("cells", f"{len(found.cells)}: {cells}"),
                ]
            ),
        ]
    )


def _identifiable(found: DryRun) -> str:
    known = found.identifiable
    identified = [name for name, yes in known.identified.items() if yes]
    lines = [f"identifies {len(identified)} of {known.num_parameters} parameters of the law ({found.law})"]
    if identified:
        lines.append(sentence(", ".join(identified), indent=2))
    lines.extend(sentence(f"not: {tie}", indent=2) for tie in known.ties)
    return "\n".join(lines)
