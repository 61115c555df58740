"""Tests and bounds for the smallest or largest of several means over launches.

The smallest lies above 0 when every one does (intersection-union: no correction), and below 0 when some one does
(union-intersection: Bonferroni); the largest the other way round. Bounds follow the same rule. Taking the smallest
within each launch first and testing its mean would be biased: three means that are 0 in truth then look negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .answer import Interval
from .intervals import p_above, p_below, t_estimate, why_no_interval


class Tested(Protocol):
    """A number that is compared with 0."""

    @property
    def estimate(self) -> float: ...

    def why_not(self) -> str | None:
        """Reason why there is neither interval nor p-value."""
        ...

    def lower(self, tail: float) -> float:
        """Bound that lies above the truth with probability ``tail`` at most."""
        ...

    def upper(self, tail: float) -> float:
        """Bound that lies below the truth with probability ``tail`` at most."""
        ...

    def p_above(self) -> float:
        """p-value of "at most 0"."""
        ...

    def p_below(self) -> float:
        """p-value of "at least 0"."""
        ...


def interval(tested: Tested, confidence: float) -> Interval | None:
    """Two-sided interval; None where there is none."""
    tail = (1 - confidence) / 2
    return None if tested.why_not() else (tested.lower(tail), tested.upper(tail))


@dataclass(frozen=True)
class Mean:
    """Mean over launches of values, shape (G,), by Student t."""

    values: np.ndarray

    @property
    def estimate(self) -> float:
        return float(self.values.mean())

    def why_not(self) -> str | None:
        return why_no_interval(self.values)

    def lower(self, tail: float) -> float:
        return self._ends(tail)[0]

    def upper(self, tail: float) -> float:
        return self._ends(tail)[1]

    def p_above(self) -> float:
        return _known(p_above(self.values))

    def p_below(self) -> float:
        return _known(p_below(self.values))

    def _ends(self, tail: float) -> tuple[float, float]:
        ends = t_estimate(self.values, 1 - 2 * tail).interval
        return (np.nan, np.nan) if ends is None else (_known(ends[0]), _known(ends[1]))


@dataclass(frozen=True)
class _Several:
    parts: tuple[Tested, ...]

    def why_not(self) -> str | None:
        return next(filter(None, (part.why_not() for part in self.parts)), None)

    def _all(self, number: Callable[[Tested], float]) -> list[float]:
        return [number(part) for part in self.parts]


@dataclass(frozen=True)
class Smallest(_Several):
    """The smallest of several numbers."""

    @property
    def estimate(self) -> float:
        return min(part.estimate for part in self.parts)

    def lower(self, tail: float) -> float:
        return min(self._all(lambda part: part.lower(tail)))

    def upper(self, tail: float) -> float:
        return min(self._all(lambda part: part.upper(tail / len(self.parts))))

    def p_above(self) -> float:
        return max(self._all(lambda part: part.p_above()))

    def p_below(self) -> float:
        return min(1.0, len(self.parts) * min(self._all(lambda part: part.p_below())))


@dataclass(frozen=True)
class Largest(_Several):
    """The largest of several numbers."""

    @property
    def estimate(self) -> float:
        return max(part.estimate for part in self.parts)

    def lower(self, tail: float) -> float:
        return max(self._all(lambda part: part.lower(tail / len(self.parts))))

    def upper(self, tail: float) -> float:
        return max(self._all(lambda part: part.upper(tail)))

    def p_above(self) -> float:
        return min(1.0, len(self.parts) * min(self._all(lambda part: part.p_above())))

    def p_below(self) -> float:
        return max(self._all(lambda part: part.p_below()))


@dataclass(frozen=True)
class Between:
    """A number only known to lie between two others, ``least`` and ``most``; its estimate is halfway."""

    least: Tested
    most: Tested

    @property
    def estimate(self) -> float:
        return (self.least.estimate + self.most.estimate) / 2

    def why_not(self) -> str | None:
        return self.least.why_not() or self.most.why_not()

    def lower(self, tail: float) -> float:
        return self.least.lower(tail)

    def upper(self, tail: float) -> float:
        return self.most.upper(tail)

    def p_above(self) -> float:
        return self.least.p_above()

    def p_below(self) -> float:
        return self.most.p_below()


def _known(value: float | None) -> float:
    return np.nan if value is None else value
