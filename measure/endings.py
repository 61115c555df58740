"""Signals that end a sweep: what Ctrl-C does, SIGTERM and a closed terminal do too.

Whoever ends a job (a batch system, ``kill``, a connection that is lost) sends one of these first: the children are
ended, the record is closed, and the process says what it holds.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""Signals that end like Ctrl-C does. The last is what batch systems are asked to send some time before a limit."""


class Ended(KeyboardInterrupt):
    """One of ``ENDING`` came; ``signal`` says which."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = number


@contextlib.contextmanager
def like_interrupts() -> Iterator[None]:
    """Within the block a signal that would end the process at once raises ``Ended`` instead.

    One that is ignored (``nohup``) or handled by whoever calls stays so. Outside the main thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    changed = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        # A second one would disturb the ending.
        for each in changed:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(number)

    for number in changed:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def leave_to_parent() -> None:
    """Of a measuring process: its parent decides what such a signal to both of them means, and ends it.

    What the user's code starts is ended by it as usual, whether forked or a new program.
    """
    for number in ENDING:
        # Not SIG_IGN: that would pass on to programs.
        signal.signal(number, _leave)
    # Held back meanwhile, for one that comes while a copy is made would meet the handler there, or be lost.
    os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_end_as_usual)


def die_with(parent: int) -> None:
    """On Linux ask to be killed with the parent, a process number."""
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def _leave(_number: int, _frame: FrameType | None) -> None:
    pass


def _hold_back() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def _end_as_usual() -> None:
    for number in ENDING:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.SIG_DFL)
    _let_through()


def name_of(number: int) -> str:
    """A signal's name; most real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def signal_of(interruption: BaseException) -> int:
    """Which signal an interruption stands for; SIGINT where it does not say."""
    return getattr(interruption, "signal", signal.SIGINT)
