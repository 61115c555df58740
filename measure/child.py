"""The measuring process: ``python -m breakeven.measure.child`` with a ``Request`` on standard input."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys

import msgspec

from .endings import leave_to_parent
from .out_of_memory import volunteer
from .protocol import STOP, Channel, Request
from .worker import Worker


def main() -> None:
    """Do what standard input asks, and end."""
    channel = _private_channel()
    request = msgspec.json.decode(_read_line(0), type=Request)
    _die_with(request.parent)
    leave_to_parent()
    volunteer()
    faulthandler.enable()
    faulthandler.register(STOP, all_threads=False, chain=True)
    Worker(request, channel).run()
    # Skips the teardown of backends and of whatever the user's code left running.
    os._exit(0)


def _private_channel() -> Channel:
    """Keep descriptor 1 for the protocol and give prints, also those of C code, to stderr."""
    private = os.dup(1)
    os.dup2(2, 1)
    return Channel(private, 0)


def _read_line(descriptor: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        if not (piece := os.read(descriptor, 1 << 16)):
            os._exit(1)
        line += piece
    return line


def _die_with(parent: int) -> None:
    """On Linux ask to be killed with the parent; elsewhere the next answer that does not come ends this process."""
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


if __name__ == "__main__":
    main()
