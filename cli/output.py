"""The two channels: the answer on stdout, everything else on stderr."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterable
from typing import Any, NoReturn

import typer

DECIDED, UNDECIDED, BAD_INPUT = 0, 1, 2


def emit(text: str) -> None:
    """Print an answer. A reader that has left (``| head``) is no error."""
    try:
        print(text, flush=True)
    except OSError as error:
        # Python flushes stdout once more when it exits: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise


def emit_json(value: Any) -> None:
    """Print one object in SI units."""
    import msgspec

    emit(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def note(text: str) -> None:
    """Say something that is not the answer."""
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Show one warning line."""
    note(f"warning: {text}")


def warn_all(texts: Iterable[str]) -> None:
    """Show an answer's own warnings."""
    for text in texts:
        warn(text)


def bad_argument(option: str, message: str) -> NoReturn:
    """Stop with exit code 2, naming the option."""
    raise typer.BadParameter(message, param_hint=option)


def interrupted(interruption: KeyboardInterrupt) -> NoReturn:
    """Stop after Ctrl-C or a signal like it, saying what is left and how to go on; 128 and its number, as shells do."""
    note(str(interruption) or "interrupted; repeat the command to go on.")
    raise typer.Exit(128 + getattr(interruption, "signal", signal.SIGINT))


def show_warnings() -> None:
    """Let the library's warnings appear as one line each, without file names."""
    warnings.showwarning = _show


def _show(message: Warning | str, *_where: Any, **_more: Any) -> None:
    warn(str(message))
