"""A workload whose cost is known: each device sleeps for its share of the items, then all devices add up a message.

How long an item takes and how long messages are comes from the environment (``imposed.py`` says why messages are
long at one size and short at the others), and stands in no record: who reads the record must find it out.
"""

from __future__ import annotations

import functools
import os
import time
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import breakeven

SECONDS_PER_ITEM = "TRUTH_SECONDS_PER_ITEM"
MESSAGE_BYTES = "TRUTH_MESSAGE_BYTES"
LONG_MESSAGE_BYTES = "TRUTH_LONG_MESSAGE_BYTES"
LONG_AT = "TRUTH_LONG_AT"
"""The one size with long messages."""


def message_elements(size: int) -> int:
    """Numbers of 4 bytes that every device sends at one size."""
    name = LONG_MESSAGE_BYTES if size == int(os.environ[LONG_AT]) else MESSAGE_BYTES
    return int(os.environ[name]) // 4


def build(mesh: Any, size: int) -> tuple[Any, ...]:
    """Sleep, then one all-reduce."""
    return _program(mesh, size, sums=True)


def build_local(mesh: Any, size: int) -> tuple[Any, ...]:
    """The same without the all-reduce."""
    return _program(mesh, size, sums=False)


def _program(mesh: Any, size: int, *, sums: bool) -> tuple[Any, ...]:
    (axis,) = mesh.axis_names
    elements, sleep_s = message_elements(size), size / mesh.size * float(os.environ[SECONDS_PER_ITEM])

    def on_each_device(numbers: Any) -> Any:
        # The message waits for the sleep, since its first number comes out of it.
        first = jax.pure_callback(functools.partial(_sleep, sleep_s), jax.typeof(numbers[:1]), numbers[:1])
        numbers = numbers.at[:1].set(first)
        return jax.lax.psum(numbers, axis) if sums else numbers

    spread = jax.shard_map(on_each_device, mesh=mesh, in_specs=P(axis), out_specs=P(), check_vma=False)
    numbers = np.ones(mesh.size * elements, np.float32)
    placed = jax.make_array_from_callback(numbers.shape, NamedSharding(mesh, P(axis)), lambda index: numbers[index])
    return jax.jit(spread), (placed,)


def _sleep(seconds: float, first: Any) -> np.ndarray:
    time.sleep(seconds)
    return np.asarray(first)


build = breakeven.workload(path="strong", unit="items", local=build_local, work=float)(build)
