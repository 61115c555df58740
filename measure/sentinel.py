"""The sentinel: one fixed program on one device, the same in every sweep; its time shows whether the machine drifts."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

_STEPS = 12


def build(side: int) -> tuple[Any, tuple[jax.Array, jax.Array]]:
    """A chain of products of small square matrices on the first device, as ``(fn, args)``.

    The matrix is a mean over rows and columns, so that no product grows or vanishes, however long the chain.
    """
    device = jax.devices()[0]
    start = np.linspace(0, 1, side * side, dtype=np.float32).reshape(side, side)
    mean = np.full((side, side), 1 / side, dtype=np.float32)
    return _chain, (jax.device_put(start, device), jax.device_put(mean, device))


def _chain(x: jax.Array, mean: jax.Array) -> jax.Array:
    # A loop: XLA may not merge products of the same matrix.
    return jax.lax.fori_loop(0, _STEPS, lambda _, y: y @ mean, x)
