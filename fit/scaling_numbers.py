"""The numbers of other scaling laws, read off the chosen physical law where they exist: sigma, kappa, serial share.

At a fixed global size the additive law is T(n) = q + K/n + D n + E [n > 1]. The Universal Scalability Law has the same
terms but E, with sigma = 1 - K/T(1) and kappa = D/T(1); Amdahl's has neither D nor E, and its serial share is sigma.
Whether a law of the menu has this form is tried on its own columns; it is not assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..model.cell import Cell
from ..model.law import terms, work
from ..model.rank import TOLERANCE
from ..model.unmeasured import facts_at
from .answer import Estimate, ScalingNumbers
from .intervals import t_estimate, without_rounding
from .launches import LaunchTable
from .lawfit import LawFits
from .parameters import Launches

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
"""Counts at which the form of a law is tried: more than its four terms, and not only powers of two."""
EFFICIENCY = 0.5
NIL = 0.01
"""What costs less than this share of T(1) is no term of a scaling law: no timing on several devices resolves it."""
FORM = 1e-3
"""Largest relative misfit of a law to the form above; 2 log2 n misses it by tens of percent."""
_DECADES = 5
_PLACES = 11


class _None(Exception):
    """Why a number does not exist."""


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """Rows of the chosen law and its unconstrained parameters, launch by launch."""

    table: LaunchTable
    strategy: str
    fits: LawFits

    @property
    def fitted(self) -> Launches:
        """The unconstrained fit."""
        if self.fits.parameters_of is None:
            raise _None("no law was fitted")
        return self.fits.unconstrained[self.fits.parameters_of]

    def rows(self, places: Sequence[tuple[int, int]]) -> np.ndarray:
        """Coefficients of the law at (count, global size), shape (places, P)."""
        law = self.fits.chosen
        if law is None:
            raise _None("no law was fitted")
        columns = {name: j for j, name in enumerate(law.design.names)}
        found = np.zeros((len(places), len(columns)))
        for i, (n, size) in enumerate(places):
            cell = Cell(role="workload", strategy=self.strategy, num_devices=n, size=size)
            known = facts_at(self.table.facts, cell)
            if known.reason is not None:
                raise _None(known.reason)
            try:
                row = terms(law.law, cell, known.facts, cores=self.table.cores, spread=self.table.spread)
            except ValueError as error:
                raise _None(f"{cell}: {error}") from error
            for name, coefficient in row.items():
                if coefficient and name not in columns:
                    raise _None(f"the law {law.name!r} has a free time per place and no formula between them")
                if coefficient:
                    found[i, columns[name]] = coefficient
        return found

    def times(self, places: Sequence[tuple[int, int]]) -> np.ndarray:
        """Times at (count, global size), shape (places, G), seconds."""
        rows = self.rows(places)
        scaled = rows / self.fitted.lengths
        left = scaled - scaled @ self.fitted.determined.T @ self.fitted.determined
        if np.any(np.linalg.norm(left, axis=1) > TOLERANCE * np.linalg.norm(scaled, axis=1)):
            raise _None("the cells measured do not determine the law's time there")
        return rows @ self.fitted.values

    def work(self, size: int) -> float:
        """Work of the problem on one device; the size itself where the program says nothing."""
        cell = Cell(role="workload", strategy=self.strategy, num_devices=1, size=size)
        return work(cell, facts_at(self.table.facts, cell).facts) or float(size)


def scaling_numbers(
    table: LaunchTable, strategy: str, fits: LawFits, *, axis_size: int, confidence: float = 0.95
) -> ScalingNumbers:
    """Read the numbers off the chosen law at one size.

    Parameters
    ----------
    table, strategy, fits : what was fitted
    axis_size : entry of the plan's size axis; on the weak path the global size is that of the largest count
    confidence : of the intervals, Student t over the launches

    Returns
    -------
    ScalingNumbers
        Each number with its interval, or the reason why the law has none. The isoefficiency exponent is x in
        W ~ n^x, the growth of the work that keeps the efficiency at one half, between half the largest count and the
        largest [1]_.

    References
    ----------
    .. [1] A. Y. Grama, A. Gupta and V. Kumar, IEEE Parallel Distrib. Technol. 1(3), 12-21, 1993,
       doi:10.1109/88.242438.
    """
    largest = table.devices("workload", strategy)[-1]
    size = table.plan.global_size(largest, axis_size)
    curve = _Curve(table=table, strategy=strategy, fits=fits)
    reason = _why_no_law(fits)
    if reason is not None:
        missing = Estimate(reason=reason)
        return ScalingNumbers(
            law=fits.parameters_of,
            size=size,
            contention=missing,
            coherency=missing,
            serial_fraction=missing,
            isoefficiency=missing,
        )
    contention, coherency, serial = _constants(curve, size, largest, confidence)
    return ScalingNumbers(
        law=fits.parameters_of,
        size=size,
        contention=contention,
        coherency=coherency,
        serial_fraction=serial,
        isoefficiency=_isoefficiency(curve, size, max(largest, 4), confidence),
    )


def _why_no_law(fits: LawFits) -> str | None:
    if fits.chosen is None:
        return "no law was fitted"
    report = next(one for one in fits.reports if one.name == fits.parameters_of)
    return None if report.kept or report.adequate else "no law fits these data well enough to stand for them"


def _constants(curve: _Curve, size: int, largest: int, confidence: float) -> tuple[Estimate, Estimate, Estimate]:
    """Contention, coherency and serial fraction."""
    try:
        first, k, d, once = _form(curve, size)
    except _None as none:
        missing = Estimate(reason=str(none))
        return missing, missing, missing
    if not _nil(once / first, confidence):
        missing = Estimate(
            reason=f"more than one device costs {_percent(once / first)} of T(1) once, and these laws have no such term"
        )
        return missing, missing, missing
    share = k / first
    if not -NIL <= share.mean() <= 1 + NIL:
        why = "negative: bytes cost more than sharing the work saves" if share.mean() < 0 else "more than all of T(1)"
        missing = Estimate(reason=f"the part of the time that shrinks as 1/n is {why}")
        return missing, missing, missing
    contention = _at_least_0(1 - share, confidence)
    coherency = _at_least_0(d / first, confidence)
    if _nil(d * largest / first, confidence):
        return contention, coherency, contention
    growing = f"the time grows by {_percent(d / first)} of T(1) with each device, and Amdahl's law has no such term"
    return contention, coherency, Estimate(reason=growing)


def _form(curve: _Curve, size: int) -> tuple[np.ndarray, ...]:
    """T(1), K, D and E, each of shape (G,), seconds, of a law that has this form."""
    times = curve.times([(n, size) for n in COUNTS])
    n = np.array(COUNTS, dtype=float)
    basis = np.stack([np.ones_like(n), 1 / n, n, n > 1], axis=-1)
    found, *_ = np.linalg.lstsq(basis, times, rcond=None)
    mean = times.mean(axis=1)
    if np.any(mean <= 0):
        raise _None("the law gives no positive time there")
    if np.abs(basis @ found.mean(axis=1) - mean).max() > FORM * mean.max():
        raise _None("the law's time is not of the form q + K/n + D n")
    _, k, d, once = without_rounding(found, basis, mean)
    return times[0], k, d, once


def _nil(share: np.ndarray, confidence: float) -> bool:
    """Whether a share of T(1) is too small to be a term, or cannot be told from 0."""
    found = t_estimate(share, confidence)
    if found.interval is None or found.interval[0] is None:
        return bool(abs(share.mean()) < NIL)
    return bool(found.interval[0] <= 0 or share.mean() < NIL)


def _at_least_0(values: np.ndarray, confidence: float) -> Estimate:
    """Mean over launches, cut at 0; there the interval is one-sided."""
    found = t_estimate(values, confidence)
    if found.estimate is None or found.interval is None:
        return Estimate(estimate=None if found.estimate is None else max(0.0, found.estimate), reason=found.reason)
    if (found.interval[0] or 0.0) > 0:
        return found
    error = values.std(ddof=1) / np.sqrt(values.size)
    limit = found.estimate + float(special.stdtrit(values.size - 1, confidence) * error)
    if limit <= 0:
        return Estimate(reason="the data push it below 0")
    return Estimate(estimate=max(0.0, found.estimate), interval=(0.0, limit), reason="at its bound 0: one-sided limit")


def _isoefficiency(curve: _Curve, size: int, largest: int, confidence: float) -> Estimate:
    """Exponent x of W ~ n^x between half the largest count and the largest."""
    if len(curve.table.sizes("workload", curve.strategy)) < 2 and any(curve.table.facts.values()):
        return Estimate(reason="one size was measured, so how the work grows with the size is not known")
    smaller = largest // 2
    try:
        exponents = np.log(_work_needed(curve, size, largest) / _work_needed(curve, size, smaller)) / np.log(
            largest / smaller
        )
    except _None as none:
        return Estimate(reason=str(none))
    return t_estimate(exponents, confidence)


def _work_needed(curve: _Curve, size: int, num_devices: int) -> np.ndarray:
    """Work at which n devices reach the efficiency, by launch, shape (G,)."""
    wide = np.geomspace(size * 10.0**-_DECADES, size * 10.0**_DECADES, _PLACES)
    lowest, highest = _bracket(_shortfall(curve, wide, num_devices).mean(axis=1), wide, num_devices)
    # Once more, closer: a line across a decade would bend the exponent by some percent.
    close = np.geomspace(lowest / 2, highest * 2, _PLACES)
    gap = _shortfall(curve, close, num_devices)
    logs = np.log([curve.work(max(1, round(s))) for s in close])
    found = []
    for launch in gap.T:
        above = np.flatnonzero((launch[:-1] < 0) & (launch[1:] >= 0))
        if not above.size:
            raise _None(f"not every launch reaches an efficiency of {100 * EFFICIENCY:g} % near there")
        i = above[-1]
        found.append(np.exp(np.interp(0.0, launch[i : i + 2], logs[i : i + 2])))
    return np.array(found)


def _bracket(gap: np.ndarray, sizes: np.ndarray, num_devices: int) -> tuple[float, float]:
    crossings = np.flatnonzero((gap[:-1] < 0) & (gap[1:] >= 0))
    if not crossings.size:
        always = bool(np.all(gap >= 0))
        raise _None(
            f"{num_devices} devices reach an efficiency of {100 * EFFICIENCY:g} % at {'every' if always else 'no'} size"
        )
    return float(sizes[crossings[-1]]), float(sizes[crossings[-1] + 1])


def _shortfall(curve: _Curve, sizes: np.ndarray, num_devices: int) -> np.ndarray:
    """Efficiency less the target, shape (sizes, G); negative where the problem is too small."""
    whole = [max(1, round(size)) for size in sizes.tolist()]
    alone = curve.times([(1, size) for size in whole])
    together = curve.times([(num_devices, size) for size in whole])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(together > 0, alone / (num_devices * together), 0.0) - EFFICIENCY


def _percent(values: np.ndarray) -> str:
    return f"{100 * values.mean():.2g} %"
