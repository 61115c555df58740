"""How a call's time grows between two device counts, and which cause the growth belongs to.

One device is a case of its own: XLA's CPU client runs a tiny one-device program in the calling thread, others in its
pool, and a launch may find either. Where the programs that are subtracted run in different regimes on one device, the
growth is told from the smallest count above one, and the step from one device stands apart, undecided.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..model.cell import Cell, devices
from .answer import Estimate, Growth
from .attribution import Attribution, attribute, counts_at, placed_twin
from .intervals import p_differs, t_estimate
from .launches import LaunchTable

if TYPE_CHECKING:
    from .lawfit import LawFits

COMPARED = ("workload", "local", "null")
MODE_GAP = 1.25
"""Launches disagree in mode when their times on one device, relative to the next count, fall into two groups that lie
at least this factor and three standard deviations within groups apart."""

NO_GROWTH = "the time does not grow or fall significantly, so shares of its growth mean nothing"


def growth(
    table: LaunchTable,
    strategy: str,
    from_devices: int,
    to_devices: int,
    axis_size: int,
    *,
    fits: LawFits | None = None,
    confidence: float = 0.95,
) -> Growth:
    """Growth of the time of a call between two counts, with each cause's share of it by launch.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    from_devices, to_devices : int
    axis_size : int
        Entry of the plan's size axis.

    Returns
    -------
    Growth
        Seconds; a share is the cause's own growth over the call's, negative where the cause went the other way.
        ``undecided`` says why there are no shares.
    """
    start, end = (attribute(table, strategy, n, axis_size, fits=fits) for n in (from_devices, to_devices))
    between = partial(Growth, from_devices=from_devices, to_devices=to_devices, size=axis_size)
    if start is None or end is None:
        missing = from_devices if start is None else to_devices
        reason = f"{strategy} was not measured on {devices(missing)} at this size"
        return between(latency_s=Estimate(reason=reason), undecided=reason)
    total = t_estimate(end.total - start.total, confidence)
    if from_devices == 1 and (reason := one_device_regime(table, strategy, axis_size)):
        return between(latency_s=total, undecided=reason)
    shares, undecided = _shares(start, end, confidence)
    return between(latency_s=total, shares=shares, undecided=undecided)


def headline_growth(
    table: LaunchTable,
    strategy: str,
    axis_size: int,
    *,
    reference: int | None = None,
    largest: int | None = None,
    fits: LawFits | None = None,
    confidence: float = 0.95,
) -> Growth | None:
    """Growth from the reference count, or from the smallest count above one where one device is another regime.

    None where fewer than two counts were measured at this size.
    """
    ends = growth_ends(table, strategy, axis_size, reference=reference, largest=largest)
    return None if ends is None else growth(table, strategy, *ends, axis_size, fits=fits, confidence=confidence)


def growth_step(
    table: LaunchTable, strategy: str, axis_size: int, *, fits: LawFits | None = None, confidence: float = 0.95
) -> Growth | None:
    """Growth from one device to the next count; None where one device was not measured."""
    counts = counts_at(table, strategy, axis_size)
    if len(counts) < 2 or counts[0] != 1:
        return None
    return growth(table, strategy, 1, counts[1], axis_size, fits=fits, confidence=confidence)


def growth_ends(
    table: LaunchTable, strategy: str, axis_size: int, *, reference: int | None = None, largest: int | None = None
) -> tuple[int, int] | None:
    """The two counts that growth is told between; None where fewer than two were measured.

    From one device only where no regime forbids it, or where no two counts above one exist.
    """
    counts = [n for n in counts_at(table, strategy, axis_size, largest=largest) if n >= (reference or 1)]
    if len(counts) < 2:
        return None
    if counts[0] == 1 and len(counts) > 2 and one_device_regime(table, strategy, axis_size):
        return counts[1], counts[-1]
    return counts[0], counts[-1]


def one_device_regime(table: LaunchTable, strategy: str, axis_size: int) -> str | None:
    """Why one device must not be compared with more at this size; None where it may.

    Either the compiled programs that are subtracted differ in the inline regime, or launches disagree in mode.
    """
    # An unplaced strategy borrows the controls of its placed twin.
    strategy = placed_twin(table, strategy) or strategy
    inline = {role: _inline(table, role, strategy, axis_size) for role in COMPARED}
    known = {role: value for role, value in inline.items() if value is not None}
    if len(set(known.values())) > 1:
        inside = ", ".join(role for role, value in known.items() if value)
        return f"on one device {inside} runs inline and the other programs do not: their difference is no cause"
    for role in COMPARED:
        if factor := _mode_gap(table, role, strategy, axis_size):
            return f"on one device launches disagree in mode: {role} differs by a factor of {factor:.2g} between them"
    return None


def _shares(start: Attribution, end: Attribution, confidence: float) -> tuple[dict[str, Estimate], str | None]:
    before, after = start.determined, end.determined
    if before is None or after is None:
        return {}, end.undecided or start.undecided
    grown = end.total - start.total
    p = p_differs(grown)
    if (p is not None and p >= 1 - confidence) or grown.mean() == 0:
        return {}, NO_GROWTH
    if p is None:
        # Without a test launch-wise ratios may explode; the ratio of the means is all there is.
        reason = t_estimate(grown).reason
        ratios = {cause: float((after[cause] - before[cause]).mean() / grown.mean()) for cause in after}
        return {cause: Estimate(estimate=share, reason=reason) for cause, share in ratios.items()}, None
    return {cause: t_estimate((after[cause] - before[cause]) / grown, confidence) for cause in after}, None


def _inline(table: LaunchTable, role: str, strategy: str, axis_size: int) -> bool | None:
    facts = table.facts.get(Cell(role=role, strategy=strategy, num_devices=1, size=axis_size))
    return None if facts is None else facts.inline


def _mode_gap(table: LaunchTable, role: str, strategy: str, axis_size: int) -> float | None:
    """Factor between two groups of launches on one device; None where they form one group."""
    alone = table.time(role, strategy, 1, table.plan.global_size(1, axis_size))
    more = (
        table.time(role, strategy, n, table.plan.global_size(n, axis_size)) for n in table.devices(role, strategy)[1:]
    )
    several = next((times for times in more if times is not None), None)
    if alone is None or several is None or alone.size < 2:
        return None
    # Relative to the next count, so that a launch that is slower as a whole is no mode.
    logs = np.sort(np.log(alone / several))
    cut = int(np.argmax(np.diff(logs))) + 1
    gap = logs[cut] - logs[cut - 1]
    groups = logs[:cut], logs[cut:]
    within = np.sqrt(sum(np.var(g) * g.size for g in groups) / max(logs.size - 2, 1))
    return float(np.exp(gap)) if gap >= max(np.log(MODE_GAP), 3 * within) else None
