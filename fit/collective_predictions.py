"""What a collective timed by itself would take on other counts, by the laws that its times do not reject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..model.cell import Cell
from ..model.law import terms
from ..model.program import ProgramFacts
from .answer import Estimate, Prediction
from .intervals import log_t_estimate, residual_estimate
from .launches import LaunchTable
from .lawfit import FittedLaw, LawFits
from .objective import Kind
from .parameters import Launches, fit_launches
from .sample import Sample
from .stacked import error_weights, stack

NO_PROGRAM = "only collectives were measured, and no program that they would slow down"
REFUSED = "no law that fits these times has a number for this count: measure it"
TRUSTED = "not judged on a held-out count: the interval trusts the law"


def collective_predictions(
    table: LaunchTable, strategy: str, fits: LawFits, *, max_devices: int | None, confidence: float, margin: float
) -> tuple[Prediction, ...]:
    """Say what each payload takes on the measured counts and on their doublings up to ``max_devices``.

    Parameters
    ----------
    margin : misfit below which a law that no hold-out could judge may predict; one that was judged must be adequate

    Returns
    -------
    tuple of Prediction, by payload, then by count
        ``throughput`` is the algorithm bandwidth, bytes a second. The interval is the union over the laws: t over
        launches, else from the residuals of the fit.
    """
    sample = Sample.of(table, strategy)
    counts = _counts(table.devices("chain", strategy), max_devices)
    measured = {
        (cell.num_devices, cell.payload_bytes or 0): times
        for cell, times, shown in zip(sample.cells, sample.latency_s, sample.predicted, strict=True)
        if shown
    }
    largest = counts[-1] if max_devices is None else max_devices
    routes = _routes(sample, fits, margin)
    found = []
    for payload in sorted({payload for _, payload in measured}):
        cell = next(c for c in sample.cells if (c.payload_bytes or 0) == payload)
        for n in (n for n in counts if n <= largest):
            times = measured.get((n, payload))
            if times is not None:
                latency = _of_times(times, replicated=table.replicated, confidence=confidence)
                found.append(_prediction(n, payload, latency, "measured", "measured"))
                continue
            inside = any(m > n for m, p in measured if p == payload)
            known = [
                (route.law.name, latency)
                for route in routes
                if (latency := route.latency_s(cell, n, confidence)) is not None
            ]
            latency = _union(known, margin)
            kind: Kind = ("interpolated" if inside else "extrapolated") if latency.estimate else "refused"
            judged = all(route.judged for route in routes)
            source = ", ".join(name for name, _ in known) + ("" if judged else f" ({TRUSTED})")
            found.append(_prediction(n, payload, latency, kind, source if latency.estimate else str(latency.reason)))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class _Route:
    """One law, with the unconstrained fit that its intervals come from."""

    law: FittedLaw
    fitted: Launches
    facts: ProgramFacts | None
    judged: bool

    def latency_s(self, like: Cell, num_devices: int, confidence: float) -> Estimate | None:
        """Predict a cell; None where the law has no number for it or the cells fitted do not determine it."""
        row = self._row(replace(like, num_devices=num_devices))
        if row is None or not self.fitted.determines(row):
            return None
        values = row @ self.fitted.values
        if not np.all(values > 0):
            return None
        if self.law.table.replicated:
            latency = log_t_estimate(values, confidence)
        else:
            mean = float(values.mean())
            error = float(np.sqrt(row @ self.fitted.covariance @ row)) / mean
            latency = residual_estimate(
                float(np.log(mean)), error, self.fitted.dof, confidence, log=True, exact=self.fitted.exact
            )
        return latency

    def _row(self, cell: Cell) -> np.ndarray | None:
        """Coefficients of the law's parameters in one cell; None where it needs a time that was not measured."""
        facts = self.facts and replace(
            self.facts,
            collectives=tuple(
                replace(
                    one,
                    group_size=cell.num_devices,
                    message_bytes=cell.payload_bytes or 0,
                    operand_bytes=(cell.payload_bytes or 0,),
                )
                for one in self.facts.collectives
            ),
        )
        row = terms(self.law.law, cell, facts, cores=self.law.table.cores, spread=self.law.table.spread)
        names = self.law.design.names
        if any(value and "[" in name and name not in names for name, value in row.items()):
            return None
        # Columns that ``sample`` dropped for collectives alone are no part of the law.
        return np.array([row.get(name, 0.0) for name in names])


def _routes(sample: Sample, fits: LawFits, margin: float) -> tuple[_Route, ...]:
    """The laws that may predict; of those no data can tell apart, all: they differ elsewhere."""
    reports = {report.name: report for report in fits.reports}
    facts = next((known for cell in sample.cells if (known := sample.facts.get(cell)) is not None), None)
    found = []
    for law in fits.laws:
        report = reports[law.name]
        if not (report.adequate if report.judged else law.misfit < margin):
            continue
        weights = error_weights(stack([law.design.matrix]), sample.mean_s, replicated=sample.table.replicated)[0]
        fitted = fit_launches(law.design, weights, sample.latency_s)
        found.append(_Route(law=law, fitted=fitted, facts=facts, judged=report.judged))
    return tuple(sorted(found, key=lambda route: route.law.misfit))


def _counts(measured: tuple[int, ...], max_devices: int | None) -> tuple[int, ...]:
    """The measured counts, the doublings of the largest one below ``max_devices``, and that one."""
    if max_devices is None:
        return measured
    return tuple(sorted({*measured, *_doublings(measured[-1], max_devices), max_devices}))


def _doublings(first: int, last: int) -> Iterator[int]:
    while first < last:
        yield first
        first *= 2


def _of_times(times: np.ndarray, *, replicated: bool, confidence: float) -> Estimate:
    if replicated:
        return log_t_estimate(times, confidence)
    return Estimate(estimate=float(times.mean()), reason="replication unknown")


def _union(known: list[tuple[str, Estimate]], margin: float) -> Estimate:
    """The estimate of the closest law with the hull of all intervals; nothing where laws without intervals disagree."""
    if not known:
        return Estimate(reason=REFUSED)
    latencies = [latency for _, latency in known]
    reason = "; ".join(dict.fromkeys(latency.reason for latency in latencies if latency.reason)) or None
    intervals = [latency.interval for latency in latencies if latency.interval is not None]
    if len(intervals) == len(latencies):
        ends = np.array(intervals, dtype=float)
        interval = (float(ends[:, 0].min()), float(ends[:, 1].max()))
        return Estimate(estimate=latencies[0].estimate, interval=interval, reason=reason)
    estimates = np.array([latency.estimate for latency in latencies], dtype=float)
    if estimates.max() > (1 + margin) * estimates.min():
        told = " or ".join(name for name, _ in known)
        return Estimate(reason=f"{told} fit these times alike and differ here; measure another count")
    return Estimate(estimate=latencies[0].estimate, reason=reason)


def _prediction(num_devices: int, payload: int, latency: Estimate, kind: Kind, source: str) -> Prediction:
    nothing = Estimate(reason=NO_PROGRAM)
    bandwidth = nothing
    if latency.estimate and payload:
        ends = None
        if latency.interval is not None:
            lower, upper = (payload / end if end else None for end in reversed(latency.interval))
            ends = lower, upper
        bandwidth = Estimate(estimate=payload / latency.estimate, interval=ends, reason=latency.reason)
    return Prediction(
        num_devices=num_devices,
        size=payload,
        size_per_device=payload,
        latency_s=latency,
        cost=latency,
        speedup=nothing,
        efficiency=nothing,
        throughput=bandwidth,
        kind=kind,
        source=source,
    )
