"""A sweep: launches one after the other, written to a record that survives whatever ends it."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import breakeven

from ..data import rounds, store
from ..data.schema import SCHEMA_VERSION, Failure, Launch, Line, Plan, Program, Sweep, Visit
from ..model.cell import Cell
from .launch import Child
from .protocol import Message, Ready, Request, Round, Step
from .workload import MeasureError

MAX_REPLACED = 4
"""Launches that may fail before a sweep gives up."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; the message says what is in the file and that the same command goes on."""


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


def run(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    on_progress: OnProgress | None = None,
    enough: Enough | None = None,
) -> Path:
    """Measure a plan into a record, or go on with one that holds fewer complete launches than planned.

    Nothing is written before the first visit of a launch, so that a mistake leaves no file behind.

    Parameters
    ----------
    plan : from ``planning.make_plan``
    path : the record; created, or appended to when it holds the same plan
    on_progress : called at every step while compiling, and after every round
    enough : asked after every launch, with the whole record, whether to stop; ``plan.launches`` are then the most, and
        none is begun after the budget

    Returns
    -------
    Path
        The record.

    Raises
    ------
    MeasureError
        If the file holds another plan, no program of the workload can be built, or too many launches fail.
    RecordError
        If the file exists and is no record.
    Interrupted
        On Ctrl-C; what was measured is in the file.
    """
    state = _Sweeping(plan=plan, path=Path(path), on_progress=on_progress or _silent, enough=enough)
    state.open()
    try:
        state.measure()
    except KeyboardInterrupt:
        raise Interrupted(state.describe_interruption()) from None
    finally:
        state.writer.close()
    return state.path


def _silent(_progress: Progress) -> None:
    """Report to nobody."""


def complete_launches(record: store.Record) -> int:
    """Launches with at least one complete round."""
    return len({(v.visit.sweep, v.visit.launch) for v in rounds.timed_visits(record) if v.complete})


@dataclass
class _Sweeping:
    """A sweep under way."""

    plan: Plan
    path: Path
    on_progress: OnProgress
    enough: Enough | None = None
    stopped: bool = False
    sweep: str = ""
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    held: list[Line] = field(default_factory=list)
    number: int = 0
    ends_at: float | None = None
    round_s: float = 0.0

    def open(self) -> None:
        """Find out what the file holds."""
        self.writer = store.Writer(self.path)
        if self.path.exists() and (self.path.stat().st_size or not self.path.is_file()):
            record = store.read(self.path)
            for sweep in record.sweeps:
                _check_same_plan(self.plan, sweep.plan, self.path)
            self.sweep = record.sweeps[-1].sweep
            self._look(record)
            self.failures = list(record.failures)
            self.number = len(record.launches)
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

    @property
    def _missing(self) -> int:
        return self.plan.launches - self.done

    @property
    def _out_of_time(self) -> bool:
        return self.ends_at is not None and time.monotonic() > self.ends_at

    def measure(self) -> None:
        """Launch until enough launches are complete."""
        replaced = 0
        while self._missing > 0 and not self.stopped:
            before = self.done
            self._launch()
            self.number += 1
            if self.path.exists():
                self._write_held()
                self._look(store.read(self.path))
            replaced += self.done <= before
            if replaced >= MAX_REPLACED or (replaced and not self.done and self._out_of_time):
                raise MeasureError(self._describe_giving_up())

    def _look(self, record: store.Record) -> None:
        """Count the complete launches; where a question decides when to stop, ask it, and mind the budget."""
        self.done = complete_launches(record)
        if self.enough is not None and self.done:
            self.stopped = self.enough(record) or self._out_of_time

    def _launch(self) -> None:
        request = Request(
            plan=self.plan,
            sweep=self.sweep,
            launch=_identifier(),
            number=self.number,
            barred=tuple(self._barred()),
            ends_at=self._share(),
            parent=os.getpid(),
        )
        with Child(request) as child:
            for message in child.messages():
                self._take(message)

    def _share(self) -> float | None:
        """When this launch must end for the launches still missing to have equal time."""
        if self.ends_at is None:
            return None
        now = time.monotonic()
        return now + max(0.0, self.ends_at - now) / self._missing

    def _take(self, message: Message) -> None:
        if isinstance(message, Visit):
            self._write_held()
            self.writer.write(message)
        elif isinstance(message, Launch | Program | Failure):
            self.held.append(message)
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

    def _write_held(self) -> None:
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
                launch=self.done + 1, launches=self.plan.launches, round=round_number, seconds_left=left, what=what
            )
        )

    def describe_interruption(self) -> str:
        """What a user needs to know after Ctrl-C."""
        if not self.path.exists():
            return "interrupted before anything was measured; nothing was written."
        done = complete_launches(store.read(self.path))
        return f"interrupted: {self.path} holds {done} of {self.plan.launches} launches; the same command goes on."

    def _describe_giving_up(self) -> str:
        last = describe_failure(self.failures[-1], "The last failure") if self.failures else ""
        kept = f"{self.path} holds {self.done} of {self.plan.launches} launches." if self.path.exists() else ""
        return f"{self.plan.workload}: {self.number} launches were tried, giving up. {kept}\n{last}"


def describe_failure(failure: Failure, opening: str) -> str:
    """A failure with the user's own frames, for the terminal."""
    where = f" ({failure.cell})" if failure.cell is not None else ""
    kind = "" if failure.error == MeasureError.__name__ else f"{failure.error}: "
    return "\n".join([f"{opening}{where}:", *(f"  {frame}" for frame in failure.frames), f"{kind}{failure.message}"])


def describe_no_workload(plan: Plan, failures: Sequence[Failure]) -> str:
    """Why no program of the workload could be built: the first failure, preferably of the workload itself."""
    of_workload = (f for f in failures if f.cell is not None and f.cell.role == "workload")
    failure = next(of_workload, next(iter(failures), None))
    if failure is None:
        return f"{plan.workload} cannot be measured: the process ended without a reason."
    return describe_failure(failure, f"{plan.workload} cannot be measured")


def _check_same_plan(ours: Plan, theirs: Plan, path: Path) -> None:
    different = [
        f"{name} ({getattr(theirs, name)} there, {getattr(ours, name)} now)"
        for name in Plan.__struct_fields__
        if getattr(ours, name) != getattr(theirs, name)
    ]
    if different:
        raise MeasureError(
            f"{path} holds a sweep of another plan; they differ in {', '.join(different)}. "
            "Give another file with -o, or the same options to go on."
        )


def _identifier() -> str:
    return uuid.uuid4().hex
