"""Where a built-in workload's arrays lie: all of them are made on the host and placed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import Mesh


def random(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal float32 numbers, the same in every process."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def axis(mesh: Mesh) -> str:
    """Name of a one-dimensional mesh's axis."""
    (name,) = mesh.axis_names
    return name


def split(array: Any, mesh: Mesh, *, dimension: int = 0) -> Array:
    """Place an array with one dimension split over the mesh."""
    from jax.sharding import NamedSharding, PartitionSpec

    from ..processes.meshes import from_host

    return from_host(array, NamedSharding(mesh, PartitionSpec(*[None] * dimension, axis(mesh))))


def replicate(array: Any, mesh: Mesh) -> Array:
    """Place a whole copy of an array on every device."""
    from jax.sharding import NamedSharding, PartitionSpec

    from ..processes.meshes import from_host

    return from_host(array, NamedSharding(mesh, PartitionSpec()))
