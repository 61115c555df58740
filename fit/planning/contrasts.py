"""How a target depends on the logarithm of each cell's time: what its variance and its cells' weights follow from.

The delta method: near the pilot's estimate a target moves by ``coefficients @ changes of log times``, so its variance
over launches is the sum of squared coefficients times the cells' variances (what all cells of a launch share enters
with the sum of the coefficients, which is 0 for anything that compares two cells).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ...model.cell import Cell
from .spread import Spread


class NoTarget(ValueError):
    """A pilot that does not show enough of a target to plan for it; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A target near the pilot's estimate.

    Attributes
    ----------
    cells : C of them
    coefficients : ndarray, shape (C,), change of the target per change of a log time
    common : the same for what all cells of a launch share
    bias : by which the target may be off however often one measures, in its unit
    room : farthest that an interval may reach on either side before its end is open, in the target's unit
    """

    cells: tuple[Cell, ...]
    coefficients: np.ndarray
    common: float = 0.0
    bias: float = 0.0
    room: float = np.inf

    def variance(self, spread: Spread, rounds: np.ndarray | float) -> np.ndarray:
        """Of one launch's estimate after so many rounds, shape of ``rounds``."""
        own = sum(
            (b**2 * spread.variance(c, rounds) for c, b in zip(self.cells, self.coefficients, strict=True) if b),
            start=np.zeros(np.shape(rounds)),
        )
        return own + (self.common * spread.launch_sd) ** 2

    def half_width(
        self,
        spread: Spread,
        launches: np.ndarray,
        rounds: np.ndarray,
        *,
        confidence: float,
        pilot_launches: int = 0,
    ) -> np.ndarray:
        """Expected half width of the t interval after so many launches, infinite where an end would be open.

        ``pilot_launches`` are pooled with the new ones.
        """
        total = launches + pilot_launches
        variance = launches * self.variance(spread, rounds)
        if pilot_launches:
            variance = variance + pilot_launches * self.variance(spread, spread.rounds)
        half = special.stdtrit(total - 1, 0.5 + confidence / 2) * np.sqrt(variance) / total + self.bias
        return np.where(half <= self.room, half, np.inf)

    def shares(self, spread: Spread, rounds: float) -> np.ndarray:
        """Each cell's share of the variance, shape (C,)."""
        variances = np.array([float(spread.variance(cell, rounds)) for cell in self.cells])
        parts = self.coefficients**2 * variances
        return parts / parts.sum() if parts.sum() > 0 else parts

    def ideal_shares(self, spread: Spread, rounds: float, calls_s: np.ndarray) -> np.ndarray:
        """Each cell's share of the calls if every cell could have its own number: Neyman's allocation with costs.

        Calls in proportion to |coefficient| times standard deviation over the root of a call's device-seconds give
        the least variance for the money.
        """
        deviations = np.sqrt([float(spread.variance(cell, rounds)) for cell in self.cells])
        calls = np.abs(self.coefficients) * deviations / np.sqrt(calls_s * counts(self.cells))
        return calls / calls.sum() if calls.sum() > 0 else calls


def expected(halves: Sequence[np.ndarray]) -> np.ndarray:
    """Half width to expect when the truth may lie at several places: the root mean square; infinite where one is."""
    return np.sqrt(np.mean(np.square(halves), axis=0))


def counts(cells: Sequence[Cell]) -> np.ndarray:
    """Devices of each cell, shape (C,)."""
    return np.array([cell.num_devices for cell in cells], dtype=float)
