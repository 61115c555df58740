"""What can be asked of the next sweep: a break-even size, the best count, a parameter of the law.

Each question holds a pilot and says which sweeps could answer it, and how the answer depends on their cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...model.cell import Cell
from ...model.decomposition import interpolate
from ..answer import Estimate
from ..breakeven import break_even
from ..launches import LaunchTable
from ..lawfit import LawFits
from ..objective import Costs
from .break_even_target import STRAIGHT_ENOUGH, Root, find_root
from .candidates import Candidate, Programs, programs, workloads
from .contrasts import Contrast, expected
from .optimum_target import Contest, find_contest
from .parameter_target import ParameterTarget, find_parameter
from .spread import Spread
from .stopping import MIN_LAUNCHES_AT_LOOK

Series = tuple[str, str, int, int | None, int | None]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A target and its pilot.

    Attributes
    ----------
    about : in words
    current : the answer now
    wanted : half width that is enough, as a share of the estimate (of a log ratio: absolute); infinite where it is
        enough that the answer is determined at all
    relative : whether half widths are shares of the estimate, else in its unit
    decided : why nothing more is needed; None where it is
    """

    table: LaunchTable
    costs: Costs
    spread: Spread
    about: str
    current: Estimate
    wanted: float
    relative: bool = True
    decided: str | None = None

    @property
    def half_width(self) -> float | None:
        """Of ``current``, as a share of the estimate; None where an end is open."""
        found = self.current
        if not found.estimate or found.interval is None or None in found.interval:
            return None
        lower, upper = (float(end) for end in found.interval if end is not None)
        return max(upper - found.estimate, found.estimate - lower) / abs(found.estimate)

    @property
    def enough(self) -> str | None:
        """Why nothing more need be measured; fewer than six launches are never enough."""
        half = self.half_width
        early = self.table.replicated and self.table.num_launches < MIN_LAUNCHES_AT_LOOK
        if self.decided or half is None or half > self.wanted or early:
            return self.decided
        return f"known to ±{100 * half:.2g} % already, and ±{100 * self.wanted:.2g} % is wanted"

    def candidates(self) -> Iterator[Candidate]:
        """Sweeps that might answer."""
        raise NotImplementedError

    def programs(self, candidate: Candidate) -> Programs | None:
        """The candidate's cells; None where what must be known of them is not."""
        return workloads(self.table, self.costs.strategy, candidate)

    def contrasts(self, found: Programs) -> Sequence[Contrast]:
        """One for each place where the truth may lie; none where the candidate cannot answer."""
        raise NotImplementedError

    def calls_s(self, found: Programs) -> np.ndarray:
        """Seconds of one call of each cell, shape (C,)."""
        return np.array([_latency(self._curves[_series(cell)], cell.size) for cell in found.cells])

    def expected_half_width(
        self,
        found: Programs,
        contrasts: Sequence[Contrast],
        launches: np.ndarray,
        rounds: np.ndarray,
        confidence: float,
    ) -> np.ndarray:
        """Half width to expect after so many launches and rounds, infinite where the interval would stay open."""
        pilot = self.table.num_launches if found.candidate.pooled else 0
        return expected(
            [
                c.half_width(self.spread, launches, rounds, confidence=confidence, pilot_launches=pilot)
                for c in contrasts
            ]
        )

    def ideal(self, contrast: Contrast, rounds: int, calls_s: np.ndarray) -> dict[Cell, float]:
        """Share of the calls that each cell should have."""
        return dict(zip(contrast.cells, contrast.ideal_shares(self.spread, rounds, calls_s).tolist(), strict=True))

    @cached_property
    def _curves(self) -> dict[Series, tuple[np.ndarray, np.ndarray]]:
        """Measured sizes and mean times by program."""
        grouped: dict[Series, list[tuple[int, float]]] = {}
        for cell, row in zip(self.table.cells, self.table.latency_s, strict=True):
            grouped.setdefault(_series(cell), []).append((cell.size, float(row.mean())))
        return {
            key: (np.array([s for s, _ in sorted(p)], dtype=float), np.array([t for _, t in sorted(p)]))
            for key, p in grouped.items()
        }


def _series(cell: Cell) -> Series:
    return cell.role, cell.strategy, cell.num_devices, cell.k, cell.payload_bytes


def _latency(curve: tuple[np.ndarray, np.ndarray], size: int) -> float:
    """Time at a size: a power law between neighbours, and beyond the last two."""
    sizes, times = curve
    return float(times[0]) if len(sizes) == 1 else float(interpolate(sizes, times, float(size)))


@dataclass(frozen=True, kw_only=True)
class OfSize(Question):
    """The size at which the largest count costs the same as the reference; half widths as a share of it."""

    root: Root

    def candidates(self) -> Iterator[Candidate]:
        """Brackets of the root."""
        return self.root.candidates()

    def contrasts(self, found: Programs) -> Sequence[Contrast]:
        """At the places where the root may lie."""
        return self.root.contrasts(found.candidate, self.spread, MIN_LAUNCHES_AT_LOOK)

    def expected_half_width(
        self,
        found: Programs,
        contrasts: Sequence[Contrast],
        launches: np.ndarray,
        rounds: np.ndarray,
        confidence: float,
    ) -> np.ndarray:
        """Of the upper side, from the logarithm; two sizes must be close enough for a straight line."""
        log = super().expected_half_width(found, contrasts, launches, rounds, confidence)
        half = np.expm1(np.minimum(log, 50.0))
        bent = len(found.candidate.sizes) == 2 and np.asarray(max(c.bias for c in contrasts) > STRAIGHT_ENOUGH * half)
        return np.where((log > 50.0) | bent, np.inf, half)


@dataclass(frozen=True, kw_only=True)
class OfCount(Question):
    """The best count at one size; half widths of a log ratio."""

    contest: Contest

    def candidates(self) -> Iterator[Candidate]:
        """Sets of counts that hold the two."""
        return self.contest.candidates()

    def contrasts(self, found: Programs) -> Sequence[Contrast]:
        """The log ratio of the two."""
        contrast = self.contest.contrast(found.candidate)
        return () if contrast is None else (contrast,)

    @property
    def enough(self) -> str | None:
        """Only a decision is enough."""
        return self.decided


@dataclass(frozen=True, kw_only=True)
class OfParameter(Question):
    """A parameter; half widths as a share of it, or in its unit where the pilot does not determine it."""

    parameter: ParameterTarget
    scale: float

    def candidates(self) -> Iterator[Candidate]:
        """Grids of the measured counts and sizes."""
        return self.parameter.candidates()

    def programs(self, candidate: Candidate) -> Programs | None:
        """With the facts that the law's columns are made of."""
        return programs(self.table, self.costs.strategy, candidate)

    def contrasts(self, found: Programs) -> Sequence[Contrast]:
        """Least squares on the candidate's cells."""
        contrast = self.parameter.contrast(found)
        if contrast is None:
            return ()
        scale = self.scale
        return (
            Contrast(cells=contrast.cells, coefficients=contrast.coefficients / scale, common=contrast.common / scale),
        )

    def calls_s(self, found: Programs) -> np.ndarray:
        """Measured, else by the law: a pilot without controls has no curves for them."""
        columns = self.parameter.columns_of(found)
        assert columns is not None, "a candidate without columns has no contrast"
        return self.parameter.times_s(found.cells, columns)

    def ideal(self, contrast: Contrast, rounds: int, calls_s: np.ndarray) -> dict[Cell, float]:
        """Over all cells that a sweep could hold."""
        everything = self.parameter.everything()
        found = None if everything is None else self.parameter.ideal(everything, self.spread)
        return super().ideal(contrast, rounds, calls_s) if found is None else found


def of_size(costs: Costs, varies: Spread, *, near: int | None, precision: float, confidence: float) -> OfSize:
    """Ask for the break-even size of the largest count; ``NoTarget`` where none is in sight."""
    table, strategy = costs.table, costs.strategy
    root = find_root(costs, varies, near=near)
    sizes = break_even(
        table,
        strategy,
        None,
        axis_size=table.sizes("workload", strategy)[-1],
        objective=costs.objective,
        reference=costs.reference,
        max_devices=costs.max_devices,
        confidence=confidence,
    ).sizes
    roots = next((s.roots for s in sizes if s.num_devices == root.num_devices), ())
    inside = min(roots, key=lambda r: abs(np.log((r.estimate or 1.0) / root.size)), default=None)
    return OfSize(
        table=table,
        costs=costs,
        spread=varies,
        root=root,
        about=f"size at which {root.num_devices} devices cost the same as {root.reference}",
        current=inside or Estimate(estimate=root.size, reason="foreseen beyond the measured sizes"),
        wanted=precision,
    )


def of_count(costs: Costs, varies: Spread, *, axis_size: int, tolerance: float, confidence: float) -> OfCount:
    """Ask for the best count at one size; ``NoTarget`` where only one was measured."""
    contest = find_contest(costs, axis_size=axis_size, tolerance=tolerance, confidence=confidence)
    return OfCount(
        table=costs.table,
        costs=costs,
        spread=varies,
        contest=contest,
        about=f"cost on {contest.rival} devices over that on {contest.best}, at size {axis_size}",
        current=contest.ratio,
        wanted=contest.needed(tolerance),
        decided=contest.decided,
    )


def of_parameter(costs: Costs, varies: Spread, fits: LawFits, name: str, *, precision: float) -> OfParameter:
    """Ask for a parameter; ``UnknownParameter`` where the law has none of that name."""
    parameter = find_parameter(costs.table, costs.strategy, fits, name)
    reported = fits.parameters[name]
    relative = reported.identified and parameter.value > 0
    return OfParameter(
        table=costs.table,
        costs=costs,
        spread=varies,
        parameter=parameter,
        scale=parameter.value if relative else 1.0,
        about=f"{name} of the law {parameter.law.name!r}",
        current=Estimate(estimate=reported.estimate, interval=reported.interval, reason=reported.reason),
        wanted=precision if relative else np.inf,
        relative=relative,
    )
