"""Heat maps of the links between devices: the time of a message between every two, one map a payload."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..fit.links import Links
from .save import Drawing, save_drawings
from .scales import size_label, time_unit

MOST_NUMBERED = 8
"""Devices up to which the numbers stand in the cells."""


def draw_links(ax: Axes, seconds: np.ndarray, slow: list[tuple[int, ...]]) -> Axes:
    """Draw one map; what is slow has a frame: a link its two cells, a device its row and column.

    Parameters
    ----------
    seconds : ndarray, shape (n, n), symmetric; NaN on the diagonal and where it is not known
    slow : devices and links
    """
    factor, unit = time_unit(seconds[np.isfinite(seconds)])
    numbered = len(seconds) <= MOST_NUMBERED
    sns.heatmap(
        seconds / factor,
        ax=ax,
        square=True,
        cmap="viridis_r",
        annot=numbered,
        fmt=".3g",
        cbar_kws={"label": f"time of a message ({unit})"},
    )
    count = len(seconds)
    for devices in slow:
        first, second = devices[0], devices[-1]
        frames = [(first, second, 1, 1), (second, first, 1, 1)]
        if len(devices) == 1:
            frames = [(first, 0, 1, count), (0, first, count, 1)]
        for x, y, width, height in frames:
            ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="C3", linewidth=1.5, clip_on=False))
    ax.set(xlabel="device", ylabel="device")
    return ax


def save_links(found: Links, folder: Path) -> list[Path]:
    """Write a map a payload, as PDF and PNG, and their captions."""
    return save_drawings([_drawing(found, at) for at in range(len(found.payloads))], folder)


def _drawing(found: Links, at: int) -> Drawing:
    payload = found.payloads[at]
    name, title = f"links-{payload}", f"Messages of {_bytes(payload)}"
    seconds = np.full((found.num_devices, found.num_devices), np.nan)
    for link in found.links:
        time = link.messages[at].seconds.estimate
        seconds[link.devices] = seconds[link.devices[::-1]] = np.nan if time is None else time
    if not np.isfinite(seconds).any():
        return Drawing(name=name, title=title, reason="no pair of devices was measured")
    slow = [one.devices for one in found.slow if one.payload_bytes == payload]

    def draw(figure: Figure) -> object:
        return draw_links(figure.subplots(), seconds, slow)

    return Drawing(name=name, title=title, caption=_caption(found, payload, slow=bool(slow)), draw=draw, aspect=0.85)


def _caption(found: Links, payload: int, *, slow: bool) -> str:
    launches = f"{found.num_launches} launch{'es' if found.num_launches != 1 else ''}"
    lines = [
        f"Time of one message of {_bytes(payload)} between every two of {found.num_devices} devices, mean of both "
        f"directions and of {launches}."
    ]
    if slow:
        lines.append(
            f"Framed: slower than the others by {100 * found.margin:g} % or more and significantly so, level "
            f"{100 * (1 - found.confidence):g} % over all devices, links and payloads."
        )
    if found.synthetic:
        lines.append("Simulated, not measured.")
    return " ".join(lines)


def _bytes(payload: int) -> str:
    text = size_label(payload)
    return f"{text}B" if text.endswith("i") else f"{text} B"
