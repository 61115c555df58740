"""How fast the machine itself was in two sweeps, by their sentinels; and what is left at one speed.

A virtual machine may run 1.5 times faster a few minutes later (seen: its clock, its host's other guests). Then every
program of the second sweep is faster, and none was changed.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from ..answer import Estimate
from ..checks.drift import MATTERS
from ..intervals import why_no_interval
from ..launches import LaunchTable


class MachineSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """The sentinel's time in the second sweep over that in the first.

    ``p``: of "they are equal", two-sided. ``matters``: the estimate lies far enough from 1, significantly or not, to be
    looked through: a difference of the programs then counts only where it is the same at one speed.
    """

    ratio: Estimate
    p: float | None
    matters: bool


def machine_speed(first: LaunchTable, second: LaunchTable, *, confidence: float = 0.95) -> MachineSpeed | None:
    """Compare the sentinels by Welch's t on the mean log times of the launches; None where a side has none.

    Both must have been measured on one kind of machine with the same versions: elsewhere the sentinel, a program of JAX
    too, holds what is to be compared.
    """
    a, b = first.sentinel_log_s, second.sentinel_log_s
    if a is None or b is None:
        return None
    change = float(b.mean() - a.mean())
    matters = abs(change) >= MATTERS
    if reason := why_no_interval(a) or why_no_interval(b):
        return MachineSpeed(ratio=Estimate(estimate=float(np.exp(change)), reason=reason), p=None, matters=matters)
    from scipy import stats

    found = stats.ttest_ind(b, a, equal_var=False)
    low, high = found.confidence_interval(confidence)
    ratio = Estimate(estimate=float(np.exp(change)), interval=(float(np.exp(low)), float(np.exp(high))))
    return MachineSpeed(ratio=ratio, p=float(found.pvalue), matters=matters)


def at_one_speed(first: LaunchTable, second: LaunchTable) -> tuple[LaunchTable, LaunchTable]:
    """Both sweeps with each launch's times as if the sentinel took equally long in all launches of both.

    Raises
    ------
    ValueError
        If a launch has no sentinel.
    """
    logs = first.sentinel_log_s, second.sentinel_log_s
    if logs[0] is None or logs[1] is None:
        raise ValueError("a launch without a sentinel does not say how fast its machine was.")
    common = float(np.mean([one.mean() for one in logs if one is not None]))
    return _scaled(first, np.exp(common - logs[0])), _scaled(second, np.exp(common - logs[1]))


def _scaled(table: LaunchTable, factors: np.ndarray) -> LaunchTable:
    return replace(
        table,
        latency_s=table.latency_s * factors,
        rounds_s=tuple(times * factor for times, factor in zip(table.rounds_s, factors, strict=True))
        if table.rounds_s
        else (),
        queued_s=None if table.queued_s is None else table.queued_s * factors,
    )
