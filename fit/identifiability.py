"""What a sweep cannot tell apart, why, and the cheapest run that would.

Columns of the law that are sums of other columns in every cell measured are tied: any time taken from one may be
given to the others without changing a single predicted time. Candidate runs are tried by adding their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..model.cell import Cell
from ..model.law import Design, Law, design, undefined, work
from ..model.program import Collective, ProgramFacts
from ..model.rank import identify
from .answer import Unidentified
from .launches import LaunchTable
from .lawfit import LawFits
from .remedies import UNKNOWN_PAYLOAD, Addition, additions
from .sample import Sample

SEPARATED = 1e-2
"""A tie is taken apart when the new cells change by this share of the tied terms: less would need times measured to
better than a percent."""
_BY_COUNT = {"c0", "c0_probe", "entry", "dispatch", "floor", "gamma", "alpha0", "alpha", "beta"}
MOST_TOGETHER = 3
"""Additions tried in one run."""


def unidentified(table: LaunchTable, strategy: str, fits: LawFits) -> tuple[Unidentified, ...]:
    """List what the cells of one strategy cannot tell apart under the law whose parameters are reported.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    fits : LawFits
        Its ``parameters_of`` names the law.

    Returns
    -------
    tuple of Unidentified
        One for each missing rank. Of programs that nobody compiled (a CSV) one all-reduce of unknown size is assumed,
        unless the file says that there is none. What we did not measure has neither a command nor a cost: its times
        say nothing about a run of ours.
    """
    sample = Sample.of(table, strategy)
    facts = _facts(table, sample.cells)
    law = _law(fits, sample.cells, facts, table)
    if law is None:
        return ()
    columns = _columns(law, sample.cells, facts, table, fits)
    mean_s = sample.mean_s
    weighted = replace(columns, matrix=columns.matrix / mean_s[:, None])
    known = identify(weighted)
    ties = [_tie(names, columns, weighted.matrix) for names in known.tied]
    ties = [tie for tie in ties if _is_open(tie, fits)]
    if not ties:
        return ()
    chosen: dict[_Tie, tuple[Addition, float]] = {}
    for cost_s, run in _runs(additions(table, strategy, facts), table):
        rows = _rows(law, sample.cells, facts, run, table, columns)
        if rows is not None:
            chosen |= {tie: (run, cost_s) for tie in ties if tie not in chosen and _separates(rows, tie)}
        if len(chosen) == len(ties):
            break
    return tuple(_described(tie, columns, table, chosen.get(tie)) for tie in ties)


@dataclass(frozen=True)
class _Tie:
    """Parameters of a circuit: ``sum_j weights[j] column_j = 0`` in every cell; the first is 1."""

    names: tuple[str, ...]
    weights: tuple[float, ...]


def _law(fits: LawFits, cells: Sequence[Cell], facts: Mapping[Cell, ProgramFacts], table: LaunchTable) -> Law | None:
    chosen = next((one.law for one in fits.laws if one.name == fits.parameters_of), None)
    options = [chosen] if chosen else [Law("ring", "per-device"), Law("ring", "by-local-size")]
    if chosen and table.foreign:
        options = [Law("ring", chosen.compute), chosen]
    return next((law for law in options if undefined(law, cells, facts, cores=table.cores) is None), None)


def _facts(table: LaunchTable, cells: Sequence[Cell]) -> dict[Cell, ProgramFacts]:
    """Facts of the cells; a workload whose file does not say what it exchanges is taken to do one all-reduce."""
    found = {}
    for cell in cells:
        known = table.facts.get(cell)
        unsaid = known is None or not known.collectives_known
        if table.foreign and cell.role == "workload" and unsaid:
            one = Collective(
                kind="all-reduce",
                count=1,
                operands=1,
                message_bytes=UNKNOWN_PAYLOAD,
                operand_bytes=(UNKNOWN_PAYLOAD,),
                group_size=None,
            )
            known = ProgramFacts(work=work(cell, known), collectives=(one,))
        if known is not None:
            found[cell] = known
    return found


def _columns(
    law: Law, cells: Sequence[Cell], facts: Mapping[Cell, ProgramFacts], table: LaunchTable, fits: LawFits
) -> Design:
    """Columns of the law; those that the fit left out on purpose (dispatch of a device-side benchmark) stay out."""
    columns = design(law, cells, facts, cores=table.cores, spread=table.spread)
    if any(cell.role == "workload" for cell in cells):
        return columns
    fitted = next((one.design for one in fits.laws if one.name == fits.parameters_of), columns)
    return _take(columns, [name for name in columns.names if name in fitted.names])


def _take(columns: Design, names: Sequence[str]) -> Design:
    take = [columns.names.index(name) for name in names]
    return Design(
        matrix=columns.matrix[:, take],
        names=tuple(names),
        units=tuple(columns.units[j] for j in take),
        causes=tuple(columns.causes[j] for j in take),
    )


def _tie(names: tuple[str, ...], columns: Design, weighted: np.ndarray) -> _Tie:
    """The numbers of a circuit, from the columns of its names."""
    first, *others = (weighted[:, columns.names.index(name)] for name in names)
    if not others:
        return _Tie(names, (1.0,))
    lengths = np.array([np.linalg.norm(column) for column in others])
    scaled = np.column_stack(others) / lengths
    shares = np.linalg.lstsq(scaled, first, rcond=None)[0] / lengths
    return _Tie(names, (1.0, *(-shares).tolist()))


def _is_open(tie: _Tie, fits: LawFits) -> bool:
    """Whether the fit agrees that something in the tie has no number of its own."""
    known = [fits.parameters[name] for name in tie.names if name in fits.parameters]
    return len(known) < len(tie.names) or any(not one.identified for one in known)


def _runs(single: Sequence[Addition], table: LaunchTable) -> list[tuple[float, Addition]]:
    """Every addition and every few of them together with their costs, the cheapest first, controls before others."""
    found = list(single)
    for number in range(2, MOST_TOGETHER + 1):
        for several in combinations(single, number):
            together = several[0]
            for one in several[1:]:
                together = together + one
            found.append(together)
    priced = [(run.cost_s(table), run) for run in found]
    # Rounded, so that of runs that cost the same the order of the list decides, whatever the last digit.
    return sorted(priced, key=lambda one: float(f"{one[0]:.6g}"))


@dataclass(frozen=True)
class _Rows:
    """Rows of added cells, divided by their times: in the measured columns, and in columns that only they have."""

    names: tuple[str, ...]
    old: np.ndarray
    new: np.ndarray


def _rows(
    law: Law,
    cells: Sequence[Cell],
    facts: Mapping[Cell, ProgramFacts],
    run: Addition,
    table: LaunchTable,
    columns: Design,
) -> _Rows | None:
    added = [cell for cell in run.cells if cell not in cells]
    both, known = [*cells, *added], {**facts, **run.facts}
    if not added or undefined(law, both, known, cores=table.cores):
        return None
    full = design(law, both, known, cores=table.cores, spread=table.spread)
    rows = full.matrix[len(cells) :] / np.array([run.time_s[cell] for cell in added])[:, None]
    old = [full.names.index(name) for name in columns.names]
    # A column that only the added cells have is one more unknown for them to pay.
    new = [j for j in range(len(full.names)) if j not in old and not full.matrix[: len(cells), j].any()]
    return _Rows(columns.names, rows[:, old], rows[:, new])


def _separates(rows: _Rows, tie: _Tie) -> bool:
    """Whether the tied terms, which cancel in every measured cell, no longer do in the added ones."""
    take = [rows.names.index(name) for name in tie.names]
    terms = rows.old[:, take] * np.array(tie.weights)
    left = terms.sum(axis=1)
    if rows.new.shape[1]:
        lengths = np.linalg.norm(rows.new, axis=0)
        left = left - rows.new / lengths @ np.linalg.lstsq(rows.new / lengths, left, rcond=None)[0]
    return bool(np.linalg.norm(left) > SEPARATED * max(np.linalg.norm(terms, axis=0).max(), np.finfo(float).tiny))


def _described(tie: _Tie, columns: Design, table: LaunchTable, run: tuple[Addition, float] | None) -> Unidentified:
    causes = dict.fromkeys(columns.causes[columns.names.index(name)] for name in tie.names)
    return Unidentified(
        parameters=tie.names,
        causes=tuple(causes),
        words=_words(tie, table),
        remedy=None if run is None else run[0].words,
        command=None if run is None or table.foreign else run[0].command(table),
        remedy_cost_s=None if run is None or table.foreign else run[1],
    )


def _words(tie: _Tie, table: LaunchTable) -> str:
    """Why these columns are the same in every cell."""
    weights = dict(zip(tie.names, tie.weights, strict=True))
    stems = {name.split("[", 1)[0] for name in tie.names}
    if len(tie.names) == 1:
        return f"no cell depends on {tie.names[0]}"
    if {"alpha", "dispatch"} <= stems:
        per_step = abs(weights["dispatch"] / weights["alpha"])
        return f"dispatch per device and {_times(per_step)}alpha rise by the same amount from count to count"
    if stems == {"c0", "entry"}:
        return "no cell has one device, so c0 and entry are both paid once in every call"
    if stems == {"entry", "alpha0"}:
        return "entry and alpha0 are both paid once on every count above 1, and on one device neither"
    counts = sorted({cell.num_devices for cell in table.cells})
    if stems <= {"entry", "alpha0", "alpha", "beta", "collective"}:
        counts = [n for n in counts if n > 1]
    if len(counts) < len(tie.names) and stems <= _BY_COUNT:
        several = (
            f"{_listed(map(str, counts))} devices are {len(counts)} counts"
            if len(counts) > 1
            else (f"{counts[0]} devices are the only count above 1")
        )
        return f"{several}, and {_listed(tie.names)} are {len(tie.names)} costs told apart by the count alone"
    if stems == {"c0", "floor"}:
        return "c0 and floor are both paid once in every call"
    if stems == {"beta", "gamma", "c0"}:
        return (
            "bytes on a link grow as 1 - 1/n while the work of one device falls as 1/n: more of beta looks like less "
            "of gamma"
        )
    if "gamma" in stems and stems <= {"gamma", "c0", "floor"}:
        return "one device does the same work in every cell, so gamma times work is a constant like the others"
    return f"{tie.names[0]} weighs as much as {_sum(tie)} in every cell"


def _sum(tie: _Tie) -> str:
    """``2 dispatch - 2 c0``, the free times of many cells as one."""
    parts = []
    for name, weight in zip(tie.names[1:], tie.weights[1:], strict=True):
        stem = name.split("[", 1)[0]
        if stem in ("compute", "collective"):
            continue
        sign = "-" if weight > 0 else "+"
        parts.append(f"{sign} {_times(abs(weight))}{name}")
    text = " ".join(parts).removeprefix("+ ")
    free = {"compute": "compute times", "collective": "collective times"}
    stems = dict.fromkeys(name.split("[", 1)[0] for name in tie.names[1:])
    return " and ".join([*([text] if text else []), *(f"a sum of the {free[s]}" for s in stems if s in free)])


def _times(weight: float) -> str:
    return "" if abs(weight - 1) < 1e-6 else f"{weight:.3g} "


def _listed(names: Iterable[str]) -> str:
    words = list(names)
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
