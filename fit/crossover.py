"""Where a launch-wise curve over size crosses zero: roots, confidence set, and the sign at each size.

The curve is linear in log size between measured sizes. The confidence set holds every size at which a t interval
over the launches contains zero (Fieller's inversion), so it may come in pieces and may be open at an end of the
measured range. A size is tested by itself: the set holds any one root with the stated confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import special

from .answer import Estimate, Interval
from .intervals import holm, p_differs, why_no_interval

_GRID = 64


@dataclass(frozen=True, kw_only=True)
class Crossover:
    """Zeros of a curve over size.

    Attributes
    ----------
    roots : sizes at which the mean curve changes sign, ascending, each with the piece of the set that holds it
    pieces : the confidence set; an end at the border of the measured sizes is None (open). Empty: no zero inside.
    signs : at each measured size, 1 or -1 where the sign is sure after Holm over the sizes, else 0
    reason : why there is no set; ``pieces`` is then one piece, open at both ends
    """

    roots: tuple[Estimate, ...]
    pieces: tuple[Interval, ...]
    signs: tuple[int, ...]
    reason: str | None = None


def crossover(sizes: np.ndarray, values: np.ndarray, *, confidence: float) -> Crossover:
    """Find where a curve crosses zero.

    Parameters
    ----------
    sizes : ndarray, shape (M,), ascending, M >= 2
    values : ndarray, shape (M, G)
        The curve at each size, launch by launch.

    Returns
    -------
    Crossover

    Notes
    -----
    Between two sizes the truth may bend. Its distance from the chord is at most |f[a, b, c]| (x - a)(b - x), with the
    second divided difference f of the mean curve over x = log S (the error term of linear interpolation); the larger
    one of the two neighbouring differences widens the interval there, in the first and last segment also the difference
    that a straight line through the two outer ones gives. Two sizes alone show no bend, and the curve is taken as
    straight.
    """
    x, mean = np.log(sizes), values.mean(axis=1)
    crossings = _crossings(x, mean)
    if reason := next(filter(None, map(why_no_interval, values)), None):
        roots = tuple(Estimate(estimate=float(np.exp(c)), reason=reason) for c in crossings)
        return Crossover(roots=roots, pieces=((None, None),), signs=(0,) * len(x), reason=reason)
    grid = np.union1d(np.concatenate([np.linspace(a, b, _GRID + 1) for a, b in pairwise(x)]), crossings)
    margin = _distance_from_zero(grid, x, values, confidence)
    spans = _spans(grid, margin)
    pieces = tuple(_piece(span, x) for span in spans)
    roots = []
    for c in crossings:
        inside = next(p for p, (a, b) in zip(pieces, spans, strict=True) if a <= c <= b)
        roots.append(Estimate(estimate=float(np.exp(c)), interval=inside))
    return Crossover(roots=tuple(roots), pieces=pieces, signs=_signs(values, confidence))


def _crossings(x: np.ndarray, mean: np.ndarray) -> list[float]:
    """Zeros of the mean curve, in log size."""
    found = []
    for i in range(len(x) - 1):
        a, b = mean[i], mean[i + 1]
        if a * b < 0 or (a == 0 and i == 0):
            found.append(float(x[i] + (x[i + 1] - x[i]) * a / (a - b)) if a != b else float(x[i]))
        if b == 0:
            found.append(float(x[i + 1]))
    return found


def _distance_from_zero(grid: np.ndarray, x: np.ndarray, values: np.ndarray, confidence: float) -> np.ndarray:
    """By how much the interval at each grid point clears zero, shape (grid,); at most 0 where it holds zero."""
    launches = values.shape[1]
    curves = np.array([np.interp(grid, x, column) for column in values.T])
    half = special.stdtrit(launches - 1, 0.5 + confidence / 2) * curves.std(axis=0, ddof=1) / np.sqrt(launches)
    distance = np.abs(curves.mean(axis=0)) - half - bend(grid, x, values.mean(axis=1))
    # A root of the mean is in its own set, whatever rounding says.
    return np.where(np.isclose(curves.mean(axis=0), 0, atol=1e-15), np.minimum(distance, 0), distance)


def bend(grid: np.ndarray, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Largest distance of the curve from its chord at each grid point."""
    if len(x) < 3:
        return np.zeros_like(grid)
    slopes = np.diff(mean) / np.diff(x)
    signed = np.diff(slopes) / (x[2:] - x[:-2])
    curvature = np.abs(signed)
    per_segment = np.maximum(np.append(curvature, 0), np.append(0, curvature))
    if len(signed) > 1:
        # The outer segments know one neighbour only: there the curvature may go on to grow as it did.
        first, last = abs(2 * signed[0] - signed[1]), abs(2 * signed[-1] - signed[-2])
        per_segment[0], per_segment[-1] = max(per_segment[0], first), max(per_segment[-1], last)
    segment = np.clip(np.searchsorted(x, grid, side="right") - 1, 0, len(x) - 2)
    return per_segment[segment] * (grid - x[segment]) * (x[segment + 1] - grid)


def _spans(grid: np.ndarray, distance: np.ndarray) -> list[tuple[float, float]]:
    """Stretches of the grid where the distance is at most 0, their ends interpolated linearly."""
    inside = distance <= 0
    starts = np.flatnonzero(inside & ~np.append(False, inside[:-1])).tolist()
    ends = np.flatnonzero(inside & ~np.append(inside[1:], False)).tolist()
    return [
        (_edge(grid, distance, i, i - 1), _edge(grid, distance, j, j + 1)) for i, j in zip(starts, ends, strict=True)
    ]


def _edge(grid: np.ndarray, distance: np.ndarray, inside: int, outside: int) -> float:
    if not 0 <= outside < len(grid):
        return float(grid[inside])
    share = distance[inside] / (distance[inside] - distance[outside])
    return float(grid[inside] + share * (grid[outside] - grid[inside]))


def _piece(span: tuple[float, float], x: np.ndarray) -> Interval:
    lower, upper = span
    return (
        None if lower <= x[0] else float(np.exp(lower)),
        None if upper >= x[-1] else float(np.exp(upper)),
    )


def _signs(values: np.ndarray, confidence: float) -> tuple[int, ...]:
    adjusted = holm([p_differs(row) for row in values])
    return tuple(
        int(np.sign(row.mean())) if p is not None and p <= 1 - confidence else 0
        for row, p in zip(values, adjusted, strict=True)
    )
