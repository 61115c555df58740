"""Before a program's first call, and after it, the processes that take part say to each other that all is well.

Without that a process whose part failed would leave the others waiting inside the call for ever.
"""

from __future__ import annotations

import msgspec

from ...data.schema import Failure
from .blame import root
from .team import Team


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """What one process is about to do, with which program (its fingerprint, where it has one), or why it cannot."""

    next: str
    failure: Failure | None = None
    program: str | None = None


class Elsewhere(BaseException):
    """Another process cannot go on with this program. No ``Exception``: no code on the way may take it for its own."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def agree(team: Team, members: tuple[int, ...], vote: Vote, *, otherwise: Failure) -> Failure | None:
    """Tell all members, and return what went wrong in any of them; None: all do the same.

    Parameters
    ----------
    team : of this process
    members : ranks that take part; each calls this equally often, until a failure is returned
    vote : of this process
    otherwise : a failure to fill in, should the processes be about to do different things

    Notes
    -----
    Different programs in place of one end the launch: whoever started the processes gave them different files or
    settings, and no other cell would be better.
    """
    votes = team.gather(vote, members, Vote)
    failures = [
        msgspec.structs.replace(one.failure, rank=rank) if team.size > 1 else one.failure
        for rank, one in zip(members, votes, strict=True)
        if one.failure is not None
    ]
    if failures:
        return root(failures, len(members)) if team.size > 1 else failures[0]
    if len({one.next for one in votes}) > 1:
        steps = ", ".join(f"rank {rank}: {one.next}" for rank, one in zip(members, votes, strict=True))
        return msgspec.structs.replace(
            otherwise, message=f"the processes do not build the same program; what each would do next: {steps}."
        )
    programs = [(rank, one.program) for rank, one in zip(members, votes, strict=True) if one.program is not None]
    if other := next((rank for rank, program in programs if program != programs[0][1]), None):
        return msgspec.structs.replace(
            otherwise,
            stage="launch",
            message=f"{otherwise.cell}: rank {other} has another program than rank {programs[0][0]}; all processes of "
            "a launch need the same file and the same settings (JAX_*, XLA_FLAGS).",
        )
    return None
