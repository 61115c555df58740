"""Laws of the menu and their rivals on the same hold-outs: who errs least on what was not fitted.

Left out: the largest third of the counts (at least one), and one size in turn. A contender is fitted to each launch
by itself; its loss in a launch is the mean absolute logarithmic error on the held-out cells, and two contenders are
compared by the difference of their losses, paired by launch (Student t).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np

from ..adequacy import HoldOut, launch_losses
from ..answer import Estimate
from ..guards import times_of_other_work
from ..intervals import holm, p_differs, t_estimate
from ..launches import LaunchTable
from ..lawfit import LawFits, fit_laws, refit_without
from ..sample import Sample, designs_of
from .rivals import RIVALS, Predictor, ThroughputLaw, Times

Kind = Literal["law", "rival", "trend"]
TREND = "damped trend"
NOTHING_LEFT = "as many constants as counts, so nothing is left to judge them by"
NOTHING_HELD_OUT = "nothing can be left out: one count and one size"


class RivalCurve(msgspec.Struct, frozen=True, kw_only=True):
    """A rival's constants at one size: ``rate`` in calls (on the weak path units) a second, the others plain.

    ``at_bound``: constants that the data push to 0. ``optimum``: count of the largest throughput; None where the curve
    has no peak, and where it has as many constants as counts (``reason``): such a curve fits whatever was measured.
    """

    size: int
    parameters: dict[str, Estimate]
    at_bound: tuple[str, ...]
    optimum: int | None
    reason: str | None = None


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """One law, rival or the trend.

    ``misfit``: root mean square relative residual. ``held_out_count``, ``held_out_size``: median relative errors.
    ``regret``: how much more the count it recommends costs than the best one, when the largest counts are predicted.
    ``loss``: mean absolute logarithmic error on the held-out cells. ``p``: of "as good as the best", paired by launch,
    after Holm; None for the best itself and where launches are too few. ``may_predict``: by the rule of the tool.
    """

    name: str
    kind: Kind
    misfit: float | None
    held_out_count: float | None
    held_out_size: float | None
    regret: float | None
    loss: Estimate
    p: float | None
    may_predict: bool
    curves: tuple[RivalCurve, ...] = ()
    reason: str | None = None


class League(msgspec.Struct, frozen=True, kw_only=True):
    """All contenders on one strategy, the best of them, and what the tool predicts with (``used``).

    ``judged_on``: the hold-out that ranks them.
    """

    workload: str
    strategy: str
    unit: str
    path: Literal["strong", "weak"]
    devices: tuple[int, ...]
    sizes: tuple[int, ...]
    held_out_counts: tuple[int, ...]
    num_launches: int | None
    confidence: float
    judged_on: Literal["count", "size"] | None
    contenders: tuple[Contender, ...]
    best: str | None
    used: tuple[str, ...]
    reason: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What one contender predicted.

    ``held_out``: by kind of hold-out, by cell, shape (G,); ``seen``: of the cells fitted, by cell.
    """

    name: str
    kind: Kind
    seen: dict[int, np.ndarray] = field(default_factory=dict)
    held_out: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    curves: tuple[RivalCurve, ...] = ()
    reason: str | None = None


def league(
    table: LaunchTable, strategy: str | None = None, *, confidence: float = 0.95, margin: float = 0.10
) -> League:
    """Let the laws of the menu and their rivals predict what was left out.

    Parameters
    ----------
    table : LaunchTable
    strategy : default: the first
    confidence : of the intervals and, less 1, level of the tests
    margin : a contender that may predict errs by less on held-out cells

    Raises
    ------
    ValueError
        If the strategy was not measured.
    """
    strategy = strategy or (table.strategies[0] if table.strategies else table.cells[0].strategy)
    fits = fit_laws(table, strategy, confidence=confidence, margin=margin)
    sample = Sample.of(table, strategy)
    held_out = _hold_outs(sample)
    records = [*_laws(sample, fits, held_out), *_rivals(sample, held_out, confidence)]
    judged_on = _judged_on(records)
    losses = {r.name: launch_losses(r.held_out.get(judged_on or "", {}), sample.latency_s) for r in records}
    best = _best(losses)
    pvalues = _pvalues(losses, best)
    trend = next(r for r in records if r.kind == "trend")
    contenders = tuple(
        Contender(
            name=r.name,
            kind=r.kind,
            misfit=_misfit(r, sample),
            held_out_count=_median(r, "count", sample),
            held_out_size=_median(r, "size", sample),
            regret=_regret(r, sample, held_out),
            loss=_loss(losses[r.name], confidence),
            p=pvalues.get(r.name),
            may_predict=_may_predict(r, trend, sample, fits, margin),
            curves=r.curves,
            reason=r.reason or _why_not_held_out(r, held_out),
        )
        for r in records
    )
    counts = sorted(
        {sample.places[i][0] for one in held_out if one.kind == "count" for i in np.flatnonzero(one.judged)}
    )
    return League(
        workload=table.plan.workload,
        strategy=strategy,
        unit="B" if sample.collectives_alone else table.plan.unit,
        path="weak" if table.plan.path == "weak" else "strong",
        devices=tuple(sorted({n for n, _ in _measured(sample)})),
        sizes=tuple(sorted({s for _, s in _measured(sample)})),
        held_out_counts=tuple(counts),
        num_launches=table.num_launches if table.replicated else None,
        confidence=confidence,
        judged_on=judged_on,
        contenders=contenders,
        best=best,
        used=tuple(law.name for law in fits.kept) or (fits.baseline.name,),
        reason=None if judged_on else NOTHING_HELD_OUT,
        warnings=tuple(f"{one.name}: {one.text}" for one in times_of_other_work(table, strategy)),
    )


def _judged_on(records: Sequence[_Record]) -> Literal["count", "size"] | None:
    """Counts where any contender predicts one that was left out, else sizes."""
    if any(r.held_out.get("count") for r in records):
        return "count"
    return "size" if any(r.held_out.get("size") for r in records) else None


def _hold_outs(sample: Sample) -> tuple[HoldOut, ...]:
    """The largest third of the counts left out; one size left out in turn, with all its programs but chains."""
    counts, sizes = np.array(sample.places).T
    chain = np.array([cell.role == "chain" for cell in sample.cells]) & ~sample.predicted
    result = []
    known = np.unique(counts[sample.predicted])
    if len(known) > 1:
        held = counts > known[-1 - max(1, len(known) // 3)]
        result.append(HoldOut(kind="count", held=held, judged=held & sample.predicted))
    several = np.unique(sizes[sample.predicted])
    for size in several if len(several) > 1 else ():
        held = (sizes == size) & ~chain
        result.append(HoldOut(kind="size", held=held, judged=held & sample.predicted))
    return tuple(result)


def _measured(sample: Sample) -> Times:
    """Times of the cells that are to be predicted, by place."""
    return {sample.places[i]: sample.latency_s[i] for i in np.flatnonzero(sample.predicted)}


def _laws(sample: Sample, fits: LawFits, held_out: Sequence[HoldOut]) -> Iterator[_Record]:
    designs, _ = designs_of(sample)
    reasons = {report.name: report.reason for report in fits.reports}
    found = refit_without(sample, designs, held_out)
    for law in fits.laws:
        seen = law.design.matrix @ law.values.T
        yield _Record(
            name=law.name,
            kind="law",
            seen={i: seen[i] for i in np.flatnonzero(sample.predicted).tolist()},
            held_out=_by_kind(held_out, found[law.name]),
            reason=reasons.get(law.name),
        )


def _rivals(sample: Sample, held_out: Sequence[HoldOut], confidence: float) -> Iterator[_Record]:
    weak = sample.table.plan.path == "weak"
    predicted = np.flatnonzero(sample.predicted).tolist()
    for rival in RIVALS:
        whole = rival.fit(_measured(sample), weak)
        if whole is None:
            continue
        without = []
        for one in held_out:
            rest = {sample.places[i]: sample.latency_s[i] for i in predicted if not one.held[i]}
            fitted = rival.fit(rest, weak) if rest else None
            cells = np.flatnonzero(one.judged).tolist()
            without.append(None if fitted is None else _predict(fitted, sample, cells))
        yield _Record(
            name=rival.name,
            kind="trend" if rival.name == TREND else "rival",
            seen=_predict(whole, sample, predicted),
            held_out=_by_kind(held_out, without),
            curves=_curves(whole, confidence) if isinstance(whole, ThroughputLaw) else (),
        )


def _predict(fitted: Predictor, sample: Sample, cells: Sequence[int]) -> dict[int, np.ndarray]:
    found = {i: fitted.latency_s(*sample.places[i]) for i in cells}
    return {i: times for i, times in found.items() if times is not None}


def _by_kind(
    held_out: Sequence[HoldOut], predicted: Sequence[Mapping[int, np.ndarray] | None]
) -> dict[str, dict[int, np.ndarray]]:
    found: dict[str, dict[int, np.ndarray]] = {}
    for one, times in zip(held_out, predicted, strict=True):
        if times:
            found.setdefault(one.kind, {}).update(times)
    return found


def _curves(law: ThroughputLaw, confidence: float) -> tuple[RivalCurve, ...]:
    curves = []
    for size, curve in law.curves.items():
        values = {
            name: _constant(launches, name in curve.at_bound, confidence) for name, launches in curve.values.items()
        }
        largest = int(curve.counts[-1])
        peak = curve.optimum
        reason = None
        if len(curve.counts) <= len(values):
            reason = NOTHING_LEFT
        elif peak > largest:
            reason = f"the curve still rises at {largest}, the largest count measured: the optimum lies beyond the data"
        curves.append(
            RivalCurve(
                size=size,
                parameters=values,
                at_bound=curve.at_bound,
                optimum=None if reason else int(peak),
                reason=reason,
            )
        )
    return tuple(curves)


def _constant(launches: np.ndarray, at_bound: bool, confidence: float) -> Estimate:
    """A constant that cannot be negative; its interval is cut at 0."""
    if at_bound:
        return Estimate(estimate=0.0, reason="at its bound 0")
    found = t_estimate(launches, confidence)
    if found.interval is None or found.interval[0] is None:
        return found
    return Estimate(estimate=found.estimate, interval=(max(0.0, found.interval[0]), found.interval[1]))


def _misfit(record: _Record, sample: Sample) -> float | None:
    """Root mean square relative residual of the means over launches."""
    if not record.seen:
        return None
    residuals = [times.mean() / sample.latency_s[i].mean() - 1 for i, times in record.seen.items()]
    return float(np.sqrt(np.mean(np.square(residuals))))


def _median(record: _Record, kind: str, sample: Sample) -> float | None:
    """Median relative error of the means over launches."""
    found = record.held_out.get(kind)
    if not found:
        return None
    return float(np.median([abs(times.mean() / sample.latency_s[i].mean() - 1) for i, times in found.items()]))


def _loss(losses: Mapping[int, np.ndarray], confidence: float) -> Estimate:
    if not losses:
        return Estimate(reason="it predicts no cell that was left out")
    return t_estimate(np.mean(list(losses.values()), axis=0), confidence)


def _best(losses: Mapping[str, Mapping[int, np.ndarray]]) -> str | None:
    """The least mean loss among those that predict the most held-out cells: nobody wins by refusing the hard ones."""
    most = max((len(found) for found in losses.values()), default=0)
    if not most:
        return None
    means = {name: float(np.mean(list(found.values()))) for name, found in losses.items() if len(found) == most}
    return min(means, key=means.__getitem__)


def _pvalues(losses: Mapping[str, Mapping[int, np.ndarray]], best: str | None) -> dict[str, float | None]:
    """p of every other contender against the best, on the cells that both predict, after Holm."""
    if best is None:
        return {}
    found = {}
    for name, other in losses.items():
        common = [i for i in other if i in losses[best]]
        if name != best and common:
            found[name] = p_differs(np.mean([other[i] - losses[best][i] for i in common], axis=0))
    return dict(zip(found, holm(list(found.values())), strict=True))


def _may_predict(record: _Record, trend: _Record, sample: Sample, fits: LawFits, margin: float) -> bool:
    """The tool's own decision for a law; the same rule for a rival, on counts left out."""
    if record.kind == "law":
        return any(law.name == record.name for law in fits.kept)
    error = _median(record, "count", sample)
    if record.kind == "trend":
        return bool(record.held_out)
    least = _median(trend, "count", sample)
    return error is not None and error < margin and (least is None or error <= least)


def _regret(record: _Record, sample: Sample, held_out: Sequence[HoldOut]) -> float | None:
    """Mean over sizes of the cost of the recommended count over the least cost, less 1; counts left out are predicted.

    The cost is the plan's: the time, or the time per unit of work.
    """
    one = next((h for h in held_out if h.kind == "count"), None)
    found = record.held_out.get("count", {})
    if one is None or not found:
        return None
    per_unit = sample.table.plan.objective == "throughput" and sample.table.plan.path == "weak"
    regrets = []
    for size in sorted({s for _, s in _measured(sample)}):
        cells = [i for i in np.flatnonzero(sample.predicted).tolist() if sample.places[i][1] == size]
        if any(one.judged[i] and i not in found for i in cells) or not any(one.judged[i] for i in cells):
            continue
        units = np.array([sample.places[i][0] if per_unit else 1 for i in cells])
        true = np.array([sample.latency_s[i].mean() for i in cells]) / units
        said = np.array([(found[i] if one.judged[i] else sample.latency_s[i]).mean() for i in cells]) / units
        regrets.append(true[np.argmin(said)] / true.min() - 1)
    return float(np.mean(regrets)) if regrets else None


def _why_not_held_out(record: _Record, held_out: Sequence[HoldOut]) -> str | None:
    if not held_out or record.held_out:
        return None
    return "what is left after leaving some out does not determine it"
