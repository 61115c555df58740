"""Seconds and memory of whole ``breakeven fit``, ``predict`` and ``explain`` processes on a record of 100,000 samples.

    python benchmarks/whole_process.py

Each process starts fresh; "cold" with an empty compilation cache, "warm" with the one that the run before left.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from breakeven.data.schema import Plan
from breakeven.data.simulated import write_simulated
from breakeven.model import simulate

LAUNCHES, ROUNDS, CALLS = 6, 10, 24
RUNS = 5
COMMANDS = ("fit", "predict", "explain")
LIMIT_S = {"cold": dict.fromkeys(COMMANDS, 2.0), "warm": {"fit": 1.0, "predict": 1.0, "explain": 2.0}}
LIMIT_MB = 500


def write_record(path: Path) -> int:
    """Write a simulated sweep of six launches; return its number of samples."""
    truth = simulate.truth("latency")
    samples_s = simulate.sample(truth.times_s, launches=LAUNCHES, rounds=ROUNDS, calls=CALLS, seed=0)
    plan = Plan(
        workload="simulated",
        path=truth.path,
        objective="time",
        devices=truth.devices,
        sizes=truth.sizes,
        strategies=(truth.strategy,),
        visible_devices=max(truth.devices),
    )
    write_simulated(path, plan, truth.cells, samples_s, facts=truth.facts, cores=max(truth.devices))
    return samples_s.size


def run(command: str, record: Path, cache: Path) -> tuple[float, float]:
    """Run one command to its end; seconds and largest resident set, MB."""
    # Bytecode as an installation has it, whatever this machine does about it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"XDG_CACHE_HOME": str(cache), "PYTHONPYCACHEPREFIX": str(record.parent / "bytecode")}
    command_line = [sys.executable, "-m", "breakeven.cli", command, str(record)]
    start = time.perf_counter()
    process = subprocess.Popen(command_line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # wait4 tells the memory of this child alone.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"breakeven {command} ended with {process.returncode}.")
    return seconds, usage.ru_maxrss * 1024 / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "simulated.jsonl"
        samples = write_record(record)
        print(f"{samples:,} samples, {record.stat().st_size / 1e6:.1f} MB; medians of {RUNS} processes")
        for command in COMMANDS:
            run(command, record, Path(folder) / "first")  # writes the bytecode
        for command in COMMANDS:
            for state in ("cold", "warm"):
                caches = [Path(folder) / (f"{command}-{i}" if state == "cold" else command) for i in range(RUNS)]
                if state == "warm":
                    run(command, record, caches[0])
                seconds, megabytes = zip(*(run(command, record, cache) for cache in caches), strict=True)
                print(
                    f"  {command:8s} {state}  {statistics.median(seconds):5.2f} s (limit {LIMIT_S[state][command]:g})"
                    f"  {max(megabytes):4.0f} MB (limit {LIMIT_MB})"
                )


if __name__ == "__main__":
    main()
