"""One writer at a time: a small file beside the record says who writes it.

Locks of the system are not relied on, since shared file systems may lack them or keep them to one host: creating a
file that must not exist is atomic everywhere. An owner that is gone is told by its boot and its process; whether a
process of another host still runs cannot be known here, so that is left to the user.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from .store import RecordError, check_regular, errors_named

_PATIENCE_S = 5.0
"""Longest wait for others that look at the same folder, each for a moment."""
_GRACE_S = 1.0
"""A lock file without content may be in the making, on another host or where there are no locks of the system; one
that stays so was left by a process killed in between."""


_ANYBODY = ("", "localhost")
"""Names of hosts that tell none from another."""


class Held(RecordError):
    """Somebody else writes this record; the message says who, where and since when."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes a record.

    Attributes
    ----------
    host : name of the host
    boot : identifies the running system; empty where it does not say
    namespace : in which ``pid`` has a meaning
    pid, started : the process, and when it started (clock ticks after boot; numbers of processes come again)
    since : when it began to write
    """

    host: str
    boot: str
    namespace: str
    pid: int
    started: str
    since: str

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        return cls(
            host=platform.node(),
            boot=_text("/proc/sys/kernel/random/boot_id"),
            namespace=_namespace(),
            pid=os.getpid(),
            started=_started(os.getpid()) or "",
            since=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def gone(self, here: Owner, path: Path) -> bool | None:
        """Whether the process has ended; None where that cannot be known from here.

        ``path`` is the lock's: in another container of this system the process holds a lock of the system on it.
        """
        if self.boot != here.boot or not self.boot:
            if self.host != here.host or self.host in _ANYBODY:
                return None
            if self.boot:
                # This host was started anew since; or, as pods are named alike, it is another one that ran already.
                return True if self.since < _booted() else None
        if self.namespace == here.namespace:
            return _started(self.pid) != self.started
        return _unlocked(path)


class Lock:
    """Held while its block lasts; ``FILE.lock`` stands beside the record meanwhile.

    Folders that the record's path lacks are made, and removed again if nothing was written into them.

    Raises
    ------
    Held
        On entering, if another process writes the record, or one on another host has not said that it ended.
    RecordError
        On entering, if nothing can be written where the record is to stand.
    """

    def __init__(self, record: str | os.PathLike[str]) -> None:
        self.record = Path(record)
        # Several names of one record (links) have one lock.
        with errors_named(self.record, "the current folder is gone: "):
            self.path = Path(f"{os.path.realpath(self.record)}.lock")
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        check_regular(self.record)
        if self.path.exists() and not self.path.is_file():
            raise RecordError(f"{self.path}: no file, but a lock of the record is to stand there. Remove or rename it.")
        with errors_named(self.record, "no file can be made in its folder: "):
            self._made = [folder for folder in self.path.parents if not folder.exists()]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._take()
            except BaseException:
                self._remove_folders()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            if self._owner() == self._mine:  # the user may have removed it, and another process made it anew
                self.path.unlink()
        os.close(self._descriptor)
        self._remove_folders()

    def _take(self) -> None:
        self._mine = Owner.here()
        deadline = time.monotonic() + _GRACE_S
        while not self._taken(patient=time.monotonic() < deadline):
            time.sleep(0.05)

    def _taken(self, *, patient: bool) -> bool:
        """Make the file, in the place of one that was left behind; False where it may still be in the making."""
        with _one_at_a_time(self.path.parent):
            while not self._create():
                owner = self._owner()
                if owner is None and patient:
                    return False
                if owner is not None and not (gone := owner.gone(self._mine, self.path)):
                    raise Held(self._describe(owner, gone))
                self.path.unlink(missing_ok=True)
        return True

    def _create(self) -> bool:
        """Make the file with its content; False when it is there."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        try:
            os.write(descriptor, msgspec.json.encode(self._mine) + b"\n")
            _lock(descriptor)
        except OSError:
            os.close(descriptor)
            self.path.unlink()
            raise
        self._descriptor = descriptor
        return True

    def _owner(self) -> Owner | None:
        """Who holds the lock; None when nobody does, or the file says nothing."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Owner)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _describe(self, owner: Owner, gone: bool | None) -> str:
        who = f"process {owner.pid} on {owner.host} has been writing it since {owner.since}"
        if gone is None:
            return (
                f"{self.record}: {who}. Whether it still runs cannot be known from here: if it has ended, remove "
                f"{self.path}; else give another record with -o."
            )
        return f"{self.record}: {who}. Wait for its end, or give another record with -o."

    def _remove_folders(self) -> None:
        for folder in self._made:
            with contextlib.suppress(OSError):  # something was written into it
                folder.rmdir()


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep processes of one system from finding what another is about to write or to remove."""
    descriptor = os.open(folder, os.O_RDONLY)
    deadline = time.monotonic() + _PATIENCE_S
    try:
        while _lock(descriptor) is False:
            if time.monotonic() > deadline:
                raise RecordError(
                    f"{folder}: another program holds a lock on this folder, as 'flock' takes one. Wait for its end, "
                    "or give a record in another folder with -o."
                )
            time.sleep(0.005)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Take a lock of the system; False when another process has it, None where there are no such locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _unlocked(path: Path) -> bool | None:
    """Whether no process of this system holds a lock on a file; None where there are no such locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _lock(descriptor)
    finally:
        os.close(descriptor)


def _booted() -> str:
    """When this system started, as ``Owner.since`` is written; empty, before all times, where it does not say."""
    lines = [line.split() for line in _text("/proc/stat").splitlines()]
    seconds = next((int(words[1]) for words in lines if words[:1] == ["btime"]), None)
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process started, empty where the system does not say; None when there is none that runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    # After the name, which may hold anything: the state (Z: it ended and waits to be reaped), and the 20th the start.
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if not fields:
        return ""
    return None if fields[0] == "Z" else fields[19]
