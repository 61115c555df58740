"""The two channels: the answer on stdout, everything else on stderr.

An answer that cannot be written is an error. What else is said has no reader to rely on: where stderr is closed, or
its terminal or disk is gone, it goes nowhere.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TextIO

import typer

DECIDED, UNDECIDED, BAD_INPUT = 0, 1, 2

_WORDS = {"µ": "u", "±": "+/-", "−": "-", "×": "x", "∞": "inf", "…": "...", "≤": "<=", "≥": ">=", "²": "^2"}
"""In place of what an output's encoding lacks, or the unit of a number would be lost."""


def emit(text: str) -> None:
    """Print an answer. A reader that has left (``| head``) is no error."""
    try:
        print(text, flush=True)
    except OSError as error:
        _give_up(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            raise


def emit_json(value: Any) -> None:
    """Print one object in SI units."""
    import msgspec

    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:
        # A file's name in another encoding, of which only escapes can be made.
        import json

        text = json.dumps(msgspec.to_builtins(value, str_keys=True), indent=2)
    emit(text)


def note(text: str) -> None:
    """Say something that is not the answer."""
    with expendable():
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def expendable() -> Iterator[None]:
    """Within the block, what stderr does not take (a closed terminal, a full disk) is lost, and nothing else is."""
    try:
        yield
    except OSError:
        _give_up(sys.stderr)


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


def open_channels() -> None:
    """Make stdout and stderr fit for what will be said: any text, also where the shell closed one (``2>&-``)."""
    # The next file that is opened would take the place of a closed one, and what is printed there would go into it.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - until the process ends
    codecs.register_error("breakeven", _spelled)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="breakeven")


def show_warnings() -> None:
    """Let the library's warnings appear as one line each, without file names, even where Python makes errors of them.

    Only ``UserWarning`` is meant, which is what this package warns with.
    """
    warnings.filterwarnings("default", category=UserWarning, module="breakeven")
    warnings.showwarning = _show


def _show(message: Warning | str, *_where: Any, **_more: Any) -> None:
    warn(str(message))


def _give_up(stream: TextIO) -> None:
    """Let a stream go nowhere: Python flushes it once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """Characters that an encoding lacks, in words or as JSON writes them."""
    assert isinstance(error, UnicodeEncodeError)
    import json

    lacking = error.object[error.start : error.end]
    return "".join(_WORDS.get(c) or json.dumps(c)[1:-1] for c in lacking), error.end
