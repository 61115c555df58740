"""What to measure next: the sweep that narrows one answer most for the time there is.

A pilot says where the answer lies, how much times vary within and between launches, and what a launch costs. Every
sweep that could be run is valued by the half width that the answer's interval would then have. Launches of another plan
are never pooled with the pilot's, so a new sweep stands alone; more launches of the pilot's own plan add to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..answer import Estimate
from ..launches import LaunchTable
from ..lawfit import LawFits
from ..objective import Costs, Objective
from .candidates import Candidate, Programs, command, round_device_s, round_s, same_plan
from .contrasts import Contrast, NoTarget, counts
from .launch_cost import LaunchCost
from .proposal import CellWeight, NextPoint, Option, SweepPlan
from .questions import Question, of_count, of_parameter, of_size
from .spread import spread
from .stopping import MIN_LAUNCHES_AT_LOOK

LAUNCHES = np.arange(MIN_LAUNCHES_AT_LOOK, 41)
ROUNDS = np.array([4, 6, 8, 12, 16, 24, 32, 48, 60])
MOST_OPTIONS = 4
PRECISION = 0.10
"""Half width wanted where none is said, as a share of the estimate."""
CLOSE, CHEAP = 1.05, 1.1
"""Half widths within the first factor are the same, and so are device-seconds within the second."""
SPARE = 1.2
"""Budget of the proposed command over the time it should take, but not above the budget given."""


@dataclass(frozen=True, kw_only=True)
class _Means:
    """What a sweep may cost, and where it goes."""

    cost: LaunchCost
    budget_s: float
    confidence: float
    file: str


@dataclass(frozen=True, kw_only=True)
class _Valued:
    """A candidate at its best number of launches and rounds."""

    found: Programs
    contrasts: Sequence[Contrast]
    calls_s: np.ndarray
    launches: int
    rounds: int
    half_width: float
    wall_s: float
    device_s: float


def next_point(
    table: LaunchTable,
    *,
    target: str,
    cost: LaunchCost,
    budget_s: float,
    strategy: str | None = None,
    fits: LawFits | None = None,
    precision: float = PRECISION,
    size: int | None = None,
    objective: Objective | None = None,
    reference: int | None = None,
    max_devices: int | None = None,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    noise: float | None = None,
    file: str = "next.jsonl",
) -> NextPoint:
    """Find the sweep that answers one question best within a budget.

    Parameters
    ----------
    table : the pilot
    target : ``break-even`` (the size at which the largest count costs the same as the reference), ``optimum`` (at
        ``size``), or the name of a parameter of the law
    cost : of a launch
    budget_s : wall time of the new sweep, start-up included
    fits : of the pilot; needed for a parameter
    precision : half width wanted, as a share of the estimate; the optimum is decided by ``tolerance`` instead
    size : of the optimum; of several break-even sizes the one to go for is the nearest
    noise : standard deviation of a log time between launches, where the pilot does not show it
    file : that the new sweep is to be written to

    Returns
    -------
    NextPoint
        ``best`` is the cheapest sweep, in device-seconds, that reaches what is wanted; where none does, the one with
        the narrowest interval. Every sweep has six launches or more: the width of an interval over fewer is itself
        hardly known.

    Raises
    ------
    NoSpread
        If the pilot shows no spread and ``noise`` is not given.
    UnknownParameter
        If the law has no such parameter.
    ValueError
        If the strategy or reference was not measured, or a parameter is asked for without ``fits``.
    """
    strategy = strategy or table.strategies[0]
    means = _Means(cost=cost, budget_s=budget_s, confidence=confidence, file=file)
    varies = spread(table, noise)
    costs = Costs.of(table, strategy, None, objective=objective, reference=reference, max_devices=max_devices)
    try:
        match target:
            case "break-even":
                question = of_size(costs, varies, near=size, precision=precision, confidence=confidence)
            case "optimum":
                axis_size = table.sizes("workload", strategy)[-1] if size is None else size
                question = of_count(costs, varies, axis_size=axis_size, tolerance=tolerance, confidence=confidence)
            case _:
                if fits is None:
                    raise ValueError(f"target {target!r} is a parameter: give the pilot's fits.")
                question = of_parameter(costs, varies, fits, target, precision=precision)
    except NoTarget as refusal:
        nothing = Question(
            table=table,
            costs=costs,
            spread=varies,
            about=target,
            current=Estimate(reason=str(refusal)),
            wanted=precision,
        )
        return _result(nothing, target, means, [], reached=False, reason=str(refusal))
    if enough := question.enough:
        return _result(question, target, means, [], reached=True, reason=enough)
    return _choose(question, target, means)


def _choose(question: Question, target: str, means: _Means) -> NextPoint:
    """Value every candidate and rank them."""
    valued = [v for c in _candidates(question) if (v := _value(question, c, means)) is not None]
    affordable = [v for v in valued if v.wall_s <= means.budget_s]
    if reaching := [v for v in affordable if v.half_width <= question.wanted]:
        ranked = sorted(reaching, key=lambda v: (v.device_s, v.half_width))
        return _result(question, target, means, ranked, reached=True, reason=None)
    # Classes of about 5 % in the half width; within one the cheaper comes first.
    ranked = sorted(affordable, key=lambda v: (round(np.log(v.half_width) / np.log(CLOSE)), v.device_s))
    now = question.half_width
    if ranked and now is not None and ranked[0].half_width >= now:
        reason = f"{_too_little(question, ranked[0], means)}, which is no better than now"
        return _result(question, target, means, [], reached=False, reason=reason)
    reason = _too_little(question, ranked[0], means) if ranked else _nothing_fits(question, valued)
    return _result(question, target, means, ranked, reached=False, reason=reason)


def _candidates(question: Question) -> Iterator[Candidate]:
    if question.spread.dof is not None and not question.table.foreign:
        yield same_plan(question.table)
    yield from question.candidates()


def _value(question: Question, candidate: Candidate, means: _Means) -> _Valued | None:
    """The cheapest launches and rounds within the budget that reach what is wanted, else the narrowest.

    Where the budget allows none the least are valued, to say what they would take. None: it cannot answer at all.
    """
    found = question.programs(candidate)
    if found is None or not (contrasts := question.contrasts(found)):
        return None
    calls_s = question.calls_s(found)
    cost = means.cost
    launches, rounds = LAUNCHES[:, None], ROUNDS[None, :]
    wall = launches * (cost.startup_s(len(found.cells)) + rounds * round_s(cost, found.cells, calls_s.tolist()))
    device = launches * rounds * round_device_s(cost, found.cells, calls_s.tolist())
    half = question.expected_half_width(found, contrasts, launches, rounds, means.confidence)
    possible = np.isfinite(half)
    if not possible.any():
        return None
    affordable = possible & (wall <= means.budget_s)
    reaching = affordable & (half <= question.wanted)
    if reaching.any():
        # Of those that cost about the least the shortest: fewer launches, each a little longer.
        cheap = reaching & (device <= CHEAP * device[reaching].min())
        at = _least(wall, cheap)
    elif affordable.any():
        at = _least(half, affordable)
    else:
        at = _least(wall, possible)
    return _Valued(
        found=found,
        contrasts=contrasts,
        calls_s=calls_s,
        launches=int(LAUNCHES[at[0]]),
        rounds=int(ROUNDS[at[1]]),
        half_width=float(half[at]),
        wall_s=float(wall[at]),
        device_s=float(device[at]),
    )


def _least(values: np.ndarray, among: np.ndarray) -> tuple[int, int]:
    """Place of the least value among some, both of shape (launches, rounds)."""
    row, column = np.unravel_index(np.argmin(np.where(among, values, np.inf)), values.shape)
    return int(row), int(column)


def _result(
    question: Question, target: str, means: _Means, ranked: Sequence[_Valued], *, reached: bool, reason: str | None
) -> NextPoint:
    options = [_option(question, v, means) for v in ranked[:MOST_OPTIONS]]
    table = question.table
    return NextPoint(
        target=target,
        about=question.about,
        strategy=question.costs.strategy,
        unit=table.plan.unit,
        path="weak" if table.plan.path == "weak" else "strong",
        confidence=means.confidence,
        budget_s=means.budget_s,
        num_launches=table.num_launches if table.replicated else None,
        current=question.current,
        current_half_width=question.half_width,
        wanted=question.wanted if np.isfinite(question.wanted) else None,
        relative=question.relative,
        best=options[0] if options else None,
        others=tuple(options[1:]),
        cells=_weights(question, ranked[0], means.cost) if ranked else (),
        reached=reached,
        reason=reason,
        assumptions=means.cost.assumed,
    )


def _option(question: Question, v: _Valued, means: _Means) -> Option:
    now = question.half_width
    plan = SweepPlan(
        devices=v.found.candidate.devices,
        sizes=v.found.candidate.sizes,
        controls=v.found.candidate.controls,
        probes=v.found.candidate.probes,
        launches=v.launches,
        rounds=v.rounds,
        calls=means.cost.calls,
        pooled=v.found.candidate.pooled,
        command=None
        if question.table.foreign
        else command(
            question.table,
            question.costs.strategy,
            v.found.candidate,
            launches=v.launches,
            calls=means.cost.calls,
            budget_s=min(means.budget_s, SPARE * v.wall_s),
            file=means.file,
        ),
    )
    return Option(
        plan=plan,
        half_width=v.half_width,
        wall_s=v.wall_s,
        device_s=v.device_s,
        reduction_per_device_s=None if now is None else (1 - (v.half_width / now) ** 2) / v.device_s,
    )


def _weights(question: Question, v: _Valued, cost: LaunchCost) -> tuple[CellWeight, ...]:
    """The cells of the best sweep, and those that an ideal one would have, by what they contribute."""
    calls_s = dict(zip(v.found.cells, v.calls_s.tolist(), strict=True))
    contrast = v.contrasts[len(v.contrasts) // 2]
    variance = dict(zip(contrast.cells, contrast.shares(question.spread, v.rounds).tolist(), strict=True))
    ideal = question.ideal(contrast, v.rounds, np.array([calls_s[cell] for cell in contrast.cells]))
    spent = np.array([cost.calls_of(c.role) * t for c, t in calls_s.items()]) * counts(v.found.cells)
    spent_on = dict(zip(v.found.cells, (spent / spent.sum()).tolist(), strict=True))
    return tuple(
        CellWeight(
            role=cell.role,
            num_devices=cell.num_devices,
            size=cell.size,
            k=cell.k,
            payload_bytes=cell.payload_bytes,
            variance_share=variance.get(cell, 0.0),
            device_s_share=spent_on.get(cell, 0.0),
            ideal_share=ideal.get(cell, 0.0),
        )
        for cell in sorted({*v.found.cells, *ideal}, key=lambda c: c.sort_key)
    )


def _too_little(question: Question, best: _Valued, means: _Means) -> str:
    return (
        f"±{100 * question.wanted:.2g} % is wanted, and {means.budget_s:.3g} s are expected to give "
        f"±{100 * best.half_width:.2g} % at best"
    )


def _nothing_fits(question: Question, valued: Sequence[_Valued]) -> str:
    """Why no sweep is affordable."""
    if not valued:
        why = question.current.reason
        return "no sweep over the measured counts and sizes determines it" + (f": {why}" if why else "")
    least = min(v.wall_s for v in valued)
    return f"the shortest sweep that shows it, {LAUNCHES[0]} launches, takes about {least:,.0f} s of wall time"
