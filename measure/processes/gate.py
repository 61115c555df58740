"""The barrier that the processes of a mesh pass before each call, and when each of them began it."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from .head_start import head_starts_s, wait
from .team import Team

if TYPE_CHECKING:
    from ...model.cell import Cell


class Gate:
    """Called before a call: waits for the others.

    Attributes
    ----------
    starts_ns : when each call began, on the clock that the processes of a host share
    """

    def __init__(self, team: Team, members: tuple[int, ...]) -> None:
        self._team, self._members = team, members
        ahead_s = head_starts_s([team.round_trips_s[rank] for rank in members])
        self._ahead_s = ahead_s[members.index(team.rank)]
        self._waited_s: list[float] = []
        self.starts_ns: list[int] = []

    def __call__(self) -> None:
        came = time.monotonic_ns()
        self._team.barrier(self._members)
        wait(self._ahead_s)
        self.starts_ns.append(time.monotonic_ns())
        self._waited_s.append((self.starts_ns[-1] - came) * 1e-9)

    @property
    def waited_s(self) -> float:
        """Median over the calls so far."""
        return statistics.median(self._waited_s)


def gate_of(team: Team, cell: Cell) -> Gate | None:
    """The gate of a cell's program; None where one process has its whole mesh and nobody is waited for."""
    if team.size == 1:
        return None
    from .meshes import processes_of

    members = processes_of(cell.num_devices)
    return Gate(team, members) if len(members) > 1 else None
