"""One data-parallel training step: a small network, its gradient all-reduced, momentum, state donated."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ..workload import Workload
from .placement import axis, random, replicate, split

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import Mesh

WIDTHS = (64, 128, 128, 16)
RATE = 0.01
MOMENTUM = 0.9

State = dict[str, Any]


def _loss(weights: list[Array], inputs: Array, targets: Array) -> Array:
    import jax.numpy as jnp

    *hidden, last = weights
    for matrix in hidden:
        inputs = jnp.tanh(inputs @ matrix)
    return jnp.mean((inputs @ last - targets) ** 2)


def step(state: State, inputs: Array, targets: Array) -> tuple[State, Array]:
    """Return the next state and the loss on this batch."""
    import jax

    loss, gradient = jax.value_and_grad(_loss)(state["weights"], inputs, targets)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, state["velocity"], gradient)
    return {"weights": jax.tree.map(lambda w, v: w + v, state["weights"], velocity), "velocity": velocity}, loss


def _arguments(mesh: Mesh, size: int) -> tuple[State, tuple[Array, Array]]:
    shapes = list(itertools.pairwise(WIDTHS))
    weights = [replicate(random(*shape, seed=i) / shape[0] ** 0.5, mesh) for i, shape in enumerate(shapes)]
    # Made apart from the weights: a donated buffer may appear only once.
    velocity = [replicate(0 * random(*shape), mesh) for shape in shapes]
    batch = split(random(size, WIDTHS[0], seed=10), mesh), split(random(size, WIDTHS[-1], seed=11), mesh)
    return {"weights": weights, "velocity": velocity}, batch


def build(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """A batch of ``size`` examples split over the devices, the state whole on each."""
    import jax

    return jax.jit(step, donate_argnums=0), *_arguments(mesh, size)


def build_local(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """Every device trains on its own examples alone."""
    import jax
    from jax.sharding import PartitionSpec as P

    name = axis(mesh)
    local = jax.shard_map(step, mesh=mesh, in_specs=(P(), P(name), P(name)), out_specs=P(), check_vma=False)
    return jax.jit(local, donate_argnums=0), *_arguments(mesh, size)


WORKLOAD = Workload(
    name="train-step",
    summary="data-parallel step of a small network: gradient all-reduce, donated state",
    builds={"jit": build},
    path="weak",
    unit="examples",
    local=build_local,
    sizes=(16, 64, 256),
)
