"""The time of a call as a straight line in the device count: what each further device adds, whatever the cause.

It needs neither control nor law. Where the time falls and rises again a line says little, and its misfit shows it.
"""

from __future__ import annotations

import numpy as np

from .answer import DeviceSlope, Estimate
from .attribution import counts_at
from .intervals import fits_exactly, residual_estimate, t_estimate, without_rounding
from .launches import LaunchTable

STRAIGHT = 0.1
"""A line that misses the means by more than this (root mean square, relative) describes nothing."""


def device_slope(
    table: LaunchTable,
    strategy: str,
    axis_size: int,
    *,
    reference: int = 1,
    largest: int | None = None,
    confidence: float = 0.95,
) -> DeviceSlope | None:
    """Fit a line to the times of the workload at one size.

    Parameters
    ----------
    axis_size : entry of the plan's size axis
    reference, largest : counts outside do not enter

    Returns
    -------
    DeviceSlope or None
        None where fewer than two counts were measured. With launches the line is fitted launch by launch and the
        interval is t over them; without, it comes from the residuals of the means (points - 2 degrees of freedom).

    Notes
    -----
    Ordinary least squares in seconds. In a sweep of our own one device is a case of its own (``growth``) and stays
    out where two other counts remain; data from elsewhere do not say that it is.
    """
    counts = [n for n in counts_at(table, strategy, axis_size, largest=largest) if n >= reference]
    if len(counts) > 2 and counts[0] == 1 and not table.foreign:
        counts = counts[1:]
    if len(counts) < 2:
        return None
    size = table.plan.global_size
    found = [table.time("workload", strategy, n, size(n, axis_size)) for n in counts]
    times = np.array([t for t in found if t is not None])
    design = np.column_stack([np.ones(len(counts)), counts])
    inverse = np.linalg.inv(design.T @ design)
    means = times.mean(axis=1)
    lines = without_rounding(inverse @ design.T @ times, design, means)
    residuals = means - design @ lines.mean(axis=1)
    misfit = float(np.sqrt(np.mean((residuals / means) ** 2)))
    if table.replicated:
        intercept, slope = (t_estimate(row, confidence) for row in lines)
    else:
        dof = len(counts) - 2
        errors = np.sqrt(np.diag(inverse) * (residuals @ residuals) / max(dof, 1))
        exact = fits_exactly(residuals, means)
        intercept, slope = (
            residual_estimate(float(row.mean()), float(error), dof, confidence, exact=exact)
            for row, error in zip(lines, errors, strict=True)
        )
    return DeviceSlope(
        size=axis_size,
        devices=tuple(counts),
        intercept_s=intercept,
        per_device_s=slope,
        misfit=misfit,
        straight=misfit < STRAIGHT,
        remark=_remark(slope, len(counts), replicated=table.replicated),
    )


def _remark(slope: Estimate, points: int, *, replicated: bool) -> str | None:
    """What the interval leaves open, or why there is none, in words."""
    if slope.interval is None or slope.interval[0] is None or slope.interval[1] is None:
        return None if replicated else slope.reason
    if not slope.interval[0] <= 0 <= slope.interval[1]:
        return None
    if replicated:
        return "the time does not change significantly with the device count"
    return f"direction plausible, not significant on {points} single runs; add replicates"
