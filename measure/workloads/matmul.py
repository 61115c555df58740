"""A square matrix product, rows split: nothing is exchanged, so its control is itself and the two must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..workload import Workload
from .placement import random, replicate, split

if TYPE_CHECKING:
    from jax.sharding import Mesh


def build(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """``size`` x ``size`` matrices: the left one split by rows, the right one whole on each device."""
    import jax
    import jax.numpy as jnp

    return jax.jit(jnp.matmul), (split(random(size, size), mesh), replicate(random(size, size, seed=1), mesh))


WORKLOAD = Workload(
    name="matmul",
    summary="square matrix product, rows split: no communication",
    builds={"jit": build},
    path="strong",
    unit="matrix side",
    local=build,
    sizes=(256, 512, 1024),
)
