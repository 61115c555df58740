"""One mean over all rows of all devices: the smallest program with an all-reduce, of 4 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..workload import Workload
from .placement import axis, random, replicate, split

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import Mesh

WIDTH = 20


def mean_of_product(rows: Array, matrix: Array) -> Array:
    """The mean over all elements of ``rows @ matrix``."""
    import jax.numpy as jnp

    return jnp.mean(rows @ matrix)


def _arguments(mesh: Mesh, size: int) -> tuple[Array, Array]:
    return split(random(size, WIDTH), mesh), replicate(random(WIDTH, WIDTH, seed=1), mesh)


def build(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """``size`` rows split over the devices; every device gets the mean of all."""
    import jax

    return jax.jit(mean_of_product), _arguments(mesh, size)


def build_local(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """Every device keeps the mean of its own rows."""
    import jax
    from jax.sharding import PartitionSpec as P

    specs = (P(axis(mesh)), P())
    local = jax.shard_map(mean_of_product, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
    return jax.jit(local), _arguments(mesh, size)


WORKLOAD = Workload(
    name="mean-all",
    summary="mean(rows @ matrix) over all devices: one all-reduce of 4 bytes",
    builds={"jit": build},
    path="weak",
    unit="rows",
    local=build_local,
    sizes=(100, 400, 1600),
)
