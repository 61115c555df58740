"""Fit every law of the menu to one strategy, judge each on held-out cells, keep those that may predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from ..model.cell import Cell
from ..model.decomposition import CAUSES, NotPredictable, at
from ..model.law import MENU, Design, Law, terms
from ..model.rank import TOLERANCE, same_predictions
from ..model.unmeasured import facts_at
from .adequacy import (
    Errors,
    HoldOut,
    Judgement,
    baseline_errors,
    compare_losses,
    hold_outs,
    judge,
    launch_losses,
    launch_noise,
    law_errors,
    predict,
    row_space,
    spanned,
)
from .answer import LawReport, Parameter
from .launches import LaunchTable
from .objective import shares_cores
from .parameters import Launches, fit_launches, parameters
from .sample import Sample, designs_of
from .segment_trend import SegmentTrend
from .stacked import error_weights, solve, stack
from .trend import Baseline


@dataclass(frozen=True, kw_only=True)
class FittedLaw:
    """One law with its parameters bounded at 0, launch by launch: for prediction.

    Attributes
    ----------
    law, design : the law and its columns over the cells fitted
    values : ndarray, shape (G, P), SI units
    misfit : root mean square relative residual of the cell means
    discrepancy : as in ``adequacy``; None where the law was not judged
    separable : whether the cells tell the causes of the workload's time apart under this law
    """

    law: Law
    design: Design
    values: np.ndarray
    misfit: float
    discrepancy: float | None
    separable: bool
    table: LaunchTable
    strategy: str

    @property
    def name(self) -> str:
        """The law's name."""
        return self.law.name

    def latency_s(self, num_devices: int, axis_size: int) -> np.ndarray | None:
        """Predict one call of the workload, shape (G,), seconds; None where the law has no number for it.

        The cells fitted must determine it: two counts say nothing of one between them, whichever parameters they leave
        open a bounded fit would choose.
        """
        parts = self._parts(num_devices, axis_size) if self._determines(num_devices, axis_size) else None
        total = None if parts is None else np.sum(list(parts.values()), axis=0)
        # With every parameter of a cell at its bound a law says "no time at all", which is no prediction.
        return total if total is not None and np.all(total > 0) else None

    def causes(self, num_devices: int, axis_size: int) -> dict[str, np.ndarray] | None:
        """Split the predicted time by cause, each of shape (G,), seconds.

        Returns
        -------
        dict, or None
            None where there is no prediction, or the cells measured do not tell the causes apart.
        """
        return self._parts(num_devices, axis_size) if self.separable else None

    def _determines(self, num_devices: int, axis_size: int) -> bool:
        """Whether every fit to the cells measured predicts the same; a free time that is interpolated counts as one."""
        size = self.table.plan.global_size(num_devices, axis_size)
        cell = Cell(role="workload", strategy=self.strategy, num_devices=num_devices, size=size)
        known = facts_at(self.table.facts, cell)
        try:
            row = terms(self.law, cell, known.facts, cores=self.table.cores, spread=self.table.spread)
        except ValueError:
            return False
        names = self.design.names
        if any(value and name not in names for name, value in row.items()):
            return True
        return spanned(np.array([row.get(name, 0.0) for name in names]), *self._row_space)

    @cached_property
    def _row_space(self) -> tuple[np.ndarray, np.ndarray]:
        return row_space(self.design.matrix)

    def _parts(self, num_devices: int, axis_size: int) -> dict[str, np.ndarray] | None:
        size = self.table.plan.global_size(num_devices, axis_size)
        cell = Cell(role="workload", strategy=self.strategy, num_devices=num_devices, size=size)
        known = facts_at(self.table.facts, cell)
        if known.reason is not None:
            return None
        try:
            return at(
                self.law,
                self.design.names,
                self.values,
                cell,
                known.facts,
                cores=self.table.cores,
                spread=self.table.spread,
            )
        except NotPredictable:
            return None


@dataclass(frozen=True, kw_only=True)
class LawFits:
    """Every law fitted to one strategy.

    Attributes
    ----------
    laws : those defined on these cells; laws of equal designs once, under the first name
    kept : those that may predict: their errors on held-out cells are below the margin, not above the baseline's, and
        not significantly above those of the best law (paired by launch). Unjudged ones (no discrepancy) only between
        measured cells, and only where none could be judged
    baseline : predicts where no law is kept
    chosen : the law whose parameters are reported: a kept one, else an adequate one, else the closest to the data
    unconstrained : fits without bounds, launch by launch, by law's name
    parameters : of ``chosen``, whose name is ``parameters_of``
    reports : one a law of the menu, in its order
    confounded : what the cells do not tell apart under that law, in words
    left_out : cells that entered no fit, and why
    """

    laws: tuple[FittedLaw, ...]
    kept: tuple[FittedLaw, ...]
    baseline: Baseline | SegmentTrend
    chosen: FittedLaw | None
    unconstrained: Mapping[str, Launches]
    parameters: dict[str, Parameter]
    parameters_of: str | None
    reports: tuple[LawReport, ...]
    confounded: tuple[str, ...]
    left_out: tuple[str, ...]


def fit_laws(table: LaunchTable, strategy: str, *, confidence: float = 0.95, margin: float = 0.10) -> LawFits:
    """Fit the menu to one strategy's cells.

    Parameters
    ----------
    table : LaunchTable
    strategy : the primary one brings its controls and probes; a table of ``chain`` cells alone is fitted too
    confidence : of parameters' intervals
    margin : an adequate law errs by less on held-out cells

    Returns
    -------
    LawFits

    Raises
    ------
    ValueError
        If the strategy has no cell, or ``confidence`` or ``margin`` is no fraction.
    """
    _check(table, strategy, confidence, margin)
    sample = Sample.of(table, strategy)
    designs, reasons = designs_of(sample)
    held_out = hold_outs(sample.cells, sample.places, sample.predicted)
    rival = baseline_errors(held_out, sample.places, sample.predicted, sample.mean_s)
    baseline = Baseline(
        times_s={sample.places[i]: sample.latency_s[i] for i in np.flatnonzero(sample.predicted)},
        discrepancy=rival.discrepancy,
    )
    laws, errors, launches = _fit(sample, designs, held_out)
    judgements = {name: judge(errors[name], rival, margin=margin) for name in laws}
    judgements |= _not_as_good(sample, designs, held_out, judgements, confidence)
    kept = _kept(laws, judgements, margin)
    reports = _reports(laws, judgements, errors, kept, reasons, _coinciding(laws, launches))
    chosen = _closest(laws, judgements, kept)
    return LawFits(
        laws=tuple(laws.values()),
        kept=tuple(laws[name] for name in kept),
        baseline=baseline,
        chosen=chosen,
        unconstrained=launches,
        parameters=_doubted(
            _parameters(chosen, launches, table, confidence, adequate=judgements), chosen, kept, laws, launches
        )
        if chosen
        else {},
        parameters_of=chosen.name if chosen else None,
        reports=reports,
        confounded=launches[chosen.name].known.ties if chosen else (),
        left_out=sample.left_out,
    )


def _check(table: LaunchTable, strategy: str, confidence: float, margin: float) -> None:
    if not any(cell.strategy == strategy for cell in table.cells):
        raise ValueError(f"strategy {strategy!r} was not measured; measured: {', '.join(table.strategies)}.")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}. Use 0.95 for 95 %.")
    if not margin > 0:
        raise ValueError(f"margin must be positive, got {margin}. Use 0.10 for 10 %.")


def _fit(
    sample: Sample, designs: Mapping[Law, Design], held_out: tuple
) -> tuple[dict[str, FittedLaw], dict[str, Errors], dict[str, Launches]]:
    """Fit all laws to all launches, and to the mean without each hold-out, in one call of the solver."""
    if not designs:
        return {}, {}, {}
    mean_s, launches_s = sample.mean_s, sample.latency_s.T
    matrices = stack([columns.matrix for columns in designs.values()])
    weights = error_weights(matrices, mean_s, replicated=sample.table.replicated)
    # Of each law: the mean, every launch, and the mean without every hold-out.
    times = np.concatenate([mean_s[None], launches_s, np.broadcast_to(mean_s, (len(held_out), len(mean_s)))])
    masks = np.ones_like(times)
    if held_out:
        masks[-len(held_out) :] = [~one.held for one in held_out]
    number, width = len(designs), matrices.shape[2]
    values = solve(
        np.repeat(matrices, len(times), axis=0),
        (weights[:, None] * masks).reshape(-1, len(mean_s)),
        np.tile(times, (number, 1)),
    ).reshape(number, len(times), width)
    laws, errors, launches = {}, {}, {}
    for (law, columns), fitted, weight in zip(designs.items(), values, weights, strict=True):
        fitted = fitted[:, : len(columns.names)]
        last = 1 + len(launches_s)
        launches[law.name] = fit_launches(columns, weight, sample.latency_s)
        errors[law.name] = law_errors(
            law,
            columns,
            fitted[0],
            fitted[last:],
            held_out,
            sample.cells,
            mean_s,
            sample.facts,
            sample.table.cores,
            sample.table.spread,
            noise=launch_noise(columns.matrix @ fitted[1:last].T, sample.latency_s),
        )
        laws[law.name] = FittedLaw(
            law=law,
            design=columns,
            values=fitted[1:last],
            misfit=errors[law.name].misfit,
            discrepancy=errors[law.name].discrepancy,
            separable=_separable(columns, launches[law.name], sample.predicted),
            table=sample.table,
            strategy=sample.strategy,
        )
    return laws, errors, launches


def refit_without(
    sample: Sample, designs: Mapping[Law, Design], held_out: Sequence[HoldOut]
) -> dict[str, tuple[dict[int, np.ndarray] | None, ...]]:
    """Fit every launch without each hold-out, and predict what was held out.

    Returns
    -------
    dict from law's name
        By hold-out: predicted times by cell, each of shape (G,), seconds; None where the law cannot answer.
    """
    if not (designs and held_out):
        return {law.name: (None,) * len(held_out) for law in designs}
    matrices = stack([columns.matrix for columns in designs.values()])
    weights = error_weights(matrices, sample.mean_s, replicated=sample.table.replicated)
    launches_s, rest = sample.latency_s.T, np.array([~one.held for one in held_out])
    # Of each law: without each hold-out, every launch.
    number = len(held_out) * len(launches_s)
    values = solve(
        np.repeat(matrices, number, axis=0),
        (weights[:, None] * np.repeat(rest, len(launches_s), axis=0)).reshape(-1, launches_s.shape[1]),
        np.tile(launches_s, (len(designs) * len(held_out), 1)),
    ).reshape(len(designs), len(held_out), len(launches_s), -1)
    return {
        law.name: tuple(
            predict(
                law,
                columns,
                v[:, : len(columns.names)],
                one,
                sample.cells,
                sample.facts,
                sample.table.cores,
                sample.table.spread,
            )
            for one, v in zip(held_out, fitted, strict=True)
        )
        for (law, columns), fitted in zip(designs.items(), values, strict=True)
    }


def _not_as_good(
    sample: Sample,
    designs: Mapping[Law, Design],
    held_out: Sequence[HoldOut],
    judgements: Mapping[str, Judgement],
    confidence: float,
) -> dict[str, Judgement]:
    """Judgements of laws that would be kept, but err significantly more than the best of them."""
    rivals = {law: columns for law, columns in designs.items() if judgements[law.name].kept}
    if len(rivals) < 2 or not sample.table.replicated:
        return {}
    predictions = refit_without(sample, rivals, held_out)
    losses = {
        name: {
            (number, i): loss
            for number, predicted in enumerate(found)
            if predicted is not None
            for i, loss in launch_losses(predicted, sample.latency_s).items()
        }
        for name, found in predictions.items()
    }
    worse = compare_losses(losses, confidence=confidence)
    return {name: replace(judgements[name], kept=False, reason=reason) for name, reason in worse.items()}


def _separable(columns: Design, fitted: Launches, predicted: np.ndarray) -> bool:
    """Whether the time of each cause is determined in every cell that is to be predicted."""
    causes = np.array(columns.causes)
    scaled = columns.matrix[predicted] / fitted.lengths
    for cause in CAUSES:
        part = scaled * (causes == cause)
        left = part - part @ fitted.determined.T @ fitted.determined
        if np.any(np.linalg.norm(left, axis=1) > TOLERANCE * np.linalg.norm(scaled, axis=1)):
            return False
    return True


def _kept(laws: Mapping[str, FittedLaw], judgements: Mapping[str, Judgement], margin: float) -> tuple[str, ...]:
    if any(one.judged for one in judgements.values()):
        return tuple(name for name, one in judgements.items() if one.kept)
    return tuple(name for name, law in laws.items() if law.misfit < margin)


def _coinciding(laws: Mapping[str, FittedLaw], launches: Mapping[str, Launches]) -> set[frozenset[str]]:
    """Pairs of laws that no fit to these cells can tell apart."""
    return {
        frozenset((a, b))
        for a, b in combinations(laws, 2)
        if launches[a].known.rank == launches[b].known.rank and same_predictions(laws[a].design, laws[b].design)
    }


def _reports(
    laws: Mapping[str, FittedLaw],
    judgements: Mapping[str, Judgement],
    errors: Mapping[str, Errors],
    kept: tuple[str, ...],
    reasons: Mapping[str, str],
    same: set[frozenset[str]],
) -> tuple[LawReport, ...]:
    reports = []
    for law in MENU:
        name = law.name
        if name not in laws:
            reports.append(_undefined_report(name, reasons[name]))
            continue
        judgement = judgements[name]
        reports.append(
            LawReport(
                name=name,
                misfit=laws[name].misfit,
                held_out_size=errors[name].median("size"),
                held_out_count=errors[name].median("count"),
                baseline_held_out=judgement.baseline_held_out,
                discrepancy=laws[name].discrepancy,
                judged=judgement.judged,
                adequate=judgement.adequate,
                kept=name in kept,
                indistinguishable_from=tuple(other for other in laws if frozenset((name, other)) in same),
                reason=judgement.reason,
            )
        )
    return tuple(reports)


def _undefined_report(name: str, reason: str) -> LawReport:
    return LawReport(
        name=name,
        misfit=None,
        held_out_size=None,
        held_out_count=None,
        baseline_held_out=None,
        discrepancy=None,
        judged=False,
        adequate=False,
        kept=False,
        reason=reason,
    )


def _closest(
    laws: Mapping[str, FittedLaw],
    judgements: Mapping[str, Judgement],
    kept: tuple[str, ...],
) -> FittedLaw | None:
    """The law whose parameters are reported: kept before adequate before the rest, formulas before free times."""

    def rank(law: FittedLaw) -> tuple:
        free = any("[" in name for name in law.design.names)
        # The misfit to all programs tells laws apart better than the few cells held out. Rounded, so that of laws
        # that coincide the first of the menu is taken whatever the last digit.
        return law.name not in kept, not judgements[law.name].adequate, free, round(law.misfit, 9)

    return min(laws.values(), key=rank, default=None)


def _parameters(
    chosen: FittedLaw,
    launches: Mapping[str, Launches],
    table: LaunchTable,
    confidence: float,
    *,
    adequate: Mapping[str, Judgement],
) -> dict[str, Parameter]:
    judgement = adequate[chosen.name]
    remark = None
    if judgement.judged and not judgement.adequate:
        remark = f"no law passes; {chosen.name!r} is the closest and {judgement.reason}"
    return parameters(
        chosen.design,
        launches[chosen.name],
        replicated=table.replicated,
        confidence=confidence,
        shared_resource=shares_cores(table),
        remark=remark,
    )


def _doubted(
    found: dict[str, Parameter],
    chosen: FittedLaw,
    kept: Sequence[str],
    laws: Mapping[str, FittedLaw],
    launches: Mapping[str, Launches],
) -> dict[str, Parameter]:
    """Parameters that are told apart only because of an algorithm that the cells do not tell from another.

    On four counts the steps of a logarithm and n devices are different columns, those of a ring and n are not: where
    both laws may predict, neither says what the dispatch is.
    """
    for name in kept:
        law = laws[name].law
        if name == chosen.name or law.compute != chosen.law.compute or law.all_reduce == "free":
            continue
        known = launches[name].known
        ties = dict(zip(known.tied, known.ties, strict=True))
        for parameter, value in found.items():
            if value.identified and not known.identified.get(parameter, True):
                sentence = next((text for tie, text in ties.items() if parameter in tie), "it is not determined")
                reason = f"not identified: {name!r} may hold as well as {chosen.name!r}, and there {sentence}"
                found[parameter] = Parameter(
                    estimate=None, interval=None, identified=False, unit=value.unit, reason=reason
                )
    return found
