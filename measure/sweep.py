"""A sweep: launches one after the other, written to a record that survives whatever ends it."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import breakeven

from ..data import rounds, store
from ..data.lock import Lock
from ..data.same_programs import Programs, programs_of, unlike
from ..data.schema import SCHEMA_VERSION, Closing, Failure, Launch, Line, Plan, Program, Sweep, Trace, Visit
from ..model.cell import Cell
from .endings import Ended, like_interrupts, signal_of
from .launch import local_ranks
from .processes.group import Group, Start
from .protocol import Message, Ready, Request, Round, Step
from .resuming import (
    check_same_devices,
    check_same_plan,
    one_more_try,
    other_program,
    warn_of_failed,
    warn_of_surroundings,
)
from .time_limit import job_ends_at, within_job
from .workload import MeasureError

MAX_REPLACED = 4
"""Launches that may fail before a sweep gives up."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or another signal that ends; the message says what the file holds and that the same command goes on."""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.signal = number


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a sweep stands. ``launch`` counts from 1; ``seconds_left`` is None where nothing bounds the time."""

    launch: int
    launches: int
    round: int
    seconds_left: float | None
    what: str


OnProgress = Callable[[Progress], None]
Enough = Callable[[store.Record], bool]
OnLaunch = Callable[[store.Record], None]


def run(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    on_progress: OnProgress | None = None,
    on_launch: OnLaunch | None = None,
    enough: Enough | None = None,
    start: Start = local_ranks,
) -> Path:
    """Measure a plan into a record, or go on with one that holds fewer complete launches than planned.

    Nothing is written before the first visit of a launch, so that a mistake leaves no file behind.

    Parameters
    ----------
    plan : from ``planning.make_plan``
    path : the record; created, or appended to when it holds the same plan
    on_progress : called at every step while compiling, and after every round
    on_launch : called after every launch that is not the last, while nothing is measured, with the whole record
    enough : asked after every launch, with the whole record, whether to stop; ``plan.launches`` are then the most, and
        none is begun after the budget
    start : the processes of a launch; default: all on this host

    Returns
    -------
    Path
        The record.

    Raises
    ------
    MeasureError
        If the file holds another plan, or one measured on another kind of device or with other programs, no program of
        the workload can be built, or too many launches fail.
    RecordError
        If the file exists and is no record, cannot be written, or is being written by another process (``Held``).
    Interrupted
        On Ctrl-C, the signals in ``endings``, and before a batch job ends; what was measured is in the file.
    """
    state = _Sweeping(
        plan=plan, path=Path(path), on_progress=on_progress or _silent, on_launch=on_launch, enough=enough, start=start
    )
    try:
        with like_interrupts(), Lock(path), state.writer:
            state.open()
            state.measure()
    except KeyboardInterrupt as interruption:
        raise Interrupted(state.describe_interruption(), signal_of(interruption)) from None
    return state.path


def _silent(_progress: Progress) -> None:
    """Report to nobody."""


def complete_launches(record: store.Record, again: Set[Cell] | None = None) -> int:
    """Launches with at least one complete round; ``again`` as for ``rounds.timed_visits``."""
    return len({(sweep, launch) for sweep, launch, _ in _complete_rounds(record, again)})


def complete_rounds(record: store.Record, again: Set[Cell] | None = None) -> int:
    """Rounds, over all launches, that hold every cell not barred."""
    return len(_complete_rounds(record, again))


def _complete_rounds(record: store.Record, again: Set[Cell] | None) -> set[tuple[str, str, int]]:
    visits = (v.visit for v in rounds.timed_visits(record, again=again) if v.complete)
    return {(visit.sweep, visit.launch, visit.round) for visit in visits}


@dataclass
class _Sweeping:
    """A sweep under way.

    Attributes
    ----------
    again : cells that launches of earlier commands barred, and that have not failed once more
    measured : programs of the record's launches
    resumed : whether launches of an earlier command are in the record
    before, now : the last launch and the one under way
    """

    plan: Plan
    path: Path
    on_progress: OnProgress
    on_launch: OnLaunch | None = None
    enough: Enough | None = None
    start: Start = local_ranks
    stopped: bool = False
    traced: bool = False
    sweep: str = ""
    done: int = 0
    rounds: int = 0
    failures: list[Failure] = field(default_factory=list)
    held: list[Line] = field(default_factory=list)
    number: int = 0
    ends_at: float | None = None
    job_ends_at: float | None = None
    round_s: float = 0.0
    before: Launch | None = None
    now: Launch | None = None
    built: bool = False
    resumed: bool = False
    again: Set[Cell] = frozenset()
    measured: Programs = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.writer = store.Writer(self.path)

    def open(self) -> None:
        """Find out what the file holds."""
        if self.path.exists() and (self.path.stat().st_size or not self.path.is_file()):
            record = store.read(self.path)
            for sweep in record.sweeps:
                check_same_plan(self.plan, sweep.plan, self.path)
            self.sweep = record.sweeps[-1].sweep
            self.failures = list(record.failures)
            self._look(record)
            self._try_again(record)
            self.number = len(record.launches)
            self.before = record.launches[-1] if record.launches else None
            self.resumed = self.before is not None
            if self._missing or self._owes_trace:
                self.writer.reopen()
        else:
            self.sweep = _identifier()
            opening = Sweep(
                schema=SCHEMA_VERSION,
                sweep=self.sweep,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                version=breakeven.__version__,
                plan=self.plan,
            )
            self.held = [opening]
        if self.plan.budget_s is not None:
            self.ends_at = time.monotonic() + self.plan.budget_s * self._missing / self.plan.launches
        if self._missing and not self.stopped:
            self.job_ends_at = job_ends_at()
            self.ends_at = within_job(self.ends_at, self.job_ends_at)

    def _try_again(self, record: store.Record) -> None:
        """Give cells that earlier commands barred one more try, unless nothing is missing without them."""
        failed, mended = self._barred(), rounds.mended(record)
        if not self.stopped and (self._missing > 0 or rounds.tried_again(record).keys() - mended):
            self.again = failed
        if failed - mended:
            warn_of_failed(failed - mended, self.failures, self.path, again=bool(self.again))
        self.failures = one_more_try(self.failures, self.again)
        self._look(record)

    @property
    def _missing(self) -> int:
        """Launches still to be made; one that was cut short counts, and the rounds it lacks are made up by another."""
        missing = max(0, self.plan.launches - self.done)  # records joined into one hold more than was planned
        if self.plan.rounds is None or self.plan.budget_s is not None:
            return missing
        return max(missing, -((self.rounds - self.plan.launches * self.plan.rounds) // self.plan.rounds))

    @property
    def _owes_trace(self) -> bool:
        return self.plan.trace and not self.traced

    @property
    def _out_of_time(self) -> bool:
        return self.ends_at is not None and time.monotonic() > self.ends_at

    def measure(self) -> None:
        """Launch until enough launches are complete."""
        replaced = 0
        while self._missing > 0 and not self.stopped:
            if self.job_ends_at is not None and time.monotonic() > self.job_ends_at:
                raise Ended(signal.SIGTERM)  # what the batch system would send a minute later
            before, barred = self.done, self._barred()
            self._launch()
            self.number += 1
            if self.path.exists():
                self._write_held()
                record = store.read(self.path)
                self._look(record)
                if self.on_launch is not None and self._missing > 0 and not self.stopped:
                    self.on_launch(record)
            # A second death at one cell, while others work, is a step forward: the next launches leave that cell out.
            further = self.built and self._barred() > barred
            replaced = 0 if further else replaced + (self.done <= before)
            if replaced >= MAX_REPLACED or (replaced and not self.done and self._out_of_time):
                raise MeasureError(self._describe_giving_up())
        if self._owes_trace:
            self._launch(only_trace=True)
            self._write_held()

    def _look(self, record: store.Record) -> None:
        """Count the complete launches; where a question decides when to stop, ask it, and mind the budget."""
        self.again = self.again - self._barred()
        self.done = complete_launches(record, self.again or None)
        self.rounds = complete_rounds(record, self.again or None)
        self.measured = programs_of(record.launches, record.programs)
        # A launch that said why nothing could be traced would say it again.
        self.traced = bool(record.traces or record.tracing)
        if self.enough is not None and self.done:
            self.stopped = self.enough(record) or self._out_of_time

    def _launch(self, *, only_trace: bool = False) -> None:
        self.built = False
        request = Request(
            plan=self.plan,
            sweep=self.sweep,
            launch=_identifier(),
            number=self.number,
            barred=tuple(self._barred()),
            ends_at=self._share(),
            only_trace=only_trace,
            parent=os.getpid(),
        )
        with Group(request, self.start) as group:
            for message in group.messages():
                # Whatever goes wrong while tracing costs the trace alone, whichever stage it was.
                traced = only_trace and isinstance(message, Failure)
                self._take(msgspec.structs.replace(message, stage="trace") if traced else message)

    def _share(self) -> float | None:
        """When this launch must end for the launches still missing to have equal time."""
        if self.ends_at is None:
            return None
        now = time.monotonic()
        return now + max(0.0, self.ends_at - now) / (self._missing + self._owes_trace)

    def _take(self, message: Message) -> None:
        if isinstance(message, Visit | Trace):
            self._write_held()
            self.writer.write(message)
        elif isinstance(message, Launch | Program | Failure | Closing):
            if isinstance(message, Launch):
                if self.before is not None:
                    check_same_devices(self.before, message, self.path)
                self.now = message
            self.held.append(message)
            if isinstance(message, Program | Launch):
                self._check_same_programs()
            if isinstance(message, Program):
                self.built |= message.cell.role == self.plan.leading_role
            if isinstance(message, Failure):
                self._consider(message)
        elif isinstance(message, Ready):
            self.round_s = message.round_s
            if not message.workloads:
                raise MeasureError(describe_no_workload(self.plan, self.failures))
        elif isinstance(message, Round):
            self._write_held()
            self.writer.sync()
            self._report(message.round + 1, "measuring")
        elif isinstance(message, Step) and message.program is None:
            self._report(0, f"{message.stage} {message.cell}" if message.cell else "starting a process")

    def _consider(self, failure: Failure) -> None:
        self.failures.append(failure)
        if failure.stage == "launch" and failure.error == MeasureError.__name__:
            raise MeasureError(failure.message)

    def _check_same_programs(self) -> None:
        """Refuse a launch of other programs than the record's before any of its lines is written."""
        # Of several processes the first may build before the last has said that it is there.
        if self.before is None or self.now is None:
            return
        ours = programs_of([self.now], [line for line in self.held if isinstance(line, Program)])
        # A program that is another one at every start shows in the first two launches of one command.
        if found := unlike(self.measured, ours, text=self.resumed or self.number > 1):
            raise other_program(found, self.before, self.now, self.path)

    def _write_held(self) -> None:
        if self.now is not None:
            if self.before is not None:
                warn_of_surroundings(self.before, self.now, self.path)
            self.before, self.now = self.now, None
        for line in self.held:
            self.writer.write(line)
        self.held.clear()

    def _barred(self) -> set[Cell]:
        # The rule is the data room's; it reads failures only.
        return rounds.barred(store.Record(sweeps=(), failures=tuple(self.failures)))

    def _report(self, round_number: int, what: str) -> None:
        left = None if self.ends_at is None else max(0.0, self.ends_at - time.monotonic())
        self.on_progress(
            Progress(
                launch=min(self.done + 1, self.plan.launches),
                launches=self.plan.launches,
                round=round_number,
                seconds_left=left,
                what=what,
            )
        )

    def describe_interruption(self) -> str:
        """What a user needs to know after Ctrl-C and the like."""
        if not self.path.exists() or not self.path.stat().st_size:
            return "interrupted before anything was measured; nothing was written."
        done = complete_launches(store.read(self.path), self.again or None)
        return f"interrupted: {self.path} holds {done} of {self.plan.launches} launches; the same command goes on."

    def _describe_giving_up(self) -> str:
        last = describe_failure(self.failures[-1], "The last failure") if self.failures else ""
        kept = f" {self.path} holds {self.done} of {self.plan.launches} launches." if self.path.exists() else ""
        return f"{self.plan.workload}: {self.number} launches were tried, giving up.{kept}\n{last}"


def describe_failure(failure: Failure, opening: str) -> str:
    """A failure with the user's own frames, for the terminal."""
    where = f" ({failure.cell})" if failure.cell is not None else ""
    kind = "" if failure.error == MeasureError.__name__ else f"{failure.error}: "
    return "\n".join([f"{opening}{where}:", *(f"  {frame}" for frame in failure.frames), f"{kind}{failure.message}"])


def describe_no_workload(plan: Plan, failures: Sequence[Failure]) -> str:
    """Why no program of the workload could be built: the first failure, preferably of the workload itself."""
    of_workload = (f for f in failures if f.cell is not None and f.cell.role == plan.leading_role)
    failure = next(of_workload, next(iter(failures), None))
    if failure is None:
        return f"{plan.workload} cannot be measured: the process ended without a reason."
    return describe_failure(failure, f"{plan.workload} cannot be measured")


def _identifier() -> str:
    return uuid.uuid4().hex
