"""A parameter of the cost law as a target: which sweep determines it best.

The least variance for the money is a c-optimal design: the u of least sum of |u| sd √cost for which u' X = c, a linear
program, and calls in proportion to |u| sd / √cost (G. Elfving, Ann. Math. Statist. 23, 255-262, 1952; R. Harman &
T. Jurík, Comput. Stat. Data Anal. 53(2), 247-254, 2008). A sweep measures every cell of a grid equally often: that
design says which roles, counts and sizes matter; the grids themselves are compared by their own variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...model.cell import Cell
from ...model.law import Design, design, undefined
from ...model.rank import TOLERANCE, identify
from ..launches import LaunchTable
from ..lawfit import FittedLaw, LawFits
from .candidates import Candidate, Programs, counts_with, programs, subsets
from .contrasts import Contrast, counts
from .spread import Spread


class UnknownParameter(ValueError):
    """Not a parameter of the law; the message lists those that are."""


@dataclass(frozen=True, kw_only=True)
class ParameterTarget:
    """One parameter, or a sum of columns that are the same (``c0 + floor``), under the law that reports it."""

    table: LaunchTable
    strategy: str
    law: FittedLaw
    name: str
    value: float

    @property
    def parts(self) -> tuple[str, ...]:
        """Columns whose sum is asked for."""
        return tuple(self.name.split(" + "))

    def candidates(self) -> Iterator[Candidate]:
        """Subsets of the measured counts and sizes, with and without controls and probes."""
        plan = self.table.plan
        measured = self.table.devices("workload", self.strategy)
        sizes = self.table.sizes("workload", self.strategy)
        devices = dict.fromkeys(counts_with(plan, chosen) for chosen in subsets(measured, 1))
        for chosen in devices:
            for some in subsets(sizes, 1):
                for controls in (True, False):
                    for probes in (True, False):
                        yield Candidate(devices=chosen, sizes=some, controls=controls, probes=probes)

    def everything(self) -> Programs | None:
        """All cells that a sweep over the measured counts and sizes could hold."""
        whole = Candidate(
            devices=self.table.devices("workload", self.strategy),
            sizes=self.table.sizes("workload", self.strategy),
            controls=True,
            probes=True,
        )
        return programs(self.table, self.strategy, whole)

    def contrast(self, found: Programs) -> Contrast | None:
        """The parameter by weighted least squares on these cells; None where they do not determine it."""
        cells = self._informative(found)
        columns = self._columns(cells, found)
        if columns is None or not set(self.parts) <= set(columns.names):
            return None
        scaled, lengths = self._scaled(columns, self.times_s(cells, columns))
        if not self._determined(columns, scaled):
            return None
        inverse: np.ndarray = np.linalg.pinv(scaled, rcond=TOLERANCE) / lengths[:, None]
        rows = [columns.names.index(part) for part in self.parts]
        return Contrast(cells=cells, coefficients=inverse[rows].sum(axis=0), common=self.value)

    def ideal(self, found: Programs, spread: Spread) -> dict[Cell, float] | None:
        """The c-optimal share of calls by cell, for device-seconds; None where the cells do not determine it."""
        from scipy.optimize import linprog

        cells = self._informative(found)
        columns = self._columns(cells, found)
        if columns is None or not set(self.parts) <= set(columns.names):
            return None
        times = self.times_s(cells, columns)
        scaled, lengths = self._scaled(columns, times)
        if not self._determined(columns, scaled):
            return None
        price = np.sqrt([float(spread.variance(c, spread.rounds)) for c in cells]) * np.sqrt(times * counts(cells))
        wanted = np.array([float(name in self.parts) for name in columns.names]) / lengths
        price, wanted = price / price.max(), wanted / np.abs(wanted).max()
        solved = linprog(
            np.concatenate([price, price]), A_eq=np.hstack([scaled.T, -scaled.T]), b_eq=wanted, bounds=(0, None)
        )
        if solved.x is None:
            return None
        u = np.abs(solved.x[: len(cells)] - solved.x[len(cells) :])
        calls = u * np.sqrt([float(spread.variance(c, spread.rounds)) for c in cells]) / np.sqrt(times * counts(cells))
        shares = calls / calls.sum()
        return {cell: float(share) for cell, share in zip(cells, shares, strict=True) if share > 1e-6}

    def times_s(self, cells: Sequence[Cell], columns: Design) -> np.ndarray:
        """Seconds of one call of each cell: measured, else by the law."""
        fitted = columns.matrix @ self._values(columns.names)
        least = self.table.latency_s.mean(axis=1).min() / 4
        measured = [self.table.row(cell) for cell in cells]
        return np.array(
            [max(f, least) if m is None else m.mean() for f, m in zip(fitted.tolist(), measured, strict=True)]
        )

    def columns_of(self, found: Programs) -> Design | None:
        """Columns of the law for all cells of a candidate."""
        return self._columns(found.cells, found)

    def _informative(self, found: Programs) -> tuple[Cell, ...]:
        """Without the cells that enter no fit: those that XLA runs in the calling thread."""
        inline = {cell for cell, facts in self.table.facts.items() if facts is not None and facts.inline}
        return tuple(cell for cell in found.cells if cell not in inline and cell.strategy == self.strategy)

    def _columns(self, cells: Sequence[Cell], found: Programs) -> Design | None:
        if not cells or undefined(self.law.law, cells, found.facts, cores=self.table.cores):
            return None
        columns = design(self.law.law, cells, found.facts, cores=self.table.cores, spread=self.table.spread)
        known = {*self.law.design.names, "c0_probe"}
        return columns if set(columns.names) <= known else None

    def _values(self, names: Sequence[str]) -> np.ndarray:
        """Parameters of the pilot; a probe's constant, where none was measured, is the program's."""
        pilot = dict(zip(self.law.design.names, self.law.values.mean(axis=0).tolist(), strict=True))
        pilot.setdefault("c0_probe", pilot.get("c0", 0.0))
        return np.array([pilot[name] for name in names])

    @staticmethod
    def _scaled(columns: Design, times_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows over the cells' times (weights 1/T²), columns of unit length, and those lengths."""
        weighted = columns.matrix / times_s[:, None]
        lengths = np.linalg.norm(weighted, axis=0)
        return weighted / lengths, lengths

    def _determined(self, columns: Design, scaled: np.ndarray) -> bool:
        if len(self.parts) == 1:
            return identify(replace(columns, matrix=scaled)).identified[self.name]
        wanted = np.array([float(name in self.parts) for name in columns.names])
        _, singular, right = np.linalg.svd(scaled, full_matrices=False)
        kept = right[singular > TOLERANCE * singular[0]]
        wanted = wanted / np.linalg.norm(columns.matrix, axis=0)
        return bool(np.linalg.norm(wanted - kept.T @ (kept @ wanted)) <= TOLERANCE * np.linalg.norm(wanted))


def find_parameter(table: LaunchTable, strategy: str, fits: LawFits, name: str) -> ParameterTarget:
    """Name a parameter of the law that reports parameters.

    Raises
    ------
    UnknownParameter
        If it has none of that name.
    """
    law = next((law for law in fits.laws if law.name == fits.parameters_of), None)
    if law is None:
        raise UnknownParameter(f"no law could be fitted to {strategy!r}, so it has no parameters.")
    if name not in fits.parameters:
        raise UnknownParameter(
            f"{name!r} is neither break-even nor optimum nor a parameter of the law {law.name!r}, which has "
            f"{', '.join(fits.parameters)}."
        )
    parts = name.split(" + ")
    values = dict(zip(law.design.names, law.values.mean(axis=0).tolist(), strict=True))
    return ParameterTarget(
        table=table, strategy=strategy, law=law, name=name, value=sum(values[part] for part in parts)
    )
