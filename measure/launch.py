"""One measuring process seen from its parent: how it is started, what it says, and how it ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from ..data.schema import Failure
from .devices import MEASURING, child_environment
from .endings import name_of
from .out_of_memory import kills
from .processes.blame import WAITING
from .processes.whereabouts import Whereabouts
from .protocol import STOP, Decoder, Message, Request
from .userfile import is_user_file, printable

OUT_OF_MEMORY = "was ended by SIGKILL: memory ran out, says the kernel's count of such ends"
_TAIL_BYTES = 8192
_QUOTED = 400
_SLICE_S = 0.5


class Child:
    """A measuring process of this host, a ``group.Rank``; in its own process group, ended with all it started.

    What it prints goes to a temporary file; the end of that is quoted when it dies. A folder for what a profiler writes
    is made here, and removed here however the child ends.
    """

    def __init__(self, request: Request) -> None:
        self._scratch = contextlib.ExitStack()
        if request.only_trace:
            # Whatever still runs of the group may write into it until it has gone.
            folder = tempfile.TemporaryDirectory(prefix="breakeven-trace-", ignore_cleanup_errors=True)
            request = msgspec.structs.replace(request, scratch=self._scratch.enter_context(folder))
        self._request = request
        self._doing = Whereabouts()
        self._decoder = Decoder()
        self._ended = self._stopped = False
        self._memory_kills = kills()
        self._prints = tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit of this context manager

    def __enter__(self) -> Self:
        plan = self._request.plan
        self._process = subprocess.Popen(
            # -P: a clone of the repository in the current folder must not stand before the installed package.
            [sys.executable, "-P", "-m", f"{__package__}.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._prints,
            bufsize=0,
            # By the launch's name its processes are told from those of others.
            env={
                **child_environment(plan.platform, plan.visible_devices // plan.processes),
                MEASURING: self._request.launch,
            },
            # Ctrl-C at the terminal is for the parent, which then ends the group.
            process_group=0,
        )
        self._say(msgspec.json.encode(self._request) + b"\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._scratch.close()
        for pipe in (self._process.stdin, self._process.stdout, self._prints):
            assert pipe is not None
            pipe.close()

    @property
    def rank(self) -> int:
        """Its place among the processes of the launch."""
        return self._request.rank

    def fileno(self) -> int:
        """Descriptor that is readable when ``take`` has something to return."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def take(self) -> Sequence[Message] | None:
        """What it said since the last call; when it died, a ``Failure`` for what it was doing; then None."""
        if self._ended:
            return None
        data = os.read(self.fileno(), 1 << 16)
        if data:
            said = list(self._decoder.feed(data))
            for message in said:
                self._doing.note(message)
            return said
        self._ended = True
        return None if self._doing.finished else [self._failure()]

    def answer(self) -> None:
        """Let it go on after a ``Round``."""
        self._say(b"\n")

    def stop(self) -> None:
        """Have it print where it is, and end."""
        if not self._ended:
            self._stopped = True
            # Not yet waited for, so the number is still its own.
            os.kill(self._process.pid, STOP)

    def _say(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(data)

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(timeout=_SLICE_S)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        if code == -signal.SIGKILL and (self._memory_kills or 0) < (kills() or 0):
            return OUT_OF_MEMORY
        return f"was ended by {name_of(-code)}" if code < 0 else f"exited with code {code}"

    def _failure(self) -> Failure:
        """What the step under way cost."""
        lines = self._last_prints()
        last_stack = max((i for i, line in enumerate(lines) if _STACK.match(line)), default=0)
        frames = [found for line in lines[last_stack:] if (found := _FRAME.search(line))]
        if not self._stopped:
            error, message = "Died", f"the process {self._how_it_ended()}{_quoted(lines)}"
        elif frames and _WAITS.search(frames[0][1]) and not is_user_file(frames[0][1]):
            error, message = WAITING, "it waited for the others"
        else:
            error, message = "Hung", f"it was ended{_quoted(lines)}"
        return Failure(
            sweep=self._request.sweep,
            launch=self._request.launch,
            stage=self._doing.step.stage,
            error=error,
            message=message,
            cell=self._doing.cell,
            frames=tuple(frame.group() for frame in reversed(frames) if is_user_file(frame[1])),
        )

    def _last_prints(self) -> list[str]:
        size = self._prints.seek(0, os.SEEK_END)
        self._prints.seek(max(0, size - _TAIL_BYTES))
        return self._prints.read().decode(errors="replace").splitlines()


def local_ranks(request: Request) -> Sequence[Child]:
    """All processes of a launch on this host; ``request`` is that of the first."""
    plan = request.plan
    if plan.processes == 1:
        return (Child(request),)
    coordinator = f"127.0.0.1:{free_port()}"
    each = plan.visible_devices // plan.processes
    return tuple(
        Child(
            msgspec.structs.replace(
                request,
                rank=rank,
                coordinator=coordinator,
                # Forced devices are a process's own; others are shared out.
                local_devices=None if plan.platform == "cpu" else tuple(range(rank * each, (rank + 1) * each)),
            )
        )
        for rank in range(plan.processes)
    )


def free_port() -> int:
    """A port that is free now on all addresses; the coordinator of the children takes it a moment later."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def _quoted(lines: list[str]) -> str:
    """The last that was printed, or the reason why the runtime ended the process; fit for a terminal."""
    said = [line for line in lines if line.strip() and not _NO_NEWS.match(line)]
    reasons = [line for line in said if _ABSL_FATAL.match(line)]
    return f"; the last it printed: {printable((reasons or said)[-1].strip())[:_QUOTED]}" if said else ""


_STACK = re.compile(r"Stack \(most recent|Current thread 0x|Thread 0x")
_FRAME = re.compile(r'File "([^"]+)", line \d+ in .+')
_WAITS = re.compile(r"/jax/_src/|/jaxlib/|measure/processes/team\.py$")
"""Innermost file of a process that waits for others: in a collective, or at the coordination service; no user's file
in a folder of that name."""
_NO_NEWS = re.compile(
    r"Fatal Python error|(Current thread|Thread) 0x|Stack \(most recent|Extension modules|"
    r'\s*File "|\s*\.\.\.|\[Gloo\] Rank'
)
"""What the fault handler prints, and gloo when all is well."""
_ABSL_FATAL = re.compile(r"F\d{4} \d\d:\d\d:\d\d")
