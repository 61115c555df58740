"""Messages over a connection, whole or in pieces."""

import select
import socket
import threading

import msgspec
import pytest
from breakeven.measure.processes.link import Answer, Close, Link, Lost, Order


@pytest.fixture
def pair():
    """A link, and the bare socket of its other side."""
    ours, theirs = socket.socketpair()
    link = Link(ours, msgspec.json.Decoder(Order))
    with theirs:
        yield link, theirs
    link.close()


def frame(data):
    return len(data).to_bytes(4, "big") + data


def ready(link):
    return bool(select.select([link], [], [], 0)[0])


@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_message_that_is_not_whole_holds_nobody_up(pair, cut):
    link, theirs = pair
    data = frame(msgspec.json.encode(Close(code=7, reason="a reason")))
    theirs.sendall(data[:cut])
    assert link.receive(0) is None
    assert link.receive(0.05) is None
    theirs.sendall(data[cut:])
    assert link.receive(0) == Close(code=7, reason="a reason")


def test_of_several_messages_each_makes_the_link_readable(pair):
    link, theirs = pair
    theirs.sendall(2 * frame(msgspec.json.encode(Answer())))
    for _ in range(2):
        assert ready(link)
        assert link.receive() == Answer()
    assert not ready(link)
    assert link.receive(0) is None


def test_a_long_message_comes_whole(pair):
    link, theirs = pair
    other, long = Link(theirs, msgspec.json.Decoder(Order)), Close(code=1, reason="x" * 2_000_000)
    sending = threading.Thread(target=other.send, args=(long,))
    sending.start()
    assert link.receive(10) == long
    sending.join()


@pytest.mark.parametrize("data", [b"", frame(b"{}")[:5]])
def test_a_connection_that_ends_is_lost(pair, data):
    link, theirs = pair
    theirs.sendall(data)
    theirs.close()
    with pytest.raises(Lost, match="the connection was closed"):
        link.receive()


def test_what_is_no_message_is_lost(pair):
    link, theirs = pair
    theirs.sendall(frame(b"hello"))
    with pytest.raises(Lost, match="what it sent cannot be read"):
        link.receive()
