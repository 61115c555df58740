"""The launch that only traces: real sweeps on forced host devices, and what its failures cost."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from breakeven.data import rounds, store
from breakeven.data.schema import Failure, Plan
from breakeven.fit.launches import from_record
from breakeven.fit.traced import traced_calls
from breakeven.measure.inventory import traced_cells
from breakeven.measure.processes.group import Group
from breakeven.measure.protocol import Request, Step
from breakeven.measure.sweep import complete_launches, run
from breakeven.measure.trace import CALLS
from breakeven.measure.tracing import trace_workloads

SMALL = {"launches": 1, "rounds": 1, "budget_s": 30.0, "calls": 3, "warmups": 1}


def prepared(**fields: Any) -> Any:
    """A program that cannot be lowered, or has other fields."""
    return SimpleNamespace(**{"compiled": None} | fields)


def traced(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, trace=True)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "sweep.jsonl"


def test_cells_are_the_primary_strategys_at_the_largest_size(plan_of):
    plan = plan_of("w", strategies=("jit", "pmap"), sizes=(8, 32), devices=(1, 2))
    assert [(c.role, c.strategy, c.num_devices, c.size) for c in traced_cells(plan)] == [
        ("workload", "jit", 1, 32),
        ("workload", "jit", 2, 64),
    ]


def test_a_trace_may_be_asked_for_later_and_is_made_once(user_file, plan_of, record, tmp_path, monkeypatch):
    rest = tmp_path / "temporary"
    rest.mkdir()
    monkeypatch.setenv("TMPDIR", str(rest))
    plan = plan_of(user_file(), sizes=(8, 32), **SMALL)
    run(plan, record)
    before = record.read_bytes()
    assert store.read(record).traces == ()

    run(traced(plan), record)
    after = record.read_bytes()
    assert after.startswith(before)
    found = store.read(record)
    assert [(t.cell.num_devices, t.cell.size, t.calls) for t in found.traces] == [(1, 32, CALLS), (2, 64, CALLS)]
    assert found.traces[0].ops == ()
    assert [(op.kind, op.device) for op in found.traces[1].ops] == [("all-reduce", 0), ("all-reduce", 1)]
    (tracing,) = found.tracing
    assert {t.launch for t in found.traces} == {tracing.launch}
    assert tracing.visible_devices == 2

    # It is no launch of the sweep: neither complete nor left out, and its programs are nobody's replicates.
    assert len(found.launches) == complete_launches(found) == 1
    assert tracing.launch not in {line.launch for line in (*found.programs, *found.visits)}
    table = from_record(found)
    assert table.excluded_launches == 0
    assert [one.num_devices for one in traced_calls(table, "as-written")] == [1, 2]

    run(traced(plan), record)
    assert record.read_bytes() == after
    assert list(rest.iterdir()) == []


def test_a_child_that_is_killed_leaves_no_profile_behind(user_file, plan_of, tmp_path, monkeypatch):
    rest = tmp_path / "temporary"
    rest.mkdir()
    monkeypatch.setenv("TMPDIR", str(rest))
    monkeypatch.setattr("tempfile.tempdir", None)
    request = Request(plan=plan_of(user_file()), sweep="s", launch="l", only_trace=True, parent=os.getpid())
    with Group(request) as group:
        assert any(isinstance(message, Step) and message.stage == "trace" for message in group.messages())
        (ours,) = rest.glob("breakeven-trace-*")
        assert len(list(ours.iterdir())) == 1
    assert list(rest.iterdir()) == []


def raises(_x):
    raise ValueError("in a call")


class Said(list):
    """A channel that keeps what is sent."""

    send = list.append


@pytest.mark.parametrize(
    ("made", "first", "others"),
    [
        (Failure(sweep="s", launch="l", stage="build", error="E", message="m"), "build", None),
        ((prepared(),), "trace", None),
        ((prepared(compiled="", call=lambda: raises(0)),), "visit", "visit"),
    ],
)
def test_only_what_happens_in_a_call_is_said_by_all_processes(plan_of, made, first, others):
    for rank, stage in ((0, first), (1, others)):
        request = Request(plan=plan_of("w", devices=(1,)), sweep="s", launch="l", rank=rank)
        said = Said()
        builder = SimpleNamespace(
            request=request, channel=said, team=SimpleNamespace(rank=rank), build=lambda _cell: made
        )
        trace_workloads(builder)
        assert [m.stage for m in said if isinstance(m, Failure)] == ([] if stage is None else [stage])


def test_a_program_that_cannot_be_traced_costs_the_trace_alone(user_file, plan_of, record):
    name = user_file("""
        def build(mesh, size):
            return (lambda x: np.asarray(x) + 1), (np.ones(size),)
    """)
    run(traced(plan_of(name, **SMALL)), record)
    found = store.read(record)
    assert complete_launches(found) == 1
    assert found.traces == ()
    assert {(f.stage, f.cell.num_devices if f.cell else None) for f in found.failures} == {("trace", 1), ("trace", 2)}
    assert all("cannot be lowered" in f.message for f in found.failures)
    assert rounds.barred(found) == set()

    after = record.read_bytes()
    run(traced(plan_of(name, **SMALL)), record)
    assert record.read_bytes() == after  # it would fail again


def test_dying_while_it_is_built_for_the_trace_bars_no_cell(user_file, plan_of, record, tmp_path):
    """The program of one device is built once in the launch that measures; the second time its process ends."""
    name = user_file(f"""
        def build(mesh, size):
            built = r"{tmp_path}/built"
            if mesh.size == 1 and os.path.exists(built):
                os._exit(3)
            open(built, "w").close()
            return mean, placed(mesh, size)
    """)
    plan = traced(plan_of(name, devices=(1, 2), **SMALL))
    for _ in range(2):  # nor is it tried again
        run(plan, record)
        found = store.read(record)
        assert [(f.stage, f.error) for f in found.failures] == [("trace", "Died")]
        assert complete_launches(found) == len(found.launches) == 1
    assert rounds.barred(found) == set()
