"""Whether one smooth law describes a curve, or a term of it changes at a border: a change point and its p-value.

The null hypothesis is the widest law at hand, a sum of all terms that a cost may have with coefficients of at least 0.
Each alternative lets one term take another coefficient from some border on. What the law itself gets wrong counts as
noise, so a border must stand out from the law's own misfit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .stacked import BATCH, WIDTH, error_weights, stack

Terms = Callable[[np.ndarray], np.ndarray]
"""From places, shape (K,), to columns, shape (K, P)."""

FIRST_RESAMPLES, RESAMPLES = 99, 799
HOPELESS = 0.15
"""A p-value above this after the first resamples is not looked at closer."""
MOST_PROBLEMS = 40_000
"""Fits that the resampling may need, about half a second; above, there are fewer resamples."""
LEAST_FREEDOM = 3
"""With 2, one curve of five counts was said to break in 15 % of simulations at 5 %: F has too heavy a tail there."""
WIDEST = 0.25
"""Curves are drawn with the spread of the residuals without a border, at most this: a border widens it, but the fit
with the best of many borders leaves too little."""
EXACT = 1e-12
"""Relative squared residuals below this are rounding: without noise every difference would be significant."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Times along one axis: ``places`` ascending, shape (K,); ``times_s``, shape (K, G)."""

    places: np.ndarray
    times_s: np.ndarray

    @property
    def mean_s(self) -> np.ndarray:
        """Mean over launches, shape (K,), seconds."""
        return self.times_s.mean(axis=1)

    def between(self, first: float, last: float) -> Curve:
        """The part from ``first`` to ``last``."""
        inside = (self.places >= first) & (self.places <= last)
        return Curve(places=self.places[inside], times_s=self.times_s[inside])


@dataclass(frozen=True, kw_only=True)
class Form:
    """An alternative: from the border on, term ``term`` has another coefficient.

    With ``instead``, ``term`` alone describes the places below the border, and those columns the places above.
    """

    name: str
    term: int = 0
    instead: Terms | None = None


@dataclass(frozen=True, kw_only=True)
class Change:
    """The most likely border.

    Attributes
    ----------
    below, above : the places on its sides
    form : what changes
    log_excess : shape (M, G), log of the time at ``above`` over what the terms below the border would give there
    spread, freedom : relative standard deviation of the residuals with the change, and its degrees of freedom
    p : of "no border anywhere", by parametric bootstrap over the whole search
    """

    below: float
    above: float
    form: Form
    log_excess: np.ndarray
    spread: float
    freedom: int
    p: float

    @property
    def excess(self) -> float:
        """Median over the curves of the mean excess, as a factor."""
        return float(np.exp(np.median(self.log_excess.mean(axis=1))))


@dataclass(frozen=True, kw_only=True)
class _Alternative:
    """One border and form: columns and what they give at the place above without the change, a curve each."""

    below: float
    above: float
    form: Form
    columns: list[np.ndarray]
    unchanged: list[np.ndarray]


def change_point(
    curves: Sequence[Curve],
    terms: Terms,
    forms: Sequence[Form],
    *,
    margin: float,
    level: float = 0.05,
    least: tuple[int, int] = (1, 2),
    beside: Sequence[Curve] = (),
    seed: int = 0,
) -> Change | None:
    """Find the border at which one law for all places is least believable.

    Parameters
    ----------
    curves : M curves that share a border, each with coefficients of its own
    terms : of the law
    forms : alternatives
    margin : smallest excess, relative, that counts as a border; below it nothing is tested
    level : significance that is asked for; resampling ends where it leaves no doubt
    least : places that must lie below and above the border
    beside : further curves of the same terms without a border: they only tell the noise

    Returns
    -------
    Change, or None
        None where no border passes the margin at half of the curves, or too few residuals are left to judge by.

    Notes
    -----
    The statistic is the largest F over all borders and forms (a sup-F test [1]_), with relative residuals.
    Coefficients are bounded at 0 and the number of borders is small, so its distribution is drawn: from the law fitted
    without a border, with normal relative errors of the spread that it leaves.

    References
    ----------
    .. [1] D. W. K. Andrews, Econometrica 61(4), 821-856, 1993, doi:10.2307/2951764.
    """
    options = list(_alternatives(curves, terms, forms, least))
    if not options:
        return None
    law = [_law(curve, terms) for curve in (*curves, *beside)]
    statistics, squares, freedoms = (values[0] for values in _statistics(law, options))
    best = int(np.argmax(statistics))
    chosen, freedom = options[best], int(freedoms[best])
    log_excess = _log_excess(law, chosen, curves)
    if not (statistics[best] > 0 and _is_large(log_excess, margin)):
        return None
    spread = float(np.sqrt(max(squares[best], EXACT) / freedom))
    null = _null(law, options, spread, seed)
    return Change(
        below=chosen.below,
        above=chosen.above,
        form=chosen.form,
        log_excess=log_excess,
        spread=spread,
        freedom=freedom,
        p=_p_value(null, float(statistics[best]), level),
    )


class _Fit(NamedTuple):
    """Columns, shape (K, P), weights, shape (K,), and times of B curves over the same places, shape (B, K)."""

    columns: np.ndarray
    weights: np.ndarray
    times: np.ndarray

    def squares(self, values: np.ndarray) -> np.ndarray:
        """Weighted residual sum of squares, shape (B,)."""
        return (self.weights * (self.times - values @ self.columns.T) ** 2).sum(axis=1)


def _p_value(null: Iterator[np.ndarray], statistic: float, level: float) -> float:
    """Share of drawn statistics that are as large; the first batch decides where it leaves no doubt."""
    exceeding, number, p = 0, 0, 1.0
    for drawn in null:
        exceeding, number = exceeding + int(np.sum(drawn >= statistic)), number + len(drawn)
        p = (1 + exceeding) / (1 + number)
        if p > HOPELESS or (exceeding == 0 and p <= level / 4):
            break
    return p


def _null(law: Sequence[_Fit], options: Sequence[_Alternative], spread: float, seed: int) -> Iterator[np.ndarray]:
    """The largest F of curves drawn from the law without a border, in two batches."""
    found = _solve(law)
    squares = sum(float(one.squares(values)[0]) for one, values in zip(law, found, strict=True))
    freedom = sum(len(one.weights) - int((values > 0).sum()) for one, values in zip(law, found, strict=True))
    spread = max(spread, min(float(np.sqrt(squares / max(freedom, 1))), WIDEST))
    fitted = [values[0] @ one.columns.T for one, values in zip(law, found, strict=True)]
    cost = len(law) + len(options) * len(options[0].columns)
    rng = np.random.default_rng(seed)
    for number in (FIRST_RESAMPLES, min(RESAMPLES, MOST_PROBLEMS // cost) - FIRST_RESAMPLES):
        if number > 0:
            drawn = [
                one._replace(times=fit * np.exp(spread * rng.standard_normal((number, len(fit)))))
                for one, fit in zip(law, fitted, strict=True)
            ]
            yield _statistics(drawn, options)[0].max(axis=1)


def _law(curve: Curve, terms: Terms) -> _Fit:
    """The mean of a curve under one law, weighted by the times that the law fits."""
    columns = terms(curve.places)
    weights = error_weights(stack([columns]), curve.mean_s, replicated=True)[0]
    return _Fit(columns, weights, curve.mean_s[None])


def _alternatives(
    curves: Sequence[Curve], terms: Terms, forms: Sequence[Form], least: tuple[int, int]
) -> Iterator[_Alternative]:
    """Every border that enough places surround, in every form."""
    places = np.unique(np.concatenate([curve.places for curve in curves]))
    places = places[[all(place in curve.places for curve in curves) for place in places]]
    for i in range(least[0], len(places) - least[1] + 1):
        below, above = float(places[i - 1]), float(places[i])
        for form in forms:
            split = [_split(curve.places, terms, form, below) for curve in curves]
            row = _split(np.array([above]), terms, form, np.inf)[0]
            unchanged = [row] * len(curves)
            yield _Alternative(below=below, above=above, form=form, columns=split, unchanged=unchanged)


def _split(places: np.ndarray, terms: Terms, form: Form, below: float) -> np.ndarray:
    """Columns of a law that changes above ``below``."""
    columns = terms(places)
    after = (places > below)[:, None]
    changed = columns[:, [form.term]]
    if form.instead is not None:
        return np.hstack([np.where(after, 0.0, changed), np.where(after, form.instead(places), 0.0)])
    own = columns.copy()
    own[:, [form.term]] = np.where(after, 0.0, changed)
    return np.hstack([own, np.where(after, changed, 0.0)])


def _statistics(law: Sequence[_Fit], options: Sequence[_Alternative]) -> tuple[np.ndarray, ...]:
    """F of every option, its squares and its residual degrees of freedom, each shape (B, options).

    ``law``: of each curve, the fit without a border. Coefficients at 0 are no parameters; where fewer than
    ``LEAST_FREEDOM`` degrees are left, F is 0.
    """
    number = len(options[0].columns)
    changed = [
        one._replace(columns=columns)
        for option in options
        for one, columns in zip(law[:number], option.columns, strict=True)
    ]
    fits = [*law, *changed]
    values = _solve(fits)
    squares = np.array([one.squares(found) for one, found in zip(fits, values, strict=True)])
    counts = np.array([(found > 0).sum(axis=1) for found in values])
    own, rest = slice(0, number), slice(number, len(law))
    shape = (len(options), number, -1)
    left = squares[len(law) :].reshape(shape).sum(axis=1) + squares[rest].sum(axis=0)
    used = counts[len(law) :].reshape(shape).sum(axis=1) + counts[rest].sum(axis=0)
    more = used - (counts[own].sum(axis=0) + counts[rest].sum(axis=0))
    freedom = sum(one.times.shape[1] for one in law) - used
    fall = (squares[: len(law)].sum(axis=0) - left) / np.maximum(more, 1)
    f = np.where(freedom >= LEAST_FREEDOM, fall / (np.maximum(left, EXACT) / np.maximum(freedom, 1)), 0.0)
    return f.T, left.T, freedom.T


def _solve(fits: Sequence[_Fit]) -> list[np.ndarray]:
    """Coefficients of at least 0 of every fit, each shape (B, P)."""
    from .solver import solve_bounded  # imports jax

    width = max(one.columns.shape[1] for one in fits)
    width += -width % WIDTH
    grams, rhs = [], []
    for one in fits:
        padded = np.pad(one.columns, [(0, 0), (0, width - one.columns.shape[1])])
        weighted = padded * one.weights[:, None]
        grams.append(np.broadcast_to(weighted.T @ padded, (len(one.times), width, width)))
        rhs.append(one.times @ weighted)
    gram, right = np.concatenate(grams), np.concatenate(rhs)
    # In batches of the shape that the laws are fitted in, so that nothing new is compiled.
    empty = -len(right) % BATCH
    gram, right = np.pad(gram, [(0, empty), (0, 0), (0, 0)]), np.pad(right, [(0, empty), (0, 0)])
    found = np.concatenate(
        [solve_bounded(gram[i : i + BATCH], right[i : i + BATCH]) for i in range(0, len(right), BATCH)]
    )
    ends = np.cumsum([len(one.times) for one in fits])
    return [found[end - len(one.times) : end, : one.columns.shape[1]] for one, end in zip(fits, ends, strict=True)]


def _log_excess(law: Sequence[_Fit], option: _Alternative, curves: Sequence[Curve]) -> np.ndarray:
    """Log of fitted over unchanged time at the place above, shape (M, G); NaN where the law gives none."""
    fits = [
        one._replace(columns=columns, times=curve.times_s.T)
        for one, columns, curve in zip(law, option.columns, curves, strict=False)
    ]
    rows = []
    for one, values, curve, unchanged in zip(fits, _solve(fits), curves, option.unchanged, strict=True):
        fitted = values @ one.columns[curve.places == option.above][0]
        without = values @ unchanged
        known = (fitted > 0) & (without > 0)
        rows.append(np.where(known, np.log(np.where(known, fitted, 1) / np.where(known, without, 1)), np.nan))
    return np.array(rows)


def _is_large(log_excess: np.ndarray, margin: float) -> bool:
    """Whether at least half of the curves change by more than the margin, and in the same direction."""
    if log_excess.size == 0 or not np.isfinite(log_excess).all():
        return False
    means = log_excess.mean(axis=1)
    size = np.log1p(margin)
    return max(np.mean(means > size), np.mean(means < -size)) >= 0.5
