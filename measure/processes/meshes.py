"""Meshes over the first devices of a launch, and the processes that hold them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

AXIS = "devices"
"""Name of the one axis of the mesh that ``build`` is given."""


def first_devices(num_devices: int) -> list[Any]:
    """The first devices, process by process, so that a mesh takes whole processes before it begins another."""
    return sorted(jax.devices(), key=lambda device: (device.process_index, device.id))[:num_devices]


def mesh_of(num_devices: int) -> Any:
    """The mesh over the first devices, with one axis."""
    # Not jax.make_mesh: since 0.9 its axes are Explicit, where a sharded contraction raises.
    return jax.sharding.Mesh(np.array(first_devices(num_devices)), (AXIS,))


def processes_of(num_devices: int) -> tuple[int, ...]:
    """Processes that hold a part of the first devices, ascending; the others neither build nor call."""
    return tuple(sorted({device.process_index for device in first_devices(num_devices)}))


def from_host(array: Any, sharding: Any) -> Any:
    """Place an array that every process holds whole: each puts its own part on its own devices.

    Not ``device_put``: onto devices of several processes it runs a collective of its own.
    """
    # Typed keys (jax.random.key) are no numbers that NumPy could hold; JAX cuts and places them as they are.
    is_key = isinstance(array, jax.Array) and jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key)
    whole = array if is_key else np.asarray(array)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])
