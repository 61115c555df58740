"""Axes of counts, sizes and times with labels that people read: integers, powers of two, µs or ms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))
MOST_TICKS = 11


def time_unit(seconds: Iterable[float]) -> tuple[float, str]:
    """Unit in which the values' geometric middle is between 1 and 1000: (seconds per unit, its name)."""
    values = [v for v in seconds if math.isfinite(v) and v > 0]
    middle = math.sqrt(min(values) * max(values)) if values else 1.0
    return next(((factor, name) for factor, name in _TIMES if middle >= factor), _TIMES[-1])


def decimal_unit(values: Iterable[float]) -> tuple[float, str]:
    """Decimal prefix for rates: (factor, prefix)."""
    top = max((v for v in values if math.isfinite(v)), default=1.0)
    return next(((factor, name) for factor, name in _DECIMAL if top >= factor), (1.0, ""))


def size_label(size: float) -> str:
    """A size for a tick: ``800``, ``64 Ki``, ``1.5 M``."""
    if size < 10_000:
        return f"{size:g}"
    for factor, prefix in _BINARY:
        if size >= factor and size % factor == 0 and size < 1024 * factor:
            return f"{size // factor:g} {prefix}"
    factor, prefix = next((f, p) for f, p in _DECIMAL if size >= f)
    return f"{size / factor:.3g} {prefix}"


def device_axis(ax: Axes, measured: Iterable[int], others: Iterable[int] = ()) -> None:
    """A log2 axis over all counts; ticks as integers: at powers of two, and at the measured counts if they are few."""
    measured = sorted(set(measured))
    counts = sorted({*measured, *others})
    ax.set_xscale("log", base=2)
    ax.set_xlabel("devices")
    powers = [n for n in counts if math.log2(n).is_integer()]
    few = sorted(measured, key=lambda n: n % 2) if len(measured) <= MOST_TICKS else []
    wanted = [measured[0], measured[-1], *powers, *few]
    _fixed_ticks(ax.xaxis, spaced(wanted, counts[-1] / counts[0]), lambda n: f"{n:g}")
    ax.set_xlim(counts[0] / 2**0.25, counts[-1] * 2**0.25)


def size_axis(axis: Axis, sizes: Iterable[int]) -> None:
    """Put the measured sizes on a log2 axis."""
    sizes = sorted(set(sizes))
    axis.axes.set_yscale("log", base=2)
    ends = [sizes[0], sizes[-1]]
    _fixed_ticks(axis, spaced([*ends, *sizes], ends[1] / ends[0]), size_label)


def value_axis(ax: Axes, values: np.ndarray, ends: Sequence[float] = ()) -> None:
    """A log axis where values spread over more than a factor 3, else a linear one from 0.

    ``ends`` : upper ends of intervals; those up to three times the highest value are shown whole
    """
    low, high = np.nanmin(values), np.nanmax(values)
    if high > 3 * low > 0:
        ax.set_yscale("log")
        wide = high > 30 * low
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 1000 * low else (1.0, 3.0) if wide else (1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: _plain(v)))
        ax.yaxis.set_minor_formatter(NullFormatter())
    else:
        ax.set_ylim(0, 1.1 * min(max([high, *ends]), 3 * high))
        ax.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))


def spaced(wanted: Sequence[int], spread: float) -> list[int]:
    """Those of the wanted ticks that leave each other room on a log2 axis, the first named first; ascending.

    ``spread`` : largest over smallest value of the axis; at most ``MOST_TICKS`` fit on it
    """
    room = max(math.log2(spread) / (MOST_TICKS - 1), 0.05) * 0.99
    kept: list[int] = []
    for value in wanted:
        if all(abs(math.log2(value / other)) >= room for other in kept):
            kept.append(value)
    return sorted(kept)


def edges(values: np.ndarray) -> np.ndarray:
    """Borders of cells around ascending positive values, halfway on a log axis; shape (len(values) + 1,)."""
    logs = np.log2(np.asarray(values, dtype=float))
    if len(logs) == 1:
        return np.exp2([logs[0] - 0.5, logs[0] + 0.5])
    middle = (logs[1:] + logs[:-1]) / 2
    return np.exp2(np.concatenate([[2 * logs[0] - middle[0]], middle, [2 * logs[-1] - middle[-1]]]))


def _fixed_ticks(axis: Axis, ticks: Sequence[float], label) -> None:
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))
    axis.set_minor_locator(NullLocator())


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
