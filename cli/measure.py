"""``breakeven measure WORKLOAD``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options, output
from .planned import Wish, plan_of
from .ranks import Company, asked_of, joined
from .units import duration

if TYPE_CHECKING:
    from ..data.schema import Plan
    from ..measure.processes.group import Start
    from ..study.until import Goal, Outcome

MostLaunches = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Fresh processes; below three there is no interval. Default: 6; with --until one for each 10 s of the "
        "budget, 6 to 30.",
        show_default=False,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="GOAL",
        help="Stop when this is known: 'break-even ±10%' (or 'at 4'), 'share ±5%', 'optimum', 'first'. "
        "--budget (default 5m) is the most it may take.",
        show_default=False,
    ),
]
RecordFile = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="FILE", help="Record to write, or to go on with when it holds this plan."),
]


def command(
    context: typer.Context,
    workload: options.WorkloadName,
    devices: options.Devices = None,
    sizes: options.Sizes = None,
    sizes_per_device: options.SizesPerDevice = None,
    strategies: options.Strategies = None,
    launches: MostLaunches = None,
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
    until: Until = None,
    dry_run: options.DryRun = False,
    record: RecordFile = Path("sweep.jsonl"),
    as_json: options.AsJson = False,
) -> None:
    """Measure a workload over device counts and sizes, into a record.

    \b
    Example:
      breakeven measure sin-reduce --devices 1,2 --sizes 256:4096:5 --budget 60s -o sweep.jsonl
      breakeven measure mine.py:build --sizes-per-device 1024,4096 --dry-run
      breakeven measure sin-reduce --devices 1,2 --sizes 512,1024,2048 --until "break-even ±10%"

    Fresh processes measure one after the other. Ctrl-C keeps what was measured; the same command goes on. With
    --until, exit code 1 says that the goal was not reached within the budget.
    """
    options.output_record("-o", record)
    goal = None if until is None else _goal(until)
    if goal is not None:
        from ..study.until import launches_within

        budget = budget or "5m"
        launches = launches or launches_within(options.seconds("--budget", budget))
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
                launches=launches or 6,
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
            describe_plan(plan, ranks.start, as_json=as_json, goal=goal)
        elif goal is not None:
            _measure_until(plan, record, goal, ranks.start, as_json=as_json)
        else:
            _measure(plan, record, ranks.start, as_json=as_json)


def _measure(plan: Plan, record: Path, start: Start, *, as_json: bool) -> None:
    from ..measure.sweep import run
    from .progress import reporter
    from .so_far import SoFar

    started = time.monotonic()
    try:
        with reporter() as report:
            path = run(plan, record, on_progress=report, on_launch=SoFar(report), start=start)
    except KeyboardInterrupt as interruption:
        output.interrupted(interruption)
    warn_of_budget(plan, time.monotonic() - started)
    _conclude(path, plan.unit, as_json=as_json)


def warn_of_budget(plan: Plan, seconds: float) -> None:
    """Say when measuring took much longer than it was given: every launch starts, compiles and does one whole round."""
    if plan.budget_s is not None and seconds > 1.25 * plan.budget_s + 5:
        output.warn(
            f"this took {duration(seconds)}, the budget was {duration(plan.budget_s)}: each launch starts, compiles "
            "and visits every cell once, however long that takes; give fewer cells or launches, or wait until the "
            "machine is idle"
        )


def _goal(text: str) -> Goal:
    from ..study.until import GoalError, parse

    try:
        return parse(text)
    except GoalError as error:
        output.bad_argument("--until", str(error))


def _check_goal(goal: Goal, plan: Plan) -> None:
    from ..study.until import GoalError, check

    try:
        check(goal, plan)
    except GoalError as error:
        output.bad_argument("--until", str(error))


def _measure_until(plan: Plan, record: Path, goal: Goal, start: Start, *, as_json: bool) -> None:
    """Measure until the goal is reached; exit code 1 when it is not."""
    from ..study.until import carry_out
    from .progress import reporter
    from .so_far import SoFar

    _check_goal(goal, plan)
    started = time.monotonic()
    try:
        with reporter() as report:
            path, outcome = carry_out(plan, record, goal, on_progress=report, on_launch=SoFar(report), start=start)
    except KeyboardInterrupt as interruption:
        output.interrupted(interruption)
    warn_of_budget(plan, time.monotonic() - started)
    _conclude(path, plan.unit, as_json=as_json, goal=goal, outcome=outcome)
    raise typer.Exit(output.DECIDED if outcome.reached else output.UNDECIDED)


def describe_plan(plan: Plan, start: Start, *, as_json: bool, goal: Goal | None = None) -> None:
    """Print what a plan would run and what it can identify; with a goal, that it may stop before.

    A goal that the plan cannot reach is refused here as it is when measuring.
    """
    if goal is not None:
        _check_goal(goal, plan)
    from ..measure.planning import describe
    from .render_plan import dry_run

    description = describe(plan, start)
    if as_json:
        output.emit_json(description)
    else:
        output.emit(dry_run(description))
        if goal is not None:
            output.emit(f"\nstops when this is known: {goal}; a look after each launch from the sixth on")


def _conclude(
    path: Path, unit: str, *, as_json: bool, goal: Goal | None = None, outcome: Outcome | None = None
) -> None:
    from ..data.store import read
    from .record_summary import counts

    found = counts(read(path))
    if as_json:
        ended = {} if outcome is None else {"goal": str(goal), "outcome": outcome}
        output.emit_json({"path": str(path), **found, **ended})
        return
    from .render_record import measured

    output.emit(measured(path, found))
    if goal is not None and outcome is not None:
        from .render_until import ending

        output.emit(ending(goal, outcome, unit))
