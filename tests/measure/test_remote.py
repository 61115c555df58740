"""Ranks that were started together: real processes that meet, measure, and end."""

import contextlib
import os
import platform
import signal
import socket
import sys
import threading
import time
from multiprocessing.connection import Client

import msgspec
import pytest
from breakeven.data.schema import Plan
from breakeven.data.store import read
from breakeven.measure import sweep
from breakeven.measure.processes import remote
from breakeven.measure.processes.cluster import detect
from breakeven.measure.processes.follower import follow
from breakeven.measure.processes.nodes import alias
from breakeven.measure.processes.remote import Followers
from breakeven.measure.workload import MeasureError

WORKLOAD = "mean-all"
FOLLOW = """
import sys
from breakeven.measure.processes.cluster import detect
from breakeven.measure.processes.follower import follow
from breakeven.measure.workload import MeasureError
try:
    asked = dict(word.split("=") for word in sys.argv[3:])
    sys.exit(follow(detect(), sys.argv[1], timeout_s=float(sys.argv[2]), options=asked))
except MeasureError as error:
    sys.exit(f"error: {error}")
except KeyboardInterrupt:
    sys.exit(99)
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def variables():
    """``variables(rank)``: those of one of two processes (or ``processes``) of a job, with a port of its own."""
    port = free_port()

    def of(rank, processes=2):
        return {
            "JAX_COORDINATOR_ADDRESS": f"localhost:{port}",
            "JAX_NUM_PROCESSES": str(processes),
            "JAX_PROCESS_ID": str(rank),
        }

    return of


@pytest.fixture
def follower(spawn):
    """``follower(variables)``: a process that follows; ended when the test is over."""

    def start(environment, workload=WORKLOAD, timeout_s=20, options=()):
        return spawn([sys.executable, "-P", "-c", FOLLOW, workload, str(timeout_s), *options], environment)

    return start


def leading(environment, workload=WORKLOAD, timeout_s=20, options=None):
    return Followers(detect(environment), workload, timeout_s=timeout_s, options=options)


def plan_of(**changes):
    """A small sweep of two processes with two devices each."""
    small = {
        "workload": WORKLOAD,
        "path": "weak",
        "objective": "throughput",
        "devices": (1, 2, 4),
        "sizes": (8,),
        "strategies": ("jit",),
        "visible_devices": 4,
        "processes": 2,
        "launches": 1,
        "rounds": 2,
        "calls": 3,
        "controls": False,
        "probes": False,
        "step_timeout_s": 60.0,
    }
    return Plan(**small | changes)


def test_followers_end_with_the_leaders_exit_code_and_print_nothing(variables, follower):
    processes = [follower(variables(rank, 3)) for rank in (2, 1)]
    with leading(variables(0, 3)) as followers:
        assert (followers.processes, followers.nodes) == (3, 1)
        followers.code = 7
    for process in processes:
        assert process.communicate(timeout=20) == ("", "")
        assert process.returncode == 7


def test_the_missing_rank_is_named_and_those_that_came_hear_of_it(variables, follower):
    came = follower(variables(2, 4))
    message = r"ranks 1, 3 of 4 did not come within 2 s.*localhost:\d+ \(from variables\)"
    with pytest.raises(MeasureError, match=message), leading(variables(0, 4), timeout_s=2):
        pass
    assert "ranks 1, 3 of 4 did not come" in came.communicate(timeout=20)[1]
    assert came.returncode == 1


@pytest.mark.parametrize(
    ("changes", "workload", "message"),
    [
        ({}, "matmul", "rank 1 on .* was started for workload matmul, rank 0 for mean-all"),
        ({"JAX_NUM_PROCESSES": "3"}, WORKLOAD, "rank 1 on .* says that there are 3 processes, rank 0 that there are 2"),
    ],
)
def test_a_rank_that_was_started_for_something_else_is_refused(variables, follower, changes, workload, message):
    process = follower(variables(1) | changes, workload)
    with pytest.raises(MeasureError, match=message), leading(variables(0)):
        pass
    assert "rank 0" in process.communicate(timeout=20)[1]
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("--sizes=16", "was started with --sizes 16, rank 0 with --sizes 8: give all ranks the same command"),
        ("--no-probes=", "was started with --no-probes, rank 0 without --no-probes"),
    ],
)
def test_a_rank_that_was_given_other_options_is_refused(variables, follower, asked, message):
    process = follower(variables(1), options=[asked])
    with pytest.raises(MeasureError, match=message), leading(variables(0), options={"--sizes": "8"}):
        pass
    assert message in process.communicate(timeout=20)[1]


def test_a_rank_that_is_there_twice_is_refused(variables, follower):
    for _ in range(2):
        follower(variables(1, 3))
    with pytest.raises(MeasureError, match=r"rank 1 on .* is there twice"), leading(variables(0, 3)):
        pass


def test_ranks_that_do_not_fill_equal_hosts_are_refused_before_anything_is_planned(variables, follower, monkeypatch):
    monkeypatch.setattr(remote, "node", lambda: "another system")
    processes = [follower(variables(rank, 3)) for rank in (1, 2)]
    with pytest.raises(MeasureError, match=r"the ranks lie, in their order, 1 on .+, 2 on "), leading(variables(0, 3)):
        pass
    for process in processes:
        assert "the ranks lie, in their order, 1 on" in process.communicate(timeout=20)[1]


def test_strangers_are_not_let_in(variables, follower):
    """Neither who has another key, nor who says nothing sensible, nor who leaves at once."""
    address = detect(variables(0))

    def strangers():
        for key in (b"another job's", None):
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                try:
                    Client((address.host, address.port), authkey=key).close()
                except ConnectionRefusedError:
                    time.sleep(0.05)
                    continue
                except Exception:  # noqa: BLE001 - refused, in whatever way
                    pass
                break
        with socket.create_connection((address.host, address.port)) as taken:
            taken.sendall(b"GET / HTTP/1.1\r\n\r\n")

    meeting = threading.Thread(target=strangers)
    meeting.start()
    process = None
    try:
        with pytest.raises(MeasureError, match="rank 1 of 2 did not come"), leading(variables(0), timeout_s=2):
            pass
        meeting.join()
        process = follower(variables(1))
        with leading(variables(0)):
            pass
        assert process.wait(timeout=20) == 0
    finally:
        meeting.join()


def test_no_leader_within_the_time(variables):
    with pytest.raises(MeasureError, match=r"rank 1 found no leader at localhost:\d+ .*within 0.5 s.*refused"):
        follow(detect(variables(1)), WORKLOAD, timeout_s=0.5)


def test_a_leader_of_another_job_is_not_followed(variables):
    with socket.create_server(("127.0.0.1", detect(variables(1)).port)) as server:

        def answer():
            while True:
                try:
                    taken, _ = server.accept()
                except OSError:
                    return
                taken.sendall(b"\x00\x00\x00\x05hello")
                taken.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(MeasureError, match="what listens there does not know this job"):
            follow(detect(variables(1)), WORKLOAD, timeout_s=1)
        server.shutdown(socket.SHUT_RDWR)


def test_a_port_that_is_taken_is_named(variables):
    port = detect(variables(0)).port
    message = f"rank 0 cannot listen at port {port}"
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(MeasureError, match=message),
        leading(variables(0)),
    ):
        pass


def test_a_follower_whose_leader_is_gone_ends_and_says_so(variables, follower):
    process = follower(variables(1))
    followers = leading(variables(0)).__enter__()
    followers._joined[1].link.close()
    assert "rank 1: the leader on localhost is gone" in process.communicate(timeout=20)[1]
    assert process.returncode == 1


def test_a_sweep_of_two_ranks_is_whole(variables, follower, tmp_path):
    path = tmp_path / "sweep.jsonl"
    process = follower(variables(1))
    os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
    with leading(variables(0)) as followers:
        sweep.run(plan_of(launches=2), path, start=followers.start)
    assert process.wait(timeout=20) == 0
    record = read(path)
    assert sweep.complete_launches(record) == 2
    assert not record.failures
    # Two devices are those of rank 0: the other one has no part in them.
    ranks = {
        program.cell.num_devices: {len(visit.ranks_ns) for visit in record.visits if visit.program == program.program}
        for program in record.programs
    }
    assert ranks == {1: {0}, 2: {0}, 4: {2}}
    together = next(visit for visit in record.visits if visit.ranks_ns)
    assert together.latency_ns == tuple(map(max, *together.ranks_ns))
    for launch in record.launches:
        assert (launch.processes, launch.nodes, launch.devices_per_process) == (2, 1, 2)
        # A measuring process stays where its task was put.
        assert launch.machines[1].affinity == (min(os.sched_getaffinity(0)),)
        assert {machine.host for machine in launch.machines} == {platform.node()}


def killing(process, what):
    """Progress that ends a process by a signal once a round was measured."""

    def report(progress):
        if progress.round:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(what)

    return report


ENDLESS = {"launches": 2, "rounds": 10_000, "budget_s": 60.0}


def hiding(start):
    """Start with a salt: names of hosts are hashed."""
    return lambda request: start(msgspec.structs.replace(request, host_salt="salt"))


def test_a_follower_that_dies_is_named_and_what_was_measured_is_kept(variables, follower, tmp_path):
    path = tmp_path / "sweep.jsonl"
    process = follower(variables(1))
    message = r"rank 1 on .* is gone.* start all ranks again"
    with pytest.raises(MeasureError, match=message), leading(variables(0)) as followers:
        sweep.run(plan_of(**ENDLESS), path, start=hiding(followers.start), on_progress=killing(process, signal.SIGKILL))
    record = read(path)
    (failure,) = record.failures
    assert (failure.error, failure.rank) == ("Lost", 1)
    assert failure.message == f"rank 1: lost on {alias(platform.node(), 'salt')}: the connection was closed"
    assert {machine.host for machine in record.launches[0].machines} == {alias(platform.node(), "salt")}
    assert sweep.complete_launches(record) == 1


def test_a_signal_to_any_rank_ends_the_sweep(variables, follower, tmp_path):
    path = tmp_path / "sweep.jsonl"
    process = follower(variables(1))
    with pytest.raises(sweep.Interrupted, match="holds 1 of 2 launches") as ended, leading(variables(0)) as followers:
        sweep.run(
            plan_of(**ENDLESS),
            path,
            start=followers.start,
            on_progress=killing(process, signal.SIGTERM),
        )
    assert ended.value.signal == signal.SIGTERM
    # A signal is nobody's failure: no cell may be left out for it.
    assert not read(path).failures
    assert process.wait(timeout=20) == 99
