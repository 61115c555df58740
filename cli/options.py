"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated

import typer

from .output import bad_argument

WorkloadName = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A built-in ('breakeven workloads' lists them), path/to/file.py:build or package.module:build.",
        show_default=False,
    ),
]
File = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A record (.jsonl), a CSV file, or data:NAME for recorded data.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object in SI units.")]

# What to measure.
Devices = Annotated[
    str | None,
    typer.Option(
        metavar="1,2,4,8",
        help="Device counts; the largest is what every launch sees. Default: the workload's.",
        show_default=False,
    ),
]
Sizes = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…|a:b:k",
        help="Global sizes (strong scaling), listed or k of them from a to b, evenly spaced in the logarithm.",
        show_default=False,
    ),
]
SizesPerDevice = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…|a:b:k", help="Sizes per device (weak scaling), written like --sizes.", show_default=False
    ),
]
Strategies = Annotated[
    str | None,
    typer.Option(metavar="X,Y", help="Strategies of the workload; the first has the controls.", show_default=False),
]
Launches = Annotated[int, typer.Option(metavar="N", min=1, help="Fresh processes; below three there is no interval.")]
Budget = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Wall time in all, start-up included: 2m, 1h. Default: 60s.", show_default=False),
]
Calls = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Timed calls a visit. Default: as the budget allows.", show_default=False),
]
Warmups = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="First calls of a visit, stored but left out of its median. Default: as many as fall (trend test).",
        show_default=False,
    ),
]
Queue = Annotated[
    int,
    typer.Option(
        metavar="K", min=0, max=16, help="Calls queued before one wait, for throughput beside latency; 0: none."
    ),
]
NoControls = Annotated[
    bool,
    typer.Option(
        "--no-controls",
        help="Leave out local and null: causes then come from the probes, or from a law where one fits.",
    ),
]
NoSentinel = Annotated[
    bool, typer.Option("--no-sentinel", help="Leave out the fixed program that shows whether the machine drifts.")
]
NoProbes = Annotated[bool, typer.Option("--no-probes", help="Leave out chains and replay of the collectives.")]
Trace = Annotated[
    bool,
    typer.Option("--trace", help="One more launch, not timed: where the time goes on the devices, by JAX's profiler."),
]
Platform = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="cpu, gpu or tpu. Default: what JAX finds in a fresh process.", show_default=False
    ),
]
PlanObjective = Annotated[
    str | None,
    typer.Option(
        metavar="time|throughput",
        help="What a count is to be good at. Default: time for strong sweeps, throughput for weak ones.",
        show_default=False,
    ),
]
Timeout = Annotated[
    str,
    typer.Option(metavar="TIME", help="Longest silence of a launch before it is ended, and wait for other ranks."),
]
Processes = Annotated[
    int | None,
    typer.Option(
        metavar="P",
        min=1,
        help="Processes of a launch on this host. Default: 1, or as many as srun or mpiexec started.",
        show_default=False,
    ),
]
Coordinator = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Where rank 0 waits for the others, where the launcher does not say; a free port.",
        show_default=False,
    ),
]
HideHosts = Annotated[
    bool, typer.Option("--hide-hosts", help="Record hashes instead of names of hosts, others in every sweep.")
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the random order and of the resampling.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would run, how long, and what it can identify.")]

# What to ask.
Strategy = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Strategy to answer for. Default: the workload's first.", show_default=False),
]
Size = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="Size to answer for, global or per device as it was measured; 64MiB is understood. Default: the largest.",
        show_default=False,
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="time|throughput", help="What a count is to be good at. Default: the sweep's.", show_default=False
    ),
]
Reference = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Count to compare with. Default: the smallest measured.", show_default=False),
]
MaxDevices = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Largest count to ask about. Default: the largest measured.", show_default=False
    ),
]
Tolerance = Annotated[
    float, typer.Option(metavar="X", min=0.0, max=10.0, help="How much worse than the best is good enough (0.05: 5 %).")
]
Confidence = Annotated[float, typer.Option(metavar="X", min=0.5, max=0.999, help="Confidence of every interval.")]
Margin = Annotated[
    float, typer.Option(metavar="X", min=0.0, max=1.0, help="Largest held-out error of a law that may predict.")
]
Equivalence = Annotated[
    float,
    typer.Option(metavar="X", min=0.001, max=1.0, help="Costs that differ by less count as the same (0.05: 5 %)."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=COLUMN,…",
        help="Of a CSV file: which column is what, as in devices=gpus,latency_s=ms/1e3.",
        show_default=False,
    ),
]
Scaling = Annotated[
    str | None,
    typer.Option(
        metavar="strong|weak", help="Of a CSV file: whether sizes are global or per device.", show_default=False
    ),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="COLUMN=VALUE,…", help="Of a CSV file: keep only these rows.", show_default=False),
]

_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}
_MULTIPLES = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9}
_MULTIPLES |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)\s*([A-Za-z]*)\s*", re.IGNORECASE)


def seconds(option: str, text: str) -> float:
    """Read ``60s``, ``2m``, ``500ms``, ``1h`` or a bare number of seconds; it must be positive."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[2] not in _SECONDS or not 0 < float(match[1]) < math.inf:
        bad_argument(option, f"{text!r} is no positive time; write 60s, 2m, 500ms or 1h.")
    return float(match[1]) * _SECONDS[match[2]]


LONGEST_TIMEOUT_S = 30 * 86400.0
"""As long as a sweep may last, too."""


def timeout(text: str) -> float:
    """Read ``--timeout``: a positive time, of days at most."""
    value = seconds("--timeout", text)
    if value > LONGEST_TIMEOUT_S:
        bad_argument("--timeout", f"{text!r} is longer than {LONGEST_TIMEOUT_S / 86400:g} days; write 120s, 10m or 1h.")
    return value


def size(option: str, text: str) -> int:
    """Read one size: ``4096``, ``1e6``, ``64MiB``; it must be a positive whole number."""
    match = _NUMBER.fullmatch(text)
    value = float(match[1]) * _MULTIPLES[match[2]] if match and match[2] in _MULTIPLES else 0.0
    if value < 1 or not value.is_integer():
        bad_argument(option, f"{text!r} is no positive whole size; write 4096, 1e6 or 64MiB.")
    return int(value)


MOST_DIGITS = 9


def device_counts(option: str, text: str) -> tuple[int, ...]:
    """Read ``1,2,4,8``: positive whole counts, each once; returned in ascending order."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) <= MOST_DIGITS and int(word) >= 1 for word in words):
        bad_argument(option, f"{text[:80]!r} is no list of device counts; write 1,2,4,8.")
    counts = sorted({int(word) for word in words})
    if len(counts) < len(words):
        bad_argument(option, f"{text!r} names a count twice.")
    return tuple(counts)


def names(option: str, text: str) -> tuple[str, ...]:
    """Read ``jit,pmap``: names in the order given, each once."""
    words = tuple(word.strip() for word in text.split(","))
    if not all(words) or len(set(words)) < len(words):
        bad_argument(option, f"{text!r} must be names separated by commas, each once.")
    return words


def one_of(option: str, text: str | None, allowed: tuple[str, ...]) -> str | None:
    """Check a text that must be one of a few words."""
    if text is not None and text not in allowed:
        bad_argument(option, f"{text!r} is not one of {', '.join(allowed)}.")
    return text


def output_file(option: str, path: Path) -> Path:
    """Check a file to write, before anything runs: its folder exists or can be made, and it is no folder itself."""
    if path.is_dir():
        bad_argument(option, f"{path} is a folder; name a file in it.")
    if any(parent.exists() and not parent.is_dir() for parent in path.parents):
        bad_argument(option, f"{path}: one of its parents is a file, not a folder.")
    return path


def output_record(option: str, path: Path) -> Path:
    """Check a record to write, before anything runs: as any file, and its name does not say that it is another kind."""
    if path.suffix.lower() == ".csv":
        better = path.with_suffix(".jsonl")
        bad_argument(option, f"{path}: a file in .csv is read as a table, and this is a record; name it {better}.")
    return output_file(option, path)


def output_folder(option: str, path: Path) -> Path:
    """Check a folder to write into, before anything runs."""
    if path.exists() and not path.is_dir():
        bad_argument(option, f"{path} is a file; name a folder.")
    return output_file(option, path / "answer.json").parent
