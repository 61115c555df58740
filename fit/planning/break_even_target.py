"""The break-even size as a target: where it seems to lie, how surely, and sweeps that would bracket it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import special

from ...model.cell import Cell
from ..objective import Costs
from .candidates import Candidate, counts_with, dividing
from .contrasts import Contrast, NoTarget
from .spread import Spread

SPANS = np.geomspace(0.06, 4.5, 16)
"""Half of a bracket, in log size, that are tried."""
NUM_SIZES = (2, 3, 4, 5)
FARTHEST = float(np.log(64))
"""Farther beyond the measured sizes a crossing is not looked for."""
STRAIGHT_ENOUGH = 0.2
"""Two sizes show no bend, so they are proposed only where it is below this share of the half width."""
PLACES = (-0.8, -0.4, 0.0, 0.4, 0.8)
"""Where the root may lie, in units of its uncertainty."""
SLACK = 1.4
"""A half width over six launches may turn out that much larger than expected (its spread is 31 %)."""


@dataclass(frozen=True, kw_only=True)
class Root:
    """The crossing that a pilot shows.

    Attributes
    ----------
    num_devices, reference : the counts compared
    place : log of the size
    slope, curvature : of the log ratio over log size there (curvature: the second divided difference, None where
        there are too few sizes to see one)
    uncertainty : half width of what is known of ``place``, bend and extrapolation included
    """

    costs: Costs
    num_devices: int
    reference: int
    place: float
    slope: float
    curvature: float | None
    uncertainty: float

    @property
    def size(self) -> float:
        """On the plan's size axis."""
        return float(np.exp(self.place))

    def candidates(self) -> Iterator[Candidate]:
        """Brackets of two to five sizes around the root, wide enough to hold it."""
        plan = self.costs.table.plan
        devices = counts_with(plan, (self.reference, self.num_devices))
        for span, number in product(SPANS, NUM_SIZES):
            if span >= min(self.uncertainty, SPANS[-1]) and (number > 2 or self.curvature is not None):
                sizes = dividing(plan, devices, np.exp(self.place + np.linspace(-span, span, number)).tolist())
                if len(sizes) == number:
                    yield Candidate(devices=devices, sizes=sizes, controls=False, probes=False)

    def contrasts(self, candidate: Candidate, spread: Spread, launches: int) -> list[Contrast]:
        """One for each place where the root may lie; none where the sizes do not hold it."""
        x = np.log(candidate.sizes)
        found = []
        for step in PLACES:
            root = self.place + step * self.uncertainty
            j = int(np.searchsorted(x, root, side="right")) - 1
            if j < 0 or j + 1 >= len(x):
                continue
            found.append(self._contrast(candidate, x, j, root, spread, launches))
        return found if len(found) == len(PLACES) else []

    def _contrast(
        self, candidate: Candidate, x: np.ndarray, j: int, root: float, spread: Spread, launches: int
    ) -> Contrast:
        weights = np.array([x[j + 1] - root, root - x[j]]) / (x[j + 1] - x[j])
        cells, coefficients = [], []
        for size, weight in zip(candidate.sizes[j : j + 2], weights, strict=True):
            for n, sign in ((self.num_devices, 1.0), (self.reference, -1.0)):
                cells.append(self._cell(n, size))
                coefficients.append(sign * weight / self.slope)
        bend = self._bend(x, cells, spread, launches) * (root - x[j]) * (x[j + 1] - root)
        return Contrast(
            cells=tuple(cells),
            coefficients=np.array(coefficients),
            bias=bend / abs(self.slope),
            room=min(root - x[0], x[-1] - root) / SLACK,
        )

    def _bend(self, x: np.ndarray, cells: list[Cell], spread: Spread, launches: int) -> float:
        """The curvature that a sweep over x will show: the true one, and where it has three sizes or more its noise."""
        curvature = abs(self.curvature or 0.0)
        if len(x) == 2:
            return curvature
        variance = sum(float(spread.variance(c, spread.rounds)) for c in cells) / 2 / launches
        # E|z| = 0.8 sd; a second divided difference over equal steps h has sd √6 / (2 h²).
        noise = 0.8 * np.sqrt(6 * variance) / (2 * np.diff(x).mean() ** 2)
        return float(np.hypot(curvature, noise))

    def _cell(self, num_devices: int, size: int) -> Cell:
        plan = self.costs.table.plan
        return Cell(
            role="workload",
            strategy=self.costs.strategy,
            num_devices=num_devices,
            size=plan.global_size(num_devices, size),
        )


def find_root(costs: Costs, spread: Spread, *, near: int | None = None) -> Root:
    """Find the crossing of the largest count with the reference.

    Parameters
    ----------
    costs : of the pilot; ``max_devices`` says which count
    spread : of the pilot, for the uncertainty where launches are few
    near : of several crossings take the one nearest to this size; default: the largest

    Raises
    ------
    NoTarget
        If fewer than two sizes were measured on both counts, or the costs do not approach one another.

    Notes
    -----
    Between two sizes of opposite sign the parabola through the three nearest sizes is followed; it crosses exactly
    once there. Beyond the measured sizes the last slope is, and half of the distance counts as uncertain.
    """
    table, strategy = costs.table, costs.strategy
    num_devices = max(n for n in table.devices("workload", strategy) if n <= costs.max_devices)
    if num_devices <= costs.reference:
        raise NoTarget(f"only {costs.reference} devices were measured up to {costs.max_devices}: nothing to compare.")
    ratios = {}
    for size in table.sizes("workload", strategy):
        ours, theirs = costs.at(num_devices, size), costs.at(costs.reference, size)
        if ours.kind == theirs.kind == "measured":
            ratios[size] = ours.routes[0].log_cost - theirs.routes[0].log_cost
    if len(ratios) < 2:
        raise NoTarget(
            f"{len(ratios)} size was measured on both {costs.reference} and {num_devices} devices; a break-even size "
            "needs two, to see how the advantage changes. Measure another with --sizes."
        )
    x, values = np.log(list(ratios)), np.array(list(ratios.values()))
    place, slope, curvature, doubt = _locate(x, values.mean(axis=1), None if near is None else float(np.log(near)))
    error = _error(x, values, place, spread, strategy, (costs.reference, num_devices))
    launches = values.shape[1]
    quantile = special.stdtrit(launches - 1, 0.975) if launches > 2 else 2.5
    return Root(
        costs=costs,
        num_devices=num_devices,
        reference=costs.reference,
        place=place,
        slope=slope,
        curvature=curvature,
        uncertainty=float(quantile * error / abs(slope)) + doubt,
    )


def _locate(x: np.ndarray, mean: np.ndarray, near: float | None) -> tuple[float, float, float | None, float]:
    """Place, slope, curvature and doubt (of a bend, of an extrapolation) of the crossing."""
    brackets = [j for j in range(len(x) - 1) if mean[j] * mean[j + 1] <= 0 and mean[j] != mean[j + 1]]
    if not brackets:
        return _beyond(x, mean)
    wanted = x[-1] if near is None else near
    j = min(brackets, key=lambda i: abs((x[i] + x[i + 1]) / 2 - wanted))
    chord = (mean[j + 1] - mean[j]) / (x[j + 1] - x[j])
    if len(x) == 2:
        return float(x[j] - mean[j] / chord), float(chord), None, 0.0
    third = j + 2 if j == 0 or (j + 2 < len(x) and x[j + 2] - x[j + 1] <= x[j] - x[j - 1]) else j - 1
    points = [j, j + 1, third]
    curvature, _, _ = np.polyfit(x[points] - x[j], mean[points], 2)
    # Newton's form on the bracket: mean[j] + chord u + curvature u (u - h).
    h = x[j + 1] - x[j]
    roots = np.roots([curvature, chord - curvature * h, mean[j]])
    inside = [float(u.real) for u in roots if abs(u.imag) < 1e-12 and -1e-9 <= u.real <= h * (1 + 1e-9)]
    u = inside[0] if inside else -mean[j] / chord
    slope = chord + curvature * (2 * u - h)
    # A parabola that is flat at its root says that three sizes are too few to know the slope: stay near the chord.
    slope = chord if slope * chord <= 0 or abs(slope) < abs(chord) / 4 else slope
    return float(x[j] + u), float(slope), float(curvature), abs(curvature) * u * (h - u) / abs(slope) / 2


def _beyond(x: np.ndarray, mean: np.ndarray) -> tuple[float, float, None, float]:
    """The nearer crossing that the slope at either end leads to."""
    found = []
    for end, inner in ((0, 1), (-1, -2)):
        slope = (mean[end] - mean[inner]) / (x[end] - x[inner])
        distance = -mean[end] / slope if slope else np.inf
        outwards = distance < 0 if end == 0 else distance > 0
        if outwards and abs(distance) <= FARTHEST:
            found.append((abs(distance), float(x[end] + distance), float(slope)))
    if not found:
        who = "costs more" if mean[-1] > 0 else "costs less"
        raise NoTarget(
            f"the larger count {who} at every size, and the difference does not vanish within a factor of 64 beyond "
            "them: no break-even size is in sight."
        )
    distance, place, slope = min(found)
    return place, slope, None, distance / 2


def _error(
    x: np.ndarray, values: np.ndarray, place: float, spread: Spread, strategy: str, counts: tuple[int, int]
) -> float:
    """Standard error of the log ratio at the crossing: from the launches, with the spread of all cells."""
    j = int(np.clip(np.searchsorted(x, place, side="right") - 1, 0, len(x) - 2))
    w = (place - x[j]) / (x[j + 1] - x[j])
    cells = [Cell(role="workload", strategy=strategy, num_devices=n, size=1) for n in counts]
    variance = sum(float(spread.variance(cell, spread.rounds)) for cell in cells)
    return float(np.sqrt(variance * (w**2 + (1 - w) ** 2) / values.shape[1]))
