"""One launch seen from the parent: the measuring process, its messages, and the watchdog."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import msgspec

from ..data.schema import Failure, Program
from ..model.cell import Cell
from .devices import child_environment
from .protocol import Decoder, Finished, Message, Request, Round, Step
from .userfile import is_user_file

_TAIL_BYTES = 8192
_SLICE_S = 0.5


class Child:
    """A measuring process in its own process group, ended with all it started when the block is left.

    What it prints goes to a temporary file; the end of that is quoted when it dies.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._step = Step(stage="launch")
        self._cells: dict[int, Cell] = {}
        self._finished = False
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
            env=child_environment(plan.platform, plan.visible_devices),
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
        for pipe in (self._process.stdin, self._process.stdout, self._prints):
            assert pipe is not None
            pipe.close()

    def messages(self) -> Iterator[Message]:
        """Yield what the child says until it ends; if it dies or falls silent, a ``Failure`` for what it was doing.

        Each ``Round`` is answered when the next message is asked for: the child waits until then.
        """
        decoder = Decoder()
        heard = time.monotonic()
        while True:
            data = self._read()
            if data:
                heard = time.monotonic()
                for message in decoder.feed(data):
                    self._note(message)
                    yield message
                    if isinstance(message, Round):
                        self._say(b"\n")
            elif data is None and time.monotonic() - heard < self._request.plan.step_timeout_s:
                continue
            elif data is None:
                limit = self._request.plan.step_timeout_s
                yield self._failure("Hung", f"no sign of life for {limit:g} s; the process was ended")
                return
            else:
                if not self._finished:
                    yield self._failure("Died", f"the process {self._how_it_ended()}")
                return

    def _read(self) -> bytes | None:
        """Bytes; none at the end; None when nothing came for a while."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        ready, _, _ = select.select([descriptor], [], [], min(_SLICE_S, self._request.plan.step_timeout_s))
        return os.read(descriptor, 1 << 16) if ready else None

    def _say(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(data)

    def _note(self, message: Message) -> None:
        if isinstance(message, Step):
            self._step = message
        elif isinstance(message, Program):
            self._cells[message.program] = message.cell
        elif isinstance(message, Finished):
            self._finished = True

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(timeout=_SLICE_S)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    def _failure(self, error: str, message: str) -> Failure:
        """What the step under way cost."""
        step, lines = self._step, self._last_prints()
        cell = step.cell if step.program is None else self._cells[step.program]
        frames = [found.group() for line in lines if (found := _FRAME.search(line)) and is_user_file(found[1])]
        said = [line for line in lines if line.strip() and not _FAULT_HANDLER.match(line)]
        quoted = f"; the last it printed: {said[-1].strip()}" if said else ""
        return Failure(
            sweep=self._request.sweep,
            launch=self._request.launch,
            stage=step.stage,
            error=error,
            message=f"{message}{quoted}",
            cell=cell,
            frames=tuple(reversed(frames)),
        )

    def _last_prints(self) -> list[str]:
        size = self._prints.seek(0, os.SEEK_END)
        self._prints.seek(max(0, size - _TAIL_BYTES))
        return self._prints.read().decode(errors="replace").splitlines()


_FRAME = re.compile(r'File "([^"]+)", line \d+ in .+')
_FAULT_HANDLER = re.compile(r'Fatal Python error|(Current thread|Thread) 0x|\s*File "|Extension modules|\s*\.\.\.')
