"""Whether the bus bandwidth of a log belongs to the ranks that are said.

A benchmark that prints algorithm and bus bandwidth multiplied one by a factor of its own number of ranks
(nccl-tests, doc/PERFORMANCE.md): 2 (n - 1) / n for all-reduce, (n - 1) / n for all-gather, reduce-scatter and
all-to-all, 1 for what has one source or goes in pairs. Ranks that never met print 0.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from .delimited import Table
from .foreign import Measurement, timed_kind
from .numerals import is_number
from .store import RecordError

TOLERANCE = 0.01
"""Of the factor, beside the rounding of what was printed."""

ROUNDS = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}
"""How often each rank passes on all but its own part."""


def check_bandwidths(rows: Sequence[Measurement], table: Table, notes: Set[str]) -> None:
    """Compare ``busbw`` over ``algbw`` with the ranks of each row that times a collective.

    Columns that are notes are passed over.

    Raises
    ------
    RecordError
        Naming a line where they contradict each other.
    """
    timed = [row for row in rows if row.cell.role == "chain" and row.cell.num_devices > 1]
    pairs = [
        (name, other)
        for name in table.header
        if "busbw" in name.lower()
        for other in table.header
        if other.lower() == name.lower().replace("busbw", "algbw") and not {name, other} & notes
    ]
    if not timed or not pairs:
        return
    kind = timed_kind(table, rows)
    at = {row.line: i for i, row in enumerate(table.rows)}
    found = []
    for name, other in pairs:
        bus, alg = table.plain(name), table.plain(other)
        for row in timed:
            i = at[row.line]
            if is_number(bus[i]) and is_number(alg[i]) and float(alg[i]) > 0:
                found.append(_Printed(row.line, row.cell.num_devices, name, other, bus[i], alg[i]))
    wrong = [one for one in found if not one.fits(kind)]
    if wrong:
        worst = min(wrong, key=lambda one: one.rounding)  # the one that is printed most precisely
        raise RecordError(f"{table.path}, line {worst.line}: {worst.words(kind)}")


class _Printed(NamedTuple):
    """The two bandwidths of one row, as they are printed."""

    line: int
    num_devices: int
    name: str
    other: str
    bus: str
    alg: str

    @property
    def factor(self) -> float:
        return float(self.bus) / float(self.alg)

    @property
    def rounding(self) -> float:
        """How far the factor may be off because digits were left out."""
        return (_rounding(self.bus) + self.factor * _rounding(self.alg)) / float(self.alg)

    def fits(self, kind: str) -> bool:
        expected = _factor(kind, self.num_devices)
        return abs(self.factor - expected) <= TOLERANCE * expected + self.rounding

    def words(self, kind: str) -> str:
        n = self.num_devices
        if self.factor == 0:
            return (
                f"{self.name} is 0 on {n} ranks, as where processes did not find each other (a build without MPI), "
                f"each its own rank 0. Measure again, or say --columns note={self.name} if it was never measured."
            )
        return (
            f"{self.name}/{self.other} is {self.factor:.4g}, but {kind} on {n} ranks gives {_factor(kind, n):.4g}"
            f"{_said(self.factor, kind)}. Name the column of ranks with --columns devices=NAME, the kind with "
            f"collective=NAME, or say note={self.name} to pass it over."
        )


def _factor(kind: str, num_devices: int) -> float:
    return ROUNDS[kind] * (num_devices - 1) / num_devices if kind in ROUNDS else 1.0


def _said(factor: float, kind: str) -> str:
    """How many ranks a factor belongs to, of this kind or another."""
    found = []
    for name, rounds in {kind: ROUNDS.get(kind, 0), "all-reduce": 2, "all-gather": 1}.items():
        left = 1 - factor / rounds if rounds else 0
        ranks = round(1 / left) if left > 1e-3 else 0
        if ranks > 1 and abs(ranks * left - 1) < 2 * TOLERANCE:
            found.append(f"{name} on {ranks}")
    return f" ({' or '.join(found)} gives that)" if found else ""


def _rounding(text: str) -> float:
    """Half a unit of the last digit printed."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])
