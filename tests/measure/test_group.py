"""Several streams joined into one, and one failure found among several: with processes that only play their part."""

import os
import time
from collections import deque

import msgspec
import numpy as np
import pytest
from breakeven.data.schema import Failure, Launch, Machine, Plan, Program, Visit
from breakeven.measure.processes import group as group_module
from breakeven.measure.processes.blame import SILENT, WAITING, follows, root
from breakeven.measure.processes.group import Group
from breakeven.measure.protocol import Finished, Ready, Request, Round, Starts, Step
from breakeven.model.cell import Cell

PLAN = Plan(
    workload="w",
    path="weak",
    objective="time",
    devices=(1, 2, 4),
    sizes=(8,),
    strategies=("jit",),
    visible_devices=4,
    step_timeout_s=0.3,
    processes=2,
)
REQUEST = Request(plan=PLAN, sweep="s", launch="l")


class Player:
    """A process that says what it was given, and more when it is answered or stopped."""

    def __init__(self, rank, *batches, when_stopped=(), then_ends=False):
        self.rank, self.answers, self.when_stopped = rank, 0, when_stopped
        self._batches = deque(batches)
        self._read, self._write = os.pipe()
        if then_ends:
            self._batches.append(None)
        self._ring(len(self._batches))

    def _ring(self, times):
        os.write(self._write, b"." * times)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._read)
        os.close(self._write)

    def fileno(self):
        return self._read

    def take(self):
        os.read(self._read, 1)
        return self._batches.popleft()

    def answer(self):
        self.answers += 1

    def stop(self):
        if self.when_stopped:
            self._batches.append(self.when_stopped)
            self._ring(1)


@pytest.fixture
def heard(monkeypatch):
    """``heard(players)``: all that comes of a launch of them; waiting for others is short."""
    monkeypatch.setattr(group_module, "_GRACE_S", 0.2)

    def listen(*players):
        with Group(REQUEST, lambda _request: players) as group:
            return list(group.messages())

    return listen


def cell(n):
    return Cell(role="workload", strategy="jit", num_devices=n, size=8 * n)


def failure(error="ValueError", message="no", stage="visit", n=4, **more):
    return Failure(sweep="s", launch="l", stage=stage, error=error, message=message, cell=cell(n), **more)


def launch(boot="b", jax="1", kind="cpu", devices=2, **of_machine):
    return Launch(
        sweep="s",
        launch="l",
        started="now",
        device_kind=kind,
        jax=jax,
        cores=4 if boot == "b" else 2,
        visible_devices=4,
        devices_per_process=devices,
        machines=(Machine(host=f"host of {boot}", boot=boot, **of_machine),),
    )


def visit(program, latency_ns, round=0, **more):
    more = {"warmups": 1, "position": 0} | more
    return Visit(sweep="s", launch="l", program=program, round=round, time=0.0, latency_ns=latency_ns, **more)


def starts(program, starts_ns, round=0):
    return Starts(program=program, round=round, starts_ns=starts_ns)


def programs():
    return [Program(sweep="s", launch="l", program=i, cell=cell(n)) for i, n in enumerate((1, 4))]


def of(kind, messages):
    return [message for message in messages if isinstance(message, kind)]


def test_calls_last_until_the_last_process_is_done(heard):
    lead = [
        launch(),
        *programs(),
        Ready(programs=2, workloads=2, calls=2, round_s=1.0),
        visit(1, (9, 50, 30), queued_ns=7, dispatch_ns=(1, 5, 2)),
        visit(0, (3, 4, 5)),
        starts(1, (0, 100, 200)),
        Round(round=0, complete=True),
        Finished(),
    ]
    other = [
        launch(),
        visit(1, (8, 40, 60), queued_ns=9, dispatch_ns=(2, 4, 3)),
        starts(1, (900, 130, 260)),
        Round(round=0, complete=True),
        Finished(),
    ]
    players = Player(0, lead), Player(1, other)
    messages = heard(*players)
    (joint,) = of(Launch, messages)
    assert (joint.processes, joint.nodes, joint.devices_per_node, joint.barrier) == (2, 1, 4, "coordination service")
    assert len(joint.machines) == 2
    apart, alone = of(Visit, messages)
    assert apart.latency_ns == (9, 50, 60)
    assert apart.ranks_ns == ((9, 50, 30), (8, 40, 60))
    assert apart.dispatch_ns == (2, 5, 3)
    assert apart.queued_ns == 9
    # Of the calls after the warm-up: 30 and 60 ns apart.
    assert apart.skew_ns == np.median([30, 60])
    assert (alone.latency_ns, alone.ranks_ns, alone.skew_ns) == ((3, 4, 5), (), None)
    assert [type(m).__name__ for m in messages[-4:]] == ["Visit", "Visit", "Round", "Finished"]
    assert [player.answers for player in players] == [1, 1]


def test_on_two_hosts_there_is_no_skew(heard):
    def said(boot):
        return [launch(boot), visit(1, (9, 9)), starts(1, (0, 0)), Round(round=0, complete=True), Finished()]

    messages = heard(Player(0, said("b")), Player(1, said("c")))
    (joint,) = of(Launch, messages)
    assert (joint.nodes, joint.devices_per_node, joint.cores) == (2, 2, 2)
    assert of(Visit, messages)[0].skew_ns is None


@pytest.mark.parametrize(
    ("lead", "other", "cores"),
    [
        ({"affinity": (0, 1)}, {"affinity": (2, 3, 4)}, 5),
        ({"affinity": (0, 1)}, {"affinity": (1, 0)}, 2),
        ({"affinity": (0, 1), "quota_cores": 2.5}, {"affinity": (2, 3), "quota_cores": 2.5}, 3),
        ({"affinity": (0, 1)}, {}, 4),
        ({"affinity": (0, 1, 2, 3)}, {"affinity": (0, 1, 2), "boot": "c"}, 3),
    ],
)
def test_cores_are_those_that_a_nodes_processes_have_together(heard, lead, other, cores):
    messages = heard(Player(0, [launch(**lead), Finished()]), Player(1, [launch(**other), Finished()]))
    assert of(Launch, messages)[0].cores == cores


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (launch(jax="2"), "rank 1 has jax 2, rank 0 has 1"),
        (launch(kind="H100"), "rank 1 has device kind H100, rank 0 has cpu"),
        (launch(devices=3), "rank 1 has device count 3, rank 0 has 2"),
    ],
)
def test_processes_that_cannot_be_compared_are_refused(heard, other, what):
    messages = heard(Player(0, [launch()]), Player(1, [other]))
    assert [type(message) for message in messages] == [Failure]
    assert (messages[0].stage, messages[0].error, messages[0].rank) == ("launch", "MeasureError", 1)
    assert what in messages[0].message


@pytest.mark.parametrize(
    ("boots", "told"),
    [
        ("bbc", "2 on host of b, 1 on host of c"),
        ("bcc", "1 on host of b, 2 on host of c"),
        ("bcbc", "1 on host of b, 1 on host of c, 1 on host of b, 1 on host of c"),
    ],
)
def test_ranks_that_do_not_fill_equal_hosts_in_their_order_are_refused(heard, boots, told):
    (found,) = heard(*(Player(rank, [launch(boot)]) for rank, boot in enumerate(boots)))
    assert (found.stage, found.error, found.rank) == ("launch", "MeasureError", None)
    assert f"the ranks lie, in their order, {told}." in found.message
    assert "--ntasks-per-node=K" in found.message


def test_ranks_that_fill_equal_hosts_in_their_order_are_joined(heard):
    (joint,) = heard(*(Player(rank, [launch(boot), Finished()]) for rank, boot in enumerate("bbcc")))[:1]
    assert (joint.nodes, len(joint.machines)) == (2, 4)


def on_gpus(*buses, boot="b", kind="H200"):
    """A rank with two devices on a host where its driver names these accelerators."""
    texts = tuple(f"name {kind}, driver_version 5, pci.bus_id {bus}" for bus in buses)
    said = Machine(host=f"host of {boot}", boot=boot, accelerators=texts)
    return msgspec.structs.replace(launch(boot, kind=kind), machines=(said,))


def test_ranks_of_a_host_that_count_the_same_accelerators_are_refused(heard):
    (found,) = heard(Player(0, [on_gpus("0:1", "0:2")]), Player(1, [on_gpus("0:2", "0:1")]))
    assert (found.stage, found.error, found.rank) == ("launch", "MeasureError", None)
    assert "ranks 0, 1 on host of b have 4 devices together, but that host has 2 accelerators" in found.message


@pytest.mark.parametrize(
    "launches",
    [
        # The driver names all of the host, whichever a rank may use.
        [on_gpus("0:1", "0:2", "0:3", "0:4"), on_gpus("0:1", "0:2", "0:3", "0:4")],
        # It names those of the rank.
        [on_gpus("0:1", "0:2"), on_gpus("0:3", "0:4")],
        [on_gpus("0:1", "0:2"), on_gpus("0:1", "0:2", boot="c")],
        # It does not answer, or the accelerators are divided.
        [on_gpus("0:1", "0:2"), on_gpus()],
        [on_gpus("0:1", kind="H200 MIG 1g.18gb"), on_gpus("0:1", kind="H200 MIG 1g.18gb")],
    ],
)
def test_ranks_with_accelerators_of_their_own_are_joined(heard, launches):
    messages = heard(*(Player(rank, [said, Finished()]) for rank, said in enumerate(launches)))
    assert [type(message) for message in messages] == [Launch, Finished]


def test_visits_come_in_the_first_process_order(heard):
    def said(*positions):
        visits = [visit(i, (9, 9), position=place) for place, i in enumerate(positions)]
        return [launch(), *visits, *(starts(i, (0, 0)) for i in positions), Round(round=0, complete=True), Finished()]

    messages = heard(Player(1, said(0, 1)), Player(0, said(1, 0)))
    assert [v.program for v in of(Visit, messages)] == [1, 0]
    messages = heard(Player(0, said(1, 0)), Player(1, said(0, 1)))
    assert [v.program for v in of(Visit, messages)] == [1, 0]


def test_what_the_reader_takes_long_over_is_nobodys_silence():
    players = [Player(rank, [launch()], [Finished()]) for rank in (0, 1)]
    with Group(REQUEST, lambda _request: players) as group:
        messages = []
        for message in group.messages():
            messages.append(message)
            time.sleep(1.5 * PLAN.step_timeout_s)
    assert [type(message) for message in messages] == [Launch, Finished]


@pytest.mark.parametrize("seconds", [0.25, 0.9])
def test_what_was_said_while_the_parent_was_stopped_is_heard_first(seconds, monkeypatch):
    """A suspended job: however long it stands still, select then comes back empty though there is something to read."""
    players = [Player(rank, [launch(), Finished()]) for rank in (0, 1)]
    with Group(REQUEST, lambda _request: players) as group:
        listen, stops = group._selector.select, iter([seconds, seconds])

        def select(wait_s):
            if (stopped_s := next(stops, 0.0)) and wait_s:
                time.sleep(stopped_s)
                return []
            return listen(wait_s)

        monkeypatch.setattr(group._selector, "select", select)
        assert [type(message) for message in group.messages()] == [Launch, Finished]


GLOO = failure("ValueError", "UNKNOWN: Gloo all-reduce failed: [...] Connection closed by peer [127.0.0.1]:62670")
GONE = failure("Died", "the process was ended by SIGABRT; the last it printed: the JAX distributed service detected")
KILLED = failure("Died", "the process was ended by SIGKILL")


@pytest.mark.parametrize("consequence", [GLOO, GONE])
@pytest.mark.parametrize("guilty", [0, 1])
def test_the_root_is_found_behind_what_follows_it(heard, consequence, guilty):
    """Whoever is heard first, and though it takes a while until the other is."""
    said = {guilty: [KILLED], 1 - guilty: [consequence]}
    for order in ((0, 1), (1, 0)):
        players = [Player(rank, *([] if late else [said[rank]])) for late, rank in enumerate(order)]
        late = players[1]
        late._batches.append(said[late.rank])
        late._ring(1)
        messages = heard(*sorted(players, key=lambda player: player.rank))
        assert [(m.error, m.rank, m.message) for m in messages] == [
            ("Died", guilty, f"rank {guilty}: the process was ended by SIGKILL")
        ]


def test_the_same_failure_of_all_is_said_once_and_blames_no_rank(heard):
    messages = heard(Player(0, [failure()]), Player(1, [failure()]))
    assert messages == [failure()]


def test_what_one_process_does_alone_costs_its_cell_only(heard):
    own = failure(n=2)
    lead = [launch(), *programs(), own, Round(round=0, complete=False), Finished()]
    messages = heard(Player(0, lead), Player(1, [launch(), Round(round=0, complete=True), Finished()]))
    assert [(f.rank, f.message) for f in of(Failure, messages)] == [(0, "rank 0: no")]
    assert isinstance(messages[-1], Finished)
    assert [r.complete for r in of(Round, messages)] == [False]


def test_what_all_agreed_on_is_passed_on(heard):
    agreed = failure(stage="compile", message="rank 1: no", rank=1)
    messages = heard(Player(0, [launch(), agreed, Finished()]), Player(1, [launch(), Finished()]))
    assert of(Failure, messages) == [agreed]


def test_a_trace_that_cannot_be_read_costs_its_cell_only(heard):
    unread = failure(stage="trace")
    messages = heard(Player(0, [launch(), unread, Finished()]), Player(1, [launch(), Finished()]))
    assert of(Failure, messages) == [unread]
    assert isinstance(messages[-1], Finished)


WAITS = failure(WAITING, "it waited for the others")
SLEEPS = failure("Hung", "it was ended", frames=('File "mine.py", line 3 in sleep',))
ASLEEP_TOO = failure("Hung", "it was ended", frames=('File "mine.py", line 4 in call',))
ON_IT = Step(stage="build", cell=cell(4))
SILENCE = "no sign of life for 0.3 s (if it only needs longer: --timeout)"


@pytest.mark.parametrize(
    ("lead", "other", "rank", "message"),
    [
        ((WAITS,), (SLEEPS,), 1, "rank 1: it was ended"),
        ((SLEEPS,), (WAITS,), 0, "rank 0: it was ended"),
        ((WAITS,), (), 1, "rank 1: it does not answer"),
        ((ASLEEP_TOO,), (), 1, "rank 1: it does not answer"),
        ((WAITS,), (WAITS,), None, "all processes wait for each other"),
        (
            (ASLEEP_TOO,),
            (SLEEPS,),
            None,
            'rank 0 was in File "mine.py", line 4 in call; rank 1 was in File "mine.py", line 3 in sleep',
        ),
    ],
)
def test_silence_is_ended_and_whoever_does_not_wait_is_named(heard, lead, other, rank, message):
    messages = heard(Player(0, [ON_IT], when_stopped=lead), Player(1, [ON_IT], when_stopped=other))
    (found,) = of(Failure, messages)
    assert (found.error, found.rank, found.cell) == ("Hung", rank, cell(4))
    assert found.message == f"{SILENCE}; {message}"


def test_who_has_finished_is_not_blamed_for_its_silence(heard):
    (found,) = of(Failure, heard(Player(0, [Finished()]), Player(1, [ON_IT], when_stopped=(SLEEPS,))))
    assert (found.error, found.rank, found.message) == (
        "Hung",
        1,
        f"{SILENCE}; rank 1: it was ended",
    )
    (found,) = of(Failure, heard(Player(0, [Finished()]), Player(1, [ON_IT], when_stopped=(WAITS,))))
    assert found.message == f"{SILENCE}; rank 1 waited for others that had finished"


def test_a_time_out_of_the_transport_is_not_blamed_on_who_reports_it(heard):
    messages = heard(Player(0, [GLOO]), Player(1, [ON_IT], when_stopped=(SLEEPS,)))
    assert [(m.error, m.rank) for m in of(Failure, messages)] == [("Hung", 1)]


def test_a_lost_process_ends_the_launch_at_once(heard):
    messages = heard(Player(0, [launch()]), Player(1, [failure("Lost", "the connection was lost", stage="launch")]))
    assert [(m.error, m.rank, m.message) for m in messages] == [("Lost", 1, "rank 1: the connection was lost")]


def test_what_follows_and_what_does_not():
    assert follows(GLOO)
    assert follows(GONE)
    assert follows(WAITS)
    assert not follows(KILLED)
    assert not follows(failure(SILENT, "it does not answer"))
    assert not follows(failure(message="CUDA out of memory"))


def test_where_all_only_follow_the_first_is_told():
    found = root([GLOO, GONE], 2)
    assert found.error == "ValueError"
