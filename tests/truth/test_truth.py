"""The laboratory obeys what is imposed on it and leaves nothing behind; a blind sweep over it finds the truth."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

# pyright: reportMissingImports=false
# A test run has the root on its path.
from tests.truth.bare import excess_s
from tests.truth.blind import answer, sweep
from tests.truth.imposed import FEW_DEVICES, FEW_SIZES, SIZES, Truth
from tests.truth.network import FILES, NAMESPACES, network, unavailable
from tests.truth.verdicts import compare

REQUIRED = "BREAKEVEN_REQUIRE_TRUTH"
TRUTH = Truth(round_trip_s=4e-3, bytes_per_s=25e6)


@pytest.fixture(scope="module")
def laboratory():
    """Skip where none can be made, unless it must be."""
    reason = unavailable()
    if reason and os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, but {reason}")
    if reason:
        pytest.skip(reason)


def ours():
    return [path.name for folder in (NAMESPACES, FILES) for path in folder.glob(f"truth-{os.getpid()}-*")]


ECHO = """
import socket
with socket.create_server(("", 5001)) as server:
    print("ready", flush=True)
    link, _ = server.accept()
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while head := link.recv(8):
        left = int.from_bytes(head, "big")
        while left:
            left -= len(link.recv(min(left, 1 << 20)))
        link.sendall(b"!")
"""
ASK = """
import socket, sys, time
link = socket.create_connection((sys.argv[1], 5001))
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for size in map(int, sys.argv[2:]):
    start = time.perf_counter()
    link.sendall(size.to_bytes(8, "big") + b"x" * size)
    link.recv(1)
    print(time.perf_counter() - start)
"""


@pytest.mark.usefixtures("laboratory")
def test_a_message_costs_what_is_imposed():
    """The least of several: what other processes of the machine take comes on top, and nothing comes off."""
    sizes = [1] * 20 + [400_000] * 8
    with network(2, round_trip_s=10e-3, bytes_per_s=25e6) as (here, there):
        echo = subprocess.Popen(here.command(sys.executable, "-c", ECHO), stdout=subprocess.PIPE)
        assert echo.stdout.readline() == b"ready\n"
        command = there.command(sys.executable, "-c", ASK, here.address, *map(str, sizes))
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
        assert echo.wait(10) == 0
        echo.stdout.close()
    times = [float(line) for line in asked.stdout.split()]
    assert min(times[:20]) == pytest.approx(10e-3, rel=0.05)
    assert min(times[20:]) == pytest.approx(10e-3 + 400_000 / 25e6, rel=0.05)


@pytest.mark.usefixtures("laboratory")
def test_networks_live_side_by_side_and_leave_nothing():
    with network(2, round_trip_s=1e-3, bytes_per_s=1e8) as first, network(2, round_trip_s=1e-3, bytes_per_s=1e8):
        assert len(ours()) == 8
        named = subprocess.run(
            first[1].command("getent", "hosts", socket.gethostname()), capture_output=True, text=True, check=True
        )
        assert named.stdout.split()[0] == first[1].address
    assert ours() == []


@pytest.mark.usefixtures("laboratory")
def test_an_error_ends_what_runs_inside():
    started = []

    def fail_inside():
        with network(2, round_trip_s=1e-3, bytes_per_s=1e8) as hosts:
            started.append(subprocess.Popen(hosts[0].command("sleep", "60")))
            while subprocess.run(["ip", "netns", "pids", hosts[0].namespace], capture_output=True).stdout == b"":
                time.sleep(0.01)
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert started[0].wait(10) == -9
    assert ours() == []


@pytest.mark.usefixtures("laboratory")
def test_what_a_killed_run_left_is_removed():
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = f"truth-{gone.pid}-0-0"
    subprocess.run(["ip", "netns", "add", left], check=True)
    (FILES / left).mkdir()
    with network(1, round_trip_s=1e-3, bytes_per_s=1e8):
        assert not (NAMESPACES / left).exists()
    assert not (FILES / left).exists()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_counts_break_even_where_their_times_are_equal(n):
    size = TRUTH.break_even_size(n)
    assert TRUTH.latency_s(n, size) == pytest.approx(TRUTH.latency_s(1, size))
    # Between two measured sizes, so that a sweep can see it.
    assert SIZES[0] < size < SIZES[-2]


def test_the_best_count_lies_inside():
    best = [min(TRUTH.devices, key=lambda n: TRUTH.latency_s(n, size)) for size in SIZES]
    assert best == [1, 1, 2, 2, 2, 2, 2, 4]
    assert TRUTH.regret(4, SIZES[-1]) == 0 < TRUTH.regret(2, SIZES[-1])


@pytest.mark.usefixtures("laboratory")
def test_a_plain_loop_takes_little_beside_what_is_imposed():
    truth = Truth(round_trip_s=10e-3, bytes_per_s=6.25e6, devices=(1, 2))
    own_s = excess_s(truth)
    assert own_s.keys() == {1, 2}
    # Two steps of a round trip each are imposed on two hosts: 20 ms.
    assert all(0 < seconds < 5e-3 for seconds in own_s.values())


def test_what_a_call_takes_beside_moves_the_break_even_size():
    own = Truth(round_trip_s=4e-3, bytes_per_s=25e6, own_s={1: 1e-3, 2: 1e-3, 3: 2e-3, 4: 4e-3})
    assert own.break_even_size(2) == TRUTH.break_even_size(2)
    for n in (3, 4):
        size = own.break_even_size(n)
        assert size > TRUTH.break_even_size(n)
        assert own.latency_s(n, size) == pytest.approx(own.latency_s(1, size))


@pytest.mark.usefixtures("laboratory")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_blind_sweep_finds_the_truth(tmp_path: Path):
    """Few cells and launches, and wider limits than those of ``docs/truth.md``.

    What else the machine does may spoil one sweep, so that a second may decide; a fault of ours spoils both.
    """
    truth = Truth(round_trip_s=10e-3, bytes_per_s=6.25e6, devices=FEW_DEVICES, sizes=FEW_SIZES)
    options = ["--launches", "3", "--calls", "2", "--warmups", "0", "--queue", "0", "--budget", "1s"]
    missed = []
    for name in ("first.jsonl", "second.jsonl"):
        sweep(truth, tmp_path / name, options=options, timeout_s=280)
        missed.append([row for row in compare(truth, answer(tmp_path / name), slack=3) if not row.passed])
        if not missed[-1]:
            break
    assert missed[-1] == [], missed
