"""The launch that measures nothing: the workload's programs are traced on their devices, one after the other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.schema import Failure, Trace
from .building import Builder, failure_of
from .inventory import traced_cells
from .protocol import Step

if TYPE_CHECKING:
    from ..model.cell import Cell
    from .prepare import Prepared

IN_CALL = "visit"
"""Stage of a failure inside a call, as where programs are timed: other processes may wait in that call for ever."""


def trace_workloads(builder: Builder) -> None:
    """Build and trace each program and say what was found; a failure costs this program only.

    Where several processes run the launch all of them make the same calls, since a call needs all. The trace that
    stands in the record is the first one's, and so is the word on what could not be built or read; a call that fails in
    any process ends the launch of those that take part in it.
    """
    for cell in traced_cells(builder.request.plan):
        made = None if cell in builder.request.barred else builder.build(cell)
        if made is None:
            continue
        found = made if isinstance(made, Failure) else _traced(builder, made[0], cell)
        if found is not None and (builder.team.rank == 0 or (isinstance(found, Failure) and found.stage == IN_CALL)):
            builder.channel.send(found)


def _traced(builder: Builder, program: Prepared, cell: Cell) -> Trace | Failure | None:
    """The trace, or why there is none; None where it is another process's to say."""
    from .trace import make_calls, read_calls, refuse_untraceable

    request, stage = builder.request, "trace"
    try:
        refuse_untraceable(program)
        stage = IN_CALL
        with tempfile.TemporaryDirectory(prefix="breakeven-trace-", dir=request.scratch) as folder:
            step = Step(stage="trace", cell=cell)
            calls = make_calls(program, Path(folder), announce=lambda: builder.channel.send(step))
            stage = "trace"
            if builder.team.rank:
                return None
            return read_calls(calls, program, cell, sweep=request.sweep, launch=request.launch)
    except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, sys.exit included
        return failure_of(request, stage, error, cell)
