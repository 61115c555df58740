"""Traces of real programs on forced host devices, and the arithmetic of waiting on spans made by hand."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from breakeven.data.schema import Trace
from breakeven.measure.prepare import prepare
from breakeven.measure.trace import CALLS, WARMUPS, make_calls, read_calls, refuse_untraceable, summarize, waiting_ns
from breakeven.measure.userfile import resolve
from breakeven.measure.workload import MeasureError
from breakeven.measure.xplane import CallProfile, read
from breakeven.model.cell import Cell
from breakeven.model.program import Collective
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

DELAY_S = 0.03


def traced(built: Any, num_devices: int = 2) -> Trace:
    """The trace of what a ``build`` returned."""
    cell = Cell(role="workload", strategy="jit", num_devices=num_devices, size=8)
    program = prepare(built)
    refuse_untraceable(program)
    with tempfile.TemporaryDirectory() as folder:
        calls = make_calls(program, Path(folder), announce=lambda: None)
        return read_calls(calls, program, cell, sweep="s", launch="l")


def built_in(name: str, mesh: Any, size: int) -> Any:
    return next(iter(resolve(name).builds.values()))(mesh, size)


def summed(mesh: Any, before: Any = lambda x: x, times: int = 1) -> Any:
    """One row a device; something done on each, then all of them summed, ``times`` times in a loop."""

    def on_each(x):
        return jax.lax.fori_loop(0, times, lambda _, y: jax.lax.psum(y, "x0") / 2, before(x))

    rows = jax.device_put(jnp.ones((2, 4)), NamedSharding(mesh, P("x0")))
    return jax.jit(jax.shard_map(on_each, mesh=mesh, in_specs=P("x0"), out_specs=P("x0"), check_vma=False)), (rows,)


@pytest.mark.parametrize("name", ["mean-all", "train-step"])
def test_every_collective_of_the_compiled_program_is_found_on_both_devices(mesh_of, name):
    compiled = prepare(built_in(name, mesh_of(2), 64)).facts
    assert compiled is not None
    found = traced(built_in(name, mesh_of(2), 64))
    assert found.calls == CALLS
    assert found.devices == (0, 1)
    assert found.remark is None
    by_device = [[op for op in found.ops if op.device == device] for device in (0, 1)]
    for ops in by_device:
        assert sorted(op.kind for op in ops) == sorted(c.kind for c in compiled.collectives) != []
        assert [op.executions for op in ops] == [1] * len(ops)
    for op in found.ops:
        assert len(op.duration_ns) == len(op.wait_ns) == CALLS
        assert all(0 <= wait <= duration for wait, duration in zip(op.wait_ns, op.duration_ns, strict=True))
        assert min(op.duration_ns) > 0
    # Of the devices, the last to begin waits for nobody.
    for waits in zip(*(op.wait_ns for op in found.ops if op.name == found.ops[0].name), strict=True):
        assert min(waits) == 0


def test_durations_lie_inside_the_calls_that_hold_them(mesh_of):
    found = traced(built_in("mean-all", mesh_of(2), 4096))
    for op in found.ops:
        assert all(d < latency for d, latency in zip(op.duration_ns, found.latency_ns, strict=True))
    assert len(found.busy_ns) == 2
    assert all(median(op.duration_ns) <= found.busy_ns[op.device] < max(found.latency_ns) for op in found.ops)
    assert len(found.untraced_latency_ns) == CALLS


def test_a_collective_in_a_loop_counts_its_rounds(mesh_of):
    found = traced(summed(mesh_of(2), times=7))
    assert [(op.kind, op.executions) for op in found.ops] == [("all-reduce", 7)] * 2


def test_a_program_without_collectives_has_none(mesh_of):
    found = traced(built_in("mean-all", mesh_of(1), 64), num_devices=1)
    assert found.ops == ()
    assert found.devices == (0,)
    assert found.busy_ns[0] > 0


def test_waiting_for_a_late_device_is_the_other_ones(mesh_of):
    """Device 0 sleeps a known time before the sum: device 1 waits for it, and the sum itself stays short."""

    def sleep(x):
        time.sleep(DELAY_S)
        return np.zeros_like(x)

    def late(x):
        asleep = jax.pure_callback(sleep, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return x + asleep

    def before(x):
        return jax.lax.cond(jax.lax.axis_index("x0") == 0, late, lambda y: y, x)

    found = traced(summed(mesh_of(2), before))
    waits = {op.device: median(op.wait_ns) * 1e-9 for op in found.ops}
    rest = {op.device: median(np.subtract(op.duration_ns, op.wait_ns)) * 1e-9 for op in found.ops}
    assert waits[1] > DELAY_S / 2
    assert waits[0] < DELAY_S / 10
    assert max(rest.values()) < DELAY_S / 2
    assert min(found.untraced_latency_ns) * 1e-9 > DELAY_S / 2


def test_plain_python_cannot_be_traced():
    with pytest.raises(MeasureError, match="cannot be lowered"):
        traced((lambda x: np.asarray(x) + 1, (np.ones(3),)), num_devices=1)


def test_each_call_is_announced(mesh_of, tmp_path: Path):
    said = []
    program = prepare(summed(mesh_of(2)))
    make_calls(program, tmp_path, announce=lambda: said.append("call"))
    assert len(said) == WARMUPS + 2 * CALLS


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_a_folder_without_the_one_profile(tmp_path: Path, names):
    for name in names:
        (tmp_path / f"{name}.xplane.pb").touch()
    with pytest.raises(MeasureError, match=f"profiler wrote {len(names)} files"):
        read(tmp_path)


def test_calls_that_are_not_marked_belong_to_none(tmp_path: Path):
    doubled = jax.jit(lambda x: 2 * x)
    with jax.profiler.trace(str(tmp_path)):
        jax.block_until_ready(doubled(jnp.ones(1000)))
    assert read(tmp_path) == []


def profiles(*begins: tuple[int, ...], names: tuple[str, ...] = ("sum",)) -> list[CallProfile]:
    """``CALLS`` equal calls: on each device every name once, from its begin until 100."""
    made = []
    for _ in range(CALLS):
        call = CallProfile()
        for device, device_begins in enumerate(begins):
            for name in names:
                call.spans[device][name] += [(begin, 100) for begin in device_begins]
        made.append(call)
    return made


def collective(kind: str = "all-reduce", group: int | None = 2) -> Collective:
    return Collective(kind=kind, count=1, operands=1, message_bytes=4, operand_bytes=(4,), group_size=group)


def test_waiting_is_the_last_begin_less_ones_own_and_never_longer_than_the_execution():
    assert waiting_ns([[(0, 50)], [(30, 60)], [(10, 15)]]) == [30, 0, 5]
    # Two executions: 20 + 0 and 0 + 5.
    assert waiting_ns([[(0, 50), (105, 120)], [(20, 50), (100, 120)]]) == [20, 5]


def test_busy_counts_overlapping_operations_once():
    call = CallProfile()
    call.spans[0]["while"] += [(0, 40)]
    call.spans[0]["body"] += [(5, 10), (20, 50)]
    call.spans[0]["later"] += [(70, 80)]
    assert call.busy_ns(0) == 60
    assert call.busy_ns(1) == 0


@pytest.mark.parametrize(
    ("kind", "group", "devices", "why"),
    [
        ("collective-permute", 2, 2, "may end before the last has begun"),
        ("all-reduce", 2, 4, "within groups"),
        ("all-reduce", None, 2, "within groups"),
        ("all-reduce", 4, 4, "other devices are not in the trace"),
    ],
)
def test_waiting_that_cannot_be_told_is_said_and_left_out(kind, group, devices, why):
    found = summarize(profiles((0,), (20,)), {"sum": collective(kind, group)}, devices, 2)
    assert [op.wait_ns for op in found.ops] == [(), ()]
    assert why in found.remarks[0]
    assert [op.duration_ns[0] for op in found.ops] == [100, 80]


def test_devices_that_execute_it_differently_often_have_no_waiting():
    found = summarize(profiles((0, 10), (20,)), {"sum": collective()}, 2, 2)
    assert "differently often" in found.remarks[0]
    assert [op.executions for op in found.ops] == [2, 1]


def test_what_does_not_appear_is_named():
    found = summarize(profiles((0,), names=("dot",)), {"sum": collective()}, 2, 2)
    assert found.ops == ()
    assert found.remarks == ("1 of 2 devices appear in the trace", "sum does not appear in the trace")


def test_a_trace_without_operations_or_calls_is_refused_in_words():
    with pytest.raises(MeasureError, match=f"holds 3 of the {CALLS} calls"):
        summarize(profiles((0,))[:3], {}, 1, 1)
    with pytest.raises(MeasureError, match="names no operation's device on cpu"):
        summarize([CallProfile() for _ in range(CALLS)], {}, 1, 1)
