"""Sines and a mean, twenty times over: XLA leaves each device's loop on one core, so more devices can really help.

``size`` numbers; 20 times: 40 sine steps on each number, then all move towards their common mean (one all-reduce of
4 bytes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..workload import Workload
from .placement import axis, random, split

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import Mesh

ROUNDS = 20
STEPS = 40


def sines_and_means(numbers: Array) -> Array:
    """The whole program; ``jnp.mean`` is over all the numbers it is given."""
    import jax
    import jax.numpy as jnp

    def one_round(_round: Any, numbers: Array) -> Array:
        # Both constants keep all sizes in one regime: 256 numbers count more than the 1,000 flops below which XLA's
        # CPU client runs a one-device program in the calling thread, and the numbers settle near 1 (the sine of a
        # number near 0 costs half as much).
        numbers = jax.lax.fori_loop(0, STEPS, lambda _step, x: 0.9 * jnp.sin(x) + 0.3, numbers)
        return numbers + 0.01 * jnp.mean(numbers)

    return jax.lax.fori_loop(0, ROUNDS, one_round, numbers)


def build(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """The numbers split over the devices, one mean over all of them."""
    import jax

    return jax.jit(sines_and_means), (split(random(size), mesh),)


def build_local(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """Every device takes the mean of its own numbers."""
    import jax
    from jax.sharding import PartitionSpec as P

    spec = P(axis(mesh))
    local = jax.shard_map(sines_and_means, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(local), (split(random(size), mesh),)


def work(local_size: float) -> float:
    """Sines of one device: XLA's analysis would count each loop once."""
    return ROUNDS * STEPS * local_size


WORKLOAD = Workload(
    name="sin-reduce",
    summary="20 x (40 sine steps + one scalar all-reduce): adding a device helps from some size on",
    builds={"jit": build},
    path="strong",
    unit="numbers",
    local=build_local,
    work=work,
    sizes=(256, 362, 512, 724, 1024, 1448, 2048, 2896, 4096),
    devices=(1, 2),
)
