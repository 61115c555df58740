"""Joining records of one plan, measured in several places or at several times, into one."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

from .lock import Lock
from .machines import Difference, devices_differ, surroundings_differ
from .rounds import POOLED_ALIKE, select_sweeps, timed_visits
from .schema import Line, Sweep
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

    path: Path
    record: Record
    lines: list[Line]


def merge(
    sources: Sequence[str | os.PathLike[str]], target: str | os.PathLike[str], *, replace: bool = False
) -> Merged:
    """Write the lines of several records into one; a line that stands in several of them is written once.

    The new record appears whole or not at all: it is written beside its place and then moved there.

    Parameters
    ----------
    sources : records; one of them may be cut at its end, which is skipped with a warning
    target : record to write
    replace : whether a file that is there already may be replaced

    Raises
    ------
    RecordError
        If a source is no record, or they must not be pooled: plans or kinds of device that differ, or simulated,
        foreign and measured sweeps together. If the target exists, or cannot be written.
    """
    target = Path(target)
    found = [_open(Path(source)) for source in sources]
    first, *others = found
    for other in others:
        _check_alike(first, other)
    if target.exists() and not replace:
        raise RecordError(f"{target}: exists; give another file with -o, or --force to replace it.")
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


def _open(path: Path) -> _Source:
    lines = read_lines(path)
    record = Record.from_lines(lines, source=str(path))
    select_sweeps(record)  # one that must not be pooled by itself is refused by its own name
    return _Source(path, record, lines)


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
    part = target.with_name(f"{target.name}.part")
    with Lock(target):
        try:
            part.unlink(missing_ok=True)  # left by a process that was killed
            with Writer(part) as writer:
                for line in lines:
                    writer.write(line)
            with errors_named(target, "cannot be written: "):
                os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _check_alike(first: _Source, other: _Source) -> None:
    ours, theirs = first.record.sweeps[0], other.record.sweeps[0]
    both = f"{first.path} and {other.path}"
    if (one := _origin(ours)) != (two := _origin(theirs)):
        raise RecordError(f"{both}: one is {one}, the other {two}; they cannot be joined.")
    for name in POOLED_ALIKE:
        if getattr(ours.plan, name) != getattr(theirs.plan, name):
            raise RecordError(
                f"{both}: differ in {name} ({getattr(ours.plan, name)} and {getattr(theirs.plan, name)}); {_INSTEAD}"
            )
    launches = [source.record.launches for source in (first, other)]
    pairs = list(product(*launches))
    if found := next((d for pair in pairs if (d := devices_differ(*pair))), None):
        raise RecordError(f"{both}: measured on different kinds of device, {_told(found)}; {_INSTEAD}")
    if found := next((d for pair in pairs if (d := surroundings_differ(*pair))), None):
        warnings.warn(f"{both}: differ in {_told(found)}; their launches are joined all the same.", stacklevel=3)


def _origin(sweep: Sweep) -> str:
    return "simulated" if sweep.synthetic else "read from another tool's log" if sweep.foreign else "measured"


def _told(found: Sequence[Difference]) -> str:
    return ", ".join(f"{name} ({one} and {other})" for name, one, other in found)
