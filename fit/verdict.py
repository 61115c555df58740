"""What holds the rest back: the one cause that leads all others, or undecided."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from ..model.cell import devices
from .answer import Verdict
from .attribution import Attribution, attribute, counts_at, headline_size
from .crowding import crowd, full_crowd
from .growth import growth_ends, one_device_regime
from .intervals import p_above, p_below, t_estimate, why_no_interval
from .launches import LaunchTable
from .objective import Objective

if TYPE_CHECKING:
    from .lawfit import LawFits

WAITING = "waiting for the slowest device"


class Decision(NamedTuple):
    """The verdict, a sentence with its reason, what the design cannot separate from it, and a flag beside it."""

    verdict: Verdict
    reason: str
    confounded_with: tuple[str, ...] = ()
    shared_resource: bool = False


def verdict(
    table: LaunchTable,
    strategy: str,
    *,
    size: int | None = None,
    objective: Objective | None = None,
    reference: int | None = None,
    largest: int | None = None,
    fits: LawFits | None = None,
    confidence: float = 0.95,
) -> Decision:
    """Name the cause that matters most at the largest count and size asked for.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    size : int, optional
        Entry of the plan's size axis; the largest measured by default.
    objective : {"time", "throughput"}, optional
        *time*: causes compete by the time saved if one were free. *throughput*: by their share of the growth from the
        reference count. The plan's by default.
    reference, largest : int, optional
        The smallest and largest measured count by default.
    fits : LawFits, optional
        Source of the causes where controls and probes are missing.

    Returns
    -------
    Decision
        The largest cause, when the interval of its lead over the second, paired by launch, lies above 0.
    """
    shared = shared_resource(table, strategy, largest=largest)
    axis_size = headline_size(table, strategy, size)
    if axis_size is None:
        return Decision("undecided", f"{strategy} was not measured at this size", shared_resource=shared)
    objective = objective or cast("Objective", table.plan.objective)
    if objective == "throughput":
        found = _by_growth(table, strategy, axis_size, reference, largest, fits, confidence)
    else:
        found = _by_time(table, strategy, axis_size, largest, fits)
    if isinstance(found, str):
        return Decision("undecided", found, shared_resource=shared)
    shares, what, split = found
    cause, reason = _leader(shares, what, confidence)
    if cause is None:
        return Decision("undecided", reason, shared_resource=shared)
    confounded = _confounded(table, split, cause, fits, shared)
    return Decision(cast("Verdict", cause), reason, confounded, shared)


def shared_resource(table: LaunchTable, strategy: str, *, largest: int | None = None) -> bool:
    """Whether forced host devices outnumber the cores at the largest count, so that they share them."""
    counts = [n for n in table.devices("workload", strategy) if largest is None or n <= largest]
    shared = crowd(table, counts[-1]) if counts else None
    return shared is not None and shared.devices > shared.cores


Found = tuple[dict[str, np.ndarray], str, Attribution]
"""Each cause's share by launch, (G,); of what; and the attribution at the largest count."""


def _by_time(
    table: LaunchTable, strategy: str, axis_size: int, largest: int | None, fits: LawFits | None
) -> Found | str:
    counts = counts_at(table, strategy, axis_size, largest=largest)
    split = attribute(table, strategy, counts[-1], axis_size, fits=fits) if counts else None
    if split is None:
        return f"{strategy} was not measured up to {largest} devices at this size"
    causes = split.determined
    if causes is None:
        return split.undecided or "the causes are not determined"
    return {c: s / split.total for c, s in causes.items()}, f"of the time on {devices(counts[-1])}", split


def _by_growth(
    table: LaunchTable,
    strategy: str,
    axis_size: int,
    reference: int | None,
    largest: int | None,
    fits: LawFits | None,
    confidence: float,
) -> Found | str:
    ends = growth_ends(table, strategy, axis_size, reference=reference, largest=largest)
    if ends is None:
        return "growth needs two counts at this size"
    if ends[0] == 1 and (regime := one_device_regime(table, strategy, axis_size)):
        return f"{regime}; measure a third count, so that two above one can be compared"
    start, end = (attribute(table, strategy, n, axis_size, fits=fits) for n in ends)
    before, after = (None if one is None else one.determined for one in (start, end))
    if start is None or end is None or before is None or after is None:
        return next((one.undecided for one in (end, start) if one and one.undecided), "the causes are not determined")
    grown = end.total - start.total
    if reason := _no_growth(grown, confidence):
        return f"{reason} from {ends[0]} to {devices(ends[1])}"
    what = f"of the growth from {ends[0]} to {devices(ends[1])}"
    return {cause: (after[cause] - before[cause]) / grown for cause in after}, what, end


def _no_growth(grown: np.ndarray, confidence: float) -> str | None:
    """Why there is nothing to share out; None where the time grows."""
    above, below = p_above(grown), p_below(grown)
    if above is None or below is None:
        return f"{why_no_interval(grown)}: no growth can be shown" if grown.mean() > 0 else "the time does not grow"
    if below < 1 - confidence:
        return "the time falls"
    return None if above < 1 - confidence else "the time does not grow significantly"


def _leader(shares: dict[str, np.ndarray], what: str, confidence: float) -> tuple[str | None, str]:
    """The cause whose lead over the second lies above 0, or None; and a sentence."""
    first, second = sorted(shares, key=lambda cause: shares[cause].mean(), reverse=True)[:2]
    numbers = f"{first} is {_percent(shares[first])} {what}, {second} {_percent(shares[second])}"
    lead = t_estimate(shares[first] - shares[second], confidence)
    if lead.interval is None or lead.interval[0] is None:
        return None, f"{numbers}: no interval of the lead ({lead.reason})"
    if lead.interval[0] > 0:
        return first, numbers
    return None, f"{numbers}: the lead is not significant"


def _confounded(
    table: LaunchTable, split: Attribution, cause: str, fits: LawFits | None, shared: bool
) -> tuple[str, ...]:
    """What the design cannot separate from the cause, in words."""
    found = []
    if cause == "communication" and split.sources[cause].startswith("workload − local"):
        found.append(WAITING)
    if shared and (full := full_crowd(table)) is not None:
        found.append(f"devices taking turns on {full.cores} cores")
    if split.law is not None and fits is not None:
        found.extend(fits.confounded)
    return tuple(found)


def _percent(share: np.ndarray) -> str:
    return f"{round(100 * float(share.mean()))} %"
