"""Cells that print, fork, exit, abort, deadlock or eat all memory: a failure line each, and the others complete."""

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import msgspec
import pytest
from breakeven.data import store
from breakeven.data.rounds import timed_visits
from breakeven.measure import out_of_memory, sweep
from breakeven.measure.processes.group import Group
from breakeven.measure.protocol import Request
from breakeven.model.cell import Cell


def cell(size, num_devices=1):
    return Cell(role="workload", strategy="as-written", num_devices=num_devices, size=size)


def measured(record):
    return {v.cell for v in timed_visits(record) if v.complete}


ZOO = """
import resource, signal

def misbehaves(size):
    if size == 2:
        print("a line", flush=True); os.write(1, b"{half a message")
    if size == 3 and os.fork() == 0:
        raise RuntimeError("a copy of the process that goes its own way")
    if size == 4:
        sys.exit("bye")
    if size == 5:
        os._exit(0)
    if size == 6:
        os.abort()
    if size == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    if size == 8:
        limit = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, limit[1]))
        try:
            np.ones(1 << 30)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limit)

calls = {}

def build(mesh, size):
    rows, v = placed(mesh, size)

    def run(x, v):
        calls[size] = calls.get(size, 0) + 1
        if calls[size] == 12:  # it was compiled and looked at, and is timed
            misbehaves(size)
        return float(mean(x, v))

    return run, (rows, v)
"""


def test_each_kind_costs_its_own_cell(user_file, plan_of, tmp_path):
    """Three of them end their process twice each: more launches than a sweep replaces where nothing gets further."""
    plan = plan_of(
        user_file(ZOO), devices=(1,), sizes=tuple(range(1, 9)), visible_devices=1, launches=1, queued_calls=0
    )
    record = store.read(sweep.run(plan, tmp_path / "sweep.jsonl"))
    by_cell = {}
    for failure in record.failures:
        by_cell.setdefault(failure.cell.size, []).append(failure)
    assert set(by_cell) == {4, 5, 6, 7, 8}
    assert {f.error for f in by_cell[4]} == {"SystemExit"}
    assert {f.message for f in by_cell[4]} == {"bye"}
    assert {f.error for f in by_cell[8]} <= {"MemoryError", "_ArrayMemoryError"}
    for size, end in ((5, "exited with code 0"), (6, "was ended by SIGABRT"), (7, "was ended by SIGKILL")):
        assert [(f.stage, f.error) for f in by_cell[size]] == [("visit", "Died")] * 2
        assert all(end in f.message for f in by_cell[size])
    assert {f.stage for f in record.failures} == {"visit"}
    assert {cell(1), cell(2), cell(3)} <= measured(record)
    assert not {cell(size) for size in (5, 6, 7)} & measured(record)


def test_a_deadlock_is_ended_and_named(user_file, plan_of):
    """Half of the devices wait in a collective that the others never enter."""
    name = user_file(
        """
        calls = [0]

        def deadlocks(x, v):
            axis = mesh_of[0].axis_names[0]

            def alone(y):
                return jax.lax.cond(jax.lax.axis_index(axis) == 0, lambda z: jax.lax.psum(z, axis), lambda z: 2 * z, y)

            spec = P(axis)
            return jax.shard_map(alone, mesh=mesh_of[0], in_specs=spec, out_specs=spec, check_vma=False)(x)

        mesh_of = []

        def build(mesh, size):
            if mesh.size == 2:
                mesh_of.append(mesh)
                return deadlocks, placed(mesh, size)
            return mean, placed(mesh, size)
        """
    )
    plan = plan_of(name, step_timeout_s=8.0)
    started = time.monotonic()
    with Group(Request(plan=plan, sweep=uuid.uuid4().hex, launch=uuid.uuid4().hex, parent=os.getpid())) as group:
        messages = list(group.messages())
    # XLA would abort by itself after 40 s.
    assert time.monotonic() - started < 38
    failure = messages[-1]
    assert (failure.error, failure.cell) == ("Hung", cell(16, 2))


GREEDY = """
def build(mesh, size):
    if mesh.size == 2:
        np.ones(1 << 28)  # 2 GiB
    return mean, placed(mesh, size)
"""

RUN = """
import os, sys, msgspec
from breakeven.data.schema import Plan
from breakeven.measure import sweep
with open(sys.argv[3], "w") as file:
    file.write(str(os.getpid()))
sweep.run(msgspec.json.decode(sys.argv[1], type=Plan), sys.argv[2])
"""


@pytest.fixture
def small_memory():
    """The list of processes of a control group that may use 900 MiB; only root may make one."""
    name = f"breakeven-{uuid.uuid4().hex[:8]}"
    v2, v1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
    group, limit = (v1 / name, "memory.limit_in_bytes") if v1.is_dir() else (v2 / name, "memory.max")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here (it takes root and a writable {group.parent}): {error}")
    try:
        try:
            (group / limit).write_text(str(900 << 20))
        except OSError as error:
            pytest.skip(f"no memory limit can be set here: {error}")
        yield group / "cgroup.procs"
    finally:
        deadline = time.monotonic() + 10
        while True:  # processes that were just ended are in it for a while
            try:
                group.rmdir()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def test_when_memory_runs_out_the_child_is_the_kernels_victim(user_file, plan_of, small_memory, tmp_path):
    plan, path = plan_of(user_file(GREEDY), launches=1), tmp_path / "sweep.jsonl"
    arguments = [msgspec.json.encode(plan).decode(), str(path), str(small_memory)]
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = store.read(path)
    assert [(f.stage, f.error, f.cell) for f in record.failures] == [("build", "Died", cell(16, 2))] * 2
    assert all("was ended by SIGKILL: memory ran out" in f.message for f in record.failures)
    assert measured(record) == {cell(8)}


def test_a_child_volunteers(user_file, plan_of):
    name = user_file(
        """
        def build(mesh, size):
            raise RuntimeError(open("/proc/self/oom_score_adj").read())
        """
    )
    with Group(
        Request(plan=plan_of(name), sweep=uuid.uuid4().hex, launch=uuid.uuid4().hex, parent=os.getpid())
    ) as group:
        assert "1000\n" in [getattr(message, "message", None) for message in group.messages()]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("sys/fs/cgroup/a/b/memory.events", "low 0\nhigh 0\nmax 7\noom 4\noom_kill 3\noom_group_kill 0\n"),
        ("sys/fs/cgroup/memory/a/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        ("sys/fs/cgroup/memory.events", "oom 4\noom_kill 3\n"),
        ("proc/vmstat", "nr_free_pages 5\noom_kill 3\n"),
    ],
)
def test_where_the_kernels_count_stands(tmp_path, file, text):
    for path, content in {"proc/self/cgroup": "0::/a/b\n", "proc/vmstat": "oom_kill 99\n", file: text}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    assert out_of_memory.kills(tmp_path) == 3


def test_where_nothing_counts_nothing_is_said(tmp_path):
    assert out_of_memory.kills(tmp_path) is None
    out_of_memory.volunteer(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_score_that_nobody_may_write_costs_nothing(tmp_path):
    (tmp_path / "proc/self/oom_score_adj").mkdir(parents=True)  # as /proc mounted to be read only, to root too
    out_of_memory.volunteer(tmp_path)
