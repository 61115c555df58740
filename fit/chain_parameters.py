"""Latency and bandwidth of collectives from their chains alone: what a launch of several processes reports.

Where several processes pass a barrier before each call, none of them begins exactly when the others do, and the call of
a whole program holds that skew, which may dwarf a step of the collective. The slope of a chain in its length k does
not: all that a call pays once drops out. So there the slopes are fitted by themselves, one a count and payload:

    slope(n, V) = alpha0 + steps(n) alpha + bytes(n, V) beta

and with them the algorithm, which the skew may hide as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..model.law import Design, collectives_of
from ..model.menu import load
from .answer import Parameter
from .collective_cost import fit_chain
from .launches import LaunchTable
from .lawfit import LawFits
from .parameters import Launches, fit_launches, parameters

NAMES = ("alpha0", "alpha", "beta")
UNITS = ("s", "s", "s/B")
ALGORITHMS = ("ring", "log", "linear")
MARGIN, BETTER = 0.10, 0.5
"""The algorithm of the reported law stands unless it misses the chains by more than the margin of the laws, and another
one by less than this share of that. Where messages are short, ring and linear differ by a factor in alpha alone, and
which of them is closest is noise."""


def with_chains(
    table: LaunchTable, strategy: str, fits: LawFits, found: dict[str, Parameter], *, confidence: float = 0.95
) -> dict[str, Parameter]:
    """Replace what the chains determine by themselves, where several processes ran a launch.

    Parameters
    ----------
    table, strategy, fits : LaunchTable, str, LawFits
    found : dict from name to Parameter
        As the fit of all cells has them.
    confidence : float

    Returns
    -------
    dict from name to Parameter
        The same keys. ``beta`` is replaced only where the chains say it more precisely, or
        deny the algorithm of the reported law.
    """
    law = fits.chosen
    if table.plan.processes == 1 or not table.replicated or law is None or law.law.all_reduce == "free":
        return found
    chains = [_Chains.of(table, strategy, algorithm) for algorithm in ALGORITHMS]
    if len(chains[0].slopes) <= len(NAMES) or np.any(chains[0].slopes <= 0):
        return found
    theirs = chains[ALGORITHMS.index(law.law.all_reduce)]
    best = min(chains, key=lambda one: one.misfit)
    one = best if theirs.misfit > MARGIN and best.misfit < BETTER * theirs.misfit else theirs
    remark = f"from the chains ({one.algorithm}), whose slopes are free of the processes' skew"
    ours = parameters(one.design, one.fitted, replicated=True, confidence=confidence, remark=remark)
    told = {name: ours[name] for name in NAMES if name in found and ours[name].identified}
    # Skew does not grow with the bytes: of one law both fits may speak of beta, and the more precise one does.
    if one is theirs and "beta" in told and _width(told["beta"]) >= _width(found["beta"]):
        del told["beta"]
    return found | told


def _width(parameter: Parameter) -> float:
    """Of its interval; infinite without one."""
    lower, upper = parameter.interval or (None, None)
    return math.inf if lower is None or upper is None else upper - lower


@dataclass(frozen=True, kw_only=True)
class _Chains:
    """One slope a count and payload, shape (cells, G), seconds a collective, and an algorithm fitted to them."""

    algorithm: str
    slopes: np.ndarray
    design: Design

    @classmethod
    def of(cls, table: LaunchTable, strategy: str, algorithm: str) -> _Chains:
        rows = list(_slopes(table, strategy, algorithm))
        matrix = np.array([row for row, _ in rows]).reshape(-1, len(NAMES))
        slopes = np.array([slope for _, slope in rows]).reshape(len(rows), table.num_launches)
        causes = ("communication",) * len(NAMES)
        return cls(
            algorithm=algorithm, slopes=slopes, design=Design(matrix=matrix, names=NAMES, units=UNITS, causes=causes)
        )

    @cached_property
    def fitted(self) -> Launches:
        """Launch by launch, weighted by relative error."""
        return fit_launches(self.design, 1 / self.slopes.mean(axis=1) ** 2, self.slopes)

    @property
    def misfit(self) -> float:
        """Root mean square relative error of the mean over launches."""
        mean = self.slopes.mean(axis=1)
        return float(np.sqrt(np.mean((self.design.matrix @ self.fitted.values.mean(axis=1) / mean - 1) ** 2)))


def _slopes(table: LaunchTable, strategy: str, algorithm: str) -> Iterator[tuple[list[float], np.ndarray]]:
    """Coefficients of one collective, and its seconds in each launch, shape (G,), by count and payload."""
    for n in table.devices("chain", strategy):
        fit = fit_chain(table, strategy, n)
        for payload, slope in zip(fit.payloads, fit.slopes, strict=True) if fit else ():
            cell = next(c for c in table.select("chain", strategy) if (c.num_devices, c.payload_bytes) == (n, payload))
            total = load(collectives_of(cell, table.facts.get(cell)), n, algorithm)
            yield [1.0, total.steps / total.collectives, total.bytes / total.collectives], slope
