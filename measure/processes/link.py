"""What the ranks' parents say to each other: JSON in frames over TCP, after both have shown that they hold the key.

The standard library's connections check the key; nothing is ever unpickled.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge, wait
from typing import Generic, TypeVar

import msgspec

from ..protocol import Message, Request

_LENGTH = struct.Struct("!I")
"""Before each message: its bytes."""
_PIECE_BYTES = 1 << 16
_HANDSHAKE_S = 10.0
_RETRY_S = 0.2
_LAST_WORD_S = 1.0
_SILENCE_S, _PROBE_S, _PROBES = 30, 10, 3
"""A peer whose host vanished is noticed after a minute of silence, since its system then answers no probe."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="hello"):
    """A follower presents itself. ``node``: the same for the processes of one running system; ``options``: by name."""

    rank: int
    processes: int
    host: str
    node: str
    version: str
    workload: str
    options: dict[str, str]


class Said(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="said"):
    """Messages of a follower's measuring process in one launch; ``ended``: no more will come."""

    launch: str
    messages: tuple[Message, ...]
    ended: bool = False


class Leaving(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="leaving"):
    """A signal ended a follower, or what it was asked to do is not what it was started for."""

    reason: str
    signal: int | None = None


class Start(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="start"):
    """Begin a launch. ``seconds_left`` stands for ``request.ends_at``: clocks of hosts differ."""

    request: Request
    seconds_left: float | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="answer"):
    """Go on after a round."""


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="stop"):
    """Show where the measuring process is, and end it."""


class End(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """The launch is over: end its process, whatever it does."""


class Close(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="close"):
    """All is over: exit with this code; ``reason`` is said where this rank is the cause."""

    code: int
    reason: str | None = None


Report = Hello | Said | Leaving
"""What a follower says."""
Order = Start | Answer | Stop | End | Close
"""What the leader says."""
Heard = TypeVar("Heard")


class Lost(ConnectionError):
    """The other side is gone."""


class Link(Generic[Heard]):
    """One connection: a follower hears orders, the leader reports."""

    def __init__(self, connected: socket.socket, decoder: msgspec.json.Decoder[Heard]) -> None:
        self._socket = connected
        self._decoder = decoder
        self._frame = bytearray()

    def fileno(self) -> int:
        """Descriptor to wait for."""
        return self._socket.fileno()

    def send(self, message: Report | Order) -> None:
        """Send one message.

        Raises
        ------
        Lost
            If the other side is gone.
        """
        try:
            data = msgspec.json.encode(message)
            self._socket.sendall(_LENGTH.pack(len(data)) + data)
        except OSError as error:
            raise Lost("the connection was closed") from error

    def receive(self, timeout_s: float | None = None) -> Heard | None:
        """Wait for one message and return it; None when none came whole in time (what did come is kept).

        Raises
        ------
        Lost
            If the other side is gone, or what it sent is no message.
        """
        try:
            whole = self._read(timeout_s)
            return None if whole is None else self._decoder.decode(whole)
        except (EOFError, OSError) as error:
            raise Lost("the connection was closed") from error
        except msgspec.DecodeError as error:
            raise Lost(f"what it sent cannot be read: {error}") from error

    def close(self) -> None:
        """Close this side."""
        self._socket.close()

    def finish(self) -> None:
        """Close this side so that what was sent arrives: a connection closed on unread data drops what is under way."""
        deadline = time.monotonic() + _LAST_WORD_S
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            while wait([self._socket], max(0.0, deadline - time.monotonic())) and self._socket.recv(_PIECE_BYTES):
                pass
        self._socket.close()

    def _read(self, timeout_s: float | None) -> bytes | None:
        """The rest of the frame under way and no byte more, so that ``fileno`` is readable while there is another."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while missing := self._missing():
            if not wait([self._socket], None if deadline is None else max(0.0, deadline - time.monotonic())):
                return None
            piece = self._socket.recv(min(missing, _PIECE_BYTES))
            if not piece:
                raise EOFError
            self._frame += piece
        whole = bytes(self._frame[_LENGTH.size :])
        self._frame.clear()
        return whole

    def _missing(self) -> int:
        """Bytes that the length, or the message after it, still lacks."""
        had = len(self._frame)
        return _LENGTH.size - had if had < _LENGTH.size else _LENGTH.size + _LENGTH.unpack_from(self._frame)[0] - had


def listen(port: int, *, local: bool) -> socket.socket:
    """Return a socket that accepts connections of this host only, or of any.

    Raises
    ------
    OSError
        If the port is taken.
    """
    if local:
        return socket.create_server(("127.0.0.1", port))
    both = socket.has_dualstack_ipv6()
    return socket.create_server(("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both)


def accept(server: socket.socket, key: bytes, timeout_s: float) -> Link[Report] | None:
    """Return the next connection that holds the key; None for a stranger, or when nobody came in time."""
    server.settimeout(max(timeout_s, 1e-3))
    try:
        taken, _ = server.accept()
    except TimeoutError:
        return None
    connection = _connection(taken)
    try:
        deliver_challenge(connection, key)
        answer_challenge(connection, key)
    except _NO_HANDSHAKE:
        connection.close()
        return None
    return Link(_proven(connection), msgspec.json.Decoder(Report))


def connect(host: str, port: int, key: bytes, timeout_s: float) -> Link[Order]:
    """Connect to the leader, which may start later than this process.

    Raises
    ------
    TimeoutError
        If nothing took the connection in time; the message says what the last attempt met.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection = _connection(socket.create_connection((host, port), timeout=_HANDSHAKE_S))
            try:
                answer_challenge(connection, key)
                deliver_challenge(connection, key)
            except BaseException:
                connection.close()
                raise
        except _NO_HANDSHAKE as error:
            if time.monotonic() + _RETRY_S > deadline:
                known = isinstance(error, OSError) and not isinstance(error, BlockingIOError)
                raise TimeoutError(str(error) if known else "what listens there does not know this job") from error
            time.sleep(_RETRY_S)
        else:
            return Link(_proven(connection), msgspec.json.Decoder(Order))


# Before Python 3.12 a wrong greeting fails an assertion.
_NO_HANDSHAKE = (AuthenticationError, EOFError, OSError, ValueError, AssertionError)


def _connection(taken: socket.socket) -> Connection:
    """A connection whose waiting is limited, so that a stranger who says nothing holds nobody up."""
    taken.setblocking(True)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A last word must not wait for the answer to the one before.
    taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (("TCP_KEEPIDLE", _SILENCE_S), ("TCP_KEEPINTVL", _PROBE_S), ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, option):
            taken.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    connection = Connection(taken.detach())
    _limit_waiting(connection, _HANDSHAKE_S)
    return connection


def _proven(connection: Connection) -> socket.socket:
    """What is left of a connection when both sides have shown that they hold the key."""
    with connection:
        _limit_waiting(connection, None)
        return socket.socket(fileno=os.dup(connection.fileno()))


def _limit_waiting(connection: Connection, seconds: float | None) -> None:
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(seconds or 0), 0))
