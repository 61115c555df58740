"""The record's line kinds: one JSON object a line, each with ``kind`` and, on ``sweep``, the schema version.

Times are seconds (``_s``) or integer nanoseconds (``_ns``); sizes and bytes are integers. Every line names its
sweep; every line but ``sweep`` itself names its launch.
"""

from __future__ import annotations

import msgspec

from ..model.cell import Cell
from ..model.program import ProgramFacts

SCHEMA_VERSION = 1
MAX_CALLS_PER_VISIT = 64
MAX_DEVICES = 2**31 - 1
MAX_SIZE = 2**62 - 1
"""Larger counts and sizes are slips of the pen, and no longer fit the arithmetic."""


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
    warmups : first calls of a visit, stored but left out of its median
    calls : timed calls of a visit after the warm-ups; None: each launch chooses by its budget
    queued_calls : calls queued before one wait, once a visit of the workload; 0: not measured
    controls, probes : whether local and null, chain and replay are measured
    step_timeout_s : watchdog: longest silence of a child before it is ended
    """

    workload: str
    path: str
    objective: str
    devices: tuple[int, ...]
    sizes: tuple[int, ...]
    strategies: tuple[str, ...]
    unit: str = "elements"
    divides: bool = True
    platform: str = "cpu"
    visible_devices: int = 1
    launches: int = 6
    budget_s: float | None = None
    rounds: int | None = None
    warmups: int = 2
    calls: int | None = None
    queued_calls: int = 4
    controls: bool = True
    probes: bool = True
    step_timeout_s: float = 120.0
    seed: int = 0

    def global_size(self, num_devices: int, size: int) -> int:
        """The S handed to ``build`` for an entry of ``sizes``: n s on the weak path, s itself on the strong."""
        return num_devices * size if self.path == "weak" else size


class Sweep(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sweep", omit_defaults=True):
    """Opens a sweep. ``foreign``: read from another tool's log; ``synthetic``: made by the simulator."""

    schema: int
    sweep: str
    created: str
    version: str
    plan: Plan
    foreign: bool = False
    synthetic: bool = False
    source: str | None = None


class Launch(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="launch", omit_defaults=True):
    """One fresh process and what it found. ``cores``: those its affinity allows. None: not said."""

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


class Program(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="program", omit_defaults=True):
    """One program of a launch. ``control``: where a control came from (``hand-written``, ``user``, ``automatic``)."""

    sweep: str
    launch: str
    program: int
    cell: Cell
    compile_s: float | None = None
    facts: ProgramFacts | None = None
    control: str | None = None


class Visit(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="visit", omit_defaults=True):
    """A few calls of one program. The first ``warmups`` entries are flagged, not dropped.

    latency_ns : until the result is ready; dispatch_ns : until the call returned;
    queued_ns : per call, when ``queued_calls`` are queued and then waited for once.
    """

    sweep: str
    launch: str
    program: int
    round: int
    position: int
    time: float
    warmups: int
    latency_ns: tuple[int, ...]
    dispatch_ns: tuple[int, ...] = ()
    queued_ns: int | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="failure", omit_defaults=True):
    """What went wrong: at which ``stage`` (``build``, ``compile``, ``control``, ``visit``, ``launch``), for which cell.

    ``control`` is a refused local control, with the reason; it costs no launch.
    """

    sweep: str
    launch: str
    stage: str
    error: str
    message: str
    cell: Cell | None = None
    frames: tuple[str, ...] = ()


Line = Sweep | Launch | Program | Visit | Failure
