"""How large the noise is: the same in all cells or not, and against the differences that are to be explained."""

from __future__ import annotations

import numpy as np
from scipy import special

from ..answer import Diagnostic
from ..intervals import MIN_LAUNCHES, TOO_FEW, p_differs, t_estimate, tost
from ..launches import LaunchTable
from .residuals import LEVEL, MATTERS, Residuals, judged, others, skipped

RATIO = 2.0
MIN_CELLS = 6


def even_spread(residuals: Residuals) -> Diagnostic:
    """Test whether the relative spread depends on time or count (Breusch and Pagan's test, Koenker's form).

    Notes
    -----
    The residuals of cells over launches are squared and regressed on log time and log n; n R² is compared with
    chi-squared. The same number as statsmodels' ``het_breuschpagan``, which takes longer to import than a whole answer
    may take.

    References
    ----------
    R. Koenker, J. Econometrics 17, 107-112, 1981, doi:10.1016/0304-4076(81)90062-2.
    """
    name = "even relative spread"
    if residuals.num_launches < MIN_LAUNCHES:
        return skipped(name, TOO_FEW, "measure more launches with --launches 8")
    if len(residuals.cells) < MIN_CELLS:
        return skipped(name, f"fewer than {MIN_CELLS} cells")
    squares = residuals.launches.ravel() ** 2
    if squares.max() <= 1e-24:
        return skipped(name, "replicates are identical", "give the raw times of each run")
    columns = [np.log(residuals.mean_s), np.log([cell.num_devices for cell in residuals.cells])]
    design = np.column_stack([np.repeat(column, residuals.num_launches) for column in columns])
    statistic, p, fitted = breusch_pagan(squares, design)
    order = np.argsort(fitted[:: residuals.num_launches])
    by_cell = (residuals.launches**2).mean(axis=1)[order]
    third = max(1, len(order) // 3)
    ratio = float(np.sqrt(by_cell[-third:].mean() / max(by_cell[:third].mean(), 1e-24)))
    return judged(
        name,
        f"largest at {residuals.cells[int(order[-1])]}",
        statistic=statistic,
        p=p,
        failed=p < LEVEL and ratio >= RATIO,
        words=f"the relative spread over launches differs {ratio:.2g} times between cells",
        remedy="intervals over launches stand, each cell has its own; do not pool residuals of cells",
    )


def breusch_pagan(squares: np.ndarray, columns: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Regress squared residuals, shape (n,), on columns, shape (n, k): statistic n R², p-value, fitted squares."""
    design = np.column_stack([np.ones(len(squares)), columns])
    coefficients, _, rank, _ = np.linalg.lstsq(design, squares, rcond=None)
    fitted = design @ coefficients
    centred = squares - squares.mean()
    explained = 1 - ((squares - fitted) ** 2).sum() / (centred @ centred)
    statistic = float(len(squares) * explained)
    freedom = max(int(rank) - 1, 1)
    return statistic, float(special.chdtrc(freedom, max(statistic, 0.0))), fitted


def below_noise(values: np.ndarray, confidence: float = 0.95) -> bool:
    """Whether one more replicate of the same kind could come out at zero or below.

    Parameters
    ----------
    values : ndarray, shape (G,), any unit
        A time, or a difference of two times, in each replicate.

    Notes
    -----
    The prediction interval of a further replicate, mean ± t s √(1 + 1/G), reaches 0.
    """
    values = np.asarray(values, dtype=float)
    if values.size < MIN_LAUNCHES:
        return False
    half = special.stdtrit(values.size - 1, 0.5 + confidence / 2) * values.std(ddof=1) * np.sqrt(1 + 1 / values.size)
    return bool(abs(values.mean()) <= half and half > 0)


def signal(table: LaunchTable, strategy: str, confidence: float = 0.95) -> list[Diagnostic]:
    """Compare what is to be explained with its own interval: the times, the effect of devices, the communication."""
    if table.num_launches < MIN_LAUNCHES:
        return [skipped("times above noise", TOO_FEW, "measure at least three launches")]
    return [_times(table), *_differences(table, strategy, confidence)]


def _times(table: LaunchTable) -> Diagnostic:
    rows = [i for i in range(len(table.cells)) if np.isfinite(table.latency_s[i]).all()]
    if not rows:
        return skipped("times above noise", "no cell was measured in every launch")
    noisy = [i for i in rows if below_noise(table.latency_s[i])]
    relative = {i: table.latency_s[i].std(ddof=1) / table.latency_s[i].mean() for i in rows}
    worst = max(noisy or rows, key=lambda i: relative[i])
    return judged(
        "times above noise",
        f"{table.cells[worst]}{others(len(noisy) - 1)}",
        statistic=relative[worst],
        p=None,
        failed=bool(noisy),
        words=f"launches differ by {100 * relative[worst]:.0f} % of the time (one standard deviation)"
        + ("; signal below noise, no verdict" if noisy else ""),
        remedy="one more launch could come out at zero: measure longer calls, or more of them, and more launches",
    )


def _differences(table: LaunchTable, strategy: str, confidence: float) -> list[Diagnostic]:
    """The effect of all devices against the fewest, and the communication, at the largest size."""
    counts, sizes = table.devices("workload", strategy), table.sizes("workload", strategy)
    if len(counts) < 2:
        return []
    few, many = counts[0], counts[-1]
    first = table.time("workload", strategy, few, table.plan.global_size(few, sizes[-1]))
    last = table.time("workload", strategy, many, table.plan.global_size(many, sizes[-1]))
    local = table.time("local", strategy, many, table.plan.global_size(many, sizes[-1]))
    found = []
    if first is not None and last is not None:
        cost = last * (few / many if table.plan.objective == "throughput" else 1.0)
        found.append(_difference("effect of devices", f"{few} against {many} devices", cost - first, first, confidence))
    if last is not None and local is not None:
        found.append(_difference("communication", f"{many} devices", last - local, last, confidence))
    return found


def _difference(name: str, where: str, difference: np.ndarray, whole: np.ndarray, confidence: float) -> Diagnostic:
    """Neither told from nothing, nor shown to be less than what matters."""
    name = f"{name} above noise"
    share = difference / whole.mean()
    value = t_estimate(share, confidence)
    if value.interval is None or value.estimate is None:
        return skipped(name, value.reason or "cannot tell", where=where)
    half = float(np.ptp(np.array(value.interval, dtype=float))) / 2
    drowned = abs(value.estimate) <= half and not tost(share, MATTERS, confidence=confidence).equivalent
    return judged(
        name,
        where,
        statistic=value.estimate / half,
        p=p_differs(share),
        failed=drowned,
        words=f"{100 * value.estimate:.2g} % of the call, ± {100 * half:.2g} %"
        + (": signal below noise, no verdict on it" if drowned else ""),
        remedy="measure more launches, or a size at which it is larger",
    )
