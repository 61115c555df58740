"""Closed forms of the additive ring law on the strong path: oracles for tests, since answers come from a scan.

One process feeds all n devices and the payload V does not depend on n. With C the compute of one device alone,

    T(n) - T(1) = (n - 1) (D - K / n) + E,  n > 1,    K = C - 2 V beta,  D = dispatch + 2 alpha,

and E all that is paid once when n > 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AdditiveRing:
    """The three numbers that decide where adding devices helps; all in seconds.

    Attributes
    ----------
    gain : K, what spreading over ever more devices would save; negative when bandwidth dominates
    per_device : D >= 0; once : E >= 0
    """

    gain: float
    per_device: float
    once: float = 0.0

    @classmethod
    def from_parameters(
        cls,
        *,
        compute_s: float,
        message_bytes: float,
        dispatch: float,
        alpha: float,
        beta: float,
        entry: float = 0.0,
        alpha0: float = 0.0,
    ) -> AdditiveRing:
        """K, D and E of one all-reduce of ``message_bytes`` V and compute C on one device."""
        return cls(gain=compute_s - 2 * message_bytes * beta, per_device=dispatch + 2 * alpha, once=entry + alpha0)

    def growth_s(self, num_devices: float) -> float:
        """T(n) - T(1), seconds; negative where n devices beat one."""
        if num_devices == 1:
            return 0.0
        return (num_devices - 1) * (self.per_device - self.gain / num_devices) + self.once

    @property
    def optimum(self) -> float:
        """Real n at which T is smallest among n > 1: sqrt(K / D); 1 where K <= 0, infinite where D = 0."""
        if self.gain <= 0:
            return 1.0
        return math.inf if self.per_device == 0 else max(1.0, math.sqrt(self.gain / self.per_device))

    @property
    def some_real_count_helps(self) -> bool:
        """Whether T(n) < T(1) for a real n > 1: sqrt K - sqrt D > sqrt E."""
        if self.gain <= 0:
            return False
        return math.sqrt(self.gain) - math.sqrt(self.per_device) > math.sqrt(self.once)

    @property
    def helping_range(self) -> tuple[float, float] | None:
        """The open interval (n-, n+) of real counts above 1 that beat one device; None where there is none."""
        if not self.some_real_count_helps:
            return None
        if self.per_device == 0:
            return self.gain / (self.gain - self.once), math.inf
        total = self.gain + self.per_device - self.once
        root = math.sqrt(max(0.0, total**2 - 4 * self.gain * self.per_device))
        # The smaller root in the form that is free of the cancellation in total - root, and holds for D -> 0.
        return max(1.0, 2 * self.gain / (total + root)), (total + root) / (2 * self.per_device)

    @property
    def helping_counts(self) -> tuple[int, int | None] | None:
        """Smallest and largest integer that beat one device (None at the upper end: all beyond); None: none does."""
        if self.helping_range is None:
            return None
        lower, upper = self.helping_range
        first = math.floor(lower) + 1
        if first >= upper:
            return None
        return first, None if upper == math.inf else math.ceil(upper) - 1
