"""The record's line kinds: one JSON object a line, each with ``kind`` and, on ``sweep``, the schema version.

Times are seconds (``_s``) or integer nanoseconds (``_ns``); sizes and bytes are integers. Every line names its
sweep; every line but ``sweep`` itself names its launch.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ..model.cell import Cell
from ..model.program import ProgramFacts

SCHEMA_VERSION = 2
"""2: several processes, closings of launches, traces."""
MAX_CALLS_PER_VISIT = 64
QUEUED_CALLS = 4
"""Of a plan that does not say."""
MAX_DEVICES = 2**31 - 1
MAX_SIZE = 2**62 - 1
"""Larger counts and sizes are slips of the pen, and no longer fit the arithmetic."""
MAX_AMOUNT = 1e30
"""Flops or bytes of one call, or of one second: no machine does as many in a life."""


Positive = Annotated[int, msgspec.Meta(ge=1)]
Nanoseconds = Annotated[int, msgspec.Meta(le=MAX_SIZE)]
Duration = Annotated[int, msgspec.Meta(ge=0, le=MAX_SIZE)]
"""Nanoseconds of something that another program timed: nobody asks whether they are positive later."""


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a sweep sets out to measure.

    Attributes
    ----------
    workload : built-in name, or ``path/to/file.py:build`` as the user wrote it
    path : ``strong`` (``sizes`` are global) or ``weak`` (``sizes`` are per device)
    objective : ``time``: cost T(n, S); ``throughput``: cost T(n, n s) / n
    devices : counts n, ascending; sizes : ascending; strategies : the first one has the controls
    divides : whether a global size must divide by n
    visible_devices : devices that every launch sees (the largest count; it changes the times)
    warmups : first calls of a visit, stored but left out of its median; None: each launch finds by a trend test how
        many
    calls : timed calls of a visit after the warm-ups; None: each launch chooses by its budget
    queued_calls : calls queued before one wait, once a visit of the workload and of null; 0: not measured
    controls, probes : whether local and null, chain and replay are measured
    step_timeout_s : watchdog: longest silence of a child before it is ended
    processes : that run one launch together, each with ``visible_devices / processes`` devices
    sentinel : whether one fixed program is visited in every round, to see the machine drift
    trace : whether one extra launch, not timed, records where the time goes on the devices
    pairs : no workload is measured, but messages of ``sizes`` bytes between every two of the devices
    orders : no workload is measured, but all-reduces of ``sizes`` bytes over devices in these orders, each a strategy
    """

    workload: str
    path: str
    objective: str
    devices: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]
    sizes: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]
    strategies: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    unit: str = "elements"
    divides: bool = True
    platform: str = "cpu"
    visible_devices: Positive = 1
    launches: Positive = 6
    budget_s: float | None = None
    rounds: int | None = None
    warmups: int | None = 2
    calls: int | None = None
    queued_calls: int = QUEUED_CALLS
    controls: bool = True
    probes: bool = True
    step_timeout_s: float = 120.0
    seed: int = 0
    processes: Positive = 1
    sentinel: bool = False
    trace: bool = False
    pairs: bool = False
    orders: tuple[tuple[int, ...], ...] = ()

    @property
    def leading_role(self) -> str:
        """Role of the cells without which a launch is worth nothing."""
        return "pair" if self.pairs else "chain" if self.orders else "workload"

    def global_size(self, num_devices: int, size: int) -> int:
        """The S handed to ``build`` for an entry of ``sizes``: n s on the weak path, s itself on the strong."""
        return num_devices * size if self.path == "weak" else size


class Sweep(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sweep", omit_defaults=True):
    """Opens a sweep. ``foreign``: read from another tool's log; ``synthetic``: made by the simulator.

    assumed : what the reader of a foreign file took for granted, a sentence each
    """

    schema: int
    sweep: str
    created: str
    version: str
    plan: Plan
    foreign: bool = False
    synthetic: bool = False
    source: str | None = None
    assumed: tuple[str, ...] = ()


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one process found around it when its launch began. None or empty: not readable here.

    Attributes
    ----------
    host : name of the host, or a hash of it where that was asked for
    boot : identifies the running system: processes with the same one share a monotonic clock
    affinity : cores that the process may run on
    quota_cores, memory_limit_bytes : of the control group
    frequency_mhz : lowest and highest current core frequency
    governor : frequency governor
    numa_nodes : nodes that the allowed cores lie in
    accelerators : clocks and limits of accelerators, as their driver says them
    variables : ``NAME=value`` of environment variables that change times (``XLA_FLAGS``, ``JAX_*``, ``NCCL_*``, ...),
        secrets left out
    clock_resolution_ns, clock_overhead_ns : of the clock that times calls
    """

    host: str | None = None
    boot: str | None = None
    affinity: tuple[int, ...] = ()
    quota_cores: float | None = None
    memory_limit_bytes: int | None = None
    frequency_mhz: tuple[float, float] | None = None
    governor: str | None = None
    numa_nodes: tuple[int, ...] = ()
    accelerators: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    clock_resolution_ns: float | None = None
    clock_overhead_ns: float | None = None


class Launch(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="launch", omit_defaults=True):
    """One fresh process, or several that run together, and what the first of them found. None: not said.

    cores : those that the processes of a node may use together, by their affinity and the control group's quota; of the
        node with the fewest
    processes, nodes, devices_per_process, devices_per_node : how the visible devices are spread
    barrier : what the processes wait at before each call; None: one process
    machines : one entry a process, in the order of ranks
    traced : it measured nothing, but traced programs on their devices
    """

    sweep: str
    launch: str
    started: str
    platform: str | None = None
    device_kind: str | None = None
    visible_devices: int | None = None
    cores: int | None = None
    pid: int | None = None
    python: str | None = None
    jax: str | None = None
    jaxlib: str | None = None
    cpu: str | None = None
    system: str | None = None
    load_average: float | None = None
    xla_flags: str | None = None
    processes: int = 1
    nodes: int = 1
    devices_per_process: int | None = None
    devices_per_node: int | None = None
    barrier: str | None = None
    machines: tuple[Machine, ...] = ()
    traced: bool = False


class Program(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="program", omit_defaults=True):
    """One program of a launch.

    control : where a control came from (``hand-written``, ``user``, ``automatic``)
    moved_bytes : that each call moves to the devices first, at least; None: nothing, as far as can be seen
    pieces : that a workload's function which is not jitted starts when it is called as it is, about; it was compiled as
        one program. None: one
    fingerprint : hash of what was lowered, by which an edit is told; None: not said, or nothing was lowered
    """

    sweep: str
    launch: str
    program: int
    cell: Cell
    compile_s: float | None = None
    facts: ProgramFacts | None = None
    control: str | None = None
    moved_bytes: int | None = None
    pieces: int | None = None
    fingerprint: str | None = None


class Visit(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="visit", omit_defaults=True):
    """A few calls of one program. The first ``warmups`` entries are flagged, not dropped.

    latency_ns : until the result is ready; dispatch_ns : until the call returned;
    queued_ns : per call, when ``queued_calls`` are queued and then waited for once;
    ranks_ns : latencies of every process that took part, in the order of ranks, where there are several:
    ``latency_ns`` is then their maximum, call by call;
    skew_ns : median over the calls of the last process's start less the first one's, where they share a clock.
    """

    sweep: str
    launch: str
    program: int
    round: int
    position: int
    time: float
    warmups: Annotated[int, msgspec.Meta(ge=0)]
    latency_ns: tuple[Nanoseconds, ...]
    dispatch_ns: tuple[Nanoseconds, ...] = ()
    queued_ns: Nanoseconds | None = None
    ranks_ns: tuple[tuple[Nanoseconds, ...], ...] = ()
    skew_ns: Nanoseconds | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="failure", omit_defaults=True):
    """What went wrong, and for which cell.

    ``stage``: ``build``, ``compile``, ``visit`` or ``launch``; ``control``: a refused local control, with the reason;
    ``trace``: what could not be traced. The last two cost no launch. ``rank``: the process it happened in, where there
    are several.
    """

    sweep: str
    launch: str
    stage: str
    error: str
    message: str
    cell: Cell | None = None
    frames: tuple[str, ...] = ()
    rank: int | None = None


class Closing(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="closing", omit_defaults=True):
    """What happened around a launch while it measured, said at its end. None: not readable here.

    Attributes
    ----------
    seconds : from the first round to the end
    others_busy_cores : of the cores of the launch's first process, those that others kept busy on average
    stolen_share : share of the time that the hypervisor gave to others
    throttled_s : how long the control group was held back, added up over the cores it ran on
    heat_throttles : times that a core was slowed down for heat
    frequency_mhz : lowest and highest current core frequency at the end
    clock_jump_s : how far the wall clock moved against the monotonic one
    suspended_s : how long the machine slept
    """

    sweep: str
    launch: str
    seconds: Annotated[float, msgspec.Meta(gt=0)]
    others_busy_cores: float | None = None
    stolen_share: float | None = None
    throttled_s: float | None = None
    heat_throttles: int | None = None
    frequency_mhz: tuple[float, float] | None = None
    clock_jump_s: float | None = None
    suspended_s: float | None = None


class TracedOp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One collective of a program on one device: nanoseconds in each traced call, over all its executions there.

    ``executions``: in one call; None: not the same in each. ``wait_ns``: how long it waited for the last device to
    arrive, empty where that cannot be told; ``duration_ns`` includes it.
    """

    name: str
    kind: str
    device: int
    executions: int | None = None
    duration_ns: tuple[Duration, ...]
    wait_ns: tuple[Duration, ...] = ()


class Trace(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="trace", omit_defaults=True):
    """Where the time of one program goes on its devices, from a profiler's trace of calls that are not timed.

    Attributes
    ----------
    calls : traced calls
    devices : those that the trace shows
    busy_ns : of each of them, median over the calls of the time in which it executed anything, waiting included
    ops : the collectives, by device
    latency_ns : of the traced calls; untraced_latency_ns : of as many calls just before, without the profiler
    remark : what the trace does not tell, and why
    """

    sweep: str
    launch: str
    cell: Cell
    calls: Positive
    devices: tuple[int, ...] = ()
    busy_ns: tuple[Duration, ...] = ()
    ops: tuple[TracedOp, ...] = ()
    latency_ns: tuple[Duration, ...] = ()
    untraced_latency_ns: tuple[Duration, ...] = ()
    remark: str | None = None

    def __post_init__(self) -> None:
        if len(self.busy_ns) != len(self.devices):
            raise ValueError(f"busy_ns has {len(self.busy_ns)} entries for {len(self.devices)} devices")
        for op in self.ops:
            if len(op.duration_ns) != self.calls or len(op.wait_ns) not in (0, self.calls):
                raise ValueError(f"{op.name} on device {op.device} has times of other than {self.calls} calls")


Line = Sweep | Launch | Program | Visit | Failure | Closing | Trace
