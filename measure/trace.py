"""Where the time of a program goes on its devices: some calls under JAX's profiler, which slows them down.

A device that arrives early at a collective waits there, and the profiler counts that as the collective's time. Waiting
is told apart where it can be: all devices take part, none ends before the last has begun, and each is traced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax

from ..data.schema import Trace, TracedOp
from ..model.cell import Cell
from ..model.program import Collective
from .clock import time_calls
from .hlo import named_collectives
from .prepare import Prepared
from .workload import MeasureError
from .xplane import CALL_MARK, CallProfile, Span, read

WARMUPS, CALLS = 3, 20
"""First calls of a program, then calls without the profiler, then as many with it. The numbers are fixed, since all
processes of a launch must make the same calls."""

JOINT = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
"""Collectives that end on no device before the last device has begun: each needs a piece from each."""


@dataclass(frozen=True)
class Calls:
    """The calls of a program, made: what they took without and with the profiler, whose files lie in ``folder``."""

    untraced_ns: tuple[int, ...]
    traced_ns: tuple[int, ...]
    folder: Path


def refuse_untraceable(program: Prepared) -> None:
    """Raise MeasureError where a program cannot be lowered: its operations have no names then."""
    if program.compiled is None:
        raise MeasureError("the program cannot be lowered, so that a trace's operations cannot be told apart.")


def make_calls(program: Prepared, folder: Path, *, announce: Callable[[], None]) -> Calls:
    """Call a program without and then with the profiler; every process of its mesh must.

    Parameters
    ----------
    folder : empty; for what the profiler writes
    announce : called before each call, as a sign of life
    """
    untraced_ns, _ = time_calls(program.call, jax.block_until_ready, calls=WARMUPS + CALLS, before=announce)
    traced_ns = _call_profiled(program.call, folder, announce)
    return Calls(untraced_ns[WARMUPS:], traced_ns, folder)


def read_calls(calls: Calls, program: Prepared, cell: Cell, *, sweep: str, launch: str) -> Trace:
    """Read what the profiler saw of the calls on the devices of this process.

    Raises
    ------
    MeasureError
        If the profiler wrote nothing, or its trace holds no operations.
    """
    assert program.compiled is not None
    profiles = read(calls.folder)
    collectives = named_collectives(program.compiled.as_text() or "")
    local_devices = len(program.compiled.runtime_executable().local_devices())
    found = summarize(profiles, collectives, cell.num_devices, local_devices)
    return Trace(
        sweep=sweep,
        launch=launch,
        cell=cell,
        calls=CALLS,
        devices=found.devices,
        busy_ns=found.busy_ns,
        ops=found.ops,
        latency_ns=calls.traced_ns,
        untraced_latency_ns=calls.untraced_ns,
        remark="; ".join(found.remarks) or None,
    )


def _call_profiled(call: Callable[[], Any], folder: Path, announce: Callable[[], None]) -> tuple[int, ...]:
    """Latencies of marked calls, one at a time, nanoseconds."""
    options = jax.profiler.ProfileOptions()
    # Python's own calls are not asked about, and recording them is most of the profiler's cost.
    options.python_tracer_level = 0
    options.enable_hlo_proto = False
    latencies = []
    with jax.profiler.trace(str(folder), profiler_options=options):
        for _ in range(CALLS):
            announce()
            with jax.profiler.TraceAnnotation(CALL_MARK):
                start = time.perf_counter_ns()
                jax.block_until_ready(call())
                latencies.append(time.perf_counter_ns() - start)
    return tuple(latencies)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The fields of ``Trace`` that the profile fills."""

    devices: tuple[int, ...]
    busy_ns: tuple[int, ...]
    ops: tuple[TracedOp, ...]
    remarks: tuple[str, ...]


def summarize(
    profiles: Sequence[CallProfile], collectives: dict[str, Collective], num_devices: int, local_devices: int
) -> Summary:
    """Durations by device and collective, call by call.

    Parameters
    ----------
    profiles : one a call
    collectives : by name of the HLO instruction
    num_devices, local_devices : on which the program runs, and those of them that this process sees

    Raises
    ------
    MeasureError
        If a call is missing, or no operation names its device.
    """
    if len(profiles) != CALLS:
        raise MeasureError(f"the profiler's trace holds {len(profiles)} of the {CALLS} calls.")
    devices = sorted({device for profile in profiles for device in profile.spans})
    if not devices:
        raise MeasureError(
            f"the profiler's trace names no operation's device on {jax.default_backend()}: where the time goes on the "
            "devices is not known."
        )
    ops, remarks = [], {}
    if len(devices) < local_devices:
        remarks[f"{len(devices)} of {local_devices} devices appear in the trace"] = None
    for name, collective in collectives.items():
        executions = [[profile.executions(device, name) for device in devices] for profile in profiles]
        if not any(spans for call in executions for spans in call):
            remarks[f"{name} does not appear in the trace"] = None
            continue
        untold = _why_waiting_untold(name, collective, executions, num_devices)
        if untold:
            remarks[f"waiting in {name} is not told apart: {untold}"] = None
        waits = None if untold else [waiting_ns(call) for call in executions]
        for index, device in enumerate(devices):
            counts = {len(call[index]) for call in executions}
            ops.append(
                TracedOp(
                    name=name,
                    kind=collective.kind,
                    device=device,
                    executions=counts.pop() if len(counts) == 1 else None,
                    duration_ns=tuple(sum(end - begin for begin, end in call[index]) for call in executions),
                    wait_ns=() if waits is None else tuple(call[index] for call in waits),
                )
            )
    busy = tuple(round(median(profile.busy_ns(device) for profile in profiles)) for device in devices)
    return Summary(devices=tuple(devices), busy_ns=busy, ops=tuple(ops), remarks=tuple(remarks))


def waiting_ns(executions: Sequence[Sequence[Span]]) -> list[int]:
    """How long each device waited for the last one to begin, summed over the executions of one call.

    Parameters
    ----------
    executions : by device, as many of each, in order

    Returns
    -------
    list of int
        By device: latest begin less its own, but no longer than the execution itself.
    """
    latest = [max(begin for begin, _ in spans) for spans in zip(*executions, strict=True)]
    return [
        sum(min(last - begin, end - begin) for last, (begin, end) in zip(latest, spans, strict=True))
        for spans in executions
    ]


def _why_waiting_untold(
    name: str, collective: Collective, executions: Sequence[Sequence[Sequence[Span]]], num_devices: int
) -> str | None:
    if collective.kind not in JOINT or "-start" in name:
        return "a device may end before the last has begun"
    if collective.group_size != num_devices:
        return "it exchanges within groups of devices"
    if any(len(call) < num_devices for call in executions):
        return "other devices are not in the trace"
    if any(len({len(spans) for spans in call}) > 1 for call in executions):
        return "the devices execute it differently often"
    return None
