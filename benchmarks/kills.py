"""Does a sweep survive SIGKILL at any moment?

A small sweep is started, killed at a random moment, looked at, and resumed to its end; over and over, once with one
measuring process and once with two that run together. From the repository's root:

    python -m benchmarks.kills                          # 100 and 50 kills; writes docs/kills.*
    python -m benchmarks.kills --kills 4 --pairs 0      # fewer; writes nothing
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO

import msgspec
from breakeven.data import store
from breakeven.data.rounds import timed_visits
from breakeven.data.schema import Plan
from breakeven.model.cell import Cell

from .stamp import DOCS, stamp, write_rows

KILLS, PAIRS = 100, 50
TOO_LATE = "none: it had ended"
LAUNCHES = 2
ROUNDS = {1: 200, 2: 40}
"""By processes: so many that about half of a sweep's time goes into them, and not into starting and compiling."""
MOST_S = 120.0
"""A sweep that takes longer is counted as one that does not end."""
GRACE_S = 5.0
"""Until the kernel has ended a killed process's children, on a busy machine."""

SWEEP = """
import sys, msgspec
from breakeven.data.schema import Plan
from breakeven.measure import sweep
plan = msgspec.json.decode(sys.argv[1], type=Plan)
said = lambda p: p.what == "measuring" and print(p.round, flush=True)
sweep.run(plan, sys.argv[2], on_progress=said)
"""
"""Says the number of every round that it holds to be safe on the disk."""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One kill and what became of the sweep. ``victim``: which of its processes; ``why``: what went wrong, or empty.

    moment : share of the time of an undisturbed sweep after which the signal was sent
    said, kept : complete rounds that the sweep said were safe, and those in the file after the kill
    cut : whether the last line was cut
    left : processes that outlived the sweep by ``GRACE_S``
    rounds : complete rounds in each cell at the end
    """

    processes: int
    victim: str
    moment: float
    said: int
    kept: int
    cut: bool
    left: int
    rounds: int
    why: str

    @property
    def survived(self) -> bool:
        """Whether nothing went wrong."""
        return not self.why


@dataclass(frozen=True, kw_only=True)
class Row:
    """All kills of one kind."""

    processes: int
    victim: str
    kills: int
    survived: int
    before_first_round: int
    rounds_said: int
    rounds_kept: int
    cut_lines: int
    least_rounds: int


def plan_of(processes: int, rounds: int) -> Plan:
    """The smallest sweep that has more than one cell, launch and round."""
    return Plan(
        workload="mean-all",
        path="weak",
        objective="throughput",
        devices=(1, 2),
        sizes=(8,),
        strategies=("jit",),
        unit="rows",
        visible_devices=2,
        launches=LAUNCHES,
        rounds=rounds,
        calls=3,
        probes=False,
        step_timeout_s=60.0,
        processes=processes,
    )


def run(kills: int, processes: int, seed: int, folder: Path, rounds: int | None = None) -> Iterator[Kill]:
    """Kill as many sweeps; every one is resumed to its end."""
    plan = plan_of(processes, rounds or ROUNDS[processes])
    moments = random.Random(f"{seed}/{processes}")
    began = time.monotonic()
    whole = folder / f"whole-{processes}.jsonl"
    _finish(plan, whole)
    whole_s, cells = time.monotonic() - began, set(_rounds(_read(whole)))
    made = 0
    for number in count():
        if made == kills:
            return
        # With several processes it may be any of them that is killed; the others must not wait for it for ever.
        victim = "leader" if processes == 1 else moments.choice(("leader", "first child", "last child"))
        path = folder / f"{processes}-{number}.jsonl"
        kill = _kill(plan, path, moments.random(), victim, whole_s, cells)
        if kill.victim != TOO_LATE:
            made += 1
            yield kill


def _wait(process: subprocess.Popen[bytes]) -> list[str]:
    """Wait for the sweep's end; what is wrong when it does not come."""
    try:
        process.wait(MOST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return [f"it did not end within {MOST_S:g} s"]
    return []


def _kill(plan: Plan, path: Path, moment: float, victim: str, whole_s: float, cells: set[Cell]) -> Kill:
    with tempfile.TemporaryFile("w+") as said_file:
        process = _start(plan, path, said_file)
        time.sleep(moment * whole_s)
        children = _children(process.pid)
        targets = {"leader": process.pid}
        if children:  # none between two launches
            targets |= {"first child": children[0], "last child": children[-1]}
        victim = TOO_LATE if process.poll() is not None else victim if victim in targets else "leader"
        with contextlib.suppress(ProcessLookupError, KeyError):
            os.kill(targets[victim], signal.SIGKILL)
        # Of a child that is killed the leader hears, and goes on by itself.
        why = _wait(process)
        left = _outlived(children)
        said_file.seek(0)
        said = len(said_file.read().splitlines())
    content = path.read_bytes() if path.exists() else b""
    kept = 0
    if content:
        try:
            kept = _num_rounds(_read(path))
        except store.RecordError as error:
            why.append(f"not readable: {error}")
    if kept < said:
        why.append(f"{said} rounds were said to be safe, {kept} are there")
    if left:
        why.append(f"{left} processes outlived the sweep")
    least, problems = _resume(plan, path, content, cells)
    return Kill(
        processes=plan.processes,
        victim=victim,
        moment=round(moment, 4),
        said=said,
        kept=kept,
        cut=bool(content) and not content.endswith(b"\n"),
        left=left,
        rounds=least,
        why="; ".join(why + problems),
    )


def _resume(plan: Plan, path: Path, content: bytes, cells: set[Cell]) -> tuple[int, list[str]]:
    """Go on to the end: complete rounds in each cell, and what is not as it must be."""
    try:
        _finish(plan, path)
        record = _read(path)
    except (store.RecordError, subprocess.SubprocessError) as error:
        return 0, [f"not resumed: {getattr(error, 'stderr', None) or error}"]
    found, why = _rounds(record), []
    least, planned = min(found.values(), default=0), plan.launches * (plan.rounds or 0)
    if not path.read_bytes().startswith(content[: content.rfind(b"\n") + 1]):
        why.append("what was written before the kill has changed")
    if set(found) != cells:
        why.append(f"other cells: {', '.join(sorted(map(str, set(found) ^ cells)))}")
    if least < planned:
        why.append(f"{least} complete rounds, planned were {planned}")
    if stray := sorted(file.name for file in path.parent.glob(f"{path.name}?*")):
        why.append(f"left behind: {', '.join(stray)}")
    return least, why


def _start(plan: Plan, path: Path, said: IO[str]) -> subprocess.Popen:
    return subprocess.Popen(_arguments(plan, path), stdout=said, stderr=subprocess.DEVNULL)


def _finish(plan: Plan, path: Path) -> None:
    subprocess.run(_arguments(plan, path), capture_output=True, text=True, check=True, timeout=MOST_S)


def _arguments(plan: Plan, path: Path) -> list[str]:
    return [sys.executable, "-P", "-c", SWEEP, msgspec.json.encode(plan).decode(), str(path)]


def _read(path: Path) -> store.Record:
    with warnings.catch_warnings(action="ignore"):  # a last line that was cut is counted apart
        return store.read(path)


def _rounds(record: store.Record) -> Counter[Cell]:
    """Complete rounds of every cell."""
    return Counter(visit.cell for visit in timed_visits(record) if visit.complete)


def _num_rounds(record: store.Record) -> int:
    return len({(v.visit.launch, v.visit.round) for v in timed_visits(record) if v.complete})


def _children(pid: int) -> list[int]:
    """Processes that a process has started and that run."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _outlived(pids: Sequence[int]) -> int:
    """How many of these run on for more than a few seconds."""
    deadline = time.monotonic() + GRACE_S
    while (running := [pid for pid in pids if _runs(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return len(running)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def summarise(kills: Sequence[Kill]) -> list[Row]:
    """Count by number of processes and victim."""
    groups: dict[tuple[int, str], list[Kill]] = {}
    for kill in sorted(kills, key=lambda kill: (kill.processes, kill.victim)):
        groups.setdefault((kill.processes, kill.victim), []).append(kill)
    return [
        Row(
            processes=processes,
            victim=victim,
            kills=len(group),
            survived=sum(kill.survived for kill in group),
            before_first_round=sum(kill.kept == 0 for kill in group),
            rounds_kept=sum(kill.kept for kill in group),
            rounds_said=sum(kill.said for kill in group),
            cut_lines=sum(kill.cut for kill in group),
            least_rounds=min(kill.rounds for kill in group),
        )
        for (processes, victim), group in groups.items()
    ]


def markdown(kills: Sequence[Kill], stamped: dict[str, str]) -> str:
    """The page ``docs/kills.md``."""
    lines = [
        "# Does a sweep survive SIGKILL?",
        "",
        f"A sweep of `mean-all` on 1 and 2 devices with controls ({LAUNCHES} launches of {ROUNDS[1]} rounds, with two "
        f"processes of {ROUNDS[2]}) is started, and "
        "one of its processes is killed after a random share of the time that an undisturbed sweep takes. Then it is "
        "looked at and resumed to its end. With two processes a launch it may be the leading one (which has no JAX) or "
        "one of the two that measure.",
        "",
        f"Made by `python -m benchmarks.kills`: {', '.join(f'{k} {v}' for k, v in stamped.items())}.",
        "",
        "*Survived*: the record was readable; every round that the sweep had said to be safe was in it, complete; no "
        f"process outlived the sweep by {GRACE_S:g} s; resumed, the record began with every whole line that it had "
        "held, held the cells of an undisturbed sweep, and at least the planned complete rounds in each (*least*); no "
        "other file was left.",
        "",
        "| processes | killed | kills | survived | no round yet | rounds said safe | rounds kept | cut lines | least |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {r.processes} | {r.victim} | {r.kills} | {r.survived} | {r.before_first_round} | {r.rounds_said} "
        f"| {r.rounds_kept} | {r.cut_lines} | {r.least_rounds} |"
        for r in summarise(kills)
    ]
    lines += [
        f"- {kill.processes} processes, {kill.victim} at {kill.moment}: {kill.why}"
        for kill in kills
        if not kill.survived
    ]
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill sweeps; 1 when one of them did not survive."""
    parser = argparse.ArgumentParser(description="Kill sweeps at random moments, and resume them.")
    parser.add_argument("--kills", type=int, default=KILLS, help="of sweeps with one process a launch")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of sweeps with two processes a launch")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    kills = []
    with tempfile.TemporaryDirectory() as folder:
        for processes, number in ((1, options.kills), (2, options.pairs)):
            if number:
                for kill in run(number, processes, options.seed, Path(folder)):
                    kills.append(kill)
                    print(kill.why or ".", end="", file=sys.stderr, flush=True)
    stamped = stamp(options.seed)
    print(markdown(kills, stamped))
    if options.kills >= KILLS and options.pairs >= PAIRS:
        (DOCS / "kills.md").write_text(markdown(kills, stamped))
        write_rows(DOCS / "kills.csv", map(dataclasses.asdict, kills), stamped)
    return 0 if all(kill.survived for kill in kills) else 1


if __name__ == "__main__":
    sys.exit(main())
