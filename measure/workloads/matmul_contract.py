"""A square matrix product, the contracted dimension split: one all-reduce of the whole result, size² · 4 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..workload import Workload
from .placement import axis, random, split

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import Mesh


def _arguments(mesh: Mesh, size: int) -> tuple[Array, Array]:
    return split(random(size, size), mesh, dimension=1), split(random(size, size, seed=1), mesh)


def build(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """Left columns and right rows split; every device gets the whole product."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    return jax.jit(jnp.matmul, out_shardings=NamedSharding(mesh, P())), _arguments(mesh, size)


def build_local(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """Every device keeps its own summand of the product."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    specs = (P(None, axis(mesh)), P(axis(mesh)))
    local = jax.shard_map(jnp.matmul, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
    return jax.jit(local), _arguments(mesh, size)


WORKLOAD = Workload(
    name="matmul-contract",
    summary="square matrix product, contraction split: one all-reduce of the result",
    builds={"jit": build},
    path="strong",
    unit="matrix side",
    local=build_local,
    sizes=(128, 256, 512),
)
