"""Scaling laws in print, fitted to the times of a workload: rivals of the physical laws, behind the same interface.

A rival sees nothing but (count, size) and times. Those that know one size fit each size by itself. Laws of the
throughput are fitted to the throughput by least squares, as their authors do; models of the time by relative least
squares, so that small times count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ...model.rivals import (
    amdahl_throughput,
    ernest_columns,
    gustafson_throughput,
    scalability_optimum,
    scalability_throughput,
    three_term_columns,
)
from ..trend import Baseline, Place

Times = Mapping[Place, np.ndarray]
"""Times by (count, entry of the size axis), each of shape (G,), seconds."""

AT_BOUND = 1e-6
"""A share of the work below this is the bound 0: no measurement resolves a millionth."""
SAME_THROUGHPUT = 1e-3
"""Below this relative difference of the two whole numbers beside a peak the smaller is the optimum: more devices that
bring nothing are not better. Of a flat peak this is the integer part, as in print."""


class Predictor(Protocol):
    """What was fitted: it predicts, launch by launch, as a law of the menu does."""

    @property
    def name(self) -> str:
        """For printing."""
        ...

    def latency_s(self, num_devices: int, axis_size: int) -> np.ndarray | None:
        """Time of one call, shape (G,), seconds; None where it says nothing. A sign-free model may fall below 0."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A law in print. ``fit(times, weak)`` returns None where the times are too few to determine it."""

    name: str
    fit: Callable[[Times, bool], Predictor | None]


@dataclass(frozen=True, kw_only=True)
class ThroughputCurve:
    """One law of the throughput at one size.

    Attributes
    ----------
    values : by parameter, shape (G,), of each launch; ``rate`` is calls a second, on the weak path times n
    of_mean : by parameter, fitted to the mean over launches
    counts : those fitted, ascending
    """

    formula: Callable[..., np.ndarray]
    values: Mapping[str, np.ndarray]
    of_mean: Mapping[str, float]
    counts: np.ndarray

    @property
    def at_bound(self) -> tuple[str, ...]:
        """Parameters that the data push to 0, by what they cost at the largest count against its share of the work."""
        n = float(self.counts[-1])
        reach = {"contention": n - 1, "coherency": n * (n - 1), "serial": n - 1}
        return tuple(
            name for name, size in reach.items() if name in self.of_mean and self.of_mean[name] * size < AT_BOUND
        )

    @property
    def optimum(self) -> float:
        """Count of the largest throughput, infinite where the curve has no peak.

        Of the whole numbers beside the peak the better one, the smaller where they do as well (``SAME_THROUGHPUT``).
        """
        if "coherency" not in self.of_mean:
            return math.inf if self.of_mean["serial"] < 1 else 1.0
        if "coherency" in self.at_bound:
            return math.inf if self.of_mean["contention"] < 1 else 1.0
        peak = scalability_optimum(contention=self.of_mean["contention"], coherency=self.of_mean["coherency"])
        below, above = math.floor(peak), math.ceil(peak)
        at_below, at_above = self.formula([below, above], **self.of_mean)
        return float(above if at_above > (1 + SAME_THROUGHPUT) * at_below else below)


@dataclass(frozen=True, kw_only=True)
class ThroughputLaw:
    """A law of the throughput, one curve a size: T = 1/X, on the weak path n/X."""

    name: str
    weak: bool
    curves: Mapping[int, ThroughputCurve]

    def latency_s(self, num_devices: int, axis_size: int) -> np.ndarray | None:
        """As in ``Predictor``; None at a size that was not fitted."""
        curve = self.curves.get(axis_size)
        if curve is None:
            return None
        return _units(num_devices, self.weak) / curve.formula(num_devices, **curve.values)


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A model of the time that is linear in its columns.

    Attributes
    ----------
    columns : of (count, global size), shape (P,)
    values : shape (P, G); by size where each has its own, else under None
    """

    name: str
    weak: bool
    columns: Callable[[int, int], np.ndarray]
    values: Mapping[int | None, np.ndarray] = field(default_factory=dict)

    def latency_s(self, num_devices: int, axis_size: int) -> np.ndarray | None:
        """As in ``Predictor``; None at a size that was not fitted, unless the sizes share their values."""
        values = self.values.get(axis_size, self.values.get(None))
        if values is None:
            return None
        return self.columns(num_devices, num_devices * axis_size if self.weak else axis_size) @ values


def amdahl(times: Times, weak: bool) -> ThroughputLaw | None:
    """Fit Amdahl's law to each size by itself, 0 <= serial <= 1, rate free."""
    return _throughput_law("Amdahl", amdahl_throughput, ("serial",), _fit_nonlinear, times, weak)


def gustafson(times: Times, weak: bool) -> ThroughputLaw | None:
    """Fit Gustafson's law to each size by itself, 0 <= serial <= 1, rate free."""
    return _throughput_law("Gustafson", gustafson_throughput, ("serial",), _fit_gustafson, times, weak)


def scalability(times: Times, weak: bool) -> ThroughputLaw | None:
    """Fit the Universal Scalability Law to each size by itself: contention and coherency >= 0, rate free.

    One device need not have been measured: the rate is a parameter, not the first row.
    """
    return _throughput_law("USL", scalability_throughput, ("contention", "coherency"), _fit_nonlinear, times, weak)


def ernest(times: Times, weak: bool) -> LinearModel | None:
    """Fit Ernest's non-negative model to all sizes together."""
    values = _non_negative(times, weak)
    return (
        None if values is None else LinearModel(name="Ernest", weak=weak, columns=ernest_columns, values={None: values})
    )


def ernest_by_size(times: Times, weak: bool) -> LinearModel | None:
    """Fit Ernest's non-negative model to each size by itself; None for one size, where it is ``ernest``."""
    series = _series(times)
    if len(series) < 2:
        return None
    found = {size: _non_negative(one, weak) for size, one in series.items()}
    known: dict[int | None, np.ndarray] = {size: values for size, values in found.items() if values is not None}
    if not known:
        return None
    return LinearModel(name="Ernest, one per size", weak=weak, columns=ernest_columns, values=known)


def three_terms(times: Times, weak: bool) -> LinearModel | None:
    """Fit [1, 1/n, n] with coefficients of any sign to each size by itself."""
    known: dict[int | None, np.ndarray] = {}
    for size, one in _series(times).items():
        if len(one) < 3:
            continue
        matrix = three_term_columns(np.array([n for n, _ in one]))
        latency = np.stack(list(one.values()))
        known[size] = np.stack(
            [np.linalg.lstsq(matrix / t[:, None], np.ones(len(t)), rcond=None)[0] for t in latency.T], axis=-1
        )
    if not known:
        return None
    return LinearModel(name="1, 1/n, n", weak=weak, columns=lambda n, _: three_term_columns(n), values=known)


def damped_trend(times: Times, weak: bool) -> Baseline:
    """The baseline that every law must beat; it knows no path."""
    del weak
    return Baseline(times_s=times)


RIVALS = (
    Rival(name="Amdahl", fit=amdahl),
    Rival(name="Gustafson", fit=gustafson),
    Rival(name="USL", fit=scalability),
    Rival(name="Ernest", fit=ernest),
    Rival(name="Ernest, one per size", fit=ernest_by_size),
    Rival(name="1, 1/n, n", fit=three_terms),
    Rival(name="damped trend", fit=damped_trend),
)


def _series(times: Times) -> dict[int, dict[Place, np.ndarray]]:
    """Times by size, ascending in size and count."""
    found: dict[int, dict[Place, np.ndarray]] = {}
    for place in sorted(times, key=lambda place: (place[1], place[0])):
        found.setdefault(place[1], {})[place] = np.asarray(times[place], dtype=float)
    return found


def _units(num_devices: ArrayLike, weak: bool) -> np.ndarray:
    """Work of one call in units of the size axis: the throughput is this over the time."""
    n = np.asarray(num_devices, dtype=float)
    return n if weak else np.ones_like(n)


def _throughput_law(
    name: str,
    formula: Callable[..., np.ndarray],
    shares: tuple[str, ...],
    fit: Callable[[Callable[..., np.ndarray], tuple[str, ...], np.ndarray, np.ndarray], np.ndarray],
    times: Times,
    weak: bool,
) -> ThroughputLaw | None:
    curves = {}
    for size, one in _series(times).items():
        n = np.array([count for count, _ in one], dtype=float)
        if len(n) < 1 + len(shares):
            continue
        latency = np.stack(list(one.values()))
        throughput = _units(n, weak)[:, None] / latency
        names = ("rate", *shares)
        values = np.stack([fit(formula, shares, n, x) for x in throughput.T])
        mean = fit(formula, shares, n, _units(n, weak) / latency.mean(axis=1))
        curves[size] = ThroughputCurve(
            formula=formula,
            values=dict(zip(names, values.T, strict=True)),
            of_mean=dict(zip(names, mean.tolist(), strict=True)),
            counts=n,
        )
    return ThroughputLaw(name=name, weak=weak, curves=curves) if curves else None


def _fit_nonlinear(
    formula: Callable[..., np.ndarray], shares: tuple[str, ...], n: np.ndarray, throughput: np.ndarray
) -> np.ndarray:
    """Rate and shares by bounded least squares on the throughput, shape (1 + shares,)."""
    from scipy.optimize import least_squares, nnls

    unit = throughput[0]
    x = throughput / unit
    # n / X is linear in 1/rate, contention/rate and coherency/rate; to first order its error is that of X times n / X².
    columns = np.stack([np.ones_like(n), n - 1, n * (n - 1)][: 1 + len(shares)], axis=-1)
    weights = x**2 / n
    start, _ = nnls(columns * weights[:, None], (n / x) * weights)
    start = np.maximum(start, 1e-9 / columns.max(axis=0))
    guess = np.array([1 / start[0], *(start[1:] / start[0])])
    upper = np.full(len(guess), np.inf)
    if shares == ("serial",):
        upper[1] = 1.0
        guess[1] = min(guess[1], 1 - 1e-6)
    found = least_squares(
        lambda p: formula(n, rate=p[0], **dict(zip(shares, p[1:], strict=True))) - x,
        guess,
        bounds=(0.0, upper),
        x_scale=np.maximum(np.abs(guess), 1e-3 / columns.max(axis=0)),
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    return found.x * np.array([unit, *np.ones(len(shares))])


def _fit_gustafson(
    formula: Callable[..., np.ndarray], shares: tuple[str, ...], n: np.ndarray, throughput: np.ndarray
) -> np.ndarray:
    """Rate and serial share: the law is rate s + rate (1 - s) n, both coefficients at least 0."""
    from scipy.optimize import nnls

    del formula, shares
    unit = throughput[0]
    (constant, slope), _ = nnls(np.stack([np.ones_like(n), n], axis=-1), throughput / unit)
    return np.array([(constant + slope) * unit, constant / (constant + slope)])


def _non_negative(times: Times, weak: bool) -> np.ndarray | None:
    """Ernest's four coefficients, shape (4, G), by relative non-negative least squares; None for too few times."""
    from scipy.optimize import nnls

    if len(times) < 4 or len({n for n, _ in times}) < 2:
        return None
    n = np.array([count for count, _ in times])
    size = np.array([s for _, s in times], dtype=float)
    matrix = ernest_columns(n, n * size if weak else size)
    lengths = np.linalg.norm(matrix, axis=0)
    latency = np.stack(list(times.values()))
    fitted = [nnls(matrix / lengths / t[:, None], np.ones(len(t)))[0] for t in latency.T]
    return np.stack(fitted, axis=-1) / lengths[:, None]
