"""The program of https://github.com/jax-ml/jax/issues/21411: a fixed piece of work on each device.

Each of 100 rows a device, 20 floats, is multiplied by a 20 x 20 matrix and averaged by itself. Rows never meet, so
the compiled program holds no collective, and its control without communication is the program itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..workload import MeasureError, Workload
from .placement import axis, random, replicate, split

if TYPE_CHECKING:
    import numpy as np
    from jax import Array
    from jax.sharding import Mesh

WIDTH = 20


def vectorized_solve(y0: Array, var: Array) -> Array:
    """The mean of ``row @ var`` for every row, as the issue has it."""
    import jax
    import jax.numpy as jnp

    return jax.vmap(lambda init, var: jnp.mean(init @ var), in_axes=(0, None))(y0, var)


def arrays(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Host arrays: ``size`` rows of 20 floats, and the 20 x 20 matrix."""
    return random(size, WIDTH), random(WIDTH, WIDTH, seed=1)


def build_jit(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """``jit`` of arguments split by a NamedSharding."""
    import jax

    rows, var = arrays(size)
    return jax.jit(vectorized_solve), (split(rows, mesh), replicate(var, mesh))


def build_shard_map(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """``shard_map`` of the same arguments."""
    import jax
    from jax.sharding import PartitionSpec as P

    rows, var = arrays(size)
    name = axis(mesh)
    solve = jax.shard_map(vectorized_solve, mesh=mesh, in_specs=(P(name), P()), out_specs=P(name))
    return jax.jit(solve), (split(rows, mesh), replicate(var, mesh))


def build_pmap(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """``pmap`` as the issue wrote it: its arguments on one device, so that each call has to split them."""
    import jax
    import jax.numpy as jnp

    rows, var = arrays(size)
    devices = list(mesh.devices.ravel())
    if len({device.process_index for device in devices}) > 1:
        raise MeasureError(
            "pmap takes its arguments process by process, so this program runs in one process only; with --processes "
            "give --strategies jit,shard_map."
        )
    by_device = rows.reshape(len(devices), -1, WIDTH)
    solve = jax.pmap(vectorized_solve, in_axes=(0, None), devices=devices)
    return solve, (jnp.asarray(by_device), jnp.asarray(var))


def build_pmap_placed(mesh: Mesh, size: int) -> tuple[Any, ...]:
    """``pmap`` of arguments that already lie as its compiled program wants them."""
    import jax

    solve, args = build_pmap(mesh, size)
    wanted, _ = solve.lower(*args).compile().input_shardings
    return solve, tuple(jax.device_put(array, sharding) for array, sharding in zip(args, wanted, strict=True))


WORKLOAD = Workload(
    name="issue-21411",
    summary="vmap(mean(row @ matrix)): the same small work on each device, nothing exchanged",
    builds={
        "jit": build_jit,
        "shard_map": build_shard_map,
        "pmap": build_pmap_placed,
        "pmap-unplaced": build_pmap,
    },
    path="weak",
    unit="rows",
    local=build_jit,
    unplaced=frozenset({"pmap-unplaced"}),
    sizes=(25, 50, 100),
)
