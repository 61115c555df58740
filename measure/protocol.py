"""What a measuring process and its parent say to each other: one JSON object a line.

The child speaks in record lines and in the messages below; the parent answers each ``Round`` with one line, so
that it decodes, writes and syncs while the child waits and nothing of ours runs beside a measurement.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import msgspec

from ..data.schema import Closing, Failure, Launch, Plan, Program, Trace, Visit
from ..model.cell import Cell

STOP = signal.SIGUSR2
"""Has a child print where it is, and end."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is asked to do.

    Attributes
    ----------
    sweep, launch, number : identifiers, and the launch's place in the sweep (it varies the random order)
    barred : cells to leave out
    ends_at : ``time.monotonic()`` (one clock for all processes) after which no round is begun; None: no limit
    only_compile : stop when everything is compiled and timed once
    only_trace : measure nothing, but trace the workload's programs on their devices
    scratch : folder for the profiler's files, which the parent removes; None: one of the child's own
    parent : process that must stay alive
    rank : place of the child among the plan's processes; the first one leads
    coordinator : ``host:port`` where several processes meet; None: one process
    local_devices : devices of this host that are the child's, by their numbers; None: those that it sees
    host_salt : with it names of hosts are hashed in what is recorded; None: they are recorded
    """

    plan: Plan
    sweep: str
    launch: str
    number: int = 0
    barred: tuple[Cell, ...] = ()
    ends_at: float | None = None
    only_compile: bool = False
    only_trace: bool = False
    scratch: str | None = None
    parent: int = 0
    rank: int = 0
    coordinator: str | None = None
    local_devices: tuple[int, ...] | None = None
    host_salt: str | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="step", omit_defaults=True):
    """Said before anything that may fail: should the child die or hang, this is what it cost."""

    stage: str
    cell: Cell | None = None
    program: int | None = None


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="ready"):
    """All programs are compiled: how many, the calls chosen for every visit, and what a round will take."""

    programs: int
    workloads: int
    calls: int
    round_s: float


class Starts(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="starts"):
    """When the calls of a visit began, on the monotonic clock of the host; said where there are several processes."""

    program: int
    round: int
    starts_ns: tuple[int, ...]


class Round(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="round"):
    """A round ended; its visits were sent before."""

    round: int
    complete: bool


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="finished"):
    """The child is done; without it, its end is a death, whatever its exit code."""


Message = Step | Ready | Starts | Round | Finished | Launch | Program | Visit | Trace | Failure | Closing


class Channel:
    """The child's end. A forked copy of the process finds it closed and ends when it tries to speak."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._encoder = msgspec.json.Encoder()
        self._open = True
        os.register_at_fork(after_in_child=self._close)

    def send(self, *messages: Message) -> None:
        """Write messages, each a line."""
        if not self._open:
            os._exit(1)
        data = b"".join(self._encoder.encode(message) + b"\n" for message in messages)
        while data:
            data = data[os.write(self._write, data) :]

    def wait(self) -> bool:
        """Wait for the parent's answer; False when the parent is gone."""
        return bool(os.read(self._read, 1))

    def _close(self) -> None:
        self._open = False
        os.close(self._write)
        os.close(self._read)


class Decoder:
    """The parent's end: bytes in any pieces to whole messages."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(Message)
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are complete; a piece of a line waits for the rest of it."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield self._decoder.decode(line)
