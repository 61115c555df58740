"""What a measuring process is doing, from what it said last."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...data.schema import Program
from ...model.cell import Cell
from ..protocol import Finished, Message, Step


@dataclass
class Whereabouts:
    """Follows the messages of one process.

    Attributes
    ----------
    step : announced last
    cells : of the programs it made
    finished : whether it said so
    """

    step: Step = field(default_factory=lambda: Step(stage="launch"))
    cells: dict[int, Cell] = field(default_factory=dict)
    finished: bool = False

    def note(self, message: Message) -> None:
        """Take one message."""
        if isinstance(message, Step):
            self.step = message
        elif isinstance(message, Program):
            self.cells[message.program] = message.cell
        elif isinstance(message, Finished):
            self.finished = True

    @property
    def cell(self) -> Cell | None:
        """The cell of the step under way."""
        return self.step.cell if self.step.program is None else self.cells[self.step.program]
