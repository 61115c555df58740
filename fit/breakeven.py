"""From which count on adding devices helps, up to which, and at which sizes each count breaks even."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from .answer import BreakEven, BreakEvenCount, BreakEvenSize, Estimate, Outcome
from .comparison import Comparison
from .crossover import Crossover, crossover
from .launches import LaunchTable
from .objective import Costs, Objective

if TYPE_CHECKING:
    from .lawfit import LawFits

Helps = Literal["above", "below", "window", "always", "never", "undecided"]
_SHAPES: dict[tuple[int, ...], Helps] = {
    (1,): "never",
    (-1,): "always",
    (1, -1): "above",
    (-1, 1): "below",
    (1, -1, 1): "window",
}


def break_even(
    table: LaunchTable,
    strategy: str,
    fits: LawFits | None,
    *,
    axis_size: int,
    objective: Objective | None = None,
    reference: int | None = None,
    max_devices: int | None = None,
    confidence: float = 0.95,
) -> BreakEven:
    """Compare every admissible count with the reference count.

    Parameters
    ----------
    axis_size : S on the strong path, per device on the weak one; for ``first`` and ``last``

    Returns
    -------
    BreakEven
        ``first`` and ``last``: the smallest and the largest count that beat the reference at ``axis_size``, found
        when the data exclude that none does. ``sizes``: for each measured count, over all measured sizes.

    Notes
    -----
    "The first count is m" says that m beats the reference and that no smaller count does; it is excluded when one
    of these statements is rejected (one-sided t over launches, Bonferroni over the statements it makes), so the set
    holds the true answer with the stated confidence. "Never" is one of the candidates.
    """
    costs = Costs.of(table, strategy, fits, objective=objective, reference=reference, max_devices=max_devices)
    known = {c.num_devices: c for c in costs.known(axis_size)}
    at_reference = known.pop(costs.reference, None)
    ratios = {n: c.log_ratio(at_reference) for n, c in known.items()} if at_reference else {}
    return BreakEven(
        size=axis_size,
        first=_count(ratios, confidence),
        last=_count(dict(reversed(ratios.items())), confidence, downwards=True),
        sizes=tuple(
            _size(costs, n, confidence)
            for n in table.devices("workload", strategy)
            if costs.reference < n <= costs.max_devices
        ),
    )


def _count(ratios: Mapping[int, Comparison], confidence: float, *, downwards: bool = False) -> BreakEvenCount:
    """The first count that beats the reference, in the order given; ``downwards``: the order descends."""
    if not ratios:
        return BreakEvenCount(
            estimate=None,
            set=(),
            outcome="undecided",
            reason="nothing to compare: the reference, or every other count, is not known at this size",
        )
    estimate = next((n for n, r in ratios.items() if r.estimate < 0), None)
    at_least = downwards and estimate == next(iter(ratios))
    if reason := next((r.reason for r in ratios.values() if r.reason), None):
        everything = (*sorted(ratios), None)
        if estimate is None:
            reason = f"no count up to {max(ratios)} beat the reference, but that may be chance: {reason}"
        return BreakEvenCount(estimate=estimate, set=everything, outcome="undecided", at_least=at_least, reason=reason)
    left = _not_excluded(ratios, 1 - confidence)
    if left == (None,):
        return BreakEvenCount(estimate=None, set=left, outcome="never", reason=f"no count up to {max(ratios)} helps")
    if None in left:
        reason = "the data cannot exclude that no count beats the reference"
    return BreakEvenCount(
        estimate=estimate,
        set=left,
        outcome="undecided" if None in left else "found",
        at_least=at_least,
        reason=reason,
    )


def _not_excluded(ratios: Mapping[int, Comparison], level: float) -> tuple[int | None, ...]:
    """Counts, and None for "never", that none of their statements speaks against."""
    left: list[int | None] = []
    against_earlier: list[float] = []
    for n, ratio in ratios.items():
        against = [*against_earlier, _known(ratio.p_above())]
        if min(against) * len(against) > level:
            left.append(n)
        against_earlier.append(_known(ratio.p_below()))
    never = [None] if min(against_earlier) * len(against_earlier) > level else []
    return (*sorted(n for n in left if n is not None), *never)


def _known(p: float | None) -> float:
    assert p is not None, "ratios with a reason were turned away"
    return p


def _size(costs: Costs, num_devices: int, confidence: float) -> BreakEvenSize:
    """Sizes at which one count costs the same as the reference, over the sizes where both were measured."""
    ratios = {}
    for size in costs.table.sizes("workload", costs.strategy):
        ours, theirs = costs.at(num_devices, size), costs.at(costs.reference, size)
        if ours.kind == theirs.kind == "measured":
            ratios[size] = ours.routes[0].log_cost - theirs.routes[0].log_cost
    if len(ratios) < 2:
        return _predicted_size(costs, num_devices, measured=len(ratios))
    found = crossover(np.array(list(ratios)), np.array(list(ratios.values())), confidence=confidence)
    helps = _helps(found.signs)
    return BreakEvenSize(
        num_devices=num_devices,
        roots=found.roots,
        pieces=found.pieces,
        helps=helps,
        outcome=_outcome(found, helps),
        reason=found.reason or _explain(found, helps, min(ratios), max(ratios)),
    )


def _predicted_size(costs: Costs, num_devices: int, *, measured: int) -> BreakEvenSize:
    """Roots where too few sizes were measured on both counts: predictions fill in, and there is no interval."""
    ratios, sources = {}, set()
    for size in costs.table.sizes("workload", costs.strategy):
        ours, theirs = costs.at(num_devices, size), costs.at(costs.reference, size)
        if ours.routes and theirs.routes:
            ratios[size] = ours.routes[0].log_cost.mean() - theirs.routes[0].log_cost.mean()
            sources |= {cost.routes[0].source for cost in (ours, theirs) if cost.kind != "measured"}
    reason = "one size: no break-even size" if measured else "no size was measured on both counts"
    roots: tuple[Estimate, ...] = ()
    if len(ratios) > 1:
        found = crossover(np.array(list(ratios)), np.array(list(ratios.values()))[:, None], confidence=0.95)
        filled = f"{'one size was' if measured else 'no size was'} measured on both counts, others are predicted"
        reason = f"{filled} ({', '.join(sorted(sources))})"
        roots = tuple(Estimate(estimate=root.estimate, reason=reason) for root in found.roots)
    return BreakEvenSize(
        num_devices=num_devices,
        roots=roots,
        pieces=((None, None),),
        helps="undecided",
        outcome="undecided",
        reason=reason,
    )


def _helps(signs: Sequence[int]) -> Helps:
    """Name the order of signs (-1: the count is cheaper) from the smallest to the largest size.

    An unsure size is skipped between different signs, where the curve must pass through zero; anywhere else it
    leaves the shape undecided.
    """
    for i, sign in enumerate(signs):
        around = {next((s for s in part if s), 0) for part in (signs[:i][::-1], signs[i + 1 :])}
        if sign == 0 and (0 in around or len(around) == 1):
            return "undecided"
    sure = [s for s in signs if s]
    return _SHAPES.get(tuple(s for i, s in enumerate(sure) if i == 0 or s != sure[i - 1]), "undecided")


def _outcome(found: Crossover, helps: Helps) -> Outcome:
    if helps == "never":
        return "never"
    crosses = len({s for s in found.signs if s}) == 2
    return "found" if crosses or helps == "always" else "undecided"


def _explain(found: Crossover, helps: Helps, smallest: int, largest: int) -> str | None:
    where = f"from {smallest} to {largest}"
    match helps:
        case "never":
            return f"costs more than the reference {where}"
        case "always":
            return f"costs less than the reference {where}"
        case "undecided":
            unsure = sum(s == 0 for s in found.signs)
            return (
                f"not sure which count is cheaper at {unsure} of {len(found.signs)} sizes"
                if unsure
                else f"changes sides more than twice {where}, or helps at both ends and not between"
            )
    return None
