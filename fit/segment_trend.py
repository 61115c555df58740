"""The baseline's predictions where the times break at some count: none across a border."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .trend import Baseline


@dataclass(frozen=True, kw_only=True)
class SegmentTrend:
    """A baseline that predicts neither between the two counts of a break nor from counts on both sides of it.

    Attributes
    ----------
    baseline : over all measured counts
    borders : (count below, count above) of every break, ascending
    """

    baseline: Baseline
    borders: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        """The baseline's, with the break: whoever reads a prediction must know of it."""
        below, above = self.borders[-1]
        return f"{self.baseline.name}, next to the break between {below} and {above} devices"

    @property
    def discrepancy(self) -> float | None:
        """The baseline's: hold-outs across the break make it larger, never smaller."""
        return self.baseline.discrepancy

    def latency_s(self, num_devices: int, axis_size: int) -> np.ndarray | None:
        """Predict one call, shape (G,), seconds; None where ``refusal`` gives a reason or the baseline has nothing."""
        return None if self.refusal(num_devices) else self.baseline.latency_s(num_devices, axis_size)

    def refusal(self, num_devices: int) -> str | None:
        """Why a count is not predicted because of a break, or None."""
        for below, above in self.borders:
            if below < num_devices < above:
                return f"the times break between {below} and {above} devices: measure this count"
        below, above = self.borders[-1]
        counts = {n for n, _ in self.baseline.times_s}
        if num_devices > max(counts) and sum(n >= above for n in counts) < 2:
            return f"the times break between {below} and {above} devices and one count lies beyond: measure more there"
        return None
