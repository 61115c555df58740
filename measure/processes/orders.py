"""What the first process of a launch tells the others to do next; they decide nothing by themselves."""

from __future__ import annotations

import msgspec

from ...model.cell import Cell


class Build(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Build the program of a cell, to be known by a number."""

    program: int
    cell: Cell


class Time(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Visit a program; ``round`` is negative while calibrating, and the times are then not kept."""

    program: int
    round: int
    position: int
    warmups: int
    calls: int


class EndRound(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Say what was timed, and wait until the record holds it."""

    round: int


class Settle(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """All is built: from now on nothing of ours may run beside the calls."""


Order = Build | Time | EndRound | Settle
