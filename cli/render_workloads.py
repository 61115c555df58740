"""The text of ``workloads``: the built-ins, and the lines of one's own."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .template import TEMPLATE
from .text import page, pairs, sentence

if TYPE_CHECKING:
    from ..measure.workload import Workload


def workloads(found: Sequence[Workload]) -> str:
    """Return the list and the template, ready to print."""
    return page(
        pairs((workload.name, workload.summary) for workload in found),
        "defaults\n" + pairs((workload.name, _defaults(workload)) for workload in found),
        sentence("Your own: a function build(mesh, size) in any file, here mine.py, that returns (fn, args), or")
        + "\n"
        + sentence("(step, state, rest) where each call's first output is the next state:", indent=2),
        textwrap.indent(TEMPLATE, "    ").rstrip(),
        "then:  breakeven study mine.py:build --sizes-per-device 1024,4096",
    )


def _defaults(workload: Workload) -> str:
    counts = ", ".join(map(str, workload.devices))
    sizes = ", ".join(f"{size:,}" for size in workload.sizes)
    per_device = " per device" if workload.path == "weak" else ""
    strategies = f"; {', '.join(workload.strategies)}" if len(workload.strategies) > 1 else ""
    return f"{workload.path}, {sizes} {workload.unit}{per_device} on {counts} devices{strategies}"
