"""Is a law good enough to predict? Its errors on cells that the fit did not see, against a margin and the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model.cell import Cell
from ..model.decomposition import NotPredictable, at
from ..model.law import ONE_PROCESS, Design, Law, Spread
from ..model.program import ProgramFacts
from ..model.rank import TOLERANCE
from .intervals import holm, p_above
from .trend import Baseline, Place

MIN_COUNTS = 5
"""Counts that must remain when the largest is left out."""
MOST_SIZES = 24
"""Sizes that are left out in turn; of more, as many evenly over their order."""
KINDS = ("size", "count")
NOT_JUDGED = (
    "not judged: leaving out a size or the largest count (of six or more) leaves too little to determine the law"
)
_LEAST = 1e-3
"""A law may predict no time at all; its error is then that of a thousandth."""


@dataclass(frozen=True, kw_only=True)
class HoldOut:
    """Cells left out of a fit, as masks over C cells; ``judged`` are those whose prediction counts."""

    kind: str
    held: np.ndarray
    judged: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Logarithmic errors log(predicted / measured).

    Attributes
    ----------
    by_kind : by kind of hold-out, by cell held out
    seen : of the cells that a fit to all of them saw; empty for the baseline, which goes through them
    noise : standard error that a cell's error has from the spread of the launches, log scale
    """

    by_kind: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    seen: np.ndarray = field(default_factory=lambda: np.empty(0))
    noise: float = 0.0

    def median(self, kind: str, cells: Sequence[int] | None = None) -> float | None:
        """Median relative error of one kind, optionally over some cells only; None where it was not run."""
        errors = self._of(kind, cells)
        return float(np.median(np.abs(np.expm1(errors)))) if errors is not None else None

    def worst(self, cells_of: Errors | None = None) -> float | None:
        """The larger of the two medians, optionally over the cells that others were judged on."""
        medians = [self.median(kind, list(cells_of.by_kind.get(kind, ())) if cells_of else None) for kind in KINDS]
        return max((m for m in medians if m is not None), default=None)

    @property
    def discrepancy(self) -> float | None:
        """1.483 times the largest median absolute error: a standard deviation if errors were normal.

        The cells that the fit saw count too: a law errs elsewhere at least by what it errs there. Of its square that
        of the noise is taken off: errors that only the spread of the launches explains are no fault of the law, and
        that spread enters the intervals by itself. None where no hold-out was run.
        """
        medians = [float(np.median(np.abs(e))) for kind in KINDS if (e := self._of(kind)) is not None]
        if not medians:
            return None
        total = 1.483 * max(*medians, float(np.median(np.abs(self.seen))) if self.seen.size else 0.0)
        return float(np.sqrt(max(0.0, total**2 - self.noise**2)))

    @property
    def misfit(self) -> float:
        """Root mean square relative error on the cells that the fit saw."""
        return float(np.sqrt(np.mean(np.expm1(self.seen) ** 2))) if self.seen.size else 0.0

    def _of(self, kind: str, cells: Sequence[int] | None = None) -> np.ndarray | None:
        errors = self.by_kind.get(kind, {})
        wanted = list(errors) if cells is None else [i for i in cells if i in errors]
        return np.array([errors[i] for i in wanted]) if wanted else None


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the held-out errors say of one law."""

    judged: bool
    adequate: bool
    kept: bool
    baseline_held_out: float | None
    reason: str | None


def hold_outs(cells: Sequence[Cell], places: Sequence[Place], predicted: np.ndarray) -> tuple[HoldOut, ...]:
    """Lay out the hold-outs: one size left out in turn; the largest count left out.

    Parameters
    ----------
    cells : C cells
    places : (count, entry of the size axis) of each
    predicted : ndarray of bool, shape (C,)
        Cells that are to be predicted (the workload's).

    Returns
    -------
    tuple of HoldOut
        Of many sizes ``MOST_SIZES``. A size leaves with all programs of that size but chains, which stand beside the
        workload. The largest count leaves with every program, and only where five counts remain.
    """
    counts, sizes = np.array(places).T
    chain = np.array([cell.role == "chain" for cell in cells]) & ~predicted
    result = []
    several = np.unique(sizes[predicted])
    if len(several) > MOST_SIZES:
        several = several[np.linspace(0, len(several) - 1, MOST_SIZES).round().astype(int)]
    for size in several if len(several) > 1 else ():
        held = (sizes == size) & ~chain
        result.append(HoldOut(kind="size", held=held, judged=held & predicted))
    known = np.unique(counts[predicted])
    if len(known) > MIN_COUNTS:
        held = counts == known[-1]
        result.append(HoldOut(kind="count", held=held, judged=held & predicted))
    return tuple(result)


def law_errors(
    law: Law,
    design: Design,
    values: np.ndarray,
    without: np.ndarray,
    held_out: Sequence[HoldOut],
    cells: Sequence[Cell],
    mean_s: np.ndarray,
    facts: Mapping[Cell, ProgramFacts | None],
    cores: int | None,
    spread: Spread = ONE_PROCESS,
    *,
    noise: float = 0.0,
) -> Errors:
    """Errors of one law on the hold-outs that its remaining cells can answer.

    Parameters
    ----------
    values : ndarray, shape (P,), fitted to the means of all cells
    without : ndarray, shape (H, P), fitted without each hold-out
    mean_s : ndarray, shape (C,), seconds
    noise : as in ``Errors``; ``launch_noise`` gives it
    """
    by_kind: dict[str, dict[int, float]] = {}
    for one, fitted in zip(held_out, without, strict=True):
        predicted = predict(law, design, fitted, one, cells, facts, cores, spread)
        if predicted is not None:
            by_kind.setdefault(one.kind, {}).update(_log_errors(predicted, mean_s))
    seen = _log_errors(dict(enumerate(design.matrix @ values)), mean_s)
    return Errors(by_kind=by_kind, seen=np.array(list(seen.values())), noise=noise)


def launch_noise(fitted_s: np.ndarray, latency_s: np.ndarray) -> float:
    """Standard error, over launches, of the logarithmic error in a cell; the median over cells.

    Parameters
    ----------
    fitted_s, latency_s : ndarray, shape (C, G), seconds
        Each launch's own fit, and what it measured. One launch alone shows no noise.
    """
    launches = latency_s.shape[1]
    if launches < 2:
        return 0.0
    errors = np.log(np.maximum(fitted_s / latency_s, _LEAST))
    return float(np.sqrt(np.median(errors.var(axis=1, ddof=1)) / launches))


def baseline_errors(
    held_out: Sequence[HoldOut], places: Sequence[Place], predicted: np.ndarray, mean_s: np.ndarray
) -> Errors:
    """Errors of the baseline on the same hold-outs, cell by cell where it can predict; as for ``hold_outs``."""
    by_kind: dict[str, dict[int, float]] = {}
    for one in held_out:
        rest = np.flatnonzero(predicted & ~one.held).tolist()
        trend = Baseline(times_s={places[i]: mean_s[[i]] for i in rest})
        found = {
            i: float(t[0])
            for i in np.flatnonzero(one.judged).tolist()
            if (t := trend.latency_s(*places[i])) is not None
        }
        if found:
            by_kind.setdefault(one.kind, {}).update(_log_errors(found, mean_s))
    return Errors(by_kind=by_kind)


def judge(errors: Errors, baseline: Errors, *, margin: float) -> Judgement:
    """Decide whether a law is adequate and whether it is kept.

    Adequate: its errors on held-out cells, and its misfit to the cells it saw, lie below ``margin``. Kept: adequate,
    and its held-out errors do not lie above the baseline's on the same cells.
    """
    worst, rival = errors.worst(), baseline.worst(cells_of=errors)
    if worst is None:
        return Judgement(judged=False, adequate=False, kept=False, baseline_held_out=rival, reason=NOT_JUDGED)
    reason = None
    if worst >= margin:
        reason = f"errs by {100 * worst:.1f} % on held-out cells; the margin is {100 * margin:g} %"
    elif errors.misfit >= margin:
        reason = f"misses the cells it was fitted to by {100 * errors.misfit:.1f} %; the margin is {100 * margin:g} %"
    adequate = kept = reason is None
    for kind in KINDS:
        ours, theirs = errors.median(kind), baseline.median(kind, list(errors.by_kind.get(kind, ())))
        if kept and ours is not None and theirs is not None and ours > theirs:
            kept = False
            reason = f"errs by {100 * ours:.1f} % where a {kind} is held out, the baseline by {100 * theirs:.1f} %"
    return Judgement(judged=True, adequate=adequate, kept=kept, baseline_held_out=rival, reason=reason)


def launch_losses(predicted: Mapping[int, np.ndarray], latency_s: np.ndarray) -> dict[int, np.ndarray]:
    """Absolute logarithmic errors launch by launch, each of shape (G,).

    Parameters
    ----------
    predicted : by cell, shape (G,), seconds, from each launch's own fit
    latency_s : ndarray, shape (C, G), seconds
    """
    return {i: np.abs(np.log(np.maximum(t / latency_s[i], _LEAST))) for i, t in predicted.items()}


def compare_losses(losses: Mapping[str, Mapping[Any, np.ndarray]], *, confidence: float) -> dict[str, str]:
    """Which laws err more on held-out cells than the best of them, and by how much, in words.

    Parameters
    ----------
    losses : by law, by held-out case (any key), shape (G,), as from ``launch_losses``
    confidence : 1 less the level of the tests

    Returns
    -------
    dict from name to reason
        Of the laws that are significantly worse: the difference of the mean absolute logarithmic errors on the cells
        that both predict, paired by launch (Student t), Holm over the laws. A law that is not in it may be as good.
    """
    judged = {name: found for name, found in losses.items() if found}
    if len(judged) < 2:
        return {}
    # Cells that all can predict decide which is the best: a law must not win by refusing the hard ones.
    common = [case for case in next(iter(judged.values())) if all(case in found for found in judged.values())]
    if not common:
        return {}
    means = {name: np.mean([found[i] for i in common], axis=0) for name, found in judged.items()}
    best = min(means, key=lambda name: float(means[name].mean()))
    others = [name for name in means if name != best]
    adjusted = holm([p_above(means[name] - means[best]) for name in others])
    return {
        name: (
            f"errs by {100 * np.expm1(means[name].mean()):.1f} % on held-out cells where {best!r} errs by "
            f"{100 * np.expm1(means[best].mean()):.1f} % (paired by launch, p = {_p(p)})"
        )
        for name, p in zip(others, adjusted, strict=True)
        if p is not None and p < 1 - confidence
    }


def _p(value: float) -> str:
    return "below 0.001" if value < 0.001 else f"{value:.3f}"


def predict(
    law: Law,
    design: Design,
    values: np.ndarray,
    hold_out: HoldOut,
    cells: Sequence[Cell],
    facts: Mapping[Cell, ProgramFacts | None],
    cores: int | None,
    spread: Spread = ONE_PROCESS,
) -> dict[int, np.ndarray] | None:
    """Predicted times of the judged cells, each of shape (...), seconds.

    Parameters
    ----------
    values : ndarray, shape (..., P), fitted without the hold-out

    Returns
    -------
    dict from cell to ndarray, or None
        None where the remaining cells do not determine all of them.
    """
    rest = design.matrix[~hold_out.held]
    present = np.asarray(rest.any(axis=0))
    names = [name for name, here in zip(design.names, present.tolist(), strict=True) if here]
    basis = row_space(rest[:, present])
    predicted = {}
    for i in np.flatnonzero(hold_out.judged).tolist():
        row = design.matrix[i]
        if not row[~present].any():
            if not spanned(row[present], *basis):
                return None
            predicted[i] = values @ row
            continue
        try:
            parts = at(law, names, values[..., present], cells[i], facts.get(cells[i]), cores=cores, spread=spread)
        except NotPredictable:
            return None
        predicted[i] = np.sum(list(parts.values()), axis=0)
    return predicted


def row_space(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the columns, shape (P,), and an orthonormal basis of the scaled rows, shape (rank, P)."""
    lengths = np.linalg.norm(matrix, axis=0)
    _, singular, vectors = np.linalg.svd(matrix / lengths, full_matrices=False)
    return lengths, vectors[singular > TOLERANCE * singular.max(initial=0.0)]


def spanned(row: np.ndarray, lengths: np.ndarray, basis: np.ndarray) -> bool:
    """Whether a row is a combination of the rows fitted: then every least-squares fit predicts it alike."""
    scaled = row / lengths
    return bool(np.linalg.norm(scaled - basis.T @ (basis @ scaled)) <= TOLERANCE * np.linalg.norm(scaled))


def _log_errors(predicted: Mapping[int, float | np.ndarray], mean_s: np.ndarray) -> dict[int, float]:
    return {i: float(np.log(max(t / mean_s[i], _LEAST))) for i, t in predicted.items()}
