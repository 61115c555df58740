"""One program from within: built, compiled and called for the first time by all processes that hold its mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..data.schema import Failure
from ..model.cell import Cell
from .processes.agreement import Elsewhere, Vote, agree
from .processes.team import Team
from .protocol import Channel, Request, Step
from .userfile import user_frames, words_of
from .workload import MeasureError

if TYPE_CHECKING:
    from .programs import Made, Programs


def failure_of(request: Request, stage: str, error: BaseException, cell: Cell | None = None) -> Failure:
    """The line of the record for an exception; frames are the user's own."""
    return Failure(
        sweep=request.sweep,
        launch=request.launch,
        stage=stage,
        error=type(error).__name__,
        message=words_of(error),
        cell=cell,
        frames=() if isinstance(error, MeasureError) else user_frames(error),
    )


@dataclass(frozen=True)
class Builder:
    """Makes programs and says each step before it is done."""

    request: Request
    channel: Channel
    team: Team
    programs: Programs

    def build(self, cell: Cell) -> Made | Failure | None:
        """The program; what went wrong, in this process or another; or None where this process holds no part of it."""
        from .controls import ControlRefused
        from .processes.meshes import processes_of
        from .programs import CALL

        members = processes_of(cell.num_devices)
        if self.team.rank not in members:
            return None
        stage = "build"

        def together(vote: Vote) -> Failure | None:
            return agree(self.team, members, vote, otherwise=self._failure(stage, MeasureError(), cell))

        def announce(next_stage: str, fingerprint: str | None = None) -> None:
            nonlocal stage
            if next_stage == CALL:
                if failure := together(Vote(next=CALL, program=fingerprint)):
                    raise Elsewhere(failure)
                return
            stage = next_stage
            self.channel.send(Step(stage=stage, cell=cell))

        try:
            announce("build")
            made = self.programs.make(cell, announce)
            failure = together(Vote(next="done"))
        except Elsewhere as elsewhere:
            failure = elsewhere.failure
        except ControlRefused as error:
            failure = together(Vote(next="fail", failure=self._failure("control", error, cell)))
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, sys.exit included
            failure = together(Vote(next="fail", failure=self._failure(stage, error, cell)))
        else:
            if failure is None:
                return made
        self.programs.made.pop(cell, None)
        return failure

    def _failure(self, stage: str, error: BaseException, cell: Cell) -> Failure:
        return failure_of(self.request, stage, error, cell)
