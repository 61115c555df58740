"""``breakeven measure WORKLOAD``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options, output
from .planned import Wish, plan_of

if TYPE_CHECKING:
    from ..data.schema import Plan

RecordFile = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="FILE", help="Record to write, or to go on with when it holds this plan."),
]


def command(
    workload: options.WorkloadName,
    devices: options.Devices = None,
    sizes: options.Sizes = None,
    sizes_per_device: options.SizesPerDevice = None,
    strategies: options.Strategies = None,
    launches: options.Launches = 6,
    budget: options.Budget = None,
    calls: options.Calls = None,
    warmups: options.Warmups = 2,
    no_controls: options.NoControls = False,
    no_probes: options.NoProbes = False,
    platform: options.Platform = None,
    objective: options.PlanObjective = None,
    seed: options.Seed = 0,
    timeout: options.Timeout = "120s",
    dry_run: options.DryRun = False,
    record: RecordFile = Path("sweep.jsonl"),
    as_json: options.AsJson = False,
) -> None:
    """Measure a workload over device counts and sizes, into a record.

    \b
    Example:
      breakeven measure sin-reduce --devices 1,2 --sizes 256:4096:5 --budget 60s -o sweep.jsonl
      breakeven measure mine.py:build --sizes-per-device 1024,4096 --dry-run

    Fresh processes measure one after the other. Ctrl-C keeps what was measured; the same command goes on.
    """
    options.output_file("-o", record)
    plan = plan_of(
        Wish(
            workload=workload,
            devices=devices,
            sizes=sizes,
            sizes_per_device=sizes_per_device,
            strategies=strategies,
            launches=launches,
            budget=budget,
            calls=calls,
            warmups=warmups,
            controls=not no_controls,
            probes=not no_probes,
            platform=platform,
            objective=objective,
            seed=seed,
            timeout=timeout,
        )
    )
    if dry_run:
        describe_plan(plan, as_json=as_json)
        return
    from ..measure.sweep import run
    from .progress import reporter

    try:
        with reporter() as report:
            path = run(plan, record, on_progress=report)
    except KeyboardInterrupt as interruption:
        output.interrupted(str(interruption))
    _conclude(path, as_json=as_json)


def describe_plan(plan: Plan, *, as_json: bool) -> None:
    """Print what a plan would run and what it can identify."""
    from ..measure.planning import describe
    from .render_plan import dry_run

    description = describe(plan)
    if as_json:
        output.emit_json(description)
    else:
        output.emit(dry_run(description))


def _conclude(path: Path, *, as_json: bool) -> None:
    from ..data.store import read
    from .record_summary import counts

    found = counts(read(path))
    if as_json:
        output.emit_json({"path": str(path), **found})
        return
    from .render_record import measured

    output.emit(measured(path, found))
