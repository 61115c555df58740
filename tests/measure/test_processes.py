"""Launches of several real processes on this host: what they measure, and what is said when one of them fails."""

import os
import time

import pytest
from breakeven.data import store
from breakeven.data.schema import Failure, Launch, Plan, Program, Trace, Visit
from breakeven.measure import sweep
from breakeven.measure.processes.group import Group
from breakeven.measure.protocol import Finished, Ready, Request, Round
from breakeven.measure.workload import MeasureError
from breakeven.model.cell import Cell

FILE = """
import os, sys, time
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

def placed(mesh, size):
    rows = np.ones((size, 4), np.float32)
    sharding = NamedSharding(mesh, P(mesh.axis_names[0]))
    return (jax.make_array_from_callback(rows.shape, sharding, lambda index: rows[index]),)

@jax.jit
def mean(x):
    return jnp.mean(x)

def one_value(x):
    return float(mean(x).addressable_data(0))

def rank():
    return jax.process_index()

def across(mesh):
    return len({device.process_index for device in mesh.devices.flat}) > 1

def misbehaving(mesh, what):
    '''A function that cannot be traced, and does something odd from its seventh call over two processes on.'''
    calls = [0]
    def call(x):
        calls[0] += 1
        if across(mesh) and calls[0] > 7:
            what()
        return one_value(x)
    return call

def build(mesh, size):
    return mean, placed(mesh, size)

def build_killed(mesh, size):
    return misbehaving(mesh, lambda: rank() == 1 and os.kill(os.getpid(), 9)), placed(mesh, size)

def raise_on_one():
    if rank() == 1:
        raise ValueError("not here")

def build_raising(mesh, size):
    return misbehaving(mesh, raise_on_one), placed(mesh, size)

def build_hanging(mesh, size):
    if across(mesh) and rank() == 1:
        time.sleep(600)
    return mean, placed(mesh, size)

def build_on_one(mesh, size):
    if across(mesh) and rank() == 1:
        raise RuntimeError("two processes are too many")
    return mean, placed(mesh, size)

def build_nan_on_one(mesh, size):
    def call(x):
        value = one_value(x)
        return float("nan") if across(mesh) and rank() == 1 else value
    return call, placed(mesh, size)

def build_other_on_one(mesh, size):
    return (jax.jit(lambda x: jnp.mean(jnp.sin(x))) if across(mesh) and rank() == 1 else mean), placed(mesh, size)

def build_keyed(mesh, size):
    def noisy(key, x):
        return jnp.mean(x) + jax.random.normal(key)
    return noisy, (jax.random.key(3), *placed(mesh, size))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("several") / "mine.py"
    path.write_text(FILE)
    return path


def plan_of(workload, **options):
    small = {
        "path": "weak",
        "objective": "throughput",
        "devices": (1, 2),
        "sizes": (8,),
        "strategies": ("as-written",),
        "visible_devices": 2,
        "processes": 2,
        "launches": 1,
        "rounds": 2,
        "warmups": 1,
        "calls": 3,
        "queued_calls": 2,
        "controls": False,
        "probes": False,
        "step_timeout_s": 60.0,
    }
    return Plan(workload=workload, **small | options)


def launch(plan, **options):
    request = Request(plan=plan, sweep="s", launch="l", parent=os.getpid(), **options)
    with Group(request) as group:
        return list(group.messages())


def of(kind, messages):
    return [message for message in messages if isinstance(message, kind)]


def cell(n, role="workload", strategy="as-written"):
    return Cell(role=role, strategy=strategy, num_devices=n, size=8 * n)


@pytest.fixture(scope="module")
def four():
    """A launch of four processes, two devices each, all roles."""
    plan = plan_of(
        "mean-all",
        strategies=("jit",),
        devices=(1, 4, 8),
        visible_devices=8,
        processes=4,
        controls=True,
        probes=True,
        rounds=1,
    )
    return plan, launch(plan)


def test_four_processes_run_one_launch(four):
    _, messages = four
    (found,) = of(Launch, messages)
    assert (found.visible_devices, found.processes, found.devices_per_process) == (8, 4, 2)
    assert (found.nodes, found.devices_per_node, found.barrier) == (1, 8, "coordination service")
    assert len({machine.boot for machine in found.machines}) == 1
    assert len(found.machines) == 4
    assert of(Failure, messages) == []
    assert isinstance(messages[-1], Finished)
    assert [r.complete for r in of(Round, messages)] == [True]


def test_every_role_runs_on_meshes_within_and_across_processes(four):
    _, messages = four
    programs = {p.program: p for p in of(Program, messages)}
    roles = {(p.cell.role, p.cell.num_devices) for p in programs.values()}
    assert roles == {(role, n) for role in ("workload", "local", "null") for n in (1, 4, 8)} | {
        (role, n) for role in ("chain", "replay") for n in (4, 8)
    }
    visits = of(Visit, messages)
    assert sorted(v.program for v in visits) == sorted(programs)
    for visit in visits:
        n = programs[visit.program].cell.num_devices
        # Two devices each: a mesh of four needs two processes; the others skip it.
        taking_part = n // 2 if n > 2 else 0
        assert len(visit.ranks_ns) == taking_part
        assert (visit.skew_ns is not None) == (taking_part > 0)
        if taking_part:
            assert visit.latency_ns == tuple(max(calls) for calls in zip(*visit.ranks_ns, strict=True))
            assert visit.skew_ns >= 0


def test_the_collective_is_found_and_its_control_has_none(four):
    _, messages = four
    facts = {(p.cell.role, p.cell.num_devices): p.facts for p in of(Program, messages)}
    assert [c.kind for c in facts["workload", 8].collectives] == ["all-reduce"]
    assert facts["local", 8].collectives == ()
    assert facts["workload", 8].devices_used == 8


def test_a_carried_state_runs_across_processes():
    messages = launch(plan_of("train-step", strategies=("jit",), devices=(2,), controls=True, rounds=1))
    assert of(Failure, messages) == []
    assert {p.cell.role for p in of(Program, messages)} == {"workload", "local", "null"}
    assert [r.complete for r in of(Round, messages)] == [True]


def test_pmap_across_processes_is_refused_in_words():
    plan = plan_of("issue-21411", strategies=("jit", "pmap"), devices=(2,), rounds=1)
    messages = launch(plan)
    (failure,) = of(Failure, messages)
    assert (failure.cell, failure.rank) == (cell(2, strategy="pmap"), None)
    assert "runs in one process only; with --processes give --strategies jit,shard_map" in failure.message
    assert of(Ready, messages)[0].workloads == 1


def test_what_goes_wrong_in_a_call_of_one_process_ends_the_launch_and_is_told_once(file):
    messages = launch(plan_of(f"{file}:build_raising"))
    failure = messages[-1]
    assert of(Failure, messages) == [failure]
    assert (failure.stage, failure.error, failure.rank, failure.cell) == ("visit", "ValueError", 1, cell(2))
    assert failure.message == "rank 1: not here"
    assert failure.frames[-1].endswith('raise ValueError("not here")')


def test_a_process_that_hangs_is_named_within_the_watchdogs_time(file):
    start = time.monotonic()
    messages = launch(plan_of(f"{file}:build_hanging", step_timeout_s=5.0))
    assert time.monotonic() - start < 50
    failure = messages[-1]
    assert of(Failure, messages) == [failure]
    assert (failure.stage, failure.error, failure.rank, failure.cell) == ("build", "Hung", 1, cell(2))
    assert "no sign of life for 5 s (if it only needs longer: --timeout); rank 1" in failure.message
    assert failure.frames[-1].endswith("in build_hanging")


def test_what_cannot_be_built_somewhere_costs_its_cell_and_is_said_once(file):
    messages = launch(plan_of(f"{file}:build_on_one"))
    (failure,) = of(Failure, messages)
    assert (failure.stage, failure.error, failure.rank) == ("build", "RuntimeError", 1)
    assert (failure.cell, failure.message) == (cell(2), "rank 1: two processes are too many")
    assert [p.cell for p in of(Program, messages)] == [cell(1)]
    assert [r.complete for r in of(Round, messages)] == [True, True]
    assert isinstance(messages[-1], Finished)


def test_a_plain_program_that_one_process_refuses_is_called_no_more_by_the_others(file):
    messages = launch(plan_of(f"{file}:build_nan_on_one"))
    (failure,) = of(Failure, messages)
    assert (failure.stage, failure.error, failure.rank, failure.cell) == ("compile", "MeasureError", 1, cell(2))
    assert "returned NaN" in failure.message
    assert isinstance(messages[-1], Finished)


def test_typed_keys_are_arguments_as_others_are(file):
    messages = launch(plan_of(f"{file}:build_keyed", rounds=1))
    assert of(Failure, messages) == []
    assert [p.cell for p in of(Program, messages)] == [cell(1), cell(2)]


def test_a_trace_across_processes_is_the_first_ones(file):
    messages = launch(plan_of(f"{file}:build"), only_trace=True)
    assert of(Failure, messages) == []
    assert [t.cell for t in of(Trace, messages)] == [cell(1), cell(2)]


def test_a_file_that_only_one_process_can_read_names_it(file, tmp_path):
    path = tmp_path / "one.py"
    path.write_text("import jax\nif jax.process_index() == 1:\n    raise ImportError('not on this host')\n" + FILE)
    messages = launch(plan_of(f"{path}:build"))
    failure = messages[-1]
    assert (failure.stage, failure.rank) == ("launch", 1)
    assert "not on this host" in failure.message


def test_a_sweep_leaves_out_the_cell_that_kills_a_process_and_does_the_rest(file, tmp_path):
    path = tmp_path / "sweep.jsonl"
    sweep.run(plan_of(f"{file}:build_killed", rounds=1), path)
    record = store.read(path)
    assert [(f.cell, f.stage, f.rank, f.error) for f in record.failures] == [(cell(2), "visit", 1, "Died")] * 2
    assert all(f.message.startswith("rank 1: the process was ended by SIGKILL") for f in record.failures)
    # The third launch leaves the cell out.
    assert len(record.launches) == 3
    assert sweep.complete_launches(record) == 1
    assert {v.launch for v in record.visits} == {record.launches[-1].launch}


def test_processes_of_different_programs_end_the_sweep_and_write_nothing(file, tmp_path):
    path = tmp_path / "sweep.jsonl"
    with pytest.raises(MeasureError, match=r"on 2 devices, size 16: rank 1 has another program than rank 0; all"):
        sweep.run(plan_of(f"{file}:build_other_on_one"), path)
    assert not path.exists()
