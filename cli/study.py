"""``breakeven study WORKLOAD``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options, output
from .answering import fit_on_cpu
from .measure import describe_plan, warn_of_budget
from .planned import Wish, plan_of
from .progress import reporter
from .ranks import Company, asked_of, joined
from .so_far import SoFar

if TYPE_CHECKING:
    from ..data.schema import Plan
    from ..fit.answer import Answer
    from ..measure.processes.group import Start
    from ..study.loop import Study

Folder = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Folder for record, figures and answer.json. Default: study-WORKLOAD.",
        show_default=False,
    ),
]


def command(
    context: typer.Context,
    workload: options.WorkloadName,
    devices: options.Devices = None,
    sizes: options.Sizes = None,
    sizes_per_device: options.SizesPerDevice = None,
    strategies: options.Strategies = None,
    launches: options.Launches = 6,
    budget: options.Budget = None,
    calls: options.Calls = None,
    warmups: options.Warmups = None,
    queue: options.Queue = 4,
    no_controls: options.NoControls = False,
    no_probes: options.NoProbes = False,
    trace: options.Trace = False,
    no_sentinel: options.NoSentinel = False,
    platform: options.Platform = None,
    objective: options.PlanObjective = None,
    seed: options.Seed = 0,
    timeout: options.Timeout = "120s",
    processes: options.Processes = None,
    coordinator: options.Coordinator = None,
    hide_hosts: options.HideHosts = False,
    dry_run: options.DryRun = False,
    folder: Folder = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure a workload, fit, draw and answer: all in one.

    \b
    Example:
      breakeven study issue-21411
      breakeven study mine.py:build --devices 1,2,4 --sizes-per-device 1024,4096 --budget 60s

    The record, the figures and the answer (answer.json) go into a folder; the verdict is printed.
    """
    folder = options.output_folder("-o", folder or Path(f"study-{_plain(workload)}"))
    company = Company(
        processes=processes, coordinator=coordinator, timeout=timeout, hide_hosts=hide_hosts, options=asked_of(context)
    )
    with joined(workload, company) as ranks:
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
                queue=queue,
                controls=not no_controls,
                probes=not no_probes,
                trace=trace,
                sentinel=not no_sentinel,
                platform=platform,
                objective=objective,
                seed=seed,
                timeout=timeout,
                processes=ranks.processes,
                nodes=ranks.nodes,
                launched=ranks.launched,
            )
        )
        if dry_run:
            describe_plan(plan, ranks.start, as_json=as_json)
            return
        if len(plan.devices) < 2:
            output.bad_argument("--devices", "a study compares counts: give at least two.")
        found = _carry_out(plan, folder / "sweep.jsonl", ranks.start)
    files = _write(found.answer, folder)
    answer = found.answer
    if as_json:
        output.emit_json(answer)
    else:
        from .render_study import study

        output.emit(study(answer))
        output.warn_all(answer.warnings)
    output.note(f"\nwritten to {folder}: {', '.join(path.name for path in (found.record, *files))}")


def _carry_out(plan: Plan, record: Path, start: Start) -> Study:
    fit_on_cpu()
    from ..study.loop import carry_out

    started = time.monotonic()
    try:
        with reporter() as report:
            found = carry_out(plan, record, on_progress=report, on_launch=SoFar(report), start=start)
    except KeyboardInterrupt as interruption:
        output.interrupted(interruption)
    warn_of_budget(plan, time.monotonic() - started)
    return found


def _write(answer: Answer, folder: Path) -> list[Path]:
    """Draw the figures and keep the answer."""
    import msgspec

    from ..figures.save import save_all

    path = folder / "answer.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n")
    return [path, *map(Path, save_all(answer, folder))]


def _plain(workload: str) -> str:
    """A workload's name as a folder's: ``path/to/train.py:build`` becomes ``train-build``."""
    target, _, function = workload.rpartition(":")
    parts = [Path(target).name.removesuffix(".py"), function] if target else [function]
    return "-".join(part.replace(".", "-") for part in parts)
