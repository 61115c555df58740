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

# pyright: reportMissingImports=false
# Run from the root, which is then on the path.
from tests.truth.blind import awake, environment
from tests.truth.imposed import Truth
from tests.truth.network import network
from tests.truth.sleeping import LONG_AT, SECONDS_PER_ITEM

SLEEP_S = 5e-3
"""Of each device in a call, so that waking up from a sleep is in it."""
_ROOT = Path(__file__).parents[2]


def excess_s(truth: Truth, *, calls: int = 30, timeout_s: float = 300) -> dict[int, float]:
    """Seconds of a call beyond those imposed, by count of ``truth.devices``, for its short messages."""
    # Each device sleeps its share of n items, one item; no size has long messages.
    workload = {SECONDS_PER_ITEM: repr(SLEEP_S), LONG_AT: "0"}
    words = ["nice", "-n", "-20", sys.executable, "-m", "tests.truth.bare", str(calls), *map(str, truth.devices)]
    with contextlib.ExitStack() as open_:
        hosts = open_.enter_context(
            network(truth.devices[-1], round_trip_s=truth.round_trip_s, bytes_per_s=truth.bytes_per_s)
        )
        open_.enter_context(awake())
        ranks = []
        for number, host in enumerate(hosts):
            variables = environment(truth, hosts, number) | workload
            rank = subprocess.Popen(host.command(*words), env=variables, cwd=_ROOT, stdout=subprocess.PIPE)
            ranks.append(open_.enter_context(rank))
            open_.callback(rank.kill)
        said, _ = ranks[0].communicate(timeout=timeout_s)
        codes = [rank.wait(timeout_s) for rank in ranks]
    if any(codes):
        raise RuntimeError(f"the plain loop ended with exit codes {codes}")
    # gloo prints what it connects to.
    measured = {int(n): seconds for n, seconds in json.loads(said.splitlines()[-1]).items()}
    return {n: measured[n] - SLEEP_S - truth.all_reduce_s(n) for n in truth.devices}


def _rank(calls: int, counts: Sequence[int]) -> None:
    import jax
    import numpy as np

    from tests.truth.sleeping import build

    rank = int(os.environ["JAX_PROCESS_ID"])

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), rank)
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
    _rank(int(sys.argv[1]), [int(word) for word in sys.argv[2:]])
