"""The measuring process: ``python -m breakeven.measure.child`` with a ``Request`` on standard input."""

from __future__ import annotations

import faulthandler
import os

import msgspec

from .endings import die_with, leave_to_parent
from .out_of_memory import volunteer
from .protocol import STOP, Channel, Request
from .worker import Worker


def main() -> None:
    """Do what standard input asks, and end."""
    request = msgspec.json.decode(_read_line(0), type=Request)
    channel = _private_channel()
    die_with(request.parent)  # elsewhere than on Linux the next answer that does not come ends this process
    leave_to_parent()
    volunteer()
    faulthandler.enable()
    faulthandler.register(STOP, all_threads=False, chain=True)
    Worker(request, channel).run()
    # Skips the teardown of backends and of whatever the user's code left running.
    os._exit(0)


def _private_channel() -> Channel:
    """Keep the parent's pipes to ourselves, under numbers that no program started from here inherits.

    Prints, also those of C code, go to stderr; what reads standard input finds its end.
    """
    read, write = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Channel(write, read)


def _read_line(descriptor: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        if not (piece := os.read(descriptor, 1 << 16)):
            os._exit(1)
        line += piece
    return line


if __name__ == "__main__":
    main()
