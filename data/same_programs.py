"""Whether launches measured the same programs of a workload: times of different ones are never pooled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..model.cell import Cell
from ..model.program import Collective
from .machines import settings
from .schema import Launch, Program

CHANGED = "the program was changed"


class Unlike(NamedTuple):
    """A cell of which launches measured different programs; what they exchange, in words, where that differs."""

    cell: Cell
    one: str | None = None
    other: str | None = None

    def told(self, one: str, other: str) -> str:
        """In words; ``one`` and ``other`` say whose program it is."""
        return f"{self.cell}: {CHANGED if self.one is None else f'{one} {self.one}, {other} {self.other}'}"


@dataclass
class _Known:
    """Programs of one cell: what they exchange, and their fingerprints by the settings that they were lowered under."""

    collectives: set[str] = field(default_factory=set)
    fingerprints: dict[Hashable, set[str]] = field(default_factory=lambda: defaultdict(set))


Programs = Mapping[Cell, _Known]


def programs_of(launches: Iterable[Launch], programs: Iterable[Program]) -> Programs:
    """Index the programs that a user wrote: those of the workload, and a local control that the user gave."""
    under = {(line.sweep, line.launch): settings(line) for line in launches}
    known: dict[Cell, _Known] = defaultdict(_Known)
    for program in programs:
        if program.cell.role != "workload" and (program.cell.role, program.control) != ("local", "user"):
            continue
        cell = known[program.cell]
        if program.facts is not None and program.facts.collectives_known:
            cell.collectives.add(_told(program.facts.collectives))
        if program.fingerprint is not None and (key := (program.sweep, program.launch)) in under:
            cell.fingerprints[under[key]].add(program.fingerprint)
    return known


def unlike(one: Programs, other: Programs, *, text: bool = True) -> Unlike | None:
    """Say for which cell two groups of launches measured different programs; None where nothing says that they did.

    Parameters
    ----------
    one, other : from ``programs_of``
    text : whether the programs' fingerprints are compared too, and not only what they exchange

    Notes
    -----
    A group whose own launches differ tells nothing: its program is another one at every start. Fingerprints are
    compared under the same versions and settings only, since others lower the same program to another text.
    """
    for cell in (cell for cell in other if cell in one):
        a, b = one[cell], other[cell]
        if _clash(a.collectives, b.collectives):
            return Unlike(cell, *a.collectives, *b.collectives)
        alike = a.fingerprints.keys() & b.fingerprints.keys()
        if text and any(_clash(a.fingerprints[key], b.fingerprints[key]) for key in alike):
            return Unlike(cell)
    return None


def _clash(one: set[str], other: set[str]) -> bool:
    """Whether each is one thing, and not the same."""
    return len(one) == len(other) == 1 and one != other


def mixed(known: Programs) -> Unlike | None:
    """Say for which cell one group of launches holds several programs; None where nothing says that it does."""
    for cell, programs in known.items():
        if len(programs.collectives) > 1:
            return Unlike(cell, *sorted(programs.collectives)[:2])
        if any(len(found) > 1 for found in programs.fingerprints.values()):
            return Unlike(cell)
    return None


def _told(collectives: Iterable[Collective]) -> str:
    """``2 all-reduce of 4 bytes, 1 all-gather of 4,096 bytes``."""
    counts: Counter[tuple[str, int]] = Counter()
    unknown = set()
    for one in collectives:
        key = one.kind, one.message_bytes
        counts[key] += one.count or 0
        unknown |= {key} if one.count is None else set()
    return (
        ", ".join(
            f"{'any number of' if key in unknown else f'{count:,}'} {key[0]} of {key[1]:,} bytes"
            for key, count in sorted(counts.items())
        )
        or "no collective"
    )
