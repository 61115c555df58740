"""How much of the communication is hidden behind other work, where a control and a replay were both measured.

The control holds all but the communication, the replay (or a chain) the communication by itself. What both together
take longer than the workload was done at the same time: behind compute, or one collective behind another.
"""

from __future__ import annotations

import numpy as np

from ..model.cell import devices
from .answer import Estimate, Overlap
from .collective_cost import Route, chain_route, replay_route
from .intervals import p_above, p_below, t_estimate
from .launches import LaunchTable


def overlaps(
    table: LaunchTable, strategy: str, axis_size: int, *, largest: int | None = None, confidence: float = 0.95
) -> tuple[Overlap, ...]:
    """Measure the overlap at every count above one.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    axis_size : int
        Entry of the plan's size axis.
    largest : int, optional
        Largest count of interest.

    Returns
    -------
    tuple of Overlap
        Only counts at which workload, control and the communication by itself were measured. ``hidden_s`` = local +
        communication - workload, seconds a call, paired by launch; the communication is the replay's, else the
        chain's, free of dispatch. ``fraction`` divides its mean by the mean of the shorter of compute (local - null)
        and communication, the most that could be hidden; it is not cut to [0, 1].
    """
    found = []
    for n in table.devices("workload", strategy):
        if n > 1 and (largest is None or n <= largest):
            found.append(_overlap(table, strategy, n, axis_size, confidence))
    return tuple(one for one in found if one is not None)


def _overlap(table: LaunchTable, strategy: str, num_devices: int, axis_size: int, confidence: float) -> Overlap | None:
    size = table.plan.global_size(num_devices, axis_size)
    total = table.time("workload", strategy, num_devices, size)
    local = table.time("local", strategy, num_devices, size)
    route = _communication(table, strategy, num_devices, axis_size)
    if total is None or local is None or route.seconds is None:
        return None
    null = table.time("null", strategy, num_devices, size)
    hidden = local + route.seconds - total
    answer = t_estimate(hidden, confidence)
    fraction = _fraction(hidden, route.seconds, None if null is None else local - null, confidence)
    return Overlap(
        num_devices=num_devices,
        size=axis_size,
        hidden_s=answer,
        fraction=fraction,
        reason=_in_words(num_devices, hidden, fraction, 1 - confidence, answer.reason),
    )


def _communication(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> Route:
    """The workload's collectives by themselves: the replay's, else the chain's."""
    replay = replay_route(table, strategy, num_devices, axis_size)
    return replay if replay.seconds is not None else chain_route(table, strategy, num_devices, axis_size)


def _fraction(hidden: np.ndarray, communication: np.ndarray, compute: np.ndarray | None, confidence: float) -> Estimate:
    """Hidden over what could be hidden; the divisor is a mean over launches, since one launch may have none."""
    if compute is None:
        return Estimate(reason="how much could be hidden is unknown: no null program was measured")
    shorter, name = min((communication, "communication"), (compute, "compute"), key=lambda pair: pair[0].mean())
    above = p_above(shorter)
    if shorter.mean() <= 0 or (above is not None and above > 1 - confidence):
        return Estimate(reason=f"{name} does not stand out from noise, so nothing could be hidden")
    return t_estimate(_ratio(hidden, shorter), confidence)


def _ratio(hidden: np.ndarray, shorter: np.ndarray) -> np.ndarray:
    """Values whose mean is mean(hidden) / mean(shorter) and whose spread is that of the ratio (delta method)."""
    ratio = hidden.mean() / shorter.mean()
    return ratio + (hidden - ratio * shorter) / shorter.mean()


def _in_words(num_devices: int, hidden: np.ndarray, fraction: Estimate, level: float, reason: str | None) -> str:
    where = f"on {devices(num_devices)}"
    above, below = p_above(hidden), p_below(hidden)
    if above is None or below is None:
        return f"{where} not decided: {reason}"
    if below < level / 2:
        return (
            f"{where} none: apart, compute and communication take less than the workload (waiting for the slowest "
            "device, or each slows the other down)"
        )
    if above >= level / 2:
        return f"{where} none detected"
    much = "part of the communication is hidden behind other work"
    if fraction.interval is not None:
        lower, upper = fraction.interval
        if lower is not None and lower > 1:
            much = "more is hidden than one of them takes: alone, the collectives cost more than inside the workload"
        elif upper is not None and upper >= 1:
            much = "all that can be hidden may be"
    return f"{where} {much}; laws that add them overstate the time by it"
