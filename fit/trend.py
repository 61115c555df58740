"""The baseline's predictions over counts and sizes: no law, only how the times themselves go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..model.baseline import damped_trend, last_slope, pooled_slope
from ..model.decomposition import interpolate

Place = tuple[int, int]
"""(device count, entry of the size axis)."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Damped trend in n, log-log interpolation in size, launch by launch.

    Attributes
    ----------
    times_s : measured times by place, each of shape (G,), seconds
    discrepancy : 1.483 times its median absolute logarithmic error on held-out cells; None where it was not judged
    """

    times_s: Mapping[Place, np.ndarray]
    discrepancy: float | None = None
    name: str = "damped trend"

    def latency_s(self, num_devices: int, axis_size: int) -> np.ndarray | None:
        """Predict one call, launch by launch.

        Returns
        -------
        ndarray, shape (G,), seconds, or None
            None below the smallest measured count, beyond the largest where fewer than two counts above 1 were
            measured (one device is a case of its own and gives no slope), and at another size when only one was
            measured at such counts.
        """
        known = {size: t for size in self._series if (t := self._at_count(num_devices, size)) is not None}
        if axis_size in known:
            return known[axis_size]
        # An empty message has no place on a log scale.
        known.pop(0, None)
        if len(known) < 2 or axis_size <= 0:
            return None
        places = np.array(sorted(known), dtype=float)
        return interpolate(places, np.stack([known[size] for size in sorted(known)], axis=-1), float(axis_size))

    @cached_property
    def _series(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """By size, ascending: counts, shape (K,), and times, shape (G, K)."""
        by_size: dict[int, list[int]] = {}
        for n, size in sorted(self.times_s):
            by_size.setdefault(size, []).append(n)
        return {
            size: (np.array(counts), np.stack([self.times_s[n, size] for n in counts], axis=-1))
            for size, counts in sorted(by_size.items())
        }

    @cached_property
    def _slopes(self) -> dict[int, np.ndarray]:
        """Log-log slope at the largest count, shape (G,), of the sizes with two counts above 1, pooled."""
        slopes = {
            size: last_slope(n[n > 1], times[:, n > 1])
            for size, (n, times) in self._series.items()
            if np.sum(n > 1) >= 2
        }
        if not slopes:
            return {}
        pooled = pooled_slope(np.stack(list(slopes.values()), axis=-1))
        return {size: pooled[:, i] for i, size in enumerate(slopes)}

    def _at_count(self, num_devices: int, axis_size: int) -> np.ndarray | None:
        counts, times = self._series[axis_size]
        if num_devices < counts[0]:
            return None
        if num_devices <= counts[-1]:
            return damped_trend(counts, times, [num_devices], slope=np.zeros(len(times)))[:, 0]
        slope = self._slopes.get(axis_size)
        return None if slope is None else damped_trend(counts, times, [num_devices], slope=slope)[:, 0]
