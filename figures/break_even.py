"""The break-even map: where, in the plane of sizes and counts, adding devices helps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patheffects import withStroke

from .scales import device_axis, edges, size_axis

NARROWEST_COLUMN, MOST_ROWS = 0.08, 14
"""Share of the width that a number needs, and the most rows, for numbers in cells to be legible."""
COLORS = "PuOr"
"""Diverging, told apart by every eye; white is break-even."""


def draw_break_even(
    ax: Axes, predicted: pd.DataFrame, sizes: pd.DataFrame, *, reference_devices: int, size_label: str
) -> Axes:
    """Draw speedup against the reference count as a heat map in log2, break-even sizes on top.

    Parameters
    ----------
    predicted : ``PREDICTED``, of one strategy, several sizes and counts
    sizes : ``BREAK_EVEN``, of the same strategy; rows without a size are passed over
    size_label : of the vertical axis
    """
    grid = _grid(predicted[predicted["num_devices"] != reference_devices], "speedup")
    counts, axis_sizes = grid.columns.to_numpy(), grid.index.to_numpy()
    with np.errstate(invalid="ignore"):
        values = np.ma.masked_invalid(np.log2(grid.to_numpy(dtype=float)))
    limit = max(float(np.abs(values).max()), 0.25)
    norm = TwoSlopeNorm(vmin=-limit, vcenter=0, vmax=limit)
    ax.set_facecolor("0.9")  # what is not known stays grey
    mesh = ax.pcolormesh(edges(counts), edges(axis_sizes), values, cmap=COLORS, norm=norm, rasterized=True)
    numbered = has_numbers(predicted, reference_devices)
    measured = counts[(_grid(predicted, "kind")[counts] == "measured").any()]
    device_axis(ax, counts if numbered or not len(measured) else measured, counts)
    size_axis(ax.yaxis, axis_sizes)
    ax.set_xlim(edges(counts)[0], edges(counts)[-1])
    ax.set_ylim(edges(axis_sizes)[0], edges(axis_sizes)[-1])
    ax.set_ylabel(size_label)
    _mark_extrapolated(ax, predicted, counts)
    roots = _drawn_sizes(ax, sizes)
    if numbered:
        _write_numbers(ax, predicted[predicted["num_devices"] != reference_devices], roots, mesh)
    _draw_sizes(ax, roots)
    _color_bar(ax, mesh, limit, reference_devices)
    sns.despine(ax=ax, left=True, bottom=True)
    return ax


def has_numbers(predicted: pd.DataFrame, reference_devices: int) -> bool:
    """Whether the cells are large enough for the speedups to be written into them."""
    counts = np.unique(predicted.loc[predicted["num_devices"] != reference_devices, "num_devices"])
    widths = np.diff(np.log2(edges(counts)))
    return widths.min() >= NARROWEST_COLUMN * widths.sum() and predicted["size"].nunique() <= MOST_ROWS


def _grid(predicted: pd.DataFrame, column: str) -> pd.DataFrame:
    return predicted.pivot(index="size", columns="num_devices", values=column)


def _mark_extrapolated(ax: Axes, predicted: pd.DataFrame, counts: np.ndarray) -> None:
    """Hatch the columns outside the measured counts."""
    outside = set(predicted.loc[predicted["kind"] == "extrapolated", "num_devices"])
    for n, left, right in zip(counts, edges(counts), edges(counts)[1:], strict=False):
        if n in outside:
            ax.axvspan(left, right, facecolor="none", edgecolor=(0, 0, 0, 0.3), hatch="////", linewidth=0)


def _drawn_sizes(ax: Axes, sizes: pd.DataFrame) -> pd.DataFrame:
    """Break-even sizes inside the axes; open ends of their intervals are put at the border."""
    low, high = ax.get_ylim()
    roots = sizes[sizes["size"].between(low, high)].copy()
    known = roots["size_lower"].notna() | roots["size_upper"].notna()
    roots["size_lower"] = roots["size_lower"].fillna(low).where(known, roots["size"])
    roots["size_upper"] = roots["size_upper"].fillna(high).where(known, roots["size"])
    return roots


def _write_numbers(ax: Axes, predicted: pd.DataFrame, roots: pd.DataFrame, mesh: QuadMesh) -> None:
    """Write the speedups into the cells: bold where the interval excludes 1, none under a break-even interval."""
    for row in predicted[predicted["speedup"].notna()].to_dict("records"):
        n, size = row["num_devices"], row["size"]
        under = roots[roots["num_devices"] == n]
        # A number is about a third of a cell high.
        if ((under["size_lower"] < size * 2**0.3) & (under["size_upper"] > size / 2**0.3)).any():
            continue
        red, green, blue, _ = mesh.to_rgba(np.log2(row["speedup"]))
        dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
        ax.text(
            n,
            size,
            f"{row['speedup']:#.2g}" if row["speedup"] < 10 else f"{row['speedup']:.0f}",
            ha="center",
            va="center",
            fontsize="x-small",
            fontweight="bold" if row["speedup_lower"] > 1 or row["speedup_upper"] < 1 else "normal",
            color="white" if dark else "black",
        )


def _draw_sizes(ax: Axes, roots: pd.DataFrame) -> None:
    """Break-even sizes as diamonds, their intervals as bars."""
    x = roots["num_devices"]
    outline = [withStroke(linewidth=2.6, foreground="white")]
    ends = roots["size_lower"], roots["size_upper"]
    ax.vlines(x, *ends, color="black", linewidth=1.2, path_effects=outline, zorder=4)
    ax.plot(x, roots["size"], "D", color="white", markeredgecolor="black", markersize=5, zorder=5)


def _color_bar(ax: Axes, mesh: QuadMesh, limit: float, reference: int) -> None:
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    speedups = _round_speedups(limit)
    labels = [f"1/{1 / s:.3g}×" if s < 1 else f"{s:.3g}×" for s in speedups]
    bar.set_ticks(np.log2(speedups).tolist(), labels=labels)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.set_label(f"speedup against {reference} device{'s' * (reference > 1)}")


def _round_speedups(limit: float) -> np.ndarray:
    """Speedups for ticks between 2^-limit and 2^limit."""
    if limit >= 1:
        step = int(np.ceil(int(limit) / 3))
        return np.exp2(np.arange(-(int(limit) // step) * step, limit, step))
    speedups = np.array([1 / 1.5, 1 / 1.2, 1, 1.2, 1.5])
    return speedups[np.abs(np.log2(speedups)) <= limit]
