"""From what a user asks for to a checked plan, and what that plan will run, take and determine."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.schema import MAX_CALLS_PER_VISIT, MAX_SIZE, QUEUED_CALLS, Failure, Launch, Plan, Program
from ..model import law, rank
from ..model.cell import Cell
from ..model.program import Collective
from . import devices as host
from .clock import MAX_CALLS, MAX_IN_FLIGHT
from .launch import local_ranks
from .processes.alignment import Layout
from .processes.group import Group, Start
from .protocol import Ready, Request
from .sweep import describe_no_workload
from .warmup import MOST as MOST_WARMUPS
from .workload import MeasureError, Workload

DEFAULT_BUDGET_S = 60.0
LEAST_BUDGET_S, MOST_BUDGET_S = 1.0, 30 * 86400.0

_PATHS = (
    "give --sizes (strong path: the total size stays the same, more devices share it) or "
    "--sizes-per-device (weak path: every device keeps its size, the total grows)"
)


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """What a plan will do, from compiling it once.

    Attributes
    ----------
    cells : all that every launch visits
    startup_s, round_s : of one launch: until everything is compiled, and one round over all cells
    calls : timed calls a visit
    seconds : the whole sweep
    law : the one of the menu whose parameters ``identifiable`` speaks of
    collectives : of the workload at the largest count and size
    failures : what could not be built, and a refused local control
    """

    plan: Plan
    cells: tuple[Cell, ...]
    startup_s: float
    round_s: float
    calls: int
    seconds: float
    law: str
    identifiable: rank.Identifiability
    collectives: tuple[Collective, ...] | None
    failures: tuple[Failure, ...]


MOST_SIZES = 100


def make_plan(
    workload: Workload,
    *,
    devices: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    sizes_per_device: Sequence[int] | None = None,
    strategies: Sequence[str] | None = None,
    objective: str | None = None,
    launches: int = 6,
    budget_s: float | None = None,
    rounds: int | None = None,
    calls: int | None = None,
    warmups: int | None = None,
    queued_calls: int = QUEUED_CALLS,
    controls: bool = True,
    probes: bool = True,
    sentinel: bool = True,
    trace: bool = False,
    step_timeout_s: float = 120.0,
    seed: int = 0,
    available: host.Devices | None = None,
    processes: int = 1,
    nodes: int = 1,
    launched: bool = False,
) -> Plan:
    """Check what is asked for and complete it from the workload's defaults.

    Parameters
    ----------
    workload : Workload
    devices : counts n; default the workload's, as far as they exist
    sizes, sizes_per_device : one of them; it fixes the path, strong or weak
    strategies : some of the workload's; the first has the controls
    objective : ``time`` or ``throughput``; default by path
    budget_s : total wall time, start-up included, seconds; default 60 unless ``rounds`` is given
    rounds : rounds of every launch, where not the budget decides
    available : what JAX finds in one process; default: asked in a short child process
    processes, nodes, launched : see ``Layout``

    Other parameters are those of ``Plan``.

    Raises
    ------
    MeasureError
        For anything that cannot be measured; the message says what to give instead.
    """
    host.refuse_nesting()
    available = available or host.detect()
    _check_at_least(1, processes=processes)
    layout = Layout(processes=processes, nodes=nodes, launched=launched)
    counts, visible = _counts(devices, workload, available, layout)
    path, chosen = _sizes(workload, sizes, sizes_per_device)
    if path == "strong" and workload.divides:
        _check_divides(chosen, counts, workload.unit)
    if objective not in (None, "time", "throughput"):
        raise MeasureError(f"objective must be time or throughput, got {objective!r}.")
    _check_at_least(1, launches=launches, rounds=rounds, calls=calls)
    _check_at_least(0, warmups=warmups)
    most = (calls or MAX_CALLS) + (MOST_WARMUPS if warmups is None else warmups)
    if most > MAX_CALLS_PER_VISIT:
        untold = f" (up to {MOST_WARMUPS} warmups, by a trend test)" if warmups is None else ""
        raise MeasureError(f"calls and warmups together must be at most {MAX_CALLS_PER_VISIT}, got {most}{untold}.")
    if not 0 <= queued_calls <= MAX_IN_FLIGHT:
        raise MeasureError(f"queued_calls must be from 0 to {MAX_IN_FLIGHT}, got {queued_calls}.")
    for name, seconds in (("budget_s", budget_s), ("step_timeout_s", step_timeout_s)):
        if seconds is not None and not 0 < seconds < math.inf:
            raise MeasureError(f"{name} must be a positive number of seconds, got {seconds}.")
    if budget_s is not None and not LEAST_BUDGET_S <= budget_s <= MOST_BUDGET_S:
        raise MeasureError(
            f"a budget of {budget_s:,.10g} s is none: a launch takes seconds to start, and a sweep may last "
            f"{MOST_BUDGET_S / 86400:g} days at most; give seconds to days, as in --budget 60s or --budget 2h."
        )
    return Plan(
        workload=workload.name,
        path=path,
        objective=objective or ("time" if path == "strong" else "throughput"),
        devices=counts,
        sizes=chosen,
        strategies=_strategies(workload, strategies),
        unit=workload.unit,
        divides=workload.divides,
        platform=available.platform,
        visible_devices=visible,
        processes=processes,
        launches=launches,
        budget_s=DEFAULT_BUDGET_S if budget_s is None and rounds is None else budget_s,
        rounds=rounds,
        warmups=warmups,
        calls=calls,
        queued_calls=queued_calls,
        controls=controls,
        probes=probes,
        sentinel=sentinel,
        trace=trace,
        step_timeout_s=step_timeout_s,
        seed=seed,
    )


def parse_sizes(text: str, devices: Sequence[int] = (), *, divides: bool = True) -> tuple[int, ...]:
    """Read sizes: ``256,512`` as they stand, or ``1e3:1e6:7``: seven, evenly spaced on a log scale.

    Parameters
    ----------
    text : str
    devices : counts by which a size of a *range* must divide; it is rounded to the nearest that does
    divides : whether it must

    Raises
    ------
    MeasureError
        If it is neither, a size is no positive whole number, or none in the range divides by all counts.
    """
    if ":" not in text:
        return tuple(_whole(part, text) for part in text.split(","))
    parts = text.split(":")
    if len(parts) != 3:
        raise MeasureError(f"sizes {text!r}: a range is FIRST:LAST:HOW_MANY, as in 1e3:1e6:7.")
    first, last, number = (_whole(part, text) for part in parts)
    if first > last:
        raise MeasureError(f"sizes {text!r}: the range runs backwards; write {parts[1]}:{parts[0]}:{parts[2]}.")
    if number > MOST_SIZES:
        raise MeasureError(f"sizes {text!r}: at most {MOST_SIZES} sizes, each is measured on every count.")
    multiple = math.lcm(*devices) if divides else 1
    _refuse_too_narrow(text, first, last, multiple, devices)
    spaced = np.geomspace(first, last, number) if number > 1 else np.array([first])
    return tuple(sorted({max(1, round(size / multiple)) * multiple for size in spaced.tolist()}))


def _refuse_too_narrow(text: str, first: int, last: int, multiple: int, devices: Sequence[int]) -> None:
    """Refuse a range in which no size divides by all counts: the nearest that does lies where nobody asked for it."""
    below, above = last // multiple * multiple, -(-first // multiple) * multiple
    if above > last:
        near = f"{below} and {above} do" if below else f"{above} is the first that does"
        raise MeasureError(
            f"sizes {text!r}: none of the range divides by {', '.join(map(str, devices))} devices; {near}. Give a "
            "range that holds such sizes, other --devices, or --sizes-per-device."
        )


def describe(plan: Plan, start: Start = local_ranks) -> DryRun:
    """Compile a plan once, in fresh processes, and say what it will run, how long, and what it can identify.

    Parameters
    ----------
    plan : from ``make_plan``
    start : the processes of a launch; default: all on this host

    Raises
    ------
    MeasureError
        If no program of the workload can be built.
    """
    began = time.monotonic()
    ends_at = None if plan.budget_s is None else began + plan.budget_s / (plan.launches + plan.trace)
    request = Request(plan=plan, sweep="", launch="", ends_at=ends_at, only_compile=True, parent=os.getpid())
    programs: list[Program] = []
    failures: list[Failure] = []
    cores, startup_s, ready = None, 0.0, None
    spread = law.ONE_PROCESS
    with Group(request, start) as group:
        for message in group.messages():
            if isinstance(message, Program):
                programs.append(message)
            elif isinstance(message, Failure):
                failures.append(message)
            elif isinstance(message, Launch):
                cores = message.cores
                if message.processes > 1:
                    spread = law.Spread(per_process=message.devices_per_process, per_node=message.devices_per_node)
            elif isinstance(message, Ready):
                ready, startup_s = message, time.monotonic() - began
    if ready is None or not ready.workloads:
        raise MeasureError(describe_no_workload(plan, failures))
    chosen, identifiable = _identifiable(programs, cores, spread)
    return DryRun(
        plan=plan,
        cells=tuple(program.cell for program in programs),
        startup_s=startup_s,
        round_s=ready.round_s,
        calls=ready.calls,
        seconds=_seconds(plan, startup_s, ready.round_s),
        law=chosen.name,
        identifiable=identifiable,
        collectives=_collectives(plan, programs),
        failures=tuple(failures),
    )


def _seconds(plan: Plan, startup_s: float, round_s: float) -> float:
    """The budget, unless the rounds end before it, or one round a launch already takes longer."""
    least = plan.launches * (startup_s + round_s)
    by_rounds = math.inf if plan.rounds is None else plan.launches * (startup_s + plan.rounds * round_s)
    by_budget = math.inf if plan.budget_s is None else plan.budget_s
    return max(least, min(by_rounds, by_budget))


def _identifiable(
    programs: Sequence[Program], cores: int | None, spread: law.Spread
) -> tuple[law.Law, rank.Identifiability]:
    """What the ring law's parameters are worth on these cells; free compute times where the work is unknown."""
    cells = [program.cell for program in programs if program.cell.role != "sentinel"]
    facts = {program.cell: program.facts for program in programs}
    chosen = law.Law("ring", "per-device")
    if law.undefined(chosen, cells, facts, cores=cores):
        chosen = law.Law("ring", "by-local-size")
    return chosen, rank.identify(law.design(chosen, cells, facts, cores=cores, spread=spread))


def _collectives(plan: Plan, programs: Sequence[Program]) -> tuple[Collective, ...] | None:
    largest, size = plan.devices[-1], plan.global_size(plan.devices[-1], plan.sizes[-1])
    wanted = Cell(role="workload", strategy=plan.strategies[0], num_devices=largest, size=size)
    facts = next((program.facts for program in programs if program.cell == wanted), None)
    return None if facts is None else facts.collectives


def _counts(
    devices: Sequence[int] | None, workload: Workload, available: host.Devices, layout: Layout
) -> tuple[tuple[int, ...], int]:
    """Counts to measure, and the devices that every launch sees."""
    limit = host.MAX_FORCED if available.forced else layout.visible(available, 1)
    if devices is None:
        chosen = tuple(n for n in workload.devices if n <= limit)
        layout.check_busy(chosen[-1])
        visible = layout.visible(available, chosen[-1])
        return (chosen if layout.processes == 1 else layout.defaults(chosen, visible)), visible
    if not devices:
        raise MeasureError("devices: give at least one count, as in --devices 1,2,4,8.")
    if wrong := [n for n in devices if n < 1]:
        raise MeasureError(f"devices must be positive, got {wrong[0]}.")
    _check_unique("devices", devices)
    if max(devices) > limit:
        there = (
            f"at most {limit} host devices can be forced"
            if available.forced
            else f"JAX finds {limit} ({available.kind})"
        )
        raise MeasureError(f"devices: {max(devices)} asked for, but {there}. Give counts up to {limit}.")
    layout.check_busy(max(devices))
    visible = layout.visible(available, max(devices))
    layout.check(sorted(devices), visible)
    return tuple(sorted(devices)), visible


def _sizes(
    workload: Workload, sizes: Sequence[int] | None, sizes_per_device: Sequence[int] | None
) -> tuple[str, tuple[int, ...]]:
    if sizes is not None and sizes_per_device is not None:
        raise MeasureError("sizes and sizes_per_device exclude each other: " + _PATHS + ".")
    path = "strong" if sizes is not None else "weak" if sizes_per_device is not None else workload.path
    chosen = sizes if sizes is not None else sizes_per_device if sizes_per_device is not None else workload.sizes
    if path is None:
        raise MeasureError(f"{workload.name} declares no path: {_PATHS}.")
    option = "--sizes" if path == "strong" else "--sizes-per-device"
    if not chosen:
        raise MeasureError(f"{workload.name} has no default sizes; its path is {path}: give {option}.")
    if wrong := [size for size in chosen if size < 1]:
        raise MeasureError(f"{option.removeprefix('--')} must be positive, got {wrong[0]}.")
    _check_unique(option.removeprefix("--"), chosen)
    return path, tuple(sorted(chosen))


def _check_unique(name: str, values: Sequence[int]) -> None:
    if twice := [value for value in values if list(values).count(value) > 1]:
        raise MeasureError(f"{name}: {twice[0]} is given twice.")


def _check_divides(sizes: Sequence[int], counts: Sequence[int], unit: str) -> None:
    for size in sizes:
        for n in counts:
            if size % n:
                multiple = math.lcm(*counts)
                below, above = size // multiple * multiple, (size // multiple + 1) * multiple
                near = f"{below} or {above}" if below else f"{above}"
                raise MeasureError(f"size {size} ({unit}) does not divide by {n} devices; {near} does by all counts.")


def _check_at_least(limit: int, **values: int | None) -> None:
    for name, value in values.items():
        if value is not None and value < limit:
            raise MeasureError(f"{name} must be at least {limit}, got {value}.")


def _strategies(workload: Workload, asked: Sequence[str] | None) -> tuple[str, ...]:
    if asked is None:
        return workload.strategies
    for name in asked:
        if name not in workload.builds:
            raise MeasureError(f"{workload.name} has no strategy {name!r}; it has {', '.join(workload.strategies)}.")
    if not asked or len(set(asked)) < len(asked):
        raise MeasureError(f"strategies: give each once, of {', '.join(workload.strategies)}.")
    return tuple(asked)


def _whole(part: str, text: str) -> int:
    try:
        value = float(part)
    except ValueError:
        value = math.nan
    if not (value.is_integer() and 1 <= value <= MAX_SIZE):
        raise MeasureError(f"sizes {text!r}: {part.strip()!r} is no positive whole number below 2**62.")
    return int(value)
