"""``breakeven inspect WORKLOAD``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options, output
from .planned import Wish, plan_of

if TYPE_CHECKING:
    from ..data.schema import Failure, Plan, Program

HereOnly = Annotated[int, typer.Option("--processes", metavar="P", min=1, help="Processes of a launch on this host.")]


def command(
    workload: options.WorkloadName,
    devices: options.Devices = None,
    sizes: options.Sizes = None,
    sizes_per_device: options.SizesPerDevice = None,
    strategies: options.Strategies = None,
    no_controls: options.NoControls = False,
    platform: options.Platform = None,
    timeout: options.Timeout = "120s",
    processes: HereOnly = 1,
    as_json: options.AsJson = False,
) -> None:
    """Show what the compiled programs contain, without timing them: collectives, flops, bytes.

    \b
    Example:
      breakeven inspect mean-all
      breakeven inspect mine.py:build --devices 1,4 --sizes 1024,4096

    Flops and bytes are those of one device. "inline" marks programs that XLA's CPU client runs in the calling thread.
    """
    plan = plan_of(
        Wish(
            workload=workload,
            devices=devices,
            sizes=sizes,
            sizes_per_device=sizes_per_device,
            strategies=strategies,
            controls=not no_controls,
            probes=False,
            sentinel=False,
            platform=platform,
            timeout=timeout,
            processes=processes,
        )
    )
    programs, failures = compiled(plan)
    if as_json:
        output.emit_json(as_object(plan, programs, failures))
        return
    from .render_programs import inspect

    output.emit(inspect(plan, programs, failures))


def as_object(plan: Plan, programs: list[Program], failures: list[Failure]) -> dict[str, Any]:
    """What ``--json`` says; flops and bytes are those of one device."""
    return {
        "workload": plan.workload,
        "platform": plan.platform,
        "programs": [
            {"cell": p.cell, "control": p.control, "compile_s": p.compile_s, "facts": p.facts} for p in programs
        ],
        "failures": [{"cell": f.cell, "stage": f.stage, "error": f.error, "message": f.message} for f in failures],
    }


def compiled(plan: Plan) -> tuple[list[Program], list[Failure]]:
    """Compile every program of a plan in a fresh process.

    Raises
    ------
    MeasureError
        If no program of the workload can be built.
    """
    from ..data.schema import Failure, Program
    from ..measure.processes.group import Group
    from ..measure.protocol import Request
    from ..measure.sweep import describe_no_workload
    from ..measure.workload import MeasureError

    with Group(Request(plan=plan, sweep="", launch="", only_compile=True, parent=os.getpid())) as group:
        messages = list(group.messages())
    programs = [message for message in messages if isinstance(message, Program)]
    failures = [message for message in messages if isinstance(message, Failure)]
    if not any(program.cell.role == "workload" for program in programs):
        raise MeasureError(describe_no_workload(plan, failures))
    return programs, failures
