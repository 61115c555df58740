"""A sweep over the laboratory by the command itself, one rank a host; and what one says who knows the record only."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from .imposed import Truth
from .network import Host, network

WORKLOAD = f"{Path(__file__).with_name('sleeping.py')}:build"
_COMMAND = (sys.executable, "-P", "-m", "breakeven.cli")
_PORT = 61_234


class RankFailed(RuntimeError):
    """A rank of the sweep ended with an error; what it printed is the message."""


def sweep(truth: Truth, record: Path, *, options: Sequence[str], timeout_s: float) -> None:
    """Measure into ``record``: every rank is started in its host with the same command, as a cluster would do it.

    Parameters
    ----------
    options : of ``breakeven measure``, beside what the truth says
    timeout_s : after which all is ended

    Raises
    ------
    RankFailed
        If a rank fails.
    subprocess.TimeoutExpired
        If it takes too long.
    """
    command = [
        # A rank of the laboratory has its host for itself; what else this machine does waits.
        *("nice", "-n", "-20"),
        *_COMMAND,
        "measure",
        WORKLOAD,
        *("--devices", ",".join(map(str, truth.devices))),
        *("--sizes", ",".join(map(str, truth.sizes))),
        *options,
        *("-o", str(record)),
    ]
    with contextlib.ExitStack() as open_:
        hosts = open_.enter_context(
            network(truth.devices[-1], round_trip_s=truth.round_trip_s, bytes_per_s=truth.bytes_per_s)
        )
        open_.enter_context(awake())
        prints = [open_.enter_context(tempfile.TemporaryFile("w+")) for _ in hosts]
        ranks = []
        for number, (host, file) in enumerate(zip(hosts, prints, strict=True)):
            variables = environment(truth, hosts, number)
            rank = subprocess.Popen(host.command(*command), stdout=file, stderr=subprocess.STDOUT, env=variables)
            ranks.append(rank)
            open_.callback(_end, rank)
        codes = [rank.wait(timeout_s) for rank in ranks]
        if any(codes):
            raise RankFailed(
                "\n".join(f"exit code {code}: {_last(file)}" for code, file in zip(codes, prints, strict=True))
            )


@contextlib.contextmanager
def awake() -> Iterator[None]:
    """Keep every core from sleeping, at a priority below all else: a virtual core takes 0.1 ms to wake up."""
    loop = "import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"
    loops = [subprocess.Popen([sys.executable, "-I", "-S", "-c", loop]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for one in loops:
            _end(one)


def _end(rank: subprocess.Popen[bytes]) -> None:
    rank.kill()
    rank.wait()


def _last(file: IO[str]) -> str:
    file.seek(0)
    return file.read()[-3000:]


def answer(record: Path) -> dict[str, Any]:
    """What ``breakeven explain`` says; it is told nothing but the record."""
    ignorant = {name: value for name, value in os.environ.items() if not name.startswith("TRUTH_")}
    explained = subprocess.run(
        [*_COMMAND, "explain", str(record), "--json"], capture_output=True, text=True, check=False, env=ignorant
    )
    if not explained.stdout:
        raise RuntimeError(explained.stderr)
    return json.loads(explained.stdout)


def environment(truth: Truth, hosts: Sequence[Host], rank: int) -> dict[str, str]:
    """The variables of one rank: what the workload is told, and where the others are."""
    # A test run forces devices for itself; here every host has one.
    inherited = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
    return {
        **inherited,
        **truth.environment,
        "JAX_COORDINATOR_ADDRESS": f"{hosts[0].address}:{_PORT}",
        "JAX_NUM_PROCESSES": str(len(hosts)),
        "JAX_PROCESS_ID": str(rank),
    }
