"""What a long sweep knows so far, said between its launches: the best count, and communication's share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..model.cell import devices
from . import units

if TYPE_CHECKING:
    from ..data.store import Record
    from ..fit.launches import LaunchTable
    from .progress import Reporter

EVERY_S = 60.0
"""A sweep that lasts no longer says nothing before its end."""


class SoFar:
    """Called with the record after every launch; speaks at most once in ``EVERY_S``."""

    def __init__(self, report: Reporter, clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock = report, clock
        self._said = clock()

    def __call__(self, record: Record) -> None:
        """Say what is known, where it is time and anything is."""
        if self._clock() - self._said < EVERY_S:
            return
        if text := so_far(record):
            self._report.say(text)
            self._said = self._clock()


def so_far(record: Record) -> str | None:
    """One line at the largest size measured, without any law; None below three launches, or where nothing is known."""
    from ..fit.intervals import MIN_LAUNCHES
    from ..fit.launches import from_record

    try:
        table = from_record(record)
        if table.num_launches < MIN_LAUNCHES or not table.strategies:
            return None
        strategy = table.strategies[0]
        size = table.sizes("workload", strategy)[-1]
        known = [text for text in (_best(table, strategy, size), _communication(table, strategy, size)) if text]
    except (ValueError, ArithmeticError, LookupError):
        # Whatever a fit makes of half a sweep must not end the measurement.
        return None
    where = units.size_text(size, table.plan.unit, per_device=table.plan.path == "weak")
    return f"so far, {table.num_launches} launches, {where}: {'; '.join(known)}" if known else None


def _best(table: LaunchTable, strategy: str, size: int) -> str | None:
    from ..fit.optimum import optimum

    found = optimum(table, strategy, None, axis_size=size)
    if found.estimate is None or len(found.win_frequency) < 2:
        return None
    others = f" of {units.count_set(found.set)}" if len(found.set) > 1 else ""
    return f"best count {found.estimate}{others}"


def _communication(table: LaunchTable, strategy: str, size: int) -> str | None:
    """Its share of the growth on the weak path, where there is any; else of the call on the most devices."""
    from ..fit.attribution import counts_at, parts
    from ..fit.growth import headline_growth

    growth = headline_growth(table, strategy, size) if table.plan.path == "weak" else None
    share = None if growth is None else growth.shares.get("communication")
    if growth is not None and share is not None and share.estimate is not None:
        between = f"from {growth.from_devices} to {devices(growth.to_devices)}"
        return f"communication {units.share_estimate(share)} of the growth {between}"
    last = counts_at(table, strategy, size)[-1]
    part = parts(table, strategy, last, size).get("communication")
    if part is None or part.share.estimate is None:
        return None
    return f"communication {units.share_estimate(part.share)} of the call on {devices(last)}"
