"""How large a sweep must be: from a pilot, or from stated noise, to a design, its cost and the command that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from ...data.store import Record
from ..launches import LaunchTable
from ..remedies import COMPILE_S, START_UP_S, measure_command
from .noise import Noise
from .pilot import Question, break_even_size, difference, share
from .power import Chance, Design, cheapest, designs, detects, launches_range, narrows

Goal = Literal["difference", "break-even", "share"]


class NoiseSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Standard deviations of the quantity ``of``: between launches, and between the rounds of one launch.

    ``mean_sd``: of a launch's mean over the rounds of the chosen design (else the pilot's), with its ``interval``.
    ``round_sd`` is None where every launch of the pilot had one round: ``launch_sd`` then holds both. All None where
    the pilot shows no noise; ``launches`` and ``rounds`` are the pilot's, None for stated noise.
    """

    of: str
    launch_sd: float | None = None
    round_sd: float | None = None
    mean_sd: float | None = None
    interval: tuple[float, float] | None = None
    launches: int | None = None
    rounds: float | None = None


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """How many launches and rounds it takes.

    ``target``: the difference to tell from none, or the half width of the interval, as a share. ``wanted``: the
    probability of telling it (``difference``), or of an interval that narrow. ``chosen``: the cheapest design that
    reaches it, None with a ``reason``. ``launches_range``: launches needed, of as many rounds, if the noise lay at
    either end of its interval (None: stated noise; in it: more than a thousand).
    """

    goal: Goal
    target: float
    at: int | None
    reference: int | None
    size: int | None
    confidence: float
    wanted: float
    noise: NoiseSummary
    table: tuple[Design, ...] = ()
    chosen: Design | None = None
    launches_range: tuple[int | None, int | None] | None = None
    reason: str | None = None
    command: str | None = None


class SizingError(ValueError):
    """Something was asked for that the pilot does not hold; the message says what it holds."""


def from_pilot(
    record: Record,
    table: LaunchTable,
    *,
    goal: Goal,
    target: float,
    wanted: float = 0.8,
    confidence: float = 0.95,
    at: int | None = None,
    reference: int | None = None,
    size: int | None = None,
    strategy: str | None = None,
    cause: str = "communication",
) -> Power:
    """Plan a sweep from a pilot.

    Parameters
    ----------
    record, table : the pilot, and the same as ``from_record`` summarises it
    goal : tell a ``difference`` between two counts; know their ``break-even`` size; know a cause's ``share``
    target : 0.05 is a loss of 5 %; half widths: 10 % of the break-even size, five percentage points of a share
    wanted : probability of success
    at, reference : counts; default the largest and the smallest measured
    size : entry of the plan's size axis (not for ``break-even``); default the largest
    cause : of which the share is asked

    Raises
    ------
    SizingError
        If a count, size or strategy was not measured.
    """
    strategy, at, reference, size = _places(table, goal, strategy, at, reference, size)
    level = 1 - confidence
    match goal:
        case "difference":
            found = difference(table, strategy, at=at, reference=reference, size=size, target=target, level=level)
        case "break-even":
            found = break_even_size(table, strategy, at=at, reference=reference, target=target, level=level)
        case "share":
            found = share(table, strategy, cause=cause, at=at, size=size, target=target, level=level)
    start_s, round_s = launch_seconds(record)

    def seconds(launches: int, rounds: int) -> float:
        return launches * (start_s + rounds * round_s)

    planned = _plan(found, wanted, confidence, seconds)
    chosen = planned.chosen
    command = None
    if chosen is not None and chosen.seconds is not None and not table.foreign:
        command = measure_command(table.plan, chosen.launches, chosen.seconds)
    return msgspec.structs.replace(
        planned,
        goal=goal,
        target=target,
        at=at,
        reference=None if goal == "share" else reference,
        size=None if goal == "break-even" else size,
        noise=msgspec.structs.replace(planned.noise, launches=table.num_launches if table.replicated else None),
        command=command,
    )


def from_noise(
    launch_sd: float,
    round_sd: float,
    *,
    goal: Goal,
    target: float,
    slope: float | None = None,
    wanted: float = 0.8,
    confidence: float = 0.95,
) -> Power:
    """Plan a sweep from stated noise.

    Parameters
    ----------
    launch_sd, round_sd : standard deviations between launches and between rounds, of the log ratio of two costs
        (``difference``, ``break-even``) or of the share
    slope : of the log ratio against the log of the size at the break-even size; only ``break-even`` reads it

    Raises
    ------
    ValueError
        If the noise is no noise at all, or ``break-even`` has no slope.
    """
    if min(launch_sd, round_sd) < 0 or max(launch_sd, round_sd) <= 0:
        raise ValueError("launch_sd and round_sd must not be negative, and one of them must be positive.")
    level = 1 - confidence
    if goal == "break-even" and not slope:
        raise ValueError("the break-even size needs the slope of the log ratio against the log of the size.")
    chance: dict[str, Callable[[], Chance]] = {
        "difference": lambda: detects(np.log1p(target), level),
        "break-even": lambda: narrows(abs(slope or 0.0) * np.log1p(target), level),
        "share": lambda: narrows(target, level),
    }
    of = "share" if goal == "share" else "log ratio of the costs"
    noise = Noise(launch_var=launch_sd**2, round_var=round_sd**2)
    found = _plan(Question(of=of, noise=noise, chance=chance[goal]()), wanted, confidence, None)
    return msgspec.structs.replace(found, goal=goal, target=target)


def launch_seconds(record: Record) -> tuple[float, float]:
    """Seconds that a launch takes to start and compile, and that one of its rounds takes, from the record.

    Start-up and what was not recorded are typical values: 2 s a process, 0.2 s a program.
    """
    launches = max(len(record.launches), 1)
    compiling = sum(COMPILE_S if p.compile_s is None else p.compile_s for p in record.programs) / launches
    calls = sum(sum(v.latency_ns) + (v.queued_ns or 0) * record.sweeps[0].plan.queued_calls for v in record.visits)
    rounds = len({(v.sweep, v.launch, v.round) for v in record.visits})
    return START_UP_S + compiling, calls * 1e-9 / max(rounds, 1)


def _plan(found: Question, wanted: float, confidence: float, seconds: Callable[[int, int], float] | None) -> Power:
    """The part of the answer that depends on noise and chance alone."""
    noise, chance = found.noise, found.chance
    blank = Power(
        goal="difference",
        target=0.0,
        at=None,
        reference=None,
        size=None,
        confidence=confidence,
        wanted=wanted,
        noise=NoiseSummary(of=found.of),
        reason=found.reason,
    )
    if noise is None or chance is None:
        return blank
    chosen = cheapest(noise, chance, wanted, seconds)
    rounds = chosen.rounds if chosen else max(1, round(noise.rounds))
    interval = noise.interval(rounds, confidence)
    return msgspec.structs.replace(
        blank,
        noise=NoiseSummary(
            of=found.of,
            launch_sd=float(np.sqrt(noise.launch_var)),
            round_sd=None if noise.round_var is None else float(np.sqrt(noise.round_var)),
            mean_sd=float(np.sqrt(noise.variance(rounds))),
            interval=None if interval is None else (float(np.sqrt(interval[0])), float(np.sqrt(interval[1]))),
            rounds=None if interval is None else noise.rounds,
        ),
        table=designs(noise, chance, seconds),
        chosen=chosen,
        launches_range=launches_range(noise, chance, wanted, rounds, confidence) if chosen else None,
        reason=None if chosen else "a thousand launches do not reach it: ask for less, or make the machine quieter",
    )


def _places(
    table: LaunchTable, goal: Goal, strategy: str | None, at: int | None, reference: int | None, size: int | None
) -> tuple[str, int, int, int]:
    """Fill in the defaults and check that everything was measured."""
    known = table.strategies
    if not known:
        raise SizingError("the pilot holds collectives only, no program: there is no count to compare.")
    strategy = strategy or known[0]
    if strategy not in known:
        raise SizingError(f"strategy {strategy!r} was not measured; measured: {', '.join(known)}.")
    counts = table.devices("workload", strategy)
    at = counts[-1] if at is None else at
    reference = counts[0] if reference is None else reference
    for name, count in (("at", at), ("reference", reference)):
        if count not in counts:
            raise SizingError(f"{name} {count} was not measured; measured: {', '.join(map(str, counts))}.")
    if at == reference and goal != "share":
        raise SizingError(f"the count {at} would be compared with itself: name another with --at or --reference.")
    sizes = [s for s in table.sizes("workload", strategy) if _measured(table, strategy, at, s)]
    if goal == "difference":
        sizes = [s for s in sizes if _measured(table, strategy, reference, s)]
    if goal == "break-even":
        return strategy, at, reference, 0
    if not sizes:
        raise SizingError(f"no size was measured on both {at} and {reference} devices.")
    size = sizes[-1] if size is None else size
    if size not in sizes:
        raise SizingError(f"size {size} was not measured there; measured: {', '.join(map(str, sizes))}.")
    return strategy, at, reference, size


def _measured(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> bool:
    return table.time("workload", strategy, num_devices, table.plan.global_size(num_devices, axis_size)) is not None
