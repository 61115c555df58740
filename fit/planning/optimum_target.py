"""The best count as a target: the cost of its closest rival over its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...model.cell import Cell, devices
from ..answer import Estimate
from ..objective import Costs
from ..optimum import optimum
from .candidates import Candidate, counts_with
from .contrasts import Contrast, NoTarget


@dataclass(frozen=True, kw_only=True)
class Contest:
    """The two counts that are hardest to tell apart at one size.

    Attributes
    ----------
    best, rival : the count of least cost, and the other one that the data do not exclude and that costs least
    excess : log cost of the rival over the best
    left : counts that the data do not exclude
    ratio : the excess on the natural scale, with its interval
    decided : what the pilot already says, None where it leaves the question open
    """

    costs: Costs
    axis_size: int
    best: int
    rival: int
    excess: float
    left: tuple[int, ...]
    ratio: Estimate
    decided: str | None

    def candidates(self) -> Iterator[Candidate]:
        """The two alone, all that are left, and all counts, at this size only."""
        plan = self.costs.table.plan
        measured = self.costs.table.devices("workload", self.costs.strategy)
        sets = ((self.best, self.rival), self.left, measured)
        for chosen in dict.fromkeys(counts_with(plan, counts) for counts in sets):
            yield Candidate(devices=chosen, sizes=(self.axis_size,), controls=False, probes=False)

    def contrast(self, candidate: Candidate) -> Contrast | None:
        """The log ratio; None where the candidate does not hold both counts at this size."""
        plan = self.costs.table.plan
        if self.axis_size not in candidate.sizes or not {self.best, self.rival} <= set(candidate.devices):
            return None
        cells = tuple(
            Cell(
                role="workload",
                strategy=self.costs.strategy,
                num_devices=n,
                size=plan.global_size(n, self.axis_size),
            )
            for n in (self.rival, self.best)
        )
        return Contrast(cells=cells, coefficients=np.array([1.0, -1.0]))

    def needed(self, tolerance: float) -> float:
        """Half width of the log ratio that would decide: the excess shown, or the rival shown to be close enough.

        Where both would do, the wider one.
        """
        return max(abs(self.excess), float(np.log1p(tolerance)) - abs(self.excess))


def find_contest(costs: Costs, *, axis_size: int, tolerance: float, confidence: float) -> Contest:
    """Find what keeps the optimum open.

    Raises
    ------
    NoTarget
        If only one count was measured at this size.
    """
    measured = [n for n in costs.table.devices("workload", costs.strategy) if costs.reference <= n <= costs.max_devices]
    known = {n: c for n in measured if (c := costs.at(n, axis_size)).kind == "measured"}
    if len(known) < 2:
        raise NoTarget(f"{len(known)} count was measured at size {axis_size}: measure another with --devices.")
    found = optimum(
        costs.table,
        costs.strategy,
        None,
        axis_size=axis_size,
        objective=costs.objective,
        reference=costs.reference,
        max_devices=costs.max_devices,
        tolerance=tolerance,
        confidence=confidence,
    )
    means = {n: c.log_cost().estimate for n, c in known.items()}
    best = min(means, key=means.__getitem__)
    decided = found.reason or f"{devices(best)}: the data exclude every other count at size {axis_size}"
    left = tuple(n for n in found.set if n in known) if found.set else tuple(known)
    rival = min((n for n in (left if len(left) > 1 else known) if n != best), key=means.__getitem__)
    return Contest(
        costs=costs,
        axis_size=axis_size,
        best=best,
        rival=rival,
        excess=means[rival] - means[best],
        left=tuple(sorted({*left, best, rival})),
        ratio=known[rival].log_ratio(known[best]).natural(confidence),
        decided=decided if found.outcome == "found" else None,
    )
