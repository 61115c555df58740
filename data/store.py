"""Reading and writing the record: JSON Lines, append only, mergeable by ``cat``.

A last line that was cut (a killed writer) is skipped with a warning and ended by the next writer; a bad line
anywhere else is an error that names it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

import msgspec

from ..model.cell import ROLES
from .schema import (
    MAX_AMOUNT,
    MAX_DEVICES,
    MAX_SIZE,
    SCHEMA_VERSION,
    Closing,
    Failure,
    Launch,
    Line,
    Program,
    Sweep,
    Trace,
    Visit,
)


class RecordError(ValueError):
    """A file that is no record, or a record that is spoilt; the message names file and line."""


_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a line that is none of ours may raise; the last where it is nested too deeply."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """All lines of one record, by kind, in file order. ``tracing``: launches that measured nothing but traced."""

    sweeps: tuple[Sweep, ...]
    launches: tuple[Launch, ...] = ()
    programs: tuple[Program, ...] = ()
    visits: tuple[Visit, ...] = ()
    failures: tuple[Failure, ...] = ()
    closings: tuple[Closing, ...] = ()
    traces: tuple[Trace, ...] = ()
    tracing: tuple[Launch, ...] = ()
    source: str = "<memory>"

    @classmethod
    def from_lines(cls, lines: Iterable[Line], *, source: str = "<memory>") -> Record:
        """Sort lines by kind.

        Raises
        ------
        RecordError
            If there is no ``sweep`` line, or a line belongs to a sweep or launch that is not there.
        """
        kinds: dict[type, list] = {kind: [] for kind in get_args(Line)}
        for line in lines:
            kinds[type(line)].append(line)
        if not kinds[Sweep]:
            raise RecordError(f"{source}: no sweep in it; was it written by 'breakeven measure'?")
        # Files that overlap may be concatenated: a line that stands there twice was measured once. Failures bear
        # no time, so that two of them may look alike.
        for kind in (Sweep, Launch, Program, Visit, Closing, Trace):
            kinds[kind] = list(dict.fromkeys(kinds[kind]))
        sweeps = {line.sweep for line in kinds[Sweep]}
        launches = {(line.sweep, line.launch) for line in kinds[Launch]}
        for line in (line for kind in kinds if kind is not Sweep for line in kinds[kind]):
            if line.sweep not in sweeps:
                raise RecordError(f"{source}: a line belongs to sweep {line.sweep}, which is not in the file.")
        programs = Counter((line.sweep, line.launch, line.program) for line in kinds[Program])
        for line in kinds[Visit]:
            if (line.sweep, line.launch) not in launches or (
                line.sweep,
                line.launch,
                line.program,
            ) not in programs:
                raise RecordError(
                    f"{source}: a visit names launch {line.launch}, program {line.program}, which is not in the file."
                )
        for line in kinds[Program]:
            if line.cell.role not in ROLES:
                raise RecordError(f"{source}: unknown role {line.cell.role!r}; it must be one of {', '.join(ROLES)}.")
            _check_range("num_devices", line.cell.num_devices, MAX_DEVICES, f"{source}: program {line.program}")
            _check_range("size", line.cell.size, MAX_SIZE, f"{source}: program {line.program}")
            _check_amounts(line, f"{source}: program {line.program}")
        for line in kinds[Sweep]:
            if line.plan.path not in ("strong", "weak") or line.plan.objective not in ("time", "throughput"):
                raise RecordError(
                    f"{source}: path {line.plan.path!r} and objective {line.plan.objective!r}; they must be strong or "
                    "weak, and time or throughput."
                )
        # A resumed sweep may repeat its opening line.
        unique_sweeps = {line.sweep: line for line in reversed(kinds[Sweep])}
        return cls(
            sweeps=tuple(reversed(unique_sweeps.values())),
            launches=tuple(line for line in kinds[Launch] if not line.traced),
            programs=tuple(kinds[Program]),
            visits=tuple(kinds[Visit]),
            failures=tuple(kinds[Failure]),
            closings=tuple(kinds[Closing]),
            traces=tuple(kinds[Trace]),
            tracing=tuple(line for line in kinds[Launch] if line.traced),
            source=source,
        )


def _check_range(name: str, value: int, largest: int, where: str) -> None:
    if not 1 <= value <= largest:
        raise RecordError(f"{where} has {name} {value}; it must lie between 1 and {largest}.")


def _check_amounts(program: Program, where: str) -> None:
    """What a program does and a device can do must be something; elsewhere it would only fail an arithmetic."""
    facts = program.facts
    for name in () if facts is None else ("flops", "bytes_accessed", "work", "peak_flops"):
        value = getattr(facts, name)
        if value is not None and not (0 <= value <= MAX_AMOUNT and (value or name != "peak_flops")):
            least = "above 0" if name == "peak_flops" else "at least 0"
            raise RecordError(f"{where} has {name} {value:g}; it must be {least}, and at most {MAX_AMOUNT:g}.")


def read(path: str | os.PathLike[str]) -> Record:
    """Read a record.

    Raises
    ------
    RecordError
        If the file is missing, empty, no record, of a newer schema, or has a bad line (named) before its end.
    """
    return Record.from_lines(read_lines(path), source=str(path))


def read_lines(path: str | os.PathLike[str]) -> list[Line]:
    """Lines of a record in file order, without looking whether they belong together; raises as ``read`` does."""
    path = Path(path)
    if path.is_char_device() or path.is_block_device():
        raise RecordError(f"{path}: a device, not a file.")
    with errors_named(path):
        content = path.read_bytes()
    if not content.strip():
        raise RecordError(f"{path}: empty; nothing was measured into it.")
    lines = content.split(b"\n")
    open_line = lines.pop()  # empty when the file ends with a line end
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    decoder = msgspec.json.Decoder(Line)
    decoded = [_decode(decoder, line, path, number) for number, line in numbered]
    if open_line.strip():
        _check_version(open_line, path, len(lines) + 1)
        try:
            decoded.append(decoder.decode(open_line))
        except _UNREADABLE:
            if not decoded:
                raise RecordError(f"{path}: not a breakeven record (line 1 is no JSON record line).") from None
            warnings.warn(f"{path}: the last line was cut while being written; it is skipped.", stacklevel=3)
    return decoded


def _decode(decoder: msgspec.json.Decoder, line: bytes, path: Path, number: int) -> Line:
    _check_version(line, path, number)
    try:
        return decoder.decode(line)
    except _UNREADABLE as error:
        if number == 1:
            raise RecordError(
                f"{path}: not a breakeven record (line 1: {error}). "
                "For a CSV file give --columns; its name must end in .csv."
            ) from None
        raise RecordError(f"{path}, line {number}: spoilt ({error}). Remove the line to read the rest.") from None


def _check_version(line: bytes, path: Path, number: int) -> None:
    """A newer schema must be named as such, not fail on some field that this version does not know."""
    if b'"schema"' not in line:
        return
    try:
        schema = msgspec.json.decode(line).get("schema", SCHEMA_VERSION)
    except (*_UNREADABLE, AttributeError):
        return
    if isinstance(schema, int) and schema > SCHEMA_VERSION:
        raise RecordError(
            f"{path}, line {number}: schema {schema}; this breakeven reads up to {SCHEMA_VERSION}. Upgrade breakeven."
        )


@contextlib.contextmanager
def errors_named(path: Path, doing: str = "") -> Iterator[None]:
    """What the system refuses is the user's to mend: the file and the reason, no traceback."""
    try:
        yield
    except OSError as error:
        raise RecordError(f"{path}: {doing}{error.strerror}.") from error


def check_regular(path: Path) -> None:
    """Raise RecordError where something stands that is no file, a device or links in a circle for instance."""
    with errors_named(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise RecordError(f"{path}: not a regular file; a record must be one. Give another with -o.")


class Writer:
    """Appends lines to a record; each line is whole, and ``sync`` makes all so far survive a crash.

    The file is created at the first line, not before. A cut last line left by a killed writer is ended first
    when it decodes, and taken off when it does not (it was never readable). There must be no other writer of the
    file (``lock.Lock``).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None
        self._encoder = msgspec.json.Encoder()

    def reopen(self) -> None:
        """Open a file that exists already, so that one that cannot be written is told now.

        Raises
        ------
        RecordError
            If it cannot be written.
        """
        with errors_named(self.path, "cannot be written: "):
            if self._descriptor is None and self.path.exists():
                self._descriptor = self._open()

    def write(self, line: Line) -> None:
        """Append one line, whole.

        Raises
        ------
        RecordError
            If the file cannot be written, for instance on a full disk; the lines before stay.
        """
        with errors_named(self.path, "cannot be written: "):
            if self._descriptor is None:
                self._descriptor = self._open()
            self._append(self._descriptor, self._encoder.encode(line) + b"\n")

    def sync(self) -> None:
        """Force what was written to the disk (end of a round).

        Raises
        ------
        RecordError
            If that fails, or somebody removed or replaced the file: what is written then goes nowhere.
        """
        if self._descriptor is not None:
            with errors_named(self.path, "cannot be written: "):
                os.fsync(self._descriptor)
            if not self._stands():
                raise RecordError(f"{self.path} was removed or replaced while it was being written.")

    def _stands(self) -> bool:
        """Whether the file that is written is still the one of this name."""
        assert self._descriptor is not None
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Sync and close; writing again would reopen."""
        if self._descriptor is not None:
            try:
                self.sync()
            finally:
                os.close(self._descriptor)
                self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> int:
        check_regular(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            self._end_open_line(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _append(self, descriptor: int, data: bytes) -> None:
        """All of a line, or nothing: a full disk may take part of it."""
        start = os.lseek(descriptor, 0, os.SEEK_END)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            os.ftruncate(descriptor, start)
            if start == 0:
                os.close(descriptor)
                self._descriptor = None
                self.path.unlink()
            raise

    def _end_open_line(self, descriptor: int) -> None:
        content = self.path.read_bytes()
        if not content or content.endswith(b"\n"):
            return
        start = content.rfind(b"\n") + 1
        try:
            msgspec.json.decode(content[start:], type=Line)
        except _UNREADABLE:
            os.ftruncate(descriptor, start)
        else:
            os.write(descriptor, b"\n")
