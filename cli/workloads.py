"""``breakeven workloads``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import options, output

if TYPE_CHECKING:
    from ..measure.workload import Workload


def command(as_json: options.AsJson = False) -> None:
    """List the built-in workloads, and show how to write one of your own.

    \b
    Example:
      breakeven workloads
      breakeven study mine.py:build --sizes-per-device 4096
    """
    from ..measure.workloads import builtin, names

    found = [builtin(name) for name in names()]
    if as_json:
        output.emit_json({"workloads": [as_object(workload) for workload in found]})
    else:
        from .render_workloads import workloads

        output.emit(workloads(found))


def as_object(workload: Workload) -> dict[str, Any]:
    """What ``--json`` says of one workload; ``sizes`` are per device on the weak path."""
    return {
        "name": workload.name,
        "summary": workload.summary,
        "path": workload.path,
        "unit": workload.unit,
        "strategies": workload.strategies,
        "devices": workload.devices,
        "sizes": workload.sizes,
        "divides": workload.divides,
        "hand_written_local": workload.local is not None,
    }
