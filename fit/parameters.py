"""Physical parameters with intervals, from the unconstrained fit of each launch; what is tied is said, not guessed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import numpy as np

from ..model.law import Design
from ..model.rank import TOLERANCE, Identifiability, identify
from .answer import Estimate, Parameter
from .intervals import fits_exactly, residual_estimate, t_estimate, without_rounding

PUSHED_BELOW = "not identified: the data push it below 0"
BELOW_ALONE = "not identified: its estimate lies below 0, and there is no interval"
AS_MANY = "as many parameters as points"
SIMULATED_DEVICE = "host cost per simulated device"


@dataclass(frozen=True)
class Launches:
    """Unconstrained weighted fit of each launch by itself.

    Attributes
    ----------
    values : ndarray, shape (P, G), SI units; only combinations that the design determines mean anything
    covariance : ndarray, shape (P, P), of one launch, from the residuals of the cell means
    determined : ndarray, shape (rank, P), orthonormal: the combinations of scaled parameters that are determined
    lengths : ndarray, shape (P,), of the weighted columns, which scale the parameters
    dof : cells minus rank
    exact : the cell means lie on the law but for rounding
    known : the same in words
    """

    values: np.ndarray
    covariance: np.ndarray
    determined: np.ndarray
    lengths: np.ndarray
    dof: int
    exact: bool
    known: Identifiability

    def determines(self, combination: np.ndarray) -> bool:
        """Whether a linear combination of the parameters, coefficients of shape (P,), is determined."""
        scaled = combination / self.lengths
        left = scaled - self.determined.T @ (self.determined @ scaled)
        return bool(np.linalg.norm(left) <= TOLERANCE * np.linalg.norm(scaled))


def fit_launches(design: Design, weights: np.ndarray, latency_s: np.ndarray) -> Launches:
    """Fit every launch without bounds.

    Parameters
    ----------
    design : Design of C cells and P parameters
    weights : ndarray, shape (C,)
    latency_s : ndarray, shape (C, G), seconds

    Notes
    -----
    Columns are scaled to unit length first, so neither seconds against microseconds nor bytes against steps decides
    what counts as rank; directions that the design does not determine get no value at all (the pseudo-inverse), where
    normal equations would return coefficients of 1e13. A parameter whose term is rounding in every cell is 0.
    """
    root = np.sqrt(weights)[:, None]
    matrix, scaled = design.matrix * root, latency_s * root
    # The triangular factor has the same column relations in P rows.
    basis, triangle = np.linalg.qr(matrix)
    lengths = np.linalg.norm(matrix, axis=0)
    known = identify(replace(design, matrix=triangle))
    left, singular, right = np.linalg.svd(triangle / lengths, full_matrices=False)
    left, singular, right = basis @ left[:, : known.rank], singular[: known.rank], right[: known.rank]
    inverse = right.T / singular
    mean = scaled.mean(axis=1)
    residual = mean - left @ (left.T @ mean)
    dof = len(matrix) - known.rank
    mean_s = latency_s.mean(axis=1)
    return Launches(
        values=without_rounding(inverse @ (left.T @ scaled) / lengths[:, None], design.matrix, mean_s),
        covariance=inverse @ inverse.T / np.outer(lengths, lengths) * (residual @ residual / max(dof, 1)),
        determined=right,
        lengths=lengths,
        dof=dof,
        exact=fits_exactly(residual / root[:, 0], mean_s),
        known=known,
    )


def parameters(
    design: Design,
    fitted: Launches,
    *,
    replicated: bool,
    confidence: float = 0.95,
    shared_resource: bool = False,
    remark: str | None = None,
) -> dict[str, Parameter]:
    """Say what the data determine about each parameter.

    Parameters
    ----------
    design, fitted : as given to and returned by ``fit_launches``
    replicated : whether columns of the data are launches; else intervals come from residuals and say so
    shared_resource : devices share cores, so that ``dispatch`` is a host cost
    remark : goes with every parameter (that the law does not fit, say)

    Returns
    -------
    dict from name to Parameter
        Besides every column of the design, the sum of columns that are the same, as ``c0 + floor``, where it is
        determined: its parts are not.
    """
    ties = dict(zip(fitted.known.tied, fitted.known.ties, strict=True))
    found = {}
    for j, name in enumerate(design.names):
        if fitted.known.identified[name]:
            found[name] = _parameter([j], design.units[j], fitted, replicated, confidence, remark)
        else:
            sentence = next((text for tie, text in ties.items() if name in tie), "these cells do not determine it")
            found[name] = _unknown(design.units[j], f"not identified: {sentence}")
    for group in _same_columns(design):
        together = np.zeros(len(design.names))
        together[group] = 1.0
        if fitted.determines(together):
            name = " + ".join(design.names[j] for j in group)
            found[name] = _parameter(group, design.units[group[0]], fitted, replicated, confidence, remark)
    if shared_resource and "dispatch" in found:
        dispatch = found["dispatch"]
        found["dispatch"] = msgspec.structs.replace(dispatch, reason=_joined(SIMULATED_DEVICE, dispatch.reason))
    return found


def _parameter(
    columns: list[int], unit: str, fitted: Launches, replicated: bool, confidence: float, remark: str | None
) -> Parameter:
    """The sum of some columns' parameters: estimate max(0, mean), interval cut at 0 or an upper limit.

    The limit is the interval's upper end. A one-sided 95 % limit, taken only where the interval reaches 0, would hold a
    truth a little above 0 in 92.5 % of sweeps: 5 % lie above the limit and 2.5 % below intervals that clear 0.
    """
    values = fitted.values[columns].sum(axis=0)
    mean = float(values.mean())
    if replicated:
        found, dof = t_estimate(values, confidence), values.size - 1
    else:
        error, dof = float(np.sqrt(fitted.covariance[np.ix_(columns, columns)].sum())), fitted.dof
        found = residual_estimate(mean, error, dof, confidence, exact=fitted.exact)
    if not replicated and not dof:
        found = Estimate(estimate=mean, reason=AS_MANY)
    return not_below_zero(mean, found, unit, remark)


def not_below_zero(mean: float, found: Estimate, unit: str, remark: str | None = None) -> Parameter:
    """A parameter that cannot be negative, from the mean of its unconstrained estimates and their interval.

    Below 0 it has no number: without an interval nothing tells noise about 0 from data that contradict the law.
    """
    if found.interval is None:
        if mean < 0:
            return _unknown(unit, f"{BELOW_ALONE}: {found.reason}")
        return Parameter(estimate=mean, interval=None, identified=True, unit=unit, reason=_joined(found.reason, remark))
    lower, upper = found.interval
    if lower is not None and lower > 0:
        return Parameter(
            estimate=mean, interval=(lower, upper), identified=True, unit=unit, reason=_joined(found.reason, remark)
        )
    if upper is None or upper <= 0:
        return _unknown(unit, PUSHED_BELOW)
    return Parameter(
        estimate=max(0.0, mean),
        interval=None,
        identified=True,
        unit=unit,
        upper_limit=upper,
        reason=_joined(found.reason, remark),
    )


def _unknown(unit: str, reason: str) -> Parameter:
    return Parameter(estimate=None, interval=None, identified=False, unit=unit, reason=reason)


def _same_columns(design: Design) -> list[list[int]]:
    """Groups of two or more columns that are equal in every cell."""
    groups: dict[bytes, list[int]] = {}
    for j, column in enumerate(design.matrix.T):
        groups.setdefault(np.ascontiguousarray(column).tobytes(), []).append(j)
    return [group for group in groups.values() if len(group) > 1]


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(reason for reason in reasons if reason) or None
