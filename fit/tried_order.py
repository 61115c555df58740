"""A ring order that was tried: all-reduces over the devices in two orders, side by side in the same launches."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from ..data.store import Record
from .answer import Estimate
from .intervals import NOT_FINITE, NOT_POSITIVE, holm, log_t_estimate, p_above, p_below
from .launches import LaunchTable, from_record
from .links import slope_in_k


class TriedSize(msgspec.Struct, frozen=True, kw_only=True):
    """One all-reduce over the devices as they stand and in the proposed order: seconds, and the ratio of the two."""

    message_bytes: int
    default_s: Estimate
    proposed_s: Estimate
    ratio: Estimate
    outcome: Literal["faster", "slower", "no difference detected", "cannot tell"]


class TriedOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed order, measured against the one as it stands."""

    source: str
    order: tuple[int, ...]
    num_launches: int
    platform: str | None
    confidence: float
    sizes: tuple[TriedSize, ...]


def tried(record: Record, *, confidence: float = 0.95) -> TriedOrder:
    """Compare the orders of a sweep that tried them.

    Raises
    ------
    RecordError
        If the record holds no links, or nothing was measured.
    """
    table = from_record(record, links=True)
    default, proposed = table.plan.strategies
    rows = []
    for size in table.plan.sizes:
        before, after = (_all_reduce_s(table, strategy, size) for strategy in (default, proposed))
        rows.append((size, before, after))
    ratios = [_log_ratio(before, after) for _, before, after in rows]
    below, above = (holm([None if isinstance(r, str) else p(r) for r in ratios]) for p in (p_below, p_above))
    level = (1 - confidence) / 2
    return TriedOrder(
        source=table.source,
        order=table.plan.orders[1],
        num_launches=table.num_launches,
        platform=table.platform,
        confidence=confidence,
        sizes=tuple(
            TriedSize(
                message_bytes=size,
                default_s=log_t_estimate(before, confidence),
                proposed_s=log_t_estimate(after, confidence),
                ratio=Estimate(reason=ratio) if isinstance(ratio, str) else log_t_estimate(np.exp(ratio), confidence),
                outcome=_outcome(low, high, level),
            )
            for (size, before, after), ratio, low, high in zip(rows, ratios, below, above, strict=True)
        ),
    )


def _outcome(
    below: float | None, above: float | None, level: float
) -> Literal["faster", "slower", "no difference detected", "cannot tell"]:
    if below is None or above is None:
        return "cannot tell"
    return "faster" if below <= level else "slower" if above <= level else "no difference detected"


def _log_ratio(before: np.ndarray, after: np.ndarray) -> np.ndarray | str:
    """Logarithm of after / before, shape (G,); or why there is none."""
    both = np.array([before, after])
    if not np.isfinite(both).all():
        return NOT_FINITE
    return np.log(after / before) if (both > 0).all() else NOT_POSITIVE


def _all_reduce_s(table: LaunchTable, strategy: str, size: int) -> np.ndarray:
    """Slope of the time in the number of dependent all-reduces, shape (G,); NaN where one length is missing."""
    cells = [cell for cell in table.select("chain", strategy) if cell.size == size]
    return slope_in_k([(cell.k or 0, table.row(cell)) for cell in cells], table.num_launches)
