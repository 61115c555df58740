"""What processes agree on, over a coordination service that is a dictionary and threads for processes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from breakeven.data.schema import Failure, Plan
from breakeven.measure.processes.agreement import Vote, agree
from breakeven.measure.processes.gate import Gate
from breakeven.measure.processes.team import Processes, Team, join
from breakeven.measure.protocol import Request

TIMEOUT_S = 5


class Service:
    """Keys are written once, as in the real one; a get waits for its key, a barrier for all who are named."""

    def __init__(self):
        self._values, self._changed = {}, threading.Condition()
        self._barriers = {}

    def key_value_set(self, key, value):
        with self._changed:
            assert key not in self._values, f"{key} is set twice"
            self._values[key] = value
            self._changed.notify_all()

    def blocking_key_value_get(self, key, timeout_ms):
        with self._changed:
            assert self._changed.wait_for(lambda: key in self._values, TIMEOUT_S), f"nobody sets {key}"
            return self._values[key]

    def wait_at_barrier(self, name, timeout_ms, process_ids):
        with self._changed:
            barrier = self._barriers.setdefault(name, threading.Barrier(len(process_ids)))
        barrier.wait(TIMEOUT_S)


@pytest.fixture
def run():
    """``run(work)``: the results of ``work(team)`` in three processes."""
    service, size = Service(), 3

    def together(work):
        with ThreadPoolExecutor(size) as pool:
            return list(pool.map(lambda rank: work(Processes(service, rank, size)), range(size)))

    return together


def test_all_hear_what_the_first_says(run):
    def work(team):
        return [team.lead(f"rank {team.rank} says {i}", str) for i in range(3)]

    assert run(work) == [["rank 0 says 0", "rank 0 says 1", "rank 0 says 2"]] * 3


def test_members_hear_each_other_and_no_one_else_waits(run):
    def work(team):
        heard = []
        for members in ((0, 1), (0, 1, 2), (0, 1), (0,)):
            if team.rank in members:
                heard.append(team.gather(10 * len(heard) + team.rank, members, int))
        return heard

    first, second, third = run(work)
    assert first == [(0, 1), (10, 11, 2), (20, 21), (30,)]
    assert second == [(0, 1), (10, 11, 2), (20, 21)]
    assert third == [(10, 11, 2)]


def test_a_barrier_lets_no_member_through_before_all_have_come(run):
    came, lock = [], threading.Lock()

    def work(team):
        if team.rank == 2:
            return None
        gate = Gate(team, (0, 1))
        for number in range(20):
            with lock:
                came.append(number)
            gate()
            with lock:
                assert came.count(number) == 2
        assert gate.waited_s >= 0
        return len(gate.starts_ns)

    assert run(work) == [20, 20, None]


def test_one_process_agrees_with_itself():
    team = Team()
    assert (team.rank, team.size) == (0, 1)
    assert team.lead("word", str) == "word"
    assert team.gather("word", (0,), str) == ("word",)
    team.barrier((0,))


def test_without_a_coordinator_nobody_is_joined():
    plan = Plan(workload="w", path="weak", objective="time", devices=(1,), sizes=(1,), strategies=("jit",), processes=1)
    assert type(join(Request(plan=plan, sweep="", launch=""))) is Team


FAILURE = Failure(sweep="s", launch="l", stage="build", error="ValueError", message="no")


def outcome(run, votes):
    """What each process hears when each votes."""
    return run(lambda team: agree(team, (0, 1, 2), votes[team.rank], otherwise=FAILURE))


def test_all_well_is_agreed_on(run):
    assert outcome(run, [Vote(next="call")] * 3) == [None] * 3


def test_one_failure_is_every_members_and_names_its_rank(run):
    votes = [Vote(next="call"), Vote(next="call"), Vote(next="fail", failure=FAILURE)]
    (failure,) = set(outcome(run, votes))
    assert failure is not None
    assert (failure.rank, failure.message) == (2, "rank 2: no")


def test_the_same_failure_everywhere_is_no_ranks_own(run):
    (failure,) = set(outcome(run, [Vote(next="fail", failure=FAILURE)] * 3))
    assert failure == FAILURE


def test_processes_that_would_do_different_things_are_stopped(run):
    (failure,) = set(outcome(run, [Vote(next="call"), Vote(next="done"), Vote(next="call")]))
    assert failure is not None
    assert "do not build the same program" in failure.message
    assert "rank 1: done" in failure.message


def test_one_process_keeps_its_failure_as_it_is():
    assert agree(Team(), (0,), Vote(next="fail", failure=FAILURE), otherwise=FAILURE) == FAILURE
    assert agree(Team(), (0,), Vote(next="call"), otherwise=FAILURE) is None


def test_another_program_in_one_process_ends_the_launch_and_names_it(run):
    votes = [Vote(next="call", program="x"), Vote(next="call", program="x"), Vote(next="call", program="y")]
    (failure,) = set(outcome(run, votes))
    assert failure is not None
    assert failure.stage == "launch"
    assert "rank 2 has another program than rank 0" in failure.message


def test_what_was_not_lowered_is_no_other_program(run):
    votes = [Vote(next="call", program="x"), Vote(next="call", program="x"), Vote(next="call")]
    assert outcome(run, votes) == [None] * 3
