"""One launch from within: compiles every cell, then visits all of them in random order, round by round."""

from __future__ import annotations

import gc
import os
import platform
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from ..data.schema import Failure, Launch, Plan, Program, Visit
from ..model.cell import QUEUED_ROLES, Cell
from . import devices, warmup
from .building import Builder, failure_of
from .clock import MAX_CALLS, MIN_CALLS, time_calls, time_queued
from .inventory import control_cells, link_cells, probe_cells, sentinel_cells, workload_cells
from .machine import machine
from .processes.gate import Gate, gate_of
from .processes.nodes import hidden, without_folders
from .processes.orders import Build, EndRound, Order, Settle, Time
from .processes.team import Team, join
from .protocol import Channel, Finished, Ready, Request, Round, Starts, Step
from .stand_ins import keep_bodies
from .surroundings import Surroundings
from .tracing import trace_workloads
from .userfile import resolve
from .variables import flags
from .workload import NO_WORKLOAD, MeasureError

_DEFAULT_CALLS = 10
_TARGET_ROUNDS = 32
_LEAST_ROUNDS, _MOST_ROUNDS = 12, 60
_VISITS = 3200
"""Visits of a launch, where the rounds allow; the rest of the time is left unused, so that records stay readable.
For equal time, 16 calls a visit and 32 in half as many rounds gave the same standard error of a difference."""
_CALIBRATION_CALLS = 3
_VISIT_OVERHEAD_S = 1e-4
"""Announcing a visit and keeping its numbers."""
_SIGN_OF_LIFE_S = 1.0
"""A visit whose calls take longer says between them that it goes on, or the watchdog would end it."""


@dataclass
class Worker:
    """One launch: its programs, in the order they were compiled, its failures by cell, refusals of controls, warm-ups.

    What a user's code does wrong costs its cell or visit; what ends the process costs the step announced last. Where
    several processes run one launch, the first decides everything, and the others follow its orders.

    Attributes
    ----------
    team : the processes of the launch
    starts : of the calls of this round, where there are several processes
    waited_s : at the barrier before a call of the last visit, typically
    unqueued : programs whose queued calls failed
    """

    request: Request
    channel: Channel
    programs: dict[int, tuple[Cell, Any]] = field(default_factory=dict)
    failures: Counter[Cell] = field(default_factory=Counter)
    refusals: set[str] = field(default_factory=set)
    team: Team = field(default_factory=Team)
    starts: list[Starts] = field(default_factory=list)
    waited_s: float = 0.0
    unqueued: set[int] = field(default_factory=set)
    warmups: int = warmup.FEWEST

    @property
    def plan(self) -> Plan:
        """What is measured."""
        return self.request.plan

    def run(self) -> None:
        """Compile, calibrate, measure, and say that it is finished."""
        self._launch()
        self.channel.send(Finished())
        if self.team.size > 1:
            # The first process's end would take the others with it; their parents end them.
            self.channel.wait()

    def _launch(self) -> None:
        self.channel.send(Step(stage="launch"))
        try:
            self._start()
            keep_bodies()
            workload = NO_WORKLOAD if self.plan.leading_role != "workload" else resolve(self.plan.workload)
        except (MeasureError, RuntimeError) as error:
            self._fail("launch", error)
            return
        from .programs import Programs

        builder = Builder(self.request, self.channel, self.team, Programs(self.plan, workload))
        if self.request.only_trace:
            trace_workloads(builder)
        elif self.team.rank:
            self._follow(builder)
        else:
            self._lead(builder)
            self.team.lead(None, Order | None)

    def _lead(self, builder: Builder) -> None:
        self._compile(builder)
        calls, round_s = self._calibrate()
        workloads = sum(cell.role == self.plan.leading_role for cell, _ in self.programs.values())
        self.channel.send(Ready(programs=len(self.programs), workloads=workloads, calls=calls, round_s=round_s))
        if workloads and not self.request.only_compile:
            self._measure(calls, round_s)

    def _start(self) -> None:
        """Start the backend and say what is there; another platform, or too few devices, is a failure."""
        import jax

        self.team = join(self.request)
        try:
            found = jax.devices()
        except RuntimeError as error:
            raise MeasureError(f"JAX cannot start on {self.plan.platform}: {error}") from error
        xla_flags = flags(os.environ.get("XLA_FLAGS", ""))
        self.channel.send(
            Launch(
                sweep=self.request.sweep,
                launch=self.request.launch,
                started=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                platform=found[0].platform,
                device_kind=found[0].device_kind,
                visible_devices=len(found),
                cores=devices.available_cores(),
                pid=os.getpid(),
                python=platform.python_version(),
                jax=jax.__version__,
                jaxlib=metadata.version("jaxlib"),
                cpu=devices.cpu_model(),
                system=platform.platform(),
                load_average=os.getloadavg()[0],
                xla_flags=(xla_flags if self.request.host_salt is None else without_folders(xla_flags)) or None,
                machines=(hidden(machine(platform=found[0].platform), self.request.host_salt),),
                traced=self.request.only_trace,
                devices_per_process=len(jax.local_devices()),
            )
        )
        if found[0].platform != self.plan.platform:
            raise MeasureError(f"asked for {self.plan.platform}, but JAX found {found[0].platform}.")
        if len(found) < self.plan.devices[-1]:
            raise MeasureError(f"asked for {self.plan.devices[-1]} devices, but JAX found {len(found)}.")

    def _follow(self, builder: Builder) -> None:
        """Do what the first process says until it is done."""
        visits: list[Visit] = []
        while (order := self.team.lead(None, Order | None)) is not None:
            match order:
                case Build():
                    self._build(order, builder)
                case Time():
                    visit = self._time(order) if order.program in self.programs else None
                    if visit is not None and order.round >= 0:
                        visits.append(visit)
                case EndRound():
                    self.channel.send(*visits)
                    visits.clear()
                    if not self._end_round(order, complete=True):
                        return
                case Settle():
                    _settle()

    def _compile(self, builder: Builder) -> None:
        for cell in link_cells(self.plan) or workload_cells(self.plan):
            self._add(cell, builder)
        built = [
            (cell, program)
            for cell, program in self.programs.values()
            if (cell.role, cell.strategy) == ("workload", self.plan.strategies[0])
        ]
        for cell in control_cells(self.plan):
            if builder.programs.workload_of(cell) is not None:
                self._add(cell, builder)
        for cell, program in built:
            for probe in probe_cells(self.plan, cell, program.facts.collectives if program.facts else ()):
                self._add(probe, builder)
        for cell in sentinel_cells(self.plan):
            self._add(cell, builder)

    def _add(self, cell: Cell, builder: Builder) -> None:
        """Build and compile one cell and say so; a failure costs this cell only."""
        if cell not in self.request.barred:
            order = Build(program=len(self.programs), cell=cell)
            self.team.lead(order, Order | None)
            self._build(order, builder)

    def _build(self, order: Build, builder: Builder) -> None:
        made = builder.build(order.cell)
        if isinstance(made, Failure):
            self._note(made)
        elif made is not None:
            program, control = made
            self.programs[order.program] = (order.cell, program)
            self.channel.send(
                Program(
                    sweep=self.request.sweep,
                    launch=self.request.launch,
                    program=order.program,
                    cell=order.cell,
                    compile_s=program.compile_s,
                    facts=program.facts,
                    control=control,
                    moved_bytes=program.moved_bytes,
                    fingerprint=program.fingerprint,
                    pieces=program.pieces if order.cell.role == "workload" else None,
                )
            )

    def _note(self, failure: Failure) -> None:
        """Keep and say what could not be built; a control is refused once, and the first process says it for all."""
        if failure.stage == "control":
            if failure.message in self.refusals:
                return
            self.refusals.add(failure.message)
        assert failure.cell is not None
        self.failures[failure.cell] += 1
        if self.team.rank == 0:
            self.channel.send(failure)

    def _calibrate(self) -> tuple[int, float]:
        """Choose warm-ups and calls for every visit of this launch; the calls, and the seconds of a round with them."""
        self.warmups = warmup.FEWEST if self.plan.warmups is None else self.plan.warmups
        typical_s: dict[int, float] = {}
        queued_s = 0.0
        for number in list(self.programs):
            visit = self._visit(number, round=-1, position=0, calls=_CALIBRATION_CALLS)
            if visit is not None:
                typical_s[number] = sorted(visit.latency_ns[visit.warmups :])[_CALIBRATION_CALLS // 2] * 1e-9
                typical_s[number] += self.waited_s
                queued_s += (visit.queued_ns or 0) * self.plan.queued_calls * 1e-9
        if self.plan.warmups is None:
            self.warmups = self._warmups(typical_s)
        per_call_s = sum(typical_s.values())
        fixed_s = self.warmups * per_call_s + len(typical_s) * _VISIT_OVERHEAD_S + queued_s
        rounds = min(_TARGET_ROUNDS, self._most_rounds())
        calls = self.plan.calls or _choose_calls(self._seconds_left(), rounds, fixed_s, per_call_s)
        return calls, fixed_s + calls * per_call_s

    def _warmups(self, typical_s: dict[int, float]) -> int:
        """The number of first calls of a visit that the trend test leaves out."""
        series = []
        for _ in range(warmup.passes(list(typical_s.values()), self._seconds_left())):
            visits = (self._visit(p, round=-1, position=0, calls=warmup.PROBED_CALLS - self.warmups) for p in typical_s)
            series += [visit.latency_ns for visit in visits if visit is not None]
        return warmup.first_steady(series)

    def _most_rounds(self) -> int:
        fitting = _VISITS // max(1, len(self.programs))
        return self.plan.rounds or min(max(fitting, _LEAST_ROUNDS), _MOST_ROUNDS)

    def _seconds_left(self) -> float | None:
        return None if self.request.ends_at is None else self.request.ends_at - time.monotonic()

    def _measure(self, calls: int, round_s: float) -> None:
        """Rounds until the time or their number is up, but at least one that is complete."""
        order = random.Random(f"{self.plan.seed}/{self.request.number}")
        self.team.lead(Settle(), Order | None)
        _settle()
        complete, number = 0, 0
        before = Surroundings.now()
        while self._goes_on(complete, number, round_s):
            start = time.perf_counter()
            present = [p for p, (cell, _) in self.programs.items() if self.failures[cell] < 2]
            order.shuffle(present)
            visits = [self._visit(p, round=number, position=i, calls=calls) for i, p in enumerate(present)]
            whole = None not in visits
            self.channel.send(*(visit for visit in visits if visit is not None))
            order_ended = EndRound(round=number)
            self.team.lead(order_ended, Order | None)
            if not self._end_round(order_ended, complete=whole):
                return
            round_s = time.perf_counter() - start
            complete += whole
            number += 1
        closing = before.closing(Surroundings.now(), sweep=self.request.sweep, launch=self.request.launch)
        self.channel.send(closing)

    def _end_round(self, order: EndRound, *, complete: bool) -> bool:
        """Say that a round ended, and wait for the parent to keep it; False when the parent is gone."""
        self.channel.send(*self.starts, Round(round=order.round, complete=complete))
        self.starts.clear()
        gc.collect()
        return self.channel.wait()

    def _goes_on(self, complete: int, number: int, round_s: float) -> bool:
        role = self.plan.leading_role
        if not any(self.failures[cell] < 2 for cell, _ in self.programs.values() if cell.role == role):
            return False
        if complete == 0:
            return True
        if number >= self._most_rounds():
            return False
        left = self._seconds_left()
        return left is None or left > round_s

    def _visit(self, number: int, *, round: int, position: int, calls: int) -> Visit | None:
        """Time one program; None when its code failed, which is said, and counted against the cell."""
        order = Time(program=number, round=round, position=position, warmups=self.warmups, calls=calls)
        self.team.lead(order, Order | None)
        return self._time(order)

    def _time(self, order: Time) -> Visit | None:
        import jax

        cell, program = self.programs[order.program]
        began = time.time()
        gate = gate_of(self.team, cell)
        calls = order.warmups + order.calls
        before = self._before_calls(order.program, gate)
        try:
            latency_ns, dispatch_ns = time_calls(program.call, jax.block_until_ready, calls=calls, before=before)
            queued_ns = self._queued(order.program, before) if cell.role in QUEUED_ROLES else None
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, sys.exit included
            self._fail("visit", error, cell)
            return None
        self.waited_s = 0.0 if gate is None else gate.waited_s
        if gate is not None and order.round >= 0:
            starts_ns = tuple(gate.starts_ns[:calls])
            self.starts.append(Starts(program=order.program, round=order.round, starts_ns=starts_ns))
        return Visit(
            sweep=self.request.sweep,
            launch=self.request.launch,
            program=order.program,
            round=order.round,
            position=order.position,
            time=began,
            warmups=order.warmups,
            latency_ns=latency_ns,
            # Elsewhere it answers no question, and the record stays small.
            dispatch_ns=dispatch_ns if cell.role == "workload" else (),
            queued_ns=queued_ns,
        )

    def _before_calls(self, program: int, gate: Gate | None) -> Callable[[], None]:
        """What is done before each call: say where this process is, now and when calls take long, and pass the gate."""
        step = Step(stage="visit", program=program)
        self.channel.send(step)
        said = time.monotonic()

        def before() -> None:
            nonlocal said
            if time.monotonic() - said > _SIGN_OF_LIFE_S:
                self.channel.send(step)
                said = time.monotonic()
            if gate is not None:
                gate()

        return before

    def _queued(self, number: int, before: Callable[[], None]) -> int | None:
        """Time per queued call; None where the plan has none, or calls that work one by one do not when queued.

        Several calls in flight need more memory than one: that costs the number, not the cell. Where several processes
        share the calls it costs the visit, since the others are inside.
        """
        import jax

        cell, program = self.programs[number]
        if not self.plan.queued_calls or number in self.unqueued:
            return None
        before()
        try:
            return time_queued(
                program.call, jax.block_until_ready, calls=self.plan.queued_calls, keep=not program.carries
            )
        except Exception as error:
            if self.team.size > 1:
                raise
            self.unqueued.add(number)
            self.channel.send(failure_of(self.request, "queue", error, cell))
            return None

    def _fail(self, stage: str, error: BaseException, cell: Cell | None = None) -> None:
        if cell is not None:
            self.failures[cell] += 1
        self.channel.send(failure_of(self.request, stage, error, cell))


def _settle() -> None:
    gc.collect()
    gc.freeze()
    gc.disable()


def _choose_calls(seconds_left: float | None, rounds: int, fixed_s: float, per_call_s: float) -> int:
    """As many calls a visit as leave room for the wanted number of rounds."""
    if seconds_left is None:
        return _DEFAULT_CALLS
    wanted = (seconds_left / rounds - fixed_s) / max(per_call_s, 1e-9)
    return int(min(max(wanted, MIN_CALLS), MAX_CALLS))
