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
from . import devices
from .clock import MAX_CALLS, MIN_CALLS, time_calls, time_queued
from .inventory import control_cells, link_cells, probe_cells, workload_cells
from .protocol import Channel, Finished, Ready, Request, Round, Step
from .userfile import resolve, user_frames
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
_MAX_MESSAGE = 4000


@dataclass
class Worker:
    """One launch: its programs, in the order they were compiled, its failures by cell, and refusals of controls.

    What a user's code does wrong costs its cell or visit; what ends the process costs the step announced last.
    """

    request: Request
    channel: Channel
    programs: dict[int, tuple[Cell, Any]] = field(default_factory=dict)
    failures: Counter[Cell] = field(default_factory=Counter)
    refusals: set[str] = field(default_factory=set)

    @property
    def plan(self) -> Plan:
        """What is measured."""
        return self.request.plan

    def run(self) -> None:
        """Compile, calibrate, measure, and say that it is finished."""
        self._launch()
        self.channel.send(Finished())

    def _launch(self) -> None:
        self.channel.send(Step(stage="launch"))
        try:
            self._start()
            workload = NO_WORKLOAD if self.plan.leading_role != "workload" else resolve(self.plan.workload)
        except MeasureError as error:
            self._fail("launch", error)
            return
        self._compile(workload)
        calls, round_s = self._calibrate()
        workloads = sum(cell.role == self.plan.leading_role for cell, _ in self.programs.values())
        self.channel.send(Ready(programs=len(self.programs), workloads=workloads, calls=calls, round_s=round_s))
        if workloads and not self.request.only_compile:
            self._measure(calls, round_s)

    def _start(self) -> None:
        """Start the backend and say what is there; another platform, or too few devices, is a failure."""
        import jax

        try:
            found = jax.devices()
        except RuntimeError as error:
            raise MeasureError(f"JAX cannot start on {self.plan.platform}: {error}") from error
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
                xla_flags=os.environ.get("XLA_FLAGS"),
            )
        )
        if found[0].platform != self.plan.platform:
            raise MeasureError(f"asked for {self.plan.platform}, but JAX found {found[0].platform}.")
        if len(found) < self.plan.devices[-1]:
            raise MeasureError(f"asked for {self.plan.devices[-1]} devices, but JAX found {len(found)}.")

    def _compile(self, workload: Any) -> None:
        from .programs import Programs

        programs = Programs(self.plan, workload)
        for cell in link_cells(self.plan):
            self._add(cell, programs.link)
        for cell in workload_cells(self.plan):
            self._add(cell, programs.workload)
        built = [
            (cell, program)
            for cell, program in self.programs.values()
            if (cell.role, cell.strategy) == ("workload", self.plan.strategies[0])
        ]
        for cell in control_cells(self.plan):
            if programs.workload_of(cell) is not None:
                self._add(cell, programs.local if cell.role == "local" else programs.null)
        for cell, program in built:
            for probe in probe_cells(self.plan, cell, program.facts.collectives if program.facts else ()):
                self._add(probe, programs.probe)

    def _add(self, cell: Cell, make: Callable[..., Any]) -> None:
        """Build and compile one cell and say so; a failure costs this cell only."""
        from .controls import ControlRefused

        if cell in self.request.barred:
            return
        stage = "build"

        def announce(next_stage: str) -> None:
            nonlocal stage
            stage = next_stage
            self.channel.send(Step(stage=stage, cell=cell))

        try:
            announce("build")
            program, control = make(cell, announce)
        except ControlRefused as error:
            if str(error) not in self.refusals:
                self.refusals.add(str(error))
                self._fail("control", error, cell)
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, sys.exit included
            self._fail(stage, error, cell)
        else:
            number = len(self.programs)
            self.programs[number] = (cell, program)
            self.channel.send(
                Program(
                    sweep=self.request.sweep,
                    launch=self.request.launch,
                    program=number,
                    cell=cell,
                    compile_s=program.compile_s,
                    facts=program.facts,
                    control=control,
                )
            )

    def _calibrate(self) -> tuple[int, float]:
        """Calls for every visit of this launch, and the seconds of a round with them."""
        per_call_s = fixed_s = 0.0
        for number in list(self.programs):
            visit = self._visit(number, round=-1, position=0, calls=_CALIBRATION_CALLS)
            if visit is not None:
                typical_s = sorted(visit.latency_ns[visit.warmups :])[_CALIBRATION_CALLS // 2] * 1e-9
                per_call_s += typical_s
                fixed_s += visit.warmups * typical_s + _VISIT_OVERHEAD_S
                fixed_s += (visit.queued_ns or 0) * self.plan.queued_calls * 1e-9
        rounds = min(_TARGET_ROUNDS, self._most_rounds())
        calls = self.plan.calls or _choose_calls(self._seconds_left(), rounds, fixed_s, per_call_s)
        return calls, fixed_s + calls * per_call_s

    def _most_rounds(self) -> int:
        fitting = _VISITS // max(1, len(self.programs))
        return self.plan.rounds or min(max(fitting, _LEAST_ROUNDS), _MOST_ROUNDS)

    def _seconds_left(self) -> float | None:
        return None if self.request.ends_at is None else self.request.ends_at - time.monotonic()

    def _measure(self, calls: int, round_s: float) -> None:
        """Rounds until the time or their number is up, but at least one that is complete."""
        order = random.Random(f"{self.plan.seed}/{self.request.number}")
        gc.collect()
        gc.freeze()
        gc.disable()
        complete, number = 0, 0
        while self._goes_on(complete, number, round_s):
            start = time.perf_counter()
            present = [p for p, (cell, _) in self.programs.items() if self.failures[cell] < 2]
            order.shuffle(present)
            visits = [self._visit(p, round=number, position=i, calls=calls) for i, p in enumerate(present)]
            whole = None not in visits
            self.channel.send(*(visit for visit in visits if visit is not None), Round(round=number, complete=whole))
            gc.collect()
            if not self.channel.wait():
                return
            round_s = time.perf_counter() - start
            complete += whole
            number += 1

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
        import jax

        cell, program = self.programs[number]
        self.channel.send(Step(stage="visit", program=number))
        began = time.time()
        try:
            latency_ns, dispatch_ns = time_calls(program.call, jax.block_until_ready, calls=self.plan.warmups + calls)
            queued_ns = None
            if cell.role in QUEUED_ROLES and self.plan.queued_calls:
                queued_ns = time_queued(program.call, program.wait_queued, calls=self.plan.queued_calls)
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, sys.exit included
            self._fail("visit", error, cell)
            return None
        return Visit(
            sweep=self.request.sweep,
            launch=self.request.launch,
            program=number,
            round=round,
            position=position,
            time=began,
            warmups=self.plan.warmups,
            latency_ns=latency_ns,
            # Elsewhere it answers no question, and the record stays small.
            dispatch_ns=dispatch_ns if cell.role == "workload" else (),
            queued_ns=queued_ns,
        )

    def _fail(self, stage: str, error: BaseException, cell: Cell | None = None) -> None:
        if cell is not None:
            self.failures[cell] += 1
        ours = isinstance(error, MeasureError)
        self.channel.send(
            Failure(
                sweep=self.request.sweep,
                launch=self.request.launch,
                stage=stage,
                error=type(error).__name__,
                message=str(error)[:_MAX_MESSAGE],
                cell=cell,
                frames=() if ours else user_frames(error),
            )
        )


def _choose_calls(seconds_left: float | None, rounds: int, fixed_s: float, per_call_s: float) -> int:
    """As many calls a visit as leave room for the wanted number of rounds."""
    if seconds_left is None:
        return _DEFAULT_CALLS
    wanted = (seconds_left / rounds - fixed_s) / max(per_call_s, 1e-9)
    return int(min(max(wanted, MIN_CALLS), MAX_CALLS))
