"""Time or throughput against devices: points as measured, lines as predicted."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from .scales import decimal_unit, device_axis, time_unit, value_axis
from .style import GUIDE, plain, series_label, series_looks

Quantity = Literal["latency_s", "throughput"]


def draw_scaling(
    ax: Axes,
    measured: pd.DataFrame,
    predicted: pd.DataFrame,
    *,
    quantity: Quantity,
    unit: str = "elements",
    reference_devices: int | None = None,
    path: Literal["strong", "weak"] = "strong",
) -> Axes:
    """Draw one series a strategy.

    Parameters
    ----------
    measured, predicted : tables ``MEASURED`` and ``PREDICTED`` at one size
        Points with intervals; lines with bands where some count was predicted, dashed where extrapolated.
    quantity : ``latency_s`` (seconds a call) or ``throughput`` (``unit`` a second)
    reference_devices : the ideal line starts at the first strategy's point there; None: no ideal line
    path : of the sweep; on the weak one the ideal time stays, on the strong one it falls as 1 / n
    """
    names = list(dict.fromkeys(measured["strategy"]))
    looks = series_looks(names)
    values = pd.concat([measured[quantity], predicted[quantity]]).to_numpy()
    factor, label = _unit(quantity, values, unit)
    values = values / factor
    counts = [*measured["num_devices"], *predicted["num_devices"]]
    if reference_devices is not None and (start := reference_value(measured, quantity, reference_devices)) is not None:
        ideal = _ideal(start / factor, reference_devices, max(counts), quantity, path)
        ax.plot(*ideal, ":", color=GUIDE, linewidth=1.2, label="ideal", zorder=1)
        values = np.concatenate([values, ideal[1]])
    for place, name in enumerate(names):
        points = measured[measured["strategy"] == name]
        line = predicted[(predicted["strategy"] == name) & predicted[quantity].notna()]
        if line.empty:
            joined = points.sort_values("num_devices")
            ax.plot(joined["num_devices"], joined[quantity] / factor, color=looks[name]["color"], linewidth=0.5)
        else:
            _draw_line(ax, line, quantity, factor, looks[name])
        # Intervals of two strategies at one count must not lie on each other.
        dodge = 2 ** (0.04 * (place - (len(names) - 1) / 2))
        _draw_points(ax, points, quantity, factor, looks[name], series_label(name), dodge)
    device_axis(ax, list(measured["num_devices"]), counts)
    ends = pd.concat([table[f"{quantity}_upper"] for table in (measured, predicted)]).to_numpy() / factor
    value_axis(ax, values[np.isfinite(values)], ends[np.isfinite(ends)].tolist())
    ax.set_ylabel(label)
    _legend(ax)
    return ax


def _unit(quantity: Quantity, values: np.ndarray, unit: str) -> tuple[float, str]:
    if quantity == "latency_s":
        factor, name = time_unit(values)
        return factor, f"time per call ({name})"
    factor, prefix = decimal_unit(values)
    return factor, f"throughput ({prefix}{' ' if prefix else ''}{plain(unit)}/s)"


def _draw_points(
    ax: Axes, part: pd.DataFrame, quantity: Quantity, factor: float, look: dict, name: str, dodge: float
) -> None:
    x = part["num_devices"].to_numpy() * dodge
    y = part[quantity].to_numpy() / factor
    sns.scatterplot(
        x=x, y=y, ax=ax, color=look["color"], marker=look["marker"], s=26, label=name, zorder=4, legend=False
    )
    lower, upper = (part[f"{quantity}_{side}"].to_numpy() / factor for side in ("lower", "upper"))
    known = np.isfinite(lower) & np.isfinite(upper)
    if known.any():
        ax.errorbar(
            x[known],
            y[known],
            yerr=np.abs([(y - lower)[known], (upper - y)[known]]),
            fmt="none",
            ecolor=look["color"],
            elinewidth=1,
            capsize=2.5,
            zorder=3,
        )


def _draw_line(ax: Axes, part: pd.DataFrame, quantity: Quantity, factor: float, look: dict) -> None:
    """Join the counts in order; a piece that leads to or from an extrapolated count is dashed."""
    part = part.sort_values("num_devices")
    x, y = part["num_devices"].to_numpy(), part[quantity].to_numpy() / factor
    outside = (part["kind"] == "extrapolated").to_numpy()
    inside = ~outside
    ax.plot(x[inside], y[inside], "-", color=look["color"], linewidth=1.1, zorder=2)
    if outside.any():
        first = max(int(np.argmax(outside)) - 1, 0)
        ax.plot(x[first:], y[first:], "--", color=look["color"], linewidth=1.1, zorder=2)
    if (part["kind"] != "measured").any():
        lower, upper = (part[f"{quantity}_{side}"].to_numpy() / factor for side in ("lower", "upper"))
        ax.fill_between(x, lower, upper, color=look["color"], alpha=0.15, linewidth=0, zorder=1)


def reference_value(measured: pd.DataFrame, quantity: Quantity, reference: int) -> float | None:
    """The first strategy's point at the reference count; None where it was not measured."""
    ours = measured[measured["strategy"] == measured["strategy"].iloc[0]]
    found = ours.loc[ours["num_devices"] == reference, quantity].dropna()
    return None if found.empty else float(found.iloc[0])


def _ideal(start: float, reference: int, last: int, quantity: Quantity, path: str) -> tuple[np.ndarray, np.ndarray]:
    """Counts and values of ideal scaling from ``start``."""
    counts = np.geomspace(reference, last, 50)
    if quantity == "throughput":
        return counts, start * counts / reference
    return counts, start * (reference / counts if path == "strong" else np.ones(len(counts)))


def _legend(ax: Axes) -> None:
    """Above the axes, where no data can be; the series first, then the guide."""
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: labels[i] == "ideal")
    ax.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        ncols=min(len(labels), 3),
        borderaxespad=0,
        handletextpad=0.4,
        columnspacing=1.2,
    )
