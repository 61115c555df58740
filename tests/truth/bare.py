"""What a call takes beside what is imposed, by a plain loop: callbacks, gloo's own work, processes that wake up.

Run as a script it is one rank: it joins the others, calls the workload again and again, and prints seconds a call. The
calls keep step by themselves, since each ends with a sum over all devices; breakeven has no part in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SLEEP_S = 5e-3
"""Of each device in a call, so that waking up from a sleep is in it."""
_PORT = 61_300


def excess_s(truth, *, calls: int = 30, timeout_s: float = 300) -> dict[int, float]:
    """Seconds of a call beyond those imposed, by count of ``truth.devices``, for its short messages."""
    from .blind import awake
    from .network import network

    # Each device sleeps its share of n items, one item; no size has long messages.
    variables = truth.environment | {"TRUTH_SECONDS_PER_ITEM": repr(SLEEP_S), "TRUTH_LONG_AT": "0"}
    with contextlib.ExitStack() as open_:
        hosts = open_.enter_context(
            network(truth.devices[-1], round_trip_s=truth.round_trip_s, bytes_per_s=truth.bytes_per_s)
        )
        open_.enter_context(awake())
        address = f"{hosts[0].address}:{_PORT}"
        inherited = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
        ranks = []
        for rank, host in enumerate(hosts):
            words = ["nice", "-n", "-20", sys.executable, "-m", "tests.truth.bare", address, str(len(hosts)), str(rank)]
            words += [str(calls), *map(str, truth.devices)]
            command = host.command(*words)
            root = Path(__file__).parents[2]
            ranks.append(
                open_.enter_context(
                    subprocess.Popen(command, env={**inherited, **variables}, cwd=root, stdout=subprocess.PIPE)
                )
            )
            open_.callback(ranks[-1].kill)
        said, _ = ranks[0].communicate(timeout=timeout_s)
        codes = [rank.wait(timeout_s) for rank in ranks]
    if any(codes):
        raise RuntimeError(f"the plain loop ended with exit codes {codes}")
    # gloo prints what it connects to.
    measured = {int(n): seconds for n, seconds in json.loads(said.splitlines()[-1]).items()}
    return {n: measured[n] - SLEEP_S - truth.all_reduce_s(n) for n in truth.devices}


def _rank(address: str, processes: int, rank: int, calls: int, counts: Sequence[int]) -> None:
    import jax
    import numpy as np

    from .sleeping import build

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, processes, rank)
    devices = sorted(jax.devices(), key=lambda device: device.process_index)
    found = {}
    for n in counts:
        if rank < n:
            fn, args = build(jax.sharding.Mesh(np.array(devices[:n]), ("devices",)), n)
            for _ in range(3):
                jax.block_until_ready(fn(*args))
            ends = [time.perf_counter()]
            for _ in range(calls):
                jax.block_until_ready(fn(*args))
                ends.append(time.perf_counter())
            found[n] = float(np.median(np.diff(ends)))
    if rank == 0:
        sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    _rank(sys.argv[1], *map(int, sys.argv[2:5]), list(map(int, sys.argv[5:])))
