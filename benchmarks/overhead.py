"""Does measuring change what is measured?

In one process the same compiled program is timed by the worker, as in a sweep, and by the loop that anyone would write:
read the clock, call, wait, read the clock. Visits of both alternate in random order, ten calls each; a process gives
the mean log ratio of their medians, and the interval is Student t over fresh processes.

    python -m benchmarks.overhead      # twelve minutes on an idle machine; writes docs/overhead.md and .csv
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from breakeven.fit.intervals import t_estimate

from .stamp import DOCS, stamp, write_rows

PROCESSES = 24
CALLS, WARMUPS = 10, 2
CELLS = (
    ("issue-21411", 2, 100, 3.0),
    ("mean-all", 2, 100, 3.0),
    ("sin-reduce", 1, 256, 9.0),
    ("matmul", 2, 512, 9.0),
)
"""Workload, count, size a device (a matrix's side for `matmul`), and seconds in each process: calls of 50 µs to some
milliseconds; those that take longer scatter more, and are called less often in the same time."""
LEAST_S, MARGIN = 50e-6, 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """Worker over bare loop for one program, by process: log ratios, and the bare loop's typical seconds."""

    workload: str
    num_devices: int
    latency_s: float
    log_ratios: tuple[float, ...]

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the ratio."""
        lower, upper = t_estimate(np.array(self.log_ratios)).interval or (-np.inf, np.inf)
        return float(np.exp(lower or 0.0)), float(np.exp(upper or 0.0))

    @property
    def within(self) -> bool:
        """Whether the interval lies inside the margin; shorter calls are reported, not judged."""
        lower, upper = self.interval
        return self.latency_s < LEAST_S or (lower > 1 - MARGIN and upper < 1 + MARGIN)


def bare(program: Any, calls: int) -> list[float]:
    """Latencies of a plain loop, seconds."""
    import jax

    compiled, args = program.compiled, program.args()
    latencies = []
    for _ in range(calls):
        start = time.perf_counter()
        outputs = jax.block_until_ready(compiled(*args))
        latencies.append(time.perf_counter() - start)
        # Freed outside of the times, as the worker does it: 3 µs of the shortest calls.
        del outputs
    return latencies


def compare(
    ours: Callable[[], list[float]], plain: Callable[[], list[float]], *, seconds: float, seed: int
) -> tuple[float, float]:
    """Mean log ratio of the medians of paired visits, in random order, and the plain loop's median latency."""
    order, ratios, latencies = random.Random(seed), [], []
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        loops = {"ours": ours, "plain": plain}
        names = list(loops)
        order.shuffle(names)
        medians = {name: statistics.median(loops[name]()[WARMUPS:]) for name in names}
        ratios.append(np.log(medians["ours"] / medians["plain"]))
        latencies.append(medians["plain"])
    return float(np.mean(ratios)), statistics.median(latencies)


def worker_of(name: str, num_devices: int, size: int) -> Any:
    """A worker as a launch has it, with one program compiled, that speaks to nobody."""
    from breakeven.measure.building import Builder
    from breakeven.measure.devices import Devices
    from breakeven.measure.planning import make_plan
    from breakeven.measure.programs import Programs
    from breakeven.measure.protocol import Channel, Request
    from breakeven.measure.userfile import resolve
    from breakeven.measure.worker import Worker

    workload = resolve(name)
    sizes: dict[str, Any] = {"sizes" if workload.path == "strong" else "sizes_per_device": [size]}
    plan = make_plan(
        workload,
        devices=[num_devices],
        **sizes,
        strategies=list(workload.builds)[:1],
        warmups=WARMUPS,
        queued_calls=0,
        controls=False,
        probes=False,
        available=Devices(platform="cpu", count=1, kind="cpu"),
    )
    request = Request(plan=plan, sweep="", launch="")
    worker = Worker(request, Channel(os.open(os.devnull, os.O_WRONLY), os.open(os.devnull, os.O_RDONLY)))
    worker._compile(Builder(request, worker.channel, worker.team, Programs(plan, workload)))
    worker.warmups = WARMUPS
    return worker


def child(seed: int) -> None:
    """One process: every cell, as the worker prepares and visits it; prints one JSON line a cell."""
    for name, num_devices, size, seconds in CELLS:
        worker = worker_of(name, num_devices, size)
        _, program = worker.programs[0]

        def ours(worker: Any = worker) -> list[float]:
            return [ns * 1e-9 for ns in worker._visit(0, round=0, position=0, calls=CALLS).latency_ns]

        def plain(program: Any = program) -> list[float]:
            return bare(program, WARMUPS + CALLS)

        ratio, latency_s = compare(ours, plain, seconds=seconds, seed=seed)
        print(json.dumps([name, num_devices, ratio, latency_s]), flush=True)


def measure(processes: int) -> list[Ratio]:
    """Run fresh processes, one after the other."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    ratios: dict[tuple[str, int], list[float]] = {}
    latencies: dict[tuple[str, int], list[float]] = {}
    for i in range(processes):
        ended = subprocess.run(
            [sys.executable, "-m", "benchmarks.overhead", "--child", str(i)],
            env=environment,
            cwd=Path(__file__).parents[1],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        for name, num_devices, ratio, latency_s in map(json.loads, ended.stdout.splitlines()):
            ratios.setdefault((name, num_devices), []).append(ratio)
            latencies.setdefault((name, num_devices), []).append(latency_s)
        print(f"\rprocess {i + 1} of {processes}", end="", file=sys.stderr)
    return [
        Ratio(workload=name, num_devices=n, latency_s=statistics.median(latencies[name, n]), log_ratios=tuple(found))
        for (name, n), found in ratios.items()
    ]


def markdown(found: Sequence[Ratio], labels: dict[str, str]) -> str:
    """The page ``docs/overhead.md``."""
    processes = len(found[0].log_ratios)
    lines = [
        "# Does measuring change what is measured?",
        "",
        "Latency as the worker takes it over that of a bare loop, in the same process on the same compiled program, in "
        f"{processes} fresh processes; 95 % interval, Student t over the processes. For calls of "
        f"{1e6 * LEAST_S:.0f} µs and more it must lie within {1 - MARGIN:g} to {1 + MARGIN:g}.",
        "",
        f"Made by `python -m benchmarks.overhead`: {', '.join(f'{k} {v}' for k, v in labels.items())}.",
        "",
        "| program | devices | bare loop | ratio | 95 % interval |",
        "| :--- | ---: | ---: | ---: | ---: |",
    ]
    for one in found:
        lower, upper = one.interval
        lines.append(
            f"| {one.workload} | {one.num_devices} | {1e6 * one.latency_s:,.0f} µs | "
            f"{np.exp(np.mean(one.log_ratios)):.4f} | {lower:.4f} to {upper:.4f} |"
        )
    return "\n".join([*lines, ""])


def rows_of(found: Iterable[Ratio]) -> Iterator[dict[str, object]]:
    """One row a process and program."""
    for one in found:
        place = {"workload": one.workload, "devices": one.num_devices, "latency_s": f"{one.latency_s:.4g}"}
        for process, ratio in enumerate(one.log_ratios):
            yield {**place, "process": process, "log_ratio": f"{ratio:.6f}"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; 1 when an interval leaves the margin."""
    parser = argparse.ArgumentParser(description="The worker's latency against a bare loop.")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--processes", type=int, default=PROCESSES, help="fewer write nothing")
    options = parser.parse_args(arguments)
    if options.child is not None:
        child(options.child)
        return 0
    found = measure(options.processes)
    labels = stamp(seed=0)
    page = markdown(found, labels)
    print(page)
    if options.processes >= PROCESSES:
        (DOCS / "overhead.md").write_text(page)
        write_rows(DOCS / "overhead.csv", rows_of(found), labels)
    return 0 if all(one.within for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
