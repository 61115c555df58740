"""All checks of what the statistics assume: those a table allows (``explain``), and all that a record allows.

Each family of tests has level 1 % after Holm inside it, and an effect below 5 % of the time is no alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ...data.rounds import timed_visits
from ...data.store import Record
from ...data.surroundings import Surroundings, surroundings
from ..answer import Diagnostic
from ..guards import stands_still
from ..launches import LaunchTable
from ..repeats import drop_first
from ..sample import Sample
from .drift import machine_drift
from .influence import chosen_law, deciding_cell, fitted_times, influential_cell
from .population import copies, modes, normal_launches
from .residuals import LEVEL, MATTERS, Residuals, judged, skipped
from .rules import Rule, rules
from .signal_noise import even_spread, signal
from .steadiness import steadiness
from .visits import Groups, by_cell_and_launch, first_calls, position, series

if TYPE_CHECKING:
    from ..lawfit import LawFits


class ResidualGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Residuals of one group, as shares of the time.

    ``by``: devices, size, place in the round (quarters), launch. ``mean``, ``spread``: of the law's residuals of cell
    means for devices and size (spread None for one cell), of the law-free residuals of visits for the others.
    """

    by: str
    group: str
    count: int
    mean: float
    spread: float | None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What ``diagnose`` says about a record: every check, residuals by group, and the rules of reporting it meets.

    ``level``, ``matters``: of each family of tests; the smallest effect that is an alarm, as a share of the time.
    """

    source: str
    workload: str
    strategy: str | None
    num_launches: int | None
    num_cells: int
    law: str | None
    level: float
    matters: float
    diagnostics: tuple[Diagnostic, ...]
    residuals: tuple[ResidualGroup, ...]
    rules: tuple[Rule, ...]
    surroundings: tuple[Surroundings, ...] = ()


def table_diagnostics(
    table: LaunchTable, strategy: str, fits: LawFits | None, *, confidence: float = 0.95
) -> tuple[Diagnostic, ...]:
    """Run the checks that need one time per round, without statsmodels or scipy.stats.

    Parameters
    ----------
    table : LaunchTable
    strategy : whose law and whose differences are checked; steadiness and replicates are checked over all cells
    fits : the laws of the strategy; None: none was fitted
    confidence : of the intervals that differences are compared with

    Returns
    -------
    tuple of Diagnostic
        Failed, passed and skipped ones, in a fixed order.
    """
    found = []
    if table.replicated:
        residuals = Residuals.of(table)
        found += [*steadiness(residuals), modes(residuals), copies(table), even_spread(residuals)]
        found += signal(table, strategy, confidence)
    if fits is not None:
        found.append(influential_cell(table, strategy, fits))
    return tuple(found)


def diagnose(
    record: Record,
    table: LaunchTable,
    *,
    strategy: str | None = None,
    confidence: float = 0.95,
    margin: float = 0.10,
) -> Diagnosis:
    """Run every check on a record and its table.

    Parameters
    ----------
    record, table : the same measurements
    strategy : default: the plan's first
    confidence, margin : as for ``report.answer``
    """
    from ..lawfit import fit_laws

    strategy = strategy or next(iter(table.strategies), table.cells[0].strategy)
    several = len({cell.num_devices for cell in table.cells if cell.strategy == strategy}) > 1
    fits = fit_laws(table, strategy, confidence=confidence, margin=margin) if several else None
    visits = timed_visits(record)
    groups = by_cell_and_launch(drop_first(visits) if table.first_left_out else visits)
    found = list(table_diagnostics(table, strategy, fits, confidence=confidence))
    if table.replicated:
        found += machine_drift(table)
        found += [normal_launches(table), first_calls(groups), position(groups, len(table.cells))]
    else:
        found += series(groups)
    found += _times_of_other_work(table)
    if fits is not None and fits.laws:
        found += _law_errors(table, strategy, fits)
        counts, sizes = table.devices("workload", strategy), table.sizes("workload", strategy)
        if len(counts) > 1:
            asked = {"objective": table.plan.objective, "reference": counts[0], "size": sizes[-1]}
            found.append(deciding_cell(table, strategy, fits, **asked))
    law = None if fits is None else fits.parameters_of
    return Diagnosis(
        source=record.source,
        workload=table.plan.workload,
        strategy=strategy,
        num_launches=table.num_launches if table.replicated else None,
        num_cells=len(table.cells),
        law=law,
        level=LEVEL,
        matters=MATTERS,
        diagnostics=tuple(found),
        residuals=(*_by_law(table, strategy, fits), *_by_visit(groups, table)),
        rules=rules(record, table, tuple(found)),
        surroundings=surroundings(record),
    )


def _times_of_other_work(table: LaunchTable) -> list[Diagnostic]:
    """What was left out, and strategies whose times stand still; nothing where nothing was found."""
    why = "find out why, before the other times are trusted"
    found = [("possible rates", *words.split(": ", 1), why) for words in table.impossible]
    if table.first_left_out:
        found.append(("first repeats", "every cell", table.first_left_out, "warm up before the first timed call"))
    for strategy in table.strategies:
        if words := stands_still(table, strategy):
            found.append(("waited for", f"{strategy}, all sizes", words, "block until the result is ready"))
    return [
        judged(name, where, statistic=1.0, p=None, failed=True, words=words, remedy=remedy)
        for name, where, words, remedy in found
    ]


def _law_residuals(table: LaunchTable, strategy: str, fits: LawFits | None) -> tuple[Sample, np.ndarray] | None:
    law = None if fits is None else chosen_law(fits)
    if law is None:
        return None
    sample = Sample.of(table, strategy)
    return sample, np.log(sample.mean_s / fitted_times(law, sample))


def _by_key(sample: Sample, key: Callable[[int], int], residuals: np.ndarray) -> dict[int, np.ndarray]:
    keys = np.array([key(i) for i in range(len(sample.cells))])
    return {int(value): residuals[keys == value] for value in np.unique(keys)}


def _law_errors(table: LaunchTable, strategy: str, fits: LawFits) -> list[Diagnostic]:
    """Test whether the law's residuals differ between counts, and between sizes (one-way analysis of variance)."""
    from scipy import stats  # half a second

    known = _law_residuals(table, strategy, fits)
    if known is None:
        return []
    sample, residuals = known
    found = []
    for name, key in _AXES.items():
        label = f"law's error by {name}"
        groups = _by_key(sample, lambda i, key=key: key(sample, i), residuals)
        several = [group for group in groups.values() if group.size > 1]
        if len(several) < 2 or max(np.ptp(group) for group in several) <= 1e-12:
            found.append(skipped(label, f"fewer than two values of {name} with several cells"))
            continue
        result = stats.f_oneway(*several)
        means = {value: float(group.mean()) for value, group in groups.items()}
        worst = max(means, key=lambda value: abs(means[value]))
        found.append(
            judged(
                label,
                f"{name} {worst}",
                statistic=float(result.statistic),
                p=float(result.pvalue),
                failed=float(result.pvalue) < LEVEL and abs(means[worst]) >= MATTERS,
                words=f"measured times lie {100 * np.expm1(means[worst]):.2g} % off the law {fits.parameters_of!r}",
                remedy=f"the law bends where the data do not: trust measured cells, predict no further in {name}",
            )
        )
    return found


_AXES: dict[str, Callable[[Sample, int], int]] = {
    "devices": lambda sample, i: sample.cells[i].num_devices,
    "size": lambda sample, i: sample.places[i][1],
}


def _by_law(table: LaunchTable, strategy: str, fits: LawFits | None) -> list[ResidualGroup]:
    known = _law_residuals(table, strategy, fits)
    if known is None:
        return []
    sample, residuals = known
    return [
        _group(name, str(value), group)
        for name, key in _AXES.items()
        for value, group in _by_key(sample, lambda i, key=key: key(sample, i), residuals).items()
    ]


def _by_visit(groups: Groups, table: LaunchTable) -> list[ResidualGroup]:
    """Log visits minus their cell's mean over all launches, by quarter of the round and by launch."""
    by_cell: dict[object, list[float]] = {}
    rows = [
        (cell, launch, v.visit.position, np.log(v.latency_s)) for (cell, launch), all_ in groups.items() for v in all_
    ]
    for cell, _, _, log in rows:
        by_cell.setdefault(cell, []).append(log)
    means = {cell: float(np.mean(logs)) for cell, logs in by_cell.items()}
    residuals = np.array([log - means[cell] for cell, _, _, log in rows])
    launches = {launch: number for number, launch in enumerate(dict.fromkeys(launch for _, launch, _, _ in rows), 1)}
    places = np.array([min(3, 4 * place // max(len(table.cells), 1)) for _, _, place, _ in rows])
    numbers = np.array([launches[launch] for _, launch, _, _ in rows])
    quarters = [_group("place in the round", f"{k + 1}/4", residuals[places == k]) for k in np.unique(places)]
    by_launch = [_group("launch", str(k), residuals[numbers == k]) for k in np.unique(numbers)]
    return [*(quarters if len(quarters) > 1 else []), *(by_launch if len(by_launch) > 1 else [])]


def _group(by: str, group: str, residuals: Sequence[float] | np.ndarray) -> ResidualGroup:
    values = np.asarray(residuals)
    spread = float(values.std(ddof=1)) if values.size > 1 else None
    return ResidualGroup(by=by, group=group, count=values.size, mean=float(values.mean()), spread=spread)
