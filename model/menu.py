"""The menu of collective algorithms: latency steps and bytes on the busiest link, for each kind of collective.

A collective costs ``alpha0 + steps * alpha + bytes * beta``. Only the all-reduce has several algorithms to choose
from; the other kinds have one form each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from .program import Collective
from .ring import check_num_devices

ALL_REDUCES = ("ring", "log", "linear", "free")
"""``free`` has no formula: one time per device count and payload, so it says nothing about other counts."""


def all_reduce_steps(algorithm: str, num_devices: ArrayLike) -> np.ndarray:
    """Latency steps of an all-reduce, shape (...); 0 on one device.

    ``ring``: 2(n - 1) [1]_. ``log``: 2 ceil(log2 n), recursive halving and doubling [2]_. ``linear``: n - 1, the
    devices taking turns.

    References
    ----------
    .. [1] P. Patarasuk and X. Yuan, J. Parallel Distrib. Comput. 69(2), 117-124, 2009.
    .. [2] R. Thakur, R. Rabenseifner and W. Gropp, Int. J. High Perform. Comput. Appl. 19(1), 49-66, 2005.
    """
    n = check_num_devices(num_devices)
    match algorithm:
        case "ring":
            return 2 * (n - 1)
        case "log":
            return 2 * np.ceil(np.log2(n)).astype(int)
        case "linear":
            return n - 1
    raise ValueError(f"algorithm must be ring, log or linear, got {algorithm!r}.")


def all_reduce_bytes(algorithm: str, num_devices: ArrayLike, message_bytes: ArrayLike) -> np.ndarray:
    """Bytes that one link carries for an all-reduce of ``message_bytes`` V on each device, shape (...).

    ``ring`` and ``log``: 2(n - 1)/n V. ``linear``: (n - 1) V.
    """
    n = check_num_devices(num_devices)
    match algorithm:
        case "ring" | "log":
            return 2 * (n - 1) / n * np.asarray(message_bytes)
        case "linear":
            return (n - 1) * np.asarray(message_bytes)
    raise ValueError(f"algorithm must be ring, log or linear, got {algorithm!r}.")


def other_cost(kind: str, num_devices: int, message_bytes: float) -> tuple[int, float]:
    """Return (steps, bytes) of a collective that is no all-reduce; nothing on one device.

    All-gather, reduce-scatter (V: the total, as in nccl-tests) and all-to-all (V: the buffer on each device):
    n - 1 steps, (n - 1)/n V bytes. Collective-permute: one step of V. Collective-broadcast: n - 1 steps and V bytes,
    the pipelined chain that nccl-tests' bus bandwidth factor of 1 assumes.
    """
    n = int(check_num_devices(num_devices))
    if n == 1:
        return 0, 0.0
    match kind:
        case "all-gather" | "reduce-scatter" | "all-to-all":
            return n - 1, (n - 1) / n * message_bytes
        case "collective-permute":
            return 1, float(message_bytes)
        case "collective-broadcast":
            return n - 1, float(message_bytes)
    raise ValueError(f"kind {kind!r} has no cost formula.")


@dataclass(frozen=True, slots=True)
class Load:
    """What the collectives of one program sum to: the coefficients of alpha0, alpha and beta."""

    collectives: float
    steps: float
    bytes: float


@lru_cache(maxsize=4096)
def load(collectives: tuple[Collective, ...], num_devices: int, algorithm: str) -> Load:
    """Sum a program's collectives on ``num_devices`` devices; kept, since every law of the menu asks again.

    A tuple all-reduce of k operands counts as k all-reduces, as XLA's CPU client executes it (an all-to-all's
    operands are the pieces of one exchange and count once).

    Raises
    ------
    ValueError
        If a collective runs in a loop of unknown trip count.
    """
    total, steps, moved = 0.0, 0.0, 0.0
    for kind, count, group, message_bytes in executions(collectives, num_devices):
        if kind == "all-reduce":
            s = float(all_reduce_steps(algorithm, group))
            b = float(all_reduce_bytes(algorithm, group, message_bytes))
        else:
            s, b = other_cost(kind, group, message_bytes)
        total, steps, moved = total + count, steps + count * s, moved + count * b
    return Load(total, steps, moved)


def executions(collectives: tuple[Collective, ...], num_devices: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield (kind, count, devices in the group, message bytes) of what is executed; groups of one are left out."""
    for collective in collectives:
        group = collective.group_size or num_devices
        if group == 1:
            continue
        if collective.count is None:
            raise ValueError(f"an {collective.kind} runs in a loop of unknown trip count: its number is unknown")
        payloads = collective.operand_bytes if collective.kind == "all-reduce" else (collective.message_bytes,)
        for message_bytes in payloads:
            yield collective.kind, collective.count, group, message_bytes
