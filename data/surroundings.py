"""What a record says about the machine around each launch, one object a launch: for ``show`` and ``diagnose``."""

from __future__ import annotations

import msgspec

from .schema import Closing, Machine
from .store import Record


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """One launch: what its processes found before it, and what happened while it measured.

    ``warmups``: first calls of a visit that it left out. ``closing``: None where the launch did not come to its end.
    """

    launch: str
    cores: int | None
    load_average: float | None
    warmups: int | None
    machines: tuple[Machine, ...]
    closing: Closing | None


def surroundings(record: Record) -> tuple[Surroundings, ...]:
    """Of every launch that says anything about its machines or how it ended, in file order."""
    closings = {(line.sweep, line.launch): line for line in record.closings}
    warmups = {(visit.sweep, visit.launch): visit.warmups for visit in record.visits}
    return tuple(
        Surroundings(
            launch=line.launch,
            cores=line.cores,
            load_average=line.load_average,
            warmups=warmups.get((line.sweep, line.launch)),
            machines=line.machines,
            closing=closings.get((line.sweep, line.launch)),
        )
        for line in record.launches
        if line.machines or (line.sweep, line.launch) in closings
    )
