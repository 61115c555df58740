"""How much of a program's work more devices do not take off: what each of them does although another does it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .cell import Cell, devices
from .control import OPERATIONS_PER_MESSAGE_BYTE
from .program import ProgramFacts

TOO_MUCH = 0.1
"""Share from which it is worth a word: an update of all parameters on every device is mostly less."""


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """Share of the operations of ``fewest`` devices' program that every device of ``cell`` does again."""

    cell: Cell
    fewest: int
    share: float

    def __str__(self) -> str:
        work = "all of the work" if self.share > 0.99 else f"{100 * self.share:.0f} % of the work"
        return (
            f"{work} on {devices(self.fewest)} is done again by each of {self.cell.num_devices} (operations, size "
            f"{self.cell.size:,}): inputs, or values between them, are not split over the devices"
        )


def repeated_work(facts: Mapping[Cell, ProgramFacts | None]) -> Repeated | None:
    """Look for work that is not divided in the programs of one strategy of a strong sweep.

    Parameters
    ----------
    facts : of its workload cells, at any sizes and counts

    Returns
    -------
    Repeated or None
        At the largest count, of the size whose work is divided best. None where that repeats less than ``TOO_MUCH``, or
        no size has two counts whose operations are known: branches of unknown length and custom calls hide some, and
        padding is work of another kind.

    Notes
    -----
    With s the share that is repeated, each of n devices does f(n) = f(m) (s + (1 - s) m / n) operations, but for those
    of the reductions, one a byte of their messages at most.
    """
    known = {cell: flops for cell, one in facts.items() if (flops := _own_operations(one)) is not None}
    if not known:
        return None
    largest = max(cell.num_devices for cell in known)
    found = []
    for cell in (cell for cell in known if cell.num_devices == largest):
        first = min((c for c in known if c.size == cell.size), key=lambda c: c.num_devices)
        part = first.num_devices / largest
        if part < 1:
            share = (known[cell] / known[first] - part) / (1 - part)
            found.append(Repeated(cell=cell, fewest=first.num_devices, share=min(share, 1.0)))
    best = min(found, key=lambda one: one.share, default=None)
    return best if best is not None and best.share >= TOO_MUCH else None


def _own_operations(facts: ProgramFacts | None) -> float | None:
    """Operations of a program without its reductions'; None where not all are known."""
    if facts is None or not facts.flops or facts.unknown_trip_counts or facts.custom_calls or facts.padded_share:
        return None
    if any(one.count is None for one in facts.collectives):
        return None
    message = sum((one.count or 0) * one.message_bytes for one in facts.collectives)
    own = facts.flops - OPERATIONS_PER_MESSAGE_BYTE * message
    return own if own > 0 else None
