"""A short child process that starts JAX and imports a user's file, so that neither happens in this one.

What a file does at its top (handlers of signals, another folder, threads, filters of warnings, settings of JAX) stays
in the child, which is ended with all that it started once it has answered.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from .endings import name_of

_SLICE_S = 0.5


class Informant:
    """The child, seen from its parent: it says the devices in one line of JSON and the workload in the next.

    Until the first line what it prints is kept; from then on it goes where this process's stderr goes.

    Parameters
    ----------
    environment : of the child
    workload : a user's, as the command line has it; empty: nothing is imported
    """

    def __init__(self, environment: Mapping[str, str], workload: str = "") -> None:
        self._environment, self._workload = environment, workload
        self._heard = b""
        self._prints = tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit of this context manager

    def __enter__(self) -> Self:
        shown = _stderr()
        try:
            self._process = subprocess.Popen(
                # -P: what lies in the current folder must not stand before jax and the installed package.
                [sys.executable, "-P", "-m", f"{__package__}.informing", self._workload, str(shown), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._prints,
                pass_fds=(shown,),
                bufsize=0,
                env=self._environment,
                # Ctrl-C at the terminal is for the parent, which then ends the group.
                process_group=0,
            )
        finally:
            os.close(shown)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # it may have left its group
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._prints.close()

    def line(self, timeout_s: float = math.inf) -> bytes | None:
        """The next line; None when it ended without.

        Raises
        ------
        TimeoutError
            If it says nothing for so long.
        """
        assert self._process.stdout is not None
        ends = time.monotonic() + timeout_s
        while b"\n" not in self._heard:
            # Asked first: what it said before it ended can still be read. A copy of it may keep the pipe open.
            ended = self._process.poll() is not None
            left = 0.0 if ended else max(0.0, min(_SLICE_S, ends - time.monotonic()))
            ready, _, _ = select.select([self._process.stdout], [], [], left)
            piece = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            self._heard += piece
            if not piece and (ready or ended):
                return None
            if not piece and time.monotonic() >= ends:
                raise TimeoutError
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def last_print(self) -> str:
        """The last line that it printed before its first answer."""
        self._prints.seek(0)
        return (self._prints.read().decode(errors="replace").strip().splitlines() or ["no message"])[-1]

    def how_it_ended(self) -> str:
        """For a message, after ``line`` returned None."""
        try:
            code = self._process.wait(timeout=_SLICE_S)
        except subprocess.TimeoutExpired:
            return "closed all its files"
        return f"was ended by {name_of(-code)}" if code < 0 else f"exited with code {code}"


def _stderr() -> int:
    """A descriptor of its own for where stderr goes; for nowhere, where it is closed."""
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
