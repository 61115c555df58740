"""The recorded sweeps that ship, and the one way to open any measurement: ``data:NAME`` or a path."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from .plain_csv import read_csv
from .store import Record, RecordError, read

PREFIX = "data:"
_ENDINGS = (".jsonl", ".csv")


def names() -> tuple[str, ...]:
    """Names of the recorded sweeps that ship."""
    return tuple(sorted(_shipped()))


def load(name: str) -> Record:
    """Open a recorded sweep that ships.

    Raises
    ------
    RecordError
        If there is none of that name; the message lists those that are.
    """
    with file_of(PREFIX + name) as path:
        return replace(_open(path), source=PREFIX + name)


@contextlib.contextmanager
def file_of(argument: str | os.PathLike[str]) -> Iterator[Path]:
    """The file behind ``data:NAME`` or a path, as long as the block lasts.

    Raises
    ------
    RecordError
        If no recorded sweep of that name ships; the message lists those that do.
    """
    if not isinstance(argument, str) or not argument.startswith(PREFIX):
        yield Path(argument)
        return
    shipped, name = _shipped(), argument.removeprefix(PREFIX)
    if name not in shipped:
        raise RecordError(f"{argument}: no recorded sweep of that name ships; there are {', '.join(names())}.")
    with resources.as_file(_folder() / shipped[name]) as path:
        yield path


def open_record(
    argument: str | os.PathLike[str],
    *,
    columns: str | Mapping[str, str] | None = None,
    scaling: str | None = None,
    where: str | Mapping[str, str] | None = None,
) -> Record:
    """Open ``data:NAME`` or a file: a record (``.jsonl``) or plain measurements (``.csv``).

    ``columns``, ``scaling`` and ``where`` say how to read a CSV file; see ``read_csv``.

    Raises
    ------
    RecordError
        If there is no such sweep or file, or it cannot be read.
    """
    if isinstance(argument, str) and argument.startswith(PREFIX):
        _refuse_options(argument, columns=columns, scaling=scaling, where=where)
        return load(argument.removeprefix(PREFIX))
    path = Path(argument)
    if path.suffix.lower() != ".csv":
        _refuse_options(str(path), columns=columns, scaling=scaling, where=where)
    return _open(path, columns=columns, scaling=scaling, where=where)


def _open(path: Path, **options: str | Mapping[str, str] | None) -> Record:
    return read_csv(path, **options) if path.suffix.lower() == ".csv" else read(path)  # type: ignore[arg-type]


def _refuse_options(argument: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise RecordError(f"{argument}: --{name} says how to read a .csv file; a record needs none. Leave it out.")


def _folder() -> Traversable:
    return resources.files("breakeven.data.recorded")


def _shipped() -> dict[str, str]:
    """File name by sweep name."""
    files = [entry.name for entry in _folder().iterdir() if entry.name.endswith(_ENDINGS)]
    return {Path(name).stem: name for name in files}
