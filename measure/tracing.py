"""The launch that measures nothing: the workload's programs are traced on their devices, one after the other."""

from __future__ import annotations

from ..data.schema import Failure
from .building import Builder, failure_of
from .inventory import traced_cells
from .protocol import Step


def trace_workloads(builder: Builder) -> None:
    """Build and trace each program and say what was found; a failure costs this program only.

    Where several processes run the launch all of them make the same calls, since a call needs all; the trace that
    stands in the record is the first one's.
    """
    from .trace import trace

    request, channel = builder.request, builder.channel
    for cell in traced_cells(request.plan):
        made = None if cell in request.barred else builder.build(cell)
        if made is None:
            continue
        if isinstance(made, Failure):
            channel.send(made)
            continue
        program, _ = made
        step = Step(stage="trace", cell=cell)
        try:
            found = trace(
                program, cell, sweep=request.sweep, launch=request.launch, announce=lambda step=step: channel.send(step)
            )
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, sys.exit included
            channel.send(failure_of(request, "trace", error, cell))
        else:
            channel.send(found)
