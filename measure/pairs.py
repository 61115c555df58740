"""A message that goes to and fro between two devices: the program behind the links' alpha and beta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .probes import AXIS, Program
from .workload import MeasureError

if TYPE_CHECKING:
    from jax.sharding import Mesh

ELEMENT_BYTES = 4


def ping_pong(mesh: Mesh, pair: tuple[int, int], k: int, payload_bytes: int) -> Program:
    """Return a program in which a message crosses between two devices ``k`` times, and its placed argument.

    Parameters
    ----------
    mesh : jax.sharding.Mesh
        The other devices of it run the same program and neither send nor receive.
    pair : places of the two devices in the mesh, flattened; the message starts at the first
    k : int
        Messages; each is what the one before brought, so that none can start early.
    payload_bytes : int, bytes
        Of one message.

    Raises
    ------
    MeasureError
        For a pair that is not in the mesh, or a length or payload that cannot be sent.

    Notes
    -----
    The slope of the time in ``k`` is the mean of both directions. Nothing is computed or copied between messages: what
    stands in the program is k collective-permutes and no more. XLA joins all devices of the *mesh* before it moves a
    byte between forced host devices (20 µs a message on a mesh of two, 108 µs on one of eight), so there the mesh
    should hold the two devices only.
    """
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    from .processes.meshes import from_host

    first, second = pair
    devices = mesh.devices.ravel()
    if first == second or not all(0 <= place < len(devices) for place in pair):
        raise MeasureError(f"a pair is two of the mesh's {len(devices)} devices, got {first} and {second}.")
    if k < 1:
        raise MeasureError(f"k must be at least 1, got {k}.")
    if payload_bytes < 1 or payload_bytes % ELEMENT_BYTES:
        raise MeasureError(f"a payload must be a positive multiple of {ELEMENT_BYTES} bytes, got {payload_bytes}.")
    line = jax.sharding.Mesh(devices, (AXIS,))
    spec = PartitionSpec(AXIS)
    zeros = np.zeros(len(devices) * payload_bytes // ELEMENT_BYTES, np.float32)
    message = from_host(zeros, NamedSharding(line, spec))

    def body(message: Any) -> Any:
        for hop in range(k):
            message = jax.lax.ppermute(message, AXIS, [(first, second) if hop % 2 == 0 else (second, first)])
        return message

    program = jax.shard_map(body, mesh=line, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(program), (message,)
