"""Whether the machine drifts, by the sentinel: one fixed program, visited once a round in the same random order.

The sentinel knows nothing of the workload: where it drifts, the machine does (heat, clock frequency, other load); where
only the workload does, the workload is the cause. Nothing is corrected: what is compared inside a round (differences,
shares, causes) shares the drift and is immune to it; times and fitted parameters are not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from ..answer import Diagnostic
from ..intervals import MIN_LAUNCHES, TOO_FEW, p_differs
from ..launches import LaunchTable
from .residuals import LEVEL, judged, percent, skipped

MATTERS = 0.02
"""A smaller drift is no alarm: it is below what intervals of times over six launches can tell."""
MIN_VISITS = 4
WITHIN, OVER = "machine drift in a launch", "machine drift over the sweep"
_REMEDY = (
    "let the machine settle (heat, frequency, other users) and measure again; shares and differences are paired inside "
    "rounds and stand, times and fitted parameters do not"
)


class Drift(NamedTuple):
    """A relative change on the log scale, over so many seconds, and the p-value of "no drift"."""

    change: float
    seconds: float
    p: float | None

    def alarms(self, level: float = LEVEL) -> bool:
        """Whether it is significant and large enough to matter."""
        return self.p is not None and self.p < level and abs(self.change) >= MATTERS

    @property
    def words(self) -> str:
        """Change and time; the rate where it spans a minute or more."""
        rate = f" ({percent(self.change * 60 / self.seconds)} a minute)" if self.seconds >= 60 else ""
        return f"the sentinel's time changes by {percent(self.change)} in {self.seconds:.3g} s{rate}"


def drift_within(table: LaunchTable) -> Drift | None:
    """Drift from the first to the last round of a launch: slopes of log time on time, t over launches.

    None without a sentinel, or without three launches of ``MIN_VISITS`` rounds.
    """
    long = [one for one in table.sentinel_s if one.shape[1] >= MIN_VISITS and np.ptp(one[0]) > 0]
    if len(long) < MIN_LAUNCHES:
        return None
    spans = np.array([np.ptp(times) for times, _ in long])
    changes = np.array([_slope(times, np.log(seconds)) for times, seconds in long]) * spans
    return Drift(float(changes.mean()), float(spans.mean()), p_differs(changes))


def drift_over(table: LaunchTable) -> Drift | None:
    """Drift from the first launch to the last: a line through the launches' mean log times, G - 2 degrees of freedom.

    None without a sentinel, or with fewer than three launches.
    """
    visited = [one for one in table.sentinel_s if one.shape[1]]
    times = np.array([one[0].mean() for one in visited])
    if len(visited) < MIN_LAUNCHES or not np.ptp(times) > 0:
        return None
    logs = np.array([np.log(one[1]).mean() for one in visited])
    slope = _slope(times, logs)
    centred = times - times.mean()
    left = logs - logs.mean() - slope * centred
    p = None
    # Launches that lie on a line to the last digit are no measurements.
    if np.abs(left).max() > 1e-12 * np.abs(logs).max():
        error = np.sqrt(left @ left / (len(visited) - 2) / (centred @ centred))
        p = float(2 * special.stdtr(len(visited) - 2, -abs(slope) / error))
    return Drift(float(slope * np.ptp(times)), float(np.ptp(times)), p)


def machine_drift(table: LaunchTable) -> list[Diagnostic]:
    """Both as checks; none where the plan has no sentinel."""
    if not table.plan.sentinel:
        return []
    return [
        _check(WITHIN, drift_within(table), f"fewer than {MIN_LAUNCHES} launches of {MIN_VISITS} rounds"),
        _check(OVER, drift_over(table), TOO_FEW),
    ]


def _check(name: str, found: Drift | None, why_not: str) -> Diagnostic:
    if found is None or found.p is None:
        return skipped(name, why_not if found is None else "launches are identical", "measure more launches")
    return judged(
        name, "sentinel", statistic=found.change, p=found.p, failed=found.alarms(), words=found.words, remedy=_REMEDY
    )


def _slope(times: np.ndarray, logs: np.ndarray) -> float:
    centred = times - times.mean()
    return float(centred @ logs / (centred @ centred))
