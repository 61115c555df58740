"""Ranks that were started by hand, through the variables that Kubernetes jobs use."""

import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from breakeven.cli import output
from breakeven.cli.ranks import Company, joined
from breakeven.data.store import read
from breakeven.measure.workload import MeasureError

COMMAND = [sys.executable, "-P", "-m", "breakeven.cli", "measure", "mean-all", "--platform", "cpu"]
COMMAND += ["--devices", "1,2", "--sizes-per-device", "8", "--no-controls", "--no-probes", "--no-sentinel"]
COMMAND += ["--budget", "60s", "--launches", "2", "-o", "sweep.jsonl"]


@pytest.fixture
def rank(tmp_path, spawn):
    """``rank(number)``: the command as one of two ranks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    def start(number, *more):
        variables = {"JAX_COORDINATOR_ADDRESS": f"localhost:{port}", "JAX_NUM_PROCESSES": "2"}
        return spawn([*COMMAND, *more], variables | {"JOB_COMPLETION_INDEX": str(number)}, cwd=tmp_path)

    return start


def children(process):
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def running(pid):
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_when_the_leader_is_killed_the_other_rank_ends_with_all_it_started(rank, tmp_path):
    leader, follower = rank(0), rank(1)
    path = tmp_path / "sweep.jsonl"
    wait_until(path.exists)
    (measuring,) = children(follower)
    leader.send_signal(signal.SIGKILL)
    out, err = follower.communicate(timeout=30)
    assert follower.returncode == output.BAD_INPUT
    assert out == ""
    assert "error: rank 1: the leader on localhost is gone" in err
    assert "Traceback" not in err
    wait_until(lambda: not running(measuring), 10)
    assert read(path).launches


def test_a_rank_alone_names_the_one_that_does_not_come(rank):
    out, err = rank(0, "--timeout", "1s").communicate(timeout=30)
    assert out == ""
    assert "error: rank 1 of 2 did not come within 1 s" in err


def test_ranks_with_other_options_are_refused(rank):
    leader, follower = rank(0), rank(1, "--queue", "0")
    said = "was started with --queue 0, rank 0 with --queue 4: give all ranks the same command"
    assert said in leader.communicate(timeout=30)[1]
    assert said in follower.communicate(timeout=30)[1]
    assert (leader.returncode, follower.returncode) == (output.BAD_INPUT, output.BAD_INPUT)


def test_without_a_launcher_the_command_line_decides(monkeypatch):
    for name in ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"):
        monkeypatch.delenv(name, raising=False)
    with joined("mean-all", Company(processes=3)) as ranks:
        assert (ranks.processes, ranks.nodes, ranks.launched) == (3, 1, False)
    with pytest.raises(MeasureError, match="nothing says how many there are"), joined("x", Company(coordinator="a:1")):
        pass
