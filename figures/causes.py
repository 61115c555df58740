"""What a call's time is made of: seconds by cause, stacked, and each cause's share with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from .scales import MOST_TICKS, time_unit
from .style import CAUSE_COLORS, GUIDE, MARKERS, REMAINDER, cause_look

ORDER = (*CAUSE_COLORS, REMAINDER)
WIDTH = 0.72


def draw_stack(ax: Axes, table: pd.DataFrame) -> Axes:
    """Stack seconds by cause, one bar a count; a negative difference hangs below zero.

    Parameters
    ----------
    table : ``CAUSED``, of one strategy and size
    """
    counts = sorted(set(table["num_devices"]))
    totals = table.groupby("num_devices")["latency_s"].sum()
    factor, unit = time_unit(totals)
    above, below = np.zeros(len(counts)), np.zeros(len(counts))
    for cause in _present(table):
        height = _by_count(table, cause, counts, "latency_s") / factor
        height = np.where(np.isfinite(height), height, 0.0)
        bottom = np.where(height >= 0, above, below)
        ax.bar(range(len(counts)), height, WIDTH, bottom=bottom, label=cause, **cause_look(cause))
        above += np.maximum(height, 0)
        below += np.minimum(height, 0)
    if below.any():
        ax.axhline(0, color=GUIDE, linewidth=0.8)
    _count_axis(ax, counts)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    ax.set_ylabel(f"time per call ({unit})")
    return ax


def draw_shares(ax: Axes, table: pd.DataFrame) -> Axes:
    """Draw each cause's share of the call's time with its interval; a cause without interval is a point.

    Parameters
    ----------
    table : ``CAUSED``, of one strategy and size
    """
    counts = sorted(set(table["num_devices"]))
    causes = _present(table)
    for place, cause in enumerate(causes):
        x = np.arange(len(counts)) + (place - (len(causes) - 1) / 2) * 0.8 / max(len(causes), 3)
        share, lower, upper = (
            _by_count(table, cause, counts, column) for column in ("share", "share_lower", "share_upper")
        )
        color = "0.4" if cause == REMAINDER else cause_look(cause)["facecolor"]
        marker = MARKERS[ORDER.index(cause)] if cause in ORDER else "*"
        ax.plot(x, share, marker, color=color, markersize=4.5, label=cause, zorder=3)
        known = np.isfinite(lower) & np.isfinite(upper)
        if known.any():
            spread = np.abs([(share - lower)[known], (upper - share)[known]])
            ax.errorbar(x[known], share[known], yerr=spread, fmt="none", ecolor=color, elinewidth=1, capsize=2)
    for level in (0, 1):
        ax.axhline(level, color=GUIDE, linewidth=0.8, linestyle=":" if level else "-", zorder=1)
    _count_axis(ax, counts)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_ylabel("share of the call's time")
    return ax


def _present(table: pd.DataFrame) -> list[str]:
    """Causes in the table, in their fixed order, unknown names last."""
    found = list(dict.fromkeys(table["cause"]))
    return sorted(found, key=lambda cause: ORDER.index(cause) if cause in ORDER else len(ORDER))


def _by_count(table: pd.DataFrame, cause: str, counts: Sequence[int], column: str) -> np.ndarray:
    part = table[table["cause"] == cause].set_index("num_devices")[column]
    return part.reindex(list(counts)).to_numpy(dtype=float)


def _count_axis(ax: Axes, counts: Sequence[int]) -> None:
    """Bars stand side by side: counts are labels here, not too many of them."""
    step = -(-len(counts) // MOST_TICKS)
    ax.set_xticks(range(0, len(counts), step), [str(n) for n in counts[::step]])
    ax.set_xlim(-0.6, len(counts) - 0.4)
    ax.set_xlabel("devices")
