"""How the times of one way of running go with those of another: t_b = a + b t_a over the cells that both have.

A constant a with b = 1 is paid once a call, whatever the work: dispatch. A factor b with a = 0 grows with the work. A
cell that does not follow is named and left out of the line, never averaged in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from ..answer import Estimate
from ..intervals import MIN_LAUNCHES, log_t_estimate, p_differs, residual_estimate, t_estimate
from ..trend import Place

LEAST_CELLS = 3
LEAST_TO_FLAG = 4
FLAG = 3.5
"""A residual this many robust standard deviations off does not follow the line (Iglewicz and Hoaglin 1993)."""
FLOOR = 0.10
"""Nor is a residual flagged below this share of the time: a few cells on a line leave no spread to speak of."""

EXACT = 1e-9
NO_ERROR = "the cells lie on the line to the last digit, so nothing can be tested"

Kind = Literal["additive", "proportional", "both", "undecided"]


class Stray(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that does not follow the line: its times, and the second's less what the line says."""

    num_devices: int
    size: int
    first_s: float
    second_s: float
    residual_s: float


class PairedLine(msgspec.Struct, frozen=True, kw_only=True):
    """The line t_b = intercept + slope t_a.

    ``additive``: the slope may be 1 and the intercept is not 0; ``offset_s`` is then the mean difference.
    ``proportional``: the intercept may be 0 and the slope is not 1; ``factor`` is then the mean ratio. ``both``: none.
    ``p_intercept``: of "it is 0"; ``p_slope``: of "it is 1"; two-sided. ``method``: where the intervals come from.
    """

    kind: Kind
    words: str
    num_cells: int
    intercept_s: Estimate
    slope: Estimate
    p_intercept: float | None
    p_slope: float | None
    offset_s: Estimate | None = None
    factor: Estimate | None = None
    strays: tuple[Stray, ...] = ()
    method: str | None = None


WORDS: dict[Kind, str] = {
    "additive": "the second takes a constant more or less, whatever the work: dispatch, not work",
    "proportional": "the times differ by a factor: what differs grows with the work",
    "both": "the times differ by a constant and by a factor",
}


def paired_line(
    first_s: Mapping[Place, np.ndarray],
    second_s: Mapping[Place, np.ndarray],
    *,
    paired: bool,
    confidence: float = 0.95,
) -> PairedLine:
    """Fit the line to cells of the same places.

    Parameters
    ----------
    first_s, second_s : by (count, entry of the size axis), each of shape (G,), seconds
    paired : whether the launches of both are the same, in the same order: each launch then has a line of its own
    confidence : of the intervals and, less 1, level of the tests

    Returns
    -------
    PairedLine
        ``undecided`` below three cells, where the cells lie at one time, where most do not follow any line, and where
        the tests reject nothing or cannot tell a constant from a factor.

    Notes
    -----
    Strays are those from the line of repeated medians [1]_, which holds up to half of the cells being off; the rest
    is fitted by least squares with relative weights.

    References
    ----------
    .. [1] A. F. Siegel, Biometrika 69(1), 242-244, 1982, doi:10.1093/biomet/69.1.242.
    """
    places = list(first_s)
    x = np.array([np.mean(first_s[p]) for p in places])
    y = np.array([np.mean(second_s[p]) for p in places])
    if len(places) < LEAST_CELLS:
        return _none(f"a line needs {LEAST_CELLS} cells that both have, there are {len(places)}", len(places))
    if np.ptp(x) <= 0.1 * x.max():
        return _none("the cells all take about the same time, so a constant and a factor look alike", len(places))
    stray, fitted = _strays(x, y)
    strays = tuple(
        Stray(
            num_devices=places[i][0],
            size=places[i][1],
            first_s=float(x[i]),
            second_s=float(y[i]),
            residual_s=float(y[i] - fitted[i]),
        )
        for i in np.flatnonzero(stray)
    )
    kept = [place for place, out in zip(places, stray.tolist(), strict=True) if not out]
    if len(kept) < max(LEAST_CELLS, len(places) / 2) or np.ptp(x[~stray]) <= 0.1 * x[~stray].max():
        return _none("the cells follow no line", len(kept), strays)
    if paired and len(first_s[kept[0]]) >= MIN_LAUNCHES:
        a, b = (np.array([one[place] for place in kept]) for one in (first_s, second_s))
        return _by_launch(a, b, strays, confidence)
    return _by_residuals(x[~stray], y[~stray], strays, confidence)


def _strays(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which cells do not follow, shape (C,) of bool, and the robust line's times, shape (C,)."""
    from scipy import stats

    slope, intercept = stats.siegelslopes(y, x)
    fitted = intercept + slope * x
    if len(x) < LEAST_TO_FLAG:
        return np.zeros(len(x), dtype=bool), fitted
    share = np.abs(y - fitted) / np.maximum(y, fitted)
    return share > max(FLAG * 1.4826 * float(np.median(share)), FLOOR), fitted


def _by_launch(x: np.ndarray, y: np.ndarray, strays: tuple[Stray, ...], confidence: float) -> PairedLine:
    """A line a launch; x and y of shape (cells, G)."""
    weights = 1 / y.mean(axis=1)
    lines = np.array(
        [
            np.linalg.lstsq(np.stack([weights, a * weights], axis=-1), b * weights, rcond=None)[0]
            for a, b in zip(x.T, y.T, strict=True)
        ]
    )
    return _line(
        len(x),
        t_estimate(lines[:, 0], confidence),
        t_estimate(lines[:, 1], confidence),
        p_differs(lines[:, 0]),
        p_differs(lines[:, 1], 1.0),
        joint=p_differs(np.log(y / x).mean(axis=0)),
        offset=t_estimate((y - x).mean(axis=0), confidence),
        factor=log_t_estimate(np.exp(np.log(y / x).mean(axis=0)), confidence),
        strays=strays,
        method=f"Student t over {x.shape[1]} launches, paired",
        level=1 - confidence,
    )


def _by_residuals(x: np.ndarray, y: np.ndarray, strays: tuple[Stray, ...], confidence: float) -> PairedLine:
    """One line through the means; x and y of shape (cells,)."""
    from statsmodels.regression.linear_model import OLS

    # Relative weights: every equation is divided by its own time.
    found = OLS(np.ones_like(y), np.stack([1 / y, x / y], axis=-1)).fit()
    (intercept, slope), (error, slope_error) = np.asarray(found.params), np.asarray(found.bse)
    dof = int(found.df_resid)
    if np.max(np.abs(found.resid)) < EXACT:
        # Points that lie on a line to the last digit leave no error to test against.
        return _line(
            len(x),
            Estimate(estimate=float(intercept) if abs(intercept) > EXACT * y.min() else 0.0, reason=NO_ERROR),
            Estimate(estimate=float(slope), reason=NO_ERROR),
            None,
            None,
            joint=None,
            offset=Estimate(reason=NO_ERROR),
            factor=Estimate(reason=NO_ERROR),
            strays=strays,
            method=None,
            level=1 - confidence,
        )
    return _line(
        len(x),
        residual_estimate(float(intercept), float(error), dof, confidence),
        residual_estimate(float(slope), float(slope_error), dof, confidence),
        float(found.pvalues[0]),
        float(np.squeeze(found.t_test(([0.0, 1.0], [1.0])).pvalue)),
        joint=p_differs(np.log(y / x)),
        offset=t_estimate(y - x, confidence),
        factor=log_t_estimate(y / x, confidence),
        strays=strays,
        method="residuals of the cells from the line, replication unknown or not shared",
        level=1 - confidence,
    )


def _line(
    cells: int,
    intercept: Estimate,
    slope: Estimate,
    p_intercept: float | None,
    p_slope: float | None,
    *,
    joint: float | None,
    offset: Estimate,
    factor: Estimate,
    strays: tuple[Stray, ...],
    method: str | None,
    level: float,
) -> PairedLine:
    shifted = p_intercept is not None and p_intercept < level
    stretched = p_slope is not None and p_slope < level
    kind: Kind = "undecided"
    words = ""
    if shifted or stretched:
        kind = "both" if shifted and stretched else "additive" if shifted else "proportional"
    elif p_intercept is None:
        words = NO_ERROR
    elif joint is not None and joint < level:
        words = "the times differ, but these cells cannot tell a constant from a factor: measure sizes further apart"
    else:
        words = "no difference detected"
    return PairedLine(
        kind=kind,
        words=WORDS.get(kind, words),
        num_cells=cells,
        intercept_s=intercept,
        slope=slope,
        p_intercept=p_intercept,
        p_slope=p_slope,
        offset_s=offset if kind == "additive" else None,
        factor=factor if kind == "proportional" else None,
        strays=strays,
        method=method,
    )


def _none(words: str, cells: int, strays: tuple[Stray, ...] = ()) -> PairedLine:
    missing = Estimate(reason=words)
    return PairedLine(
        kind="undecided",
        words=words,
        num_cells=cells,
        intercept_s=missing,
        slope=missing,
        p_intercept=None,
        p_slope=None,
        strays=strays,
    )
