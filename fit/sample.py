"""Which cells a law is fitted to, and the columns that each law has there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..model.cell import Cell
from ..model.law import MENU, Design, Law, design, undefined
from ..model.program import ProgramFacts
from .launches import LaunchTable
from .trend import Place

MOST_PARAMETERS = 64
"""A free time for each of a hundred sizes describes a table and explains nothing, and takes minutes to fit."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The cells that enter the fits: one regime of one strategy.

    Attributes
    ----------
    cells : C cells; latency_s : ndarray, shape (C, G), seconds
    places : (count, entry of the size axis) of each; the payload is the size where there are only probes
    predicted : ndarray of bool, shape (C,): those whose prediction is asked for, the workload's (else the shortest
        chains)
    left_out : cells that do not enter, and why
    """

    table: LaunchTable
    strategy: str
    cells: tuple[Cell, ...]
    latency_s: np.ndarray
    places: tuple[Place, ...]
    predicted: np.ndarray
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, table: LaunchTable, strategy: str) -> Sample:
        """Take the cells of a strategy, without those that XLA runs in the calling thread."""
        mine = [i for i, cell in enumerate(table.cells) if cell.strategy == strategy]
        inline = {i for i in mine if (facts := table.facts.get(table.cells[i])) is not None and facts.inline}
        # Inline programs run on one device, in the calling thread: another regime, and not the one in question.
        rows = [i for i in mine if i not in inline] if len(inline) < len(mine) else mine
        cells = tuple(table.cells[i] for i in rows)
        probes_alone = not any(cell.role == "workload" for cell in cells)
        places = tuple((c.num_devices, (c.payload_bytes or 0) if probes_alone else table.axis_size(c)) for c in cells)
        shortest = min((c.k or 1 for c in cells), default=1)
        return cls(
            table=table,
            strategy=strategy,
            cells=cells,
            latency_s=table.latency_s[rows],
            places=places,
            predicted=np.array(
                [c.role == "chain" and (c.k or 1) == shortest if probes_alone else c.role == "workload" for c in cells]
            ),
            left_out=tuple(
                f"{table.cells[i]} entered no law: XLA runs it in the calling thread, the others on a pool"
                for i in mine
                if i not in rows
            ),
        )

    @property
    def mean_s(self) -> np.ndarray:
        """Mean over launches, shape (C,), seconds."""
        return self.latency_s.mean(axis=1)

    @property
    def facts(self) -> Mapping[Cell, ProgramFacts | None]:
        """Of the table's programs."""
        return self.table.facts

    @property
    def collectives_alone(self) -> bool:
        """Whether this is a benchmark of collectives, without a workload."""
        return all(cell.role == "chain" for cell in self.cells)


def designs_of(sample: Sample) -> tuple[dict[Law, Design], dict[str, str]]:
    """Designs of the laws defined here, equal ones once; why the other laws are left out, by name."""
    found: dict[Law, Design] = {}
    reasons: dict[str, str] = {}
    seen: dict[tuple, str] = {}
    for law in MENU:
        reason = undefined(law, sample.cells, sample.facts, cores=sample.table.cores)
        if reason is not None:
            reasons[law.name] = f"not defined here: {reason}"
            continue
        columns = design(law, sample.cells, sample.facts, cores=sample.table.cores, spread=sample.table.spread)
        columns = _of_collectives(columns, sample) if sample.collectives_alone else columns
        if len(columns.names) > MOST_PARAMETERS:
            reasons[law.name] = f"not fitted: {len(columns.names)} free times, of which at most {MOST_PARAMETERS} are"
            continue
        key = (columns.names, columns.matrix.tobytes())
        if key in seen:
            reasons[law.name] = f"the same as {seen[key]!r} on these cells"
            continue
        seen[key] = law.name
        found[law] = columns
    return found, reasons


def _of_collectives(columns: Design, sample: Sample) -> Design:
    """Columns for a benchmark of collectives alone.

    Collective benchmarks from elsewhere time on the device: no dispatch is in them (it would be told apart from alpha
    by nothing). With one message size, bytes and steps are told apart by nothing but the curvature of (n - 1)/n: one
    of them is taken for the whole, the one that the times follow.
    """
    dropped = {"dispatch"} if sample.table.foreign else set()
    if len({cell.payload_bytes for cell in sample.cells}) == 1 and {"alpha", "beta"} <= set(columns.names):
        latency, bandwidth = (columns.matrix[:, columns.names.index(name)] for name in ("alpha", "beta"))
        follow_bytes = _misfit(bandwidth, sample.mean_s) < _misfit(latency, sample.mean_s)
        dropped.add("alpha" if follow_bytes else "beta")
    take = [j for j, name in enumerate(columns.names) if name not in dropped]
    return Design(
        matrix=columns.matrix[:, take],
        names=tuple(columns.names[j] for j in take),
        units=tuple(columns.units[j] for j in take),
        causes=tuple(columns.causes[j] for j in take),
    )


def _misfit(column: np.ndarray, seconds: np.ndarray) -> float:
    """Sum of squared relative errors of ``a + b column`` with both at least 0, shapes (C,)."""
    weighted = np.column_stack([np.ones_like(column), column]) / seconds[:, None]
    best = np.inf
    for taken in ([0], [1], [0, 1]):
        values = np.linalg.lstsq(weighted[:, taken], np.ones_like(seconds), rcond=None)[0]
        if (values >= 0).all():
            best = min(best, float(np.sum((weighted[:, taken] @ values - 1) ** 2)))
    return best
