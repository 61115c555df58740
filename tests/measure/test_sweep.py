"""Whole sweeps: real launches into a record, and whatever may end them."""

import os
import random
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from breakeven.data import store
from breakeven.measure import sweep
from breakeven.measure.workload import MeasureError
from breakeven.model.cell import Cell


def cell(num_devices):
    return Cell(role="workload", strategy="as-written", num_devices=num_devices, size=8 * num_devices)


def complete(path):
    return sweep.complete_launches(store.read(path))


def test_a_sweep_is_a_record_of_complete_launches(user_file, plan_of, tmp_path):
    plan, heard = plan_of(user_file(), controls=True, probes=True), []
    path = sweep.run(plan, tmp_path / "new" / "sweep.jsonl", on_progress=heard.append)
    record = store.read(path)
    assert [s.plan for s in record.sweeps] == [plan]
    assert len(record.launches) == len({launch.pid for launch in record.launches}) == 2
    assert sweep.complete_launches(record) == 2
    assert record.failures == ()
    assert len(record.visits) == 2 * 2 * 12
    assert [(p.launch, p.round) for p in heard if p.what == "measuring"] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert any("compile workload/as-written on 2 devices" in p.what for p in heard)


def test_a_finished_sweep_is_left_as_it_is(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(), launches=1), tmp_path / "sweep.jsonl"
    before = sweep.run(plan, path).read_bytes()
    assert sweep.run(plan, path).read_bytes() == before


def test_another_plan_in_the_file_is_named(user_file, plan_of, tmp_path):
    name, path = user_file(), tmp_path / "sweep.jsonl"
    before = sweep.run(plan_of(name, launches=1), path).read_bytes()
    with pytest.raises(
        MeasureError, match=r"another plan; they differ in launches \(1 there, 3 now\), queued calls \("
    ):
        sweep.run(plan_of(name, launches=3, queued_calls=0), path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_record_is_not_touched(user_file, plan_of, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(store.RecordError, match="not a breakeven record"):
        sweep.run(plan_of(user_file()), path)
    assert path.read_text() == "my notes\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "raise RuntimeError('theirs')",
            r"(?s)measured \(workload.*line \d+, in build.*RuntimeError: theirs",
        ),
        ("return None", "build returned nothing"),
        ("return (lambda x, v: x * np.nan), placed(mesh, size)", "the function returned NaN"),
        ("sys.exit('bye')", "SystemExit: bye"),
    ],
)
def test_a_users_mistake_writes_nothing(user_file, plan_of, tmp_path, body, message):
    path = tmp_path / "sweep.jsonl"
    with pytest.raises(MeasureError, match=message):
        sweep.run(plan_of(user_file(f"def build(mesh, size):\n    {body}\n")), path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"devices": (1, 3)}, "asked for 3 devices, but JAX found 2"),
        ({"platform": "gpu"}, "asked for gpu, but JAX found cpu"),
        ({"strategies": ("pmap",)}, "no strategy 'pmap' in .*mine.py:build; it has as-written"),
    ],
)
def test_a_plan_that_cannot_be_run_here_writes_nothing(user_file, plan_of, tmp_path, wrong, message):
    path = tmp_path / "sweep.jsonl"
    with pytest.raises(MeasureError, match=message):
        sweep.run(plan_of(user_file(), **wrong), path)
    assert not path.exists()


def test_a_workload_that_kills_every_process_writes_nothing_and_stops(user_file, plan_of, tmp_path):
    path = tmp_path / "sweep.jsonl"
    name = user_file("def build(mesh, size):\n    os.abort()\n")
    with pytest.raises(MeasureError, match=r"(?s)cannot be measured|4 launches were tried, giving up\.\n.*SIGABRT"):
        sweep.run(plan_of(name), path)
    assert not path.exists()


def test_a_cell_that_aborts_is_barred_and_the_rest_is_measured(user_file, plan_of, tmp_path):
    name = user_file(
        """
        calls = [0]

        def aborts(x):
            calls[0] += 1
            if calls[0] > 12:
                os.abort()
            return x

        def build(mesh, size):
            rows, v = placed(mesh, size)
            if mesh.size == 1:
                return mean, (rows, v)
            shape = jax.ShapeDtypeStruct((), jnp.float32)
            return (lambda x, v: jax.pure_callback(aborts, shape, mean(x, v))), (rows, v)
        """
    )
    path = sweep.run(plan_of(name, queued_calls=0, rounds=4), tmp_path / "sweep.jsonl")
    record = store.read(path)
    died = [f for f in record.failures if f.error == "Died"]
    assert [(f.stage, f.cell) for f in died] == [("visit", cell(2))] * 2
    assert "SIGABRT" in died[0].message
    # Both died after a round without that cell's death, so both are used; what they lack of rounds is made up.
    assert sweep.complete_launches(record) == len(record.launches)
    assert sweep.complete_rounds(record) >= 2 * 4
    measured = {p.launch for p in record.programs if p.cell == cell(1)}
    assert {launch.launch for launch in record.launches} == measured


def test_a_cell_that_hangs_costs_its_time_and_is_barred(user_file, plan_of, tmp_path):
    name = user_file(
        """
        def build(mesh, size):
            if mesh.size == 2:
                time.sleep(600)
            return mean, placed(mesh, size)
        """
    )
    path = sweep.run(plan_of(name, step_timeout_s=6.0, launches=1), tmp_path / "sweep.jsonl")
    record = store.read(path)
    assert [(f.stage, f.error, f.cell) for f in record.failures] == [("build", "Hung", cell(2))] * 2
    assert sweep.complete_launches(record) == 1


def test_calls_that_take_long_are_no_hang(user_file, plan_of, tmp_path):
    """Each visit takes longer than the watchdog allows silence, no call does."""
    name = user_file(
        """
        def build(mesh, size):
            def slow(x, v):
                time.sleep(0.6 * float(v[0]))
                return v
            return slow, placed(mesh, size)
        """
    )
    plan = plan_of(name, step_timeout_s=8.0, launches=1, rounds=1, devices=(1,), warmups=2, calls=14, queued_calls=2)
    record = store.read(sweep.run(plan, tmp_path / "sweep.jsonl"))
    assert record.failures == ()
    assert sum(record.visits[0].latency_ns) * 1e-9 > 8


def test_calls_that_work_one_by_one_only_cost_the_queued_number(user_file, plan_of, tmp_path):
    """The second output that is alive finds no memory."""
    name = user_file(
        """
        import weakref
        alive = weakref.WeakSet()

        class Output(list):
            __hash__ = object.__hash__

        def build(mesh, size):
            rows = placed(mesh, size)
            def fn(x, v):
                if len(alive) > 1:
                    raise MemoryError("RESOURCE_EXHAUSTED: no room for a second output")
                found = Output([mean(x, v)])
                alive.add(found)
                return found
            jax.tree_util.register_pytree_node(Output, lambda o: (tuple(o), None), lambda _, c: Output(c))
            return (lambda x, v: fn(x, v) if float(v[0]) > 0 else None), rows
        """
    )
    plan = plan_of(name, launches=1, devices=(1,), queued_calls=4)
    record = store.read(sweep.run(plan, tmp_path / "sweep.jsonl"))
    assert [(f.stage, f.error, f.cell) for f in record.failures] == [("queue", "MemoryError", cell(1))]
    assert {visit.queued_ns for visit in record.visits} == {None}
    assert sweep.complete_launches(record) == 1
    assert sweep.complete_rounds(record) == 2


@pytest.mark.parametrize("replaced", [False, True])
def test_a_record_that_somebody_removes_ends_the_sweep_at_once(user_file, plan_of, tmp_path, replaced):
    path = tmp_path / "sweep.jsonl"

    def remove(progress):
        if progress.round == 2 and path.exists():
            held = path.read_bytes()
            path.unlink()
            if replaced:
                path.write_bytes(held)

    with pytest.raises(store.RecordError, match=r"sweep\.jsonl was removed or replaced while it was being written"):
        sweep.run(plan_of(user_file(), launches=1, rounds=4), path, on_progress=remove)


def test_a_cell_that_raises_is_barred_and_the_rest_is_measured(user_file, plan_of, tmp_path):
    name = user_file(
        """
        def build(mesh, size):
            if mesh.size == 2:
                raise OSError("no data for two")
            return mean, placed(mesh, size)
        """
    )
    record = store.read(sweep.run(plan_of(name, launches=3), tmp_path / "sweep.jsonl"))
    # The third launch does not try it again.
    assert [(f.error, f.cell) for f in record.failures] == [("OSError", cell(2))] * 2
    assert sweep.complete_launches(record) == 3


def test_a_budget_is_kept(user_file, plan_of, tmp_path):
    plan = plan_of(user_file(), budget_s=12.0, rounds=None, calls=None)
    start = time.monotonic()
    path = sweep.run(plan, tmp_path / "sweep.jsonl")
    # Two launches of this need a second or two each; the rest of the time is room for a busy machine.
    assert time.monotonic() - start < 14.0
    assert complete(path) == 2


def test_a_record_with_more_launches_than_planned_leaves_the_trace_the_rest_of_the_time(plan_of, tmp_path):
    """Records joined into one may hold more than one plan asked for."""
    plan = msgspec.structs.replace(plan_of("w", launches=2, budget_s=60.0), trace=True)
    state = sweep._Sweeping(plan=plan, path=tmp_path / "sweep.jsonl", on_progress=lambda _progress: None)
    state.done, state.ends_at = 3, time.monotonic() + 10
    assert state._missing == 0
    assert state._share() == pytest.approx(state.ends_at, abs=0.1)


def test_a_sweep_stops_when_enough_is_known_and_goes_on_when_it_is_not(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(), launches=5), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: sweep.complete_launches(record) >= 2)
    assert complete(path) == 2
    sweep.run(plan, path, enough=lambda record: sweep.complete_launches(record) >= 2)
    assert complete(path) == 2
    sweep.run(plan, path, enough=lambda record: sweep.complete_launches(record) >= 3)
    assert complete(path) == 3


def test_a_sweep_that_never_knows_enough_ends_at_its_budget(user_file, plan_of, tmp_path):
    plan = plan_of(user_file(), launches=100, budget_s=6.0)
    path = sweep.run(plan, tmp_path / "sweep.jsonl", enough=lambda record: False)
    assert 1 <= complete(path) < 100


SWEEP = """
import sys, msgspec
from breakeven.data.schema import Plan
from breakeven.measure import sweep
plan = msgspec.json.decode(sys.argv[1], type=Plan)
print("started", flush=True)
try:
    sweep.run(plan, sys.argv[2], on_progress=lambda p: print(p.what, flush=True))
except sweep.Interrupted as interruption:
    print(interruption, flush=True)
    sys.exit(130)
"""


def start(plan, path):
    return subprocess.Popen(
        [sys.executable, "-c", SWEEP, msgspec.json.encode(plan).decode(), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def read_until(process, what):
    assert process.stdout is not None
    for line in process.stdout:
        if what in line:
            return line
    raise AssertionError(f"{what!r} was never said")


def test_ctrl_c_closes_the_record_and_the_same_plan_goes_on(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(), rounds=60, launches=2), tmp_path / "sweep.jsonl"
    with start(plan, path) as process:
        read_until(process, "measuring")
        os.killpg(process.pid, signal.SIGINT)
        said = read_until(process, "interrupted")
    assert said == f"interrupted: {path} holds 1 of 2 launches; the same command goes on.\n"
    assert process.returncode == 130
    first = store.read(path)
    assert sweep.complete_launches(first) == 1
    sweep.run(plan, path)
    record = store.read(path)
    # The launch that was cut short counts, and the rounds it lacks are made up by one more.
    assert sweep.complete_launches(record) == len(record.launches) == 3
    assert sweep.complete_rounds(record) >= 2 * 60
    assert record.visits[: len(first.visits)] == first.visits


@pytest.mark.parametrize("touched", [False, True])
def test_ctrl_c_before_anything_is_measured_writes_nothing(user_file, plan_of, tmp_path, touched):
    path = tmp_path / "sweep.jsonl"
    if touched:
        path.touch()
    with start(plan_of(user_file()), path) as process:
        read_until(process, "starting a process")
        os.killpg(process.pid, signal.SIGINT)
        assert "nothing was written" in read_until(process, "interrupted")
    assert process.returncode == 130
    assert path.exists() == touched
    assert not touched or path.stat().st_size == 0


@pytest.mark.filterwarnings("ignore:.*the last line was cut while being written")
def test_a_sweep_killed_at_any_moment_goes_on(user_file, plan_of, tmp_path):
    """SIGKILL at seeded random moments: nothing that was complete is lost, and the plan is fulfilled in the end."""
    plan, path = plan_of(user_file(), rounds=40, launches=4, calls=8), tmp_path / "sweep.jsonl"
    moments, before = random.Random(1), ()
    for _ in range(4):
        with start(plan, path) as process:
            read_until(process, "started")
            time.sleep(moments.uniform(0.3, 2.5))
            process.kill()
        if path.exists():
            visits = store.read(path).visits
            assert visits[: len(before)] == before
            before = visits
    sweep.run(plan, path)
    record = store.read(path)
    assert record.visits[: len(before)] == before
    assert sweep.complete_launches(record) >= 4
    assert sweep.complete_rounds(record) >= 4 * 40
    assert len({s.sweep for s in record.sweeps}) == 1


def test_a_cut_last_line_is_ended_and_the_sweep_goes_on(user_file, plan_of, tmp_path):
    name, path = user_file(), tmp_path / "sweep.jsonl"
    plan = plan_of(name, launches=2)
    sweep.run(plan, path)
    lines = path.read_bytes().splitlines(keepends=True)
    second = store.read(path).launches[1].launch.encode()
    upto = next(i for i, line in enumerate(lines) if second in line and b'"kind":"visit"' in line)
    path.write_bytes(b"".join(lines[:upto]) + lines[upto][:40])
    with pytest.warns(UserWarning, match="last line was cut"):
        sweep.run(plan, path)
    assert complete(path) == 2
    assert len(store.read(path).launches) == 3


def test_a_program_that_is_built_before_all_processes_are_there_is_judged_then(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file()), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: True)
    record = store.read(path)
    state = sweep._Sweeping(plan=plan, path=path, on_progress=lambda _progress: None)
    state.open()
    later = {"sweep": record.launches[0].sweep, "launch": "later"}
    state._take(msgspec.structs.replace(record.programs[0], **later, fingerprint="edited"))
    with pytest.raises(MeasureError, match="the program was changed"):
        state._take(msgspec.structs.replace(record.launches[0], **later))
