"""Does adding devices make no difference? Equivalence within a margin, not the absence of a significant difference."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .answer import NoDifference
from .intervals import holm, log_t_estimate, p_above, p_below, tost, why_no_interval
from .objective import Costs

MARGIN = 0.05
"""Costs whose ratio lies within this share of 1 count as the same."""


def no_difference(
    costs: Costs, size: int, *, margin: float = MARGIN, confidence: float = 0.95
) -> tuple[NoDifference, ...]:
    """Compare the cost of each measured count with that of the reference count.

    Parameters
    ----------
    costs : Costs
    size : int
        Entry of the plan's size axis.
    margin : float, positive
        The ratio of costs may lie between 1 / (1 + margin) and 1 + margin.

    Returns
    -------
    tuple of NoDifference, by count
        Two one-sided t tests of the log ratio, paired by launch, Holm over the counts. ``no`` where the ratio lies
        outside the margin by a test of its own, after Holm as well.

    Raises
    ------
    ValueError
        If ``margin`` is not positive.
    """
    known = {n: costs.at(n, size) for n in costs.table.devices("workload", costs.strategy)}
    measured = {n: cost for n, cost in known.items() if cost.kind == "measured" and n <= costs.max_devices}
    reference = measured.pop(costs.reference, None)
    if reference is None:
        return ()
    logs = {
        n: cost.routes[0].log_cost - reference.routes[0].log_cost for n, cost in measured.items() if n > costs.reference
    }
    width = float(np.log1p(margin))
    inside = holm([tost(ratio, width, confidence=confidence).p for ratio in logs.values()])
    outside = holm([_p_outside(ratio, width) for ratio in logs.values()])
    level = 1 - confidence
    return tuple(
        NoDifference(
            num_devices=n,
            ratio=log_t_estimate(np.exp(ratio), confidence),
            margin=margin,
            p=p_inside,
            equivalent=_equivalent(p_inside, p_outside, level),
            reason=why_no_interval(ratio),
        )
        for (n, ratio), p_inside, p_outside in zip(logs.items(), inside, outside, strict=True)
    )


def _p_outside(log_ratio: np.ndarray, width: float) -> float | None:
    """p-value of "within the margin": where it is true, only one of its two ends can be near."""
    above, below = p_above(log_ratio, width), p_below(log_ratio, -width)
    return None if above is None or below is None else min(above, below)


def _equivalent(inside: float | None, outside: float | None, level: float) -> Literal["yes", "no", "undecided"]:
    if inside is not None and inside < level:
        return "yes"
    return "no" if outside is not None and outside < level else "undecided"
