"""Joining records of one plan, measured in several places or at several times, into one."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

from .catalog import file_of
from .lock import Lock
from .machines import Difference, described, devices_differ, surroundings_differ
from .rounds import POOLED_ALIKE, select_sweeps, timed_visits
from .same_programs import programs_of, unlike
from .schema import Launch, Line, Sweep
from .store import Record, RecordError, Writer, errors_named, read_lines

_INSTEAD = "they cannot be joined. 'breakeven compare' sets them side by side."


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What a joined record holds, and what was in several of its sources. Launches and rounds: the complete ones."""

    record: Record
    launches: int
    rounds: int
    duplicates: int


class _Source(NamedTuple):
    """One file and its lines, in file order."""

    path: str
    record: Record
    lines: list[Line]


def merge(
    sources: Sequence[str | os.PathLike[str]], target: str | os.PathLike[str], *, replace: bool = False
) -> Merged:
    """Write the lines of several records into one; a line that stands in several of them is written once.

    The new record appears whole or not at all: it is written beside its place and then moved there.

    Parameters
    ----------
    sources : records, or ``data:NAME``; one of them may be cut at its end, which is skipped with a warning
    target : record to write
    replace : whether a file that is there already may be replaced

    Raises
    ------
    RecordError
        If a source is no record, or they must not be pooled: plans, programs or kinds of device that differ, or
        simulated, foreign and measured sweeps together. If the target exists, or cannot be written.
    """
    target = Path(target)
    # From before the sources are read, for the target may be one of them, and somebody may be writing it.
    with Lock(target):
        if target.exists() and not replace:
            raise RecordError(f"{target}: exists; give another file with -o, or --force to replace it.")
        found = [_open(source) for source in sources]
        first, *others = found
        for other in others:
            _check_same_plan(first, other)
        # Each with each: what one launch does not say differs from nothing.
        for one, other in combinations(found, 2):
            _check_same_devices(one, other)
            _check_same_programs(one, other)
        for other in others:
            if differs := _differ(surroundings_differ, first, other):
                warnings.warn(
                    f"{_both(first, other)}: differ in {differs}; their launches are joined all the same.", stacklevel=2
                )
        kept = _united([source.lines for source in found])
        record = Record.from_lines(kept, source=str(target))
        _write(kept, target)
    complete = [v.visit for v in timed_visits(record) if v.complete]
    return Merged(
        record=record,
        launches=len({(v.sweep, v.launch) for v in complete}),
        rounds=len({(v.sweep, v.launch, v.round) for v in complete}),
        duplicates=sum(len(source.lines) for source in found) - len(kept),
    )


def _open(source: str | os.PathLike[str]) -> _Source:
    with file_of(source) as path:
        if path.suffix.lower() == ".csv":
            raise RecordError(f"{source}: a table; only records (.jsonl) can be joined.")
        lines = read_lines(path)
    name = str(source)
    record = Record.from_lines(lines, source=name)
    select_sweeps(record)  # one that must not be pooled by itself is refused by its own name
    return _Source(name, record, lines)


def _united(sources: Sequence[Sequence[Line]]) -> list[Line]:
    """Every line as often as in the source that has it most often: a launch may fail twice in the same words."""
    kept: list[Line] = []
    written: Counter[Line] = Counter()
    opened = set()
    for lines in sources:
        seen: Counter[Line] = Counter()
        for line in lines:
            seen[line] += 1
            if isinstance(line, Sweep):
                # A later version may have gone on with the sweep; the first opening says who began.
                new = line.sweep not in opened
                opened.add(line.sweep)
            else:
                new = seen[line] > written[line]
            if new:
                kept.append(line)
        written |= seen
    return kept


def _write(lines: Sequence[Line], target: Path) -> None:
    place = target.resolve()  # where a link leads: the link stays
    part = place.with_name(f"{place.name}.part")
    try:
        part.unlink(missing_ok=True)  # left by a process that was killed
        with Writer(part) as writer:
            for line in lines:
                writer.write(line)
        with errors_named(target, "cannot be written: "):
            os.replace(part, place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _check_same_plan(first: _Source, other: _Source) -> None:
    ours, theirs, both = first.record.sweeps[0], other.record.sweeps[0], _both(first, other)
    if (one := _origin(ours)) != (two := _origin(theirs)):
        raise RecordError(f"{both}: one is {one}, the other {two}; they cannot be joined.")
    for name in POOLED_ALIKE:
        if getattr(ours.plan, name) != getattr(theirs.plan, name):
            raise RecordError(
                f"{both}: differ in {name} ({getattr(ours.plan, name)} and {getattr(theirs.plan, name)}); {_INSTEAD}"
            )


def _check_same_devices(one: _Source, other: _Source) -> None:
    if differ := _differ(devices_differ, one, other):
        raise RecordError(f"{_both(one, other)}: measured on different kinds of device, {differ}; {_INSTEAD}")


def _check_same_programs(one: _Source, other: _Source) -> None:
    ours, theirs = (programs_of(source.record.launches, source.record.programs) for source in (one, other))
    if found := unlike(ours, theirs):
        words = found.told("in the first", "in the other")
        raise RecordError(f"{_both(one, other)}: measured with different programs, {words}; {_INSTEAD}")


def _differ(differ: Callable[[Launch, Launch], list[Difference]], one: _Source, other: _Source) -> str | None:
    """What the first two launches that differ differ in; None where none do."""
    pairs = product(one.record.launches, other.record.launches)
    found = next((d for pair in pairs if (d := differ(*pair))), None)
    return None if found is None else described(found)


def _both(one: _Source, other: _Source) -> str:
    return f"{one.path} and {other.path}"


def _origin(sweep: Sweep) -> str:
    return "simulated" if sweep.synthetic else "read from another tool's log" if sweep.foreign else "measured"
