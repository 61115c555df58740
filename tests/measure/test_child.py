"""One launch: a real child process on forced host devices, and what it survives."""

import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from breakeven.data.schema import Failure, Launch, Program, Visit
from breakeven.measure.clock import MAX_CALLS, MIN_CALLS
from breakeven.measure.processes.group import Group
from breakeven.measure.protocol import Decoder, Finished, Ready, Request, Round, Step
from breakeven.model.cell import Cell


def launch(plan, **options):
    """Every message of one launch."""
    request = Request(plan=plan, sweep=uuid.uuid4().hex, launch=uuid.uuid4().hex, parent=os.getpid(), **options)
    with Group(request) as group:
        return list(group.messages())


def of(kind, messages):
    return [message for message in messages if isinstance(message, kind)]


def cell(num_devices, role="workload", size=None, **probe):
    size = 8 * num_devices if size is None else size
    return Cell(role=role, strategy="as-written", num_devices=num_devices, size=size, **probe)


def test_a_launch_with_controls_and_probes(user_file, plan_of):
    plan = plan_of(user_file(), controls=True, probes=True, queued_calls=4)
    messages = launch(plan)
    assert of(Failure, messages) == []
    assert isinstance(messages[-1], Finished)
    (found,) = of(Launch, messages)
    assert (found.platform, found.visible_devices) == ("cpu", 2)
    assert found.cores is not None
    assert "--xla_force_host_platform_device_count=2" in (found.xla_flags or "")

    programs = {p.cell: p for p in of(Program, messages)}
    chains = {(c.num_devices, c.payload_bytes, c.k) for c in programs if c.role == "chain"}
    # The workload's own payload is one float, so a quarter of it is the same.
    assert chains == {(2, 4, 1), (2, 4, 4), (2, 4, 16), (2, 16, 1), (2, 16, 16)}
    others = {c for c in programs if c.role != "chain"}
    assert others == {cell(n, role) for n in (1, 2) for role in ("workload", "local", "null")} | {cell(2, "replay")}
    kinds = [c.kind for c in programs[cell(2)].facts.collectives]
    assert kinds == ["all-reduce"]
    assert programs[cell(2, "local")].facts.collectives == ()
    assert programs[cell(2, "local")].control == "automatic"

    (ready,) = of(Ready, messages)
    assert (ready.programs, ready.workloads, ready.calls) == (12, 2, 3)
    visits = of(Visit, messages)
    for number in (0, 1):
        order = [v.program for v in sorted(visits, key=lambda v: v.position) if v.round == number]
        assert sorted(order) == list(range(12))
    assert [v.program for v in visits if v.round == 0] != [v.program for v in visits if v.round == 1]
    for visit in visits:
        assert len(visit.latency_ns) == plan.warmups + plan.calls
        assert min(visit.latency_ns) > 0
        queued = next(p for p in programs.values() if p.program == visit.program).cell.role in ("workload", "null")
        assert (visit.queued_ns is not None) == queued
    assert [r.complete for r in of(Round, messages)] == [True, True]


def test_the_random_order_is_seeded(user_file, plan_of):
    plan = plan_of(user_file(), devices=(1,), sizes=(1, 2, 3, 4, 5), rounds=3, calls=1, warmups=0)

    def order(**options):
        return [v.program for v in of(Visit, launch(plan, **options))]

    assert order() == order()
    assert order() != order(number=1)


def test_prints_harm_nothing(user_file, plan_of):
    name = user_file(
        """
        def build(mesh, size):
            print("one line"); sys.stdout.write("{"); os.write(1, b"raw\\n"); sys.stdout.flush()
            return mean, placed(mesh, size)
        """
    )
    messages = launch(plan_of(name))
    assert of(Failure, messages) == []
    assert len(of(Visit, messages)) == 4


def test_an_exception_costs_its_cell_and_shows_the_users_frames(user_file, plan_of):
    name = user_file(
        """
        def check(mesh):
            if mesh.size == 2:
                raise RuntimeError("two are too many")

        def build(mesh, size):
            check(mesh)
            return mean, placed(mesh, size)
        """
    )
    messages = launch(plan_of(name))
    (failure,) = of(Failure, messages)
    assert (failure.stage, failure.error, failure.message) == ("build", "RuntimeError", "two are too many")
    assert failure.cell == cell(2)
    assert [frame.rpartition(": ")[2] for frame in failure.frames] == [
        "check(mesh)",
        'raise RuntimeError("two are too many")',
    ]
    assert [p.cell for p in of(Program, messages)] == [cell(1)]
    assert len(of(Visit, messages)) == 2


@pytest.mark.parametrize(
    ("body", "stage", "error", "message"),
    [
        ("sys.exit(3)", "build", "SystemExit", "3"),
        ("return None", "compile", "MeasureError", "build returned nothing"),
        ("return (lambda x, v: None), placed(mesh, size)", "compile", "MeasureError", "returned nothing"),
        ("return (lambda x, v: x[0, 0] * np.nan), placed(mesh, size)", "compile", "MeasureError", "returned NaN"),
        ("return (lambda x, v: x @ x), placed(mesh, size)", "compile", "TypeError", "dot_general"),
    ],
)
def test_what_fails_before_it_is_timed(user_file, plan_of, body, stage, error, message):
    name = user_file(f"def build(mesh, size):\n    {body}\n")
    messages = launch(plan_of(name))
    failures = of(Failure, messages)
    assert [(f.stage, f.error, f.cell) for f in failures] == [(stage, error, cell(1)), (stage, error, cell(2))]
    assert message in failures[0].message
    assert of(Ready, messages)[0].workloads == 0
    assert isinstance(messages[-1], Finished)


RAISES_LATER = """
calls = [0]

def later(x, v):
    calls[0] += x.shape[0] == 16
    if x.shape[0] == 16 and calls[0] > 10:
        raise ValueError("enough")
    return float(mean(x, v))

def build(mesh, size):
    return later, placed(mesh, size)
"""


def test_a_cell_that_fails_twice_while_timed_is_left_out(user_file, plan_of):
    # Traced once, called six times to be checked and three times to calibrate; then it raises.
    plan = plan_of(user_file(RAISES_LATER), rounds=4, warmups=0, queued_calls=0)
    messages = launch(plan)
    failures = of(Failure, messages)
    assert [(f.stage, f.message, f.cell) for f in failures] == [("visit", "enough", cell(2))] * 2
    assert [r.complete for r in of(Round, messages)] == [False, False, True, True]
    assert {v.program for v in of(Visit, messages)} == {0}


def test_barred_cells_are_not_built(user_file, plan_of):
    messages = launch(plan_of(user_file()), barred=(cell(2),))
    assert [p.cell for p in of(Program, messages)] == [cell(1)]


def test_a_refused_local_control_is_said_once_and_costs_nothing_else(user_file, plan_of):
    name = user_file(
        """
        def build(mesh, size):
            return (lambda x, v: x @ x.T), placed(mesh, size)
        """
    )
    messages = launch(plan_of(name, controls=True, devices=(1, 2), sizes=(8, 16)))
    refusals = of(Failure, messages)
    assert refusals
    assert {f.stage for f in refusals} == {"control"}
    assert {f.cell.role for f in refusals} == {"local"}
    assert len({f.message for f in refusals}) == len(refusals)
    roles = {(p.cell.role, p.cell.num_devices) for p in of(Program, messages)}
    assert roles == {("workload", 1), ("workload", 2), ("null", 1), ("null", 2), ("local", 1)}


def test_a_users_own_control_is_used(user_file, plan_of):
    name = user_file(
        """
        import breakeven

        def without(mesh, size):
            fn = lambda x, v: jnp.mean(x @ v, keepdims=True)
            spec = P(mesh.axis_names[0])
            return jax.shard_map(fn, mesh=mesh, in_specs=(spec, P()), out_specs=spec), placed(mesh, size)

        @breakeven.workload(path="weak", local=without, work=lambda local_size: 100 * local_size)
        def build(mesh, size):
            return mean, placed(mesh, size)
        """
    )
    programs = {p.cell: p for p in of(Program, launch(plan_of(name, controls=True)))}
    assert programs[cell(2, "local")].control == "user"
    assert programs[cell(2, "local")].facts.collectives == ()
    assert programs[cell(2)].facts.work == 800


@pytest.mark.parametrize("work", ["-5", "1e300", "float('nan')"])
def test_work_that_is_no_amount_is_refused(user_file, plan_of, work):
    name = user_file(
        f"""
        import breakeven

        @breakeven.workload(work=lambda local_size: {work})
        def build(mesh, size):
            return mean, placed(mesh, size)
        """
    )
    failures = of(Failure, launch(plan_of(name, devices=(1,)), only_compile=True))
    assert [(f.stage, f.error) for f in failures] == [("compile", "MeasureError")]
    assert re.search(r"work\(8\) returned .+, a number from 0 to 1e\+30", failures[0].message)


def test_what_cannot_be_lowered_has_no_facts_and_no_controls(user_file, plan_of):
    name = user_file("def build(mesh, size):\n    return (lambda x, v: float(mean(x, v))), placed(mesh, size)\n")
    messages = launch(plan_of(name, controls=True, probes=True))
    assert [(p.cell.role, p.facts) for p in of(Program, messages)] == [("workload", None)] * 2
    (refusal,) = of(Failure, messages)
    assert refusal.stage == "control"
    assert "cannot be lowered" in refusal.message


def test_nothing_that_is_started_takes_the_parents_answers(user_file, plan_of):
    """What reads standard input, here or in the background, finds its end."""
    name = user_file(
        """
        import subprocess
        from pathlib import Path

        def build(mesh, size):
            Path(__file__).with_name("cat").unlink(missing_ok=True)
            subprocess.Popen(["sh", "-c", "cat > cat; echo ended >> cat"], cwd=Path(__file__).parent)
            if sys.stdin.read() == "" and os.fork() == 0:
                os.read(0, 1)
                os._exit(0)
            return mean, placed(mesh, size)
        """
    )
    messages = launch(plan_of(name, step_timeout_s=10.0))
    assert of(Failure, messages) == []
    assert [r.complete for r in of(Round, messages)] == [True, True]
    assert Path(name.rpartition(":")[0]).with_name("cat").read_text() == "ended\n"


def test_how_a_child_ended_is_fit_for_a_terminal(user_file, plan_of):
    """Signals without a name, and prints that a terminal would obey."""
    name = user_file(
        r"""
        def build(mesh, size):
            print("\x1b[2J\x1b]0;title\x07 µ", flush=True)
            os.kill(os.getpid(), 37)
        """
    )
    (failure,) = of(Failure, launch(plan_of(name)))
    assert failure.error == "Died"
    assert failure.message == (r"the process was ended by signal 37; the last it printed: \x1b[2J\x1b]0;title\x07 µ")


def test_a_folder_of_another_encoding_costs_its_cells_only(user_file, plan_of, tmp_path):
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    name = user_file(
        f"""
        sys.path.insert(0, os.fsdecode({os.fsencode(folder)!r}))
        import other
        def build(mesh, size):
            other.fails()
        """
    )
    (folder / "other.py").write_text("def fails():\n    raise ValueError('no')\n")
    messages = launch(plan_of(name))
    assert [f.message for f in of(Failure, messages)] == ["no", "no"]
    assert r"d\udcff/other.py" in of(Failure, messages)[0].frames[-1]
    assert isinstance(messages[-1], Finished)


def test_a_fork_is_silenced(user_file, plan_of):
    name = user_file(
        """
        def build(mesh, size):
            os.fork()
            return mean, placed(mesh, size)
        """
    )
    messages = launch(plan_of(name))
    assert of(Failure, messages) == []
    assert [p.cell for p in of(Program, messages)] == [cell(1), cell(2)]
    assert len(of(Visit, messages)) == 4
    assert len(of(Finished, messages)) == 1


@pytest.mark.parametrize(
    ("end", "how"),
    [("os.abort()", "was ended by SIGABRT"), ("os._exit(0)", "exited with code 0"), ("sys.exit()", None)],
)
def test_a_death_costs_the_step_under_way(user_file, plan_of, end, how):
    name = user_file(
        f"""
        calls = [0]

        def dies(x, v):
            calls[0] += x.shape[0] == 16
            if x.shape[0] == 16 and calls[0] > 10:
                print("last words", flush=True)
                {end}
            return float(mean(x, v))

        def build(mesh, size):
            return dies, placed(mesh, size)
        """
    )
    messages = launch(plan_of(name, rounds=3, warmups=0, queued_calls=0))
    failure = of(Failure, messages)[0]
    assert (failure.stage, failure.cell) == ("visit", cell(2))
    if how is None:
        assert failure.error == "SystemExit"
        assert isinstance(messages[-1], Finished)
    else:
        assert failure.error == "Died"
        assert how in failure.message
        assert "last words" in failure.message
        assert messages[-1] is failure
    if end == "os.abort()":
        assert any("in dies" in frame for frame in failure.frames)


def test_a_hang_is_ended_by_the_watchdog(user_file, plan_of):
    name = user_file(
        """
        def build(mesh, size):
            if mesh.size == 2:
                time.sleep(600)
            return mean, placed(mesh, size)
        """
    )
    start = time.monotonic()
    messages = launch(plan_of(name, step_timeout_s=10.0))
    assert time.monotonic() - start < 60
    failure = messages[-1]
    assert (failure.stage, failure.error, failure.cell) == ("build", "Hung", cell(2))
    assert "no sign of life for 10 s" in failure.message


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"devices": (1, 3)}, "asked for 3 devices, but JAX found 2"),
        ({"platform": "gpu"}, "asked for gpu, but JAX found cpu"),
    ],
)
def test_another_machine_than_asked_for_is_a_failure(user_file, plan_of, monkeypatch, wrong, message):
    messages = launch(plan_of(user_file(), **wrong))
    (failure,) = of(Failure, messages)
    assert failure.stage == "launch"
    assert message in failure.message
    assert of(Program, messages) == []


def test_calls_are_chosen_by_the_time_that_is_left(user_file, plan_of):
    plan = plan_of(user_file(), calls=None, rounds=None)
    messages = launch(plan, ends_at=time.monotonic() + 4.0)
    ready, visits = of(Ready, messages)[0], of(Visit, messages)
    assert MIN_CALLS <= ready.calls <= MAX_CALLS
    assert {len(v.latency_ns) for v in visits} == {plan.warmups + ready.calls}
    assert len(of(Round, messages)) <= 60
    late = of(Round, launch(plan, ends_at=time.monotonic()))
    # Too late for anything, yet one round is always made.
    assert [r.complete for r in late] == [True]


def test_only_compiling_visits_nothing(user_file, plan_of):
    messages = launch(plan_of(user_file()), only_compile=True)
    assert of(Ready, messages)[0].round_s > 0
    assert of(Visit, messages) == []


def test_steps_are_announced_before_they_are_done(user_file, plan_of):
    messages = launch(plan_of(user_file()))
    for position, message in enumerate(messages):
        if isinstance(message, Program):
            assert messages[position - 1] == Step(stage="compile", cell=message.cell)


def test_the_child_ends_with_its_parent(user_file, plan_of, tmp_path):
    script = (
        "import os, sys, time, msgspec\n"
        "from breakeven.data.schema import Plan, Launch, Program\n"
        "from breakeven.measure.processes.group import Group\n"
        "from breakeven.measure.protocol import Request\n"
        "plan = msgspec.json.decode(sys.argv[1], type=Plan)\n"
        "with Group(Request(plan=plan, sweep='s', launch='l', parent=os.getpid())) as group:\n"
        "    for message in group.messages():\n"
        "        if isinstance(message, Launch): print(message.pid, flush=True)\n"
        "        if isinstance(message, Program): os.kill(os.getpid(), 9)\n"
    )
    import msgspec

    plan = msgspec.json.encode(plan_of(user_file(), rounds=100_000)).decode()
    done = subprocess.run([sys.executable, "-c", script, plan], capture_output=True, text=True)
    assert done.returncode == -9
    pid = int(done.stdout)
    for _ in range(100):
        if not alive(pid):
            break
        time.sleep(0.1)
    assert not alive(pid)


def alive(pid):
    """Whether a process runs; one that ended and waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_messages_may_come_in_any_pieces():
    import msgspec

    said = [Step(stage="build", cell=cell(2)), Round(round=3, complete=True), Finished()]
    data = b"".join(msgspec.json.encode(message) + b"\n" for message in said)
    decoder = Decoder()
    assert [m for i in range(len(data)) for m in decoder.feed(data[i : i + 1])] == said


def test_without_any_limit_a_launch_chooses_a_number_of_calls(user_file, plan_of):
    messages = launch(plan_of(user_file(), calls=None, rounds=1))
    assert of(Ready, messages)[0].calls == 10
