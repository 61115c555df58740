"""What a device count costs under an objective, measured or predicted.

*time*: c(n) = T(n, S), seconds a call. *throughput*: c(n) = T(n, n s) / n, seconds per unit of work. Both run along
the sweep's own path, so a size is always an entry of the plan's size axis: S on the strong path, s on the weak one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from .comparison import Comparison, Route, alone, ratio
from .crowding import crowd
from .launches import LaunchTable
from .segment_trend import SegmentTrend

if TYPE_CHECKING:
    from .lawfit import FittedLaw, LawFits
    from .trend import Baseline

MOST_COUNTS = 64
MOST_ADMISSIBLE = 512
"""Above this many, counts are asked for on a log grid: a million predictions would take hours and say no more."""

Objective = Literal["time", "throughput"]
Kind = Literal["measured", "interpolated", "extrapolated", "refused"]


def shares_cores(table: LaunchTable) -> bool:
    """Whether forced host devices outnumber the cores: then nothing is said of counts that were not measured."""
    shared = None if table.visible_devices is None else crowd(table, table.visible_devices)
    return shared is not None and shared.devices > shared.cores


class _Latency(NamedTuple):
    """Seconds of one call by one route, shape (G,)."""

    name: str
    latency_s: np.ndarray
    discrepancy: float | None


@dataclass(frozen=True, kw_only=True)
class CountCost:
    """The cost of one count at one size.

    ``routes`` are the ways it is known, none where ``kind`` is ``refused``; ``source`` says which, or why not.
    ``units`` is the work of a call in units of the size axis: n for throughput on the weak path, else 1.
    """

    num_devices: int
    axis_size: int
    kind: Kind
    routes: tuple[Route, ...]
    source: str
    units: int = 1

    def log_cost(self) -> Comparison:
        """Log of the cost, seconds per unit."""
        return alone(self.routes)

    def log_latency(self) -> Comparison:
        """Log of the time of one call, seconds."""
        return alone(self.routes).plus(float(np.log(self.units)))

    def log_ratio(self, other: CountCost) -> Comparison:
        """Log of this cost over another's, paired by launch; below 0: this one is cheaper."""
        return ratio(self.routes, other.routes)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Costs of one strategy's counts under one objective, against a reference count n0, up to ``max_devices``."""

    table: LaunchTable
    strategy: str
    fits: LawFits | None
    objective: Objective
    reference: int
    max_devices: int

    @classmethod
    def of(
        cls,
        table: LaunchTable,
        strategy: str,
        fits: LawFits | None,
        *,
        objective: Objective | None = None,
        reference: int | None = None,
        max_devices: int | None = None,
    ) -> Costs:
        """Fill in the defaults: the plan's objective, the smallest and the largest measured count.

        Raises
        ------
        ValueError
            If the strategy or the reference count was not measured, or ``max_devices`` lies below the reference.
        """
        measured = table.devices("workload", strategy)
        if not measured:
            raise ValueError(f"strategy {strategy!r} was not measured; measured: {', '.join(table.strategies)}.")
        reference = measured[0] if reference is None else reference
        if reference not in measured:
            counts = ", ".join(map(str, measured))
            raise ValueError(f"reference {reference} is not a measured count; choose one of {counts}, or measure it.")
        max_devices = measured[-1] if max_devices is None else max_devices
        if max_devices < reference:
            raise ValueError(f"max_devices {max_devices} lies below the reference count {reference}; raise it.")
        return cls(
            table=table,
            strategy=strategy,
            fits=fits,
            objective=objective or ("throughput" if table.plan.objective == "throughput" else "time"),
            reference=reference,
            max_devices=max_devices,
        )

    def admissible(self, axis_size: int) -> tuple[int, ...]:
        """Counts from the reference to ``max_devices``: those that divide S where they must, and all measured ones.

        Where the replication is unknown: of those the measured ones, the doublings of the reference and
        ``max_devices``. Nothing there says how well a count in between is known.
        """
        plan = self.table.plan
        return tuple(
            n
            for n in self._candidates()
            if not plan.divides or plan.global_size(n, axis_size) % n == 0 or self._measured(n, axis_size) is not None
        )

    def _candidates(self) -> Sequence[int]:
        """Every count in the range; where they are many a log grid, the powers of two and the measured ones."""
        first, last = self.reference, self.max_devices
        measured = self.table.devices("workload", self.strategy)
        if self._replication_unknown:
            doublings = {first * 2**k for k in range((last // first).bit_length())}
            return sorted(n for n in doublings.union(measured, [last]) if first <= n <= last)
        if last - first < MOST_ADMISSIBLE:
            return range(first, last + 1)
        grid = {round(n) for n in np.geomspace(first, last, MOST_ADMISSIBLE).tolist()}
        powers = {2**k for k in range(last.bit_length())}
        return sorted(n for n in grid.union(powers, measured) if first <= n <= last)

    def shown(self, axis_size: int) -> tuple[int, ...]:
        """The admissible counts, or where they are many the measured and ``MOST_COUNTS`` others, evenly on a log scale.

        A row each for hundreds of counts tells a reader no more, and pairs of them take minutes.
        """
        counts = self.admissible(axis_size)
        if len(counts) <= MOST_COUNTS:
            return counts
        wanted = np.geomspace(counts[0], counts[-1], MOST_COUNTS)
        at = np.searchsorted(counts, wanted, side="right") - 1
        measured = {n for n in counts if self._measured(n, axis_size) is not None}
        return tuple(sorted(measured.union(counts[i] for i in at)))

    def known(self, axis_size: int) -> tuple[CountCost, ...]:
        """Admissible counts that were measured, or are predicted with a judged error; ascending.

        Where the replication is unknown no count between measured ones, and none that the trend carries beyond the
        sizes timed on it: it was not tried there, and its error is a guess.
        """
        costs = (self.at(n, axis_size) for n in self.admissible(axis_size))
        return tuple(
            c for c in costs if c.routes and all(r.discrepancy is not None for r in c.routes) and self._may_decide(c)
        )

    def at(self, num_devices: int, axis_size: int) -> CountCost:
        """The cost of one count: from the data where measured, else by every kept law, else by the baseline."""
        units = self.table.plan.global_size(num_devices, axis_size) // axis_size if self._per_unit else 1
        kind, source, known = self._latencies(num_devices, axis_size)
        routes = tuple(
            Route(source=k.name, log_cost=np.log(k.latency_s / units), discrepancy=k.discrepancy) for k in known
        )
        return CountCost(
            num_devices=num_devices, axis_size=axis_size, kind=kind, routes=routes, source=source, units=units
        )

    def _may_decide(self, cost: CountCost) -> bool:
        counts = self.table.devices("workload", self.strategy)
        if not self._replication_unknown or cost.num_devices > counts[-1]:
            return True
        by_trend = self.fits is not None and cost.routes[0].source == self.fits.baseline.name
        return cost.num_devices in counts and not (by_trend and cost.kind == "extrapolated")

    @property
    def _replication_unknown(self) -> bool:
        return self.table.foreign or not self.table.replicated

    @property
    def _per_unit(self) -> bool:
        return self.objective == "throughput"

    def _latencies(self, num_devices: int, axis_size: int) -> tuple[Kind, str, list[_Latency]]:
        """Kind, source, and the time of a call by each route."""
        if (measured := self._measured(num_devices, axis_size)) is not None:
            return "measured", "measured", [_Latency("measured", measured, 0.0)]
        if shares_cores(self.table) and num_devices not in self.table.devices("workload", self.strategy):
            return "refused", "not measured, and the devices share cores: measure this count", []
        if self.fits is None:
            return "refused", "not measured, and no law was fitted", []
        kind = self._kind(num_devices, axis_size)
        # Every law answers between the ends of both axes, measured corner or not: its own cells determine it there.
        laws = [law for law in self.fits.kept if law.discrepancy is not None or self._in_range(num_devices, axis_size)]
        # The law closest to the held-out cells first: its prediction is the estimate.
        laws.sort(key=lambda law: np.inf if law.discrepancy is None else law.discrepancy)
        for predictors in (laws, [self.fits.baseline]):
            if found := list(_predicted(predictors, num_devices, axis_size)):
                return kind, ", ".join(p.name for p in found), found
        baseline = self.fits.baseline
        if isinstance(baseline, SegmentTrend) and (reason := baseline.refusal(num_devices)):
            return "refused", f"not measured, and {reason}", []
        return "refused", "not measured, and neither a law nor the baseline reaches there: measure it", []

    def _measured(self, num_devices: int, axis_size: int) -> np.ndarray | None:
        size = self.table.plan.global_size(num_devices, axis_size)
        return self.table.time("workload", self.strategy, num_devices, size)

    def _in_range(self, num_devices: int, axis_size: int) -> bool:
        counts, sizes = self._places
        return bool(counts.min() <= num_devices <= counts.max() and sizes.min() <= axis_size <= sizes.max())

    def _kind(self, num_devices: int, axis_size: int) -> Kind:
        """Interpolated where something was measured on every side: fewer and more devices, each smaller and larger.

        A table may lack a corner: there the smallest and the largest of each axis do not tell.
        """
        counts, sizes = self._places
        inside = all(
            np.any(a & b)
            for a in (counts <= num_devices, counts >= num_devices)
            for b in (sizes <= axis_size, sizes >= axis_size)
        )
        return "interpolated" if inside else "extrapolated"

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Count and entry of the size axis of every measured cell, each of shape (C,)."""
        cells = self.table.select("workload", self.strategy)
        return np.array([c.num_devices for c in cells]), np.array([self.table.axis_size(c) for c in cells])


def _predicted(
    predictors: Iterable[FittedLaw | Baseline | SegmentTrend], num_devices: int, axis_size: int
) -> Iterator[_Latency]:
    """Predictions of those that have one; a time of 0, all parameters at their bound, is none."""
    for predictor in predictors:
        latency = predictor.latency_s(num_devices, axis_size)
        if latency is not None and (latency > 0).all():
            yield _Latency(predictor.name, latency, predictor.discrepancy)
