"""One look for all figures: fonts that journals take, colours for every eye, sizes of venues, no global state."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import seaborn as sns

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
CAUSE_COLORS = {
    "dispatch": 7,
    "compute": 0,
    "communication": 3,
    "input-transfer": 4,
}
"""Places in seaborn's colour-blind palette."""
CAUSE_HATCHES = {"dispatch": "", "compute": "////", "communication": "....", "input-transfer": "xxxx"}
REMAINDER = "unattributed"
GUIDE = "0.45"
"""Grey of lines that are no data: the ideal, the reference."""

WIDTH_INCHES = 4.8
NARROW_INCHES = 4.0
GOLDEN = 0.618

_RC: dict[Any, Any] = {
    # Type 3 fonts are refused by many venues; 42 embeds TrueType.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "pdf.use14corefonts": False,
    "text.usetex": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "axes.formatter.use_mathtext": True,
}


@contextmanager
def context(width: float = WIDTH_INCHES) -> Iterator[None]:
    """Apply the look while figures are made and saved, and leave the caller's settings as they were.

    ``width`` : of the figures, inches; text is smaller in narrow ones
    """
    scale = 0.8 if is_narrow(width) else 1.0
    with mpl.rc_context(), sns.axes_style("ticks"), sns.plotting_context("paper", font_scale=scale):
        mpl.rcParams.update(_RC)
        yield


def is_narrow(width: float) -> bool:
    """Whether a figure fills one of two columns: panels then stand above each other."""
    return width < NARROW_INCHES


def venues() -> tuple[str, ...]:
    """Venues whose figure width is known, as tueplots names them: ``icml2024_half``, ``neurips2024``."""
    from tueplots import figsizes

    found = inspect.getmembers(figsizes, inspect.isfunction)
    return tuple(name for name, _ in found if name[-1].isdigit() or name.endswith(("_half", "_full")))


def figure_size(venue: str | None = None, *, aspect: float = GOLDEN) -> tuple[float, float]:
    """Width and height in inches.

    Parameters
    ----------
    venue : one of ``venues``; default: a free width
    aspect : height over width

    Raises
    ------
    ValueError
        If the venue is not known; the message lists those that are.
    """
    if venue is None:
        return WIDTH_INCHES, WIDTH_INCHES * aspect
    if venue not in venues():
        raise ValueError(f"venue {venue!r} is not known; choose one of {', '.join(venues())}.")
    from tueplots import figsizes

    width, _ = getattr(figsizes, venue)()["figure.figsize"]
    return width, width * aspect


def series_looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour and marker of each series; both differ, so that print without colour is readable."""
    colors = sns.color_palette("colorblind")
    # Yellow and light blue are too faint for thin lines.
    strong = [colors[i] for i in (0, 3, 2, 4, 1, 7, 5)]
    return {
        name: {"color": color, "marker": marker}
        for name, color, marker in zip(names, itertools.cycle(strong), itertools.cycle(MARKERS), strict=False)
    }


def series_label(strategy: str) -> str:
    """A strategy's name for readers."""
    placed = strategy.removesuffix("-unplaced")
    return plain(strategy if placed == strategy else f"{placed} (inputs unplaced)")


def plain(name: str) -> str:
    """A user's name as it is: matplotlib would take what stands between two dollar signs for a formula."""
    return name.replace("$", r"\$")


def cause_look(cause: str) -> dict[str, Any]:
    """Fill of one cause."""
    if cause == REMAINDER:
        return {"facecolor": "white", "edgecolor": "0.4", "hatch": "\\\\", "linewidth": 0.6}
    color = sns.color_palette("colorblind")[CAUSE_COLORS.get(cause, 9)]
    return {"facecolor": color, "edgecolor": "white", "hatch": CAUSE_HATCHES.get(cause, ""), "linewidth": 0.6}
