"""Programs of collectives alone: ``chain``, k dependent ones, and ``replay``, a workload's own inventory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..model.program import Collective
from .workload import MeasureError

if TYPE_CHECKING:
    from jax.sharding import Mesh

AXIS = "probe"
UNROLLED = 32
"""Up to this count the collectives stand one after the other in the program; more of them run in a loop."""

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def chain(mesh: Mesh, kind: str, k: int, payload_bytes: int) -> Program:
    """Return a program of ``k`` dependent collectives over all of the mesh's devices, and its placed arguments.

    Parameters
    ----------
    mesh : jax.sharding.Mesh
    kind : str
        As in ``Collective.kind``.
    k : int
    payload_bytes : int, bytes
        Message of each collective, by the convention of ``Collective.operand_bytes``.

    Raises
    ------
    MeasureError
        On one device, or for a kind or payload that cannot be sent.
    """
    if k < 1:
        raise MeasureError(f"k must be at least 1, got {k}.")
    one = Collective(
        kind=kind,
        count=k,
        operands=1,
        message_bytes=payload_bytes,
        operand_bytes=(payload_bytes,),
        group_size=mesh.devices.size,
    )
    return replay(mesh, (one,))


def replay(mesh: Mesh, collectives: Iterable[Collective]) -> Program:
    """Return a program that runs these collectives one after the other, without compute, and its placed arguments.

    Parameters
    ----------
    mesh : jax.sharding.Mesh
    collectives : iterable of Collective
        Kinds, counts, operands and bytes of a compiled program.

    Raises
    ------
    MeasureError
        On one device, where there are none, where a count is unknown, or for a kind or size that cannot be sent.

    Notes
    -----
    All buffers are zero, and stay so. Before each collective one element is overwritten with a value that depends
    on the previous result and on an argument that differs by device: XLA can then neither merge, reorder nor drop
    collectives, nor take the reduction of a replicated array as a multiplication. All operands of an all-reduce
    travel in one instruction; of other kinds one after the other.
    """
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    from .processes.meshes import from_host

    inventory = tuple(collectives)
    devices = mesh.devices.ravel()
    _check(inventory, len(devices))
    ring = jax.sharding.Mesh(devices, (AXIS,))
    split = NamedSharding(ring, PartitionSpec(AXIS))

    def zeros(shape: tuple[int, ...], dtype: Any) -> Any:
        return from_host(np.zeros((len(devices) * shape[0], *shape[1:]), dtype), split)

    buffers = tuple(
        tuple(zeros((length,), dtype) for length, dtype in _operands(item, len(devices))) for item in inventory
    )
    args = (zeros((1,), np.float32), buffers)

    def body(seed: Any, all_buffers: Any) -> Any:
        token = seed
        for item, own in zip(inventory, all_buffers, strict=True):
            token = _repeat(item, len(devices), token, seed, own)
        return token

    in_specs = PartitionSpec(AXIS)
    program = jax.shard_map(body, mesh=ring, in_specs=in_specs, out_specs=in_specs, check_vma=False)
    return jax.jit(program), args


def _check(inventory: tuple[Collective, ...], num_devices: int) -> None:
    """Raise MeasureError for what cannot be replayed."""
    if num_devices < 2:
        raise MeasureError("one device has no collectives: a probe needs at least 2 devices.")
    if not inventory:
        raise MeasureError("the program has no collectives to replay.")
    for item in inventory:
        if item.count is None:
            raise MeasureError(f"cannot replay {item.kind}: how often it runs is unknown.")
        if item.kind not in _SENDERS:
            raise MeasureError(f"cannot replay {item.kind}: no program of ours sends it. Known: {', '.join(_SENDERS)}.")
        group = item.group_size or num_devices
        if num_devices % group:
            raise MeasureError(f"cannot replay {item.kind}: groups of {group} do not divide {num_devices} devices.")


def _operands(item: Collective, num_devices: int) -> list[tuple[int, Any]]:
    """Elements and dtype of each operand on one device."""
    import numpy as np

    group = item.group_size or num_devices
    # XLA splits an all-to-all into one operand a device; it is sent as one array.
    sizes = (item.message_bytes,) if item.kind == "all-to-all" else item.operand_bytes
    operands = []
    for size in sizes:
        parts = 1 if item.kind in ("all-reduce", "collective-permute") else group
        dtype = np.dtype(np.float32 if size % (4 * parts) == 0 else np.uint8)
        if size < 1 or size % (parts * dtype.itemsize):
            raise MeasureError(f"cannot send {item.kind} of {size} bytes: it must be a positive multiple of {parts}.")
        length = size // dtype.itemsize
        operands.append((length // group if item.kind == "all-gather" else length, dtype))
    return operands


def _repeat(item: Collective, num_devices: int, token: Any, seed: Any, buffers: Any) -> Any:
    """Run one collective ``count`` times, each after the one before; return the last token, shape (1,)."""
    import jax

    def step(_index: Any, carry: Any) -> Any:
        token, operands = carry
        marked = [operand.at[:1].set((token + seed).astype(operand.dtype)) for operand in operands]
        results = _send(item, num_devices, marked)
        token = sum(result[:1].astype(token.dtype) for result in results)
        return token, tuple(_next_operand(*pair) for pair in zip(marked, results, strict=True))

    assert item.count is not None
    if item.count > UNROLLED:
        return jax.lax.fori_loop(0, item.count, step, (token, buffers))[0]
    for index in range(item.count):
        token, buffers = step(index, (token, buffers))
    return token


def _next_operand(operand: Any, result: Any) -> Any:
    """The result, brought to the operand's length, so that the whole of it feeds the next collective."""
    if result.size >= operand.size:
        return result[: operand.size]
    return operand.at[: result.size].set(result)


def _send(item: Collective, num_devices: int, operands: list[Any]) -> list[Any]:
    """Run one collective within blocks of ``group_size`` neighbours."""
    size = item.group_size or num_devices
    groups = [list(range(first, first + size)) for first in range(0, num_devices, size)]
    return _SENDERS[item.kind](operands, groups)


def _all_reduce(operands: list[Any], groups: list[list[int]]) -> list[Any]:
    import jax

    return jax.lax.psum(operands, AXIS, axis_index_groups=_unless_all(groups))


def _all_gather(operands: list[Any], groups: list[list[int]]) -> list[Any]:
    import jax

    return [jax.lax.all_gather(x, AXIS, axis_index_groups=_unless_all(groups), tiled=True) for x in operands]


def _reduce_scatter(operands: list[Any], groups: list[list[int]]) -> list[Any]:
    import jax

    return [jax.lax.psum_scatter(x, AXIS, axis_index_groups=_unless_all(groups), tiled=True) for x in operands]


def _all_to_all(operands: list[Any], groups: list[list[int]]) -> list[Any]:
    import jax

    return [jax.lax.all_to_all(x, AXIS, 0, 0, axis_index_groups=_unless_all(groups), tiled=True) for x in operands]


def _permute(operands: list[Any], groups: list[list[int]]) -> list[Any]:
    import jax

    shifted = [(device, group[(place + 1) % len(group)]) for group in groups for place, device in enumerate(group)]
    return [jax.lax.ppermute(x, AXIS, shifted) for x in operands]


def _unless_all(groups: list[list[int]]) -> list[list[int]] | None:
    return groups if len(groups) > 1 else None


_SENDERS: dict[str, Callable[[list[Any], list[list[int]]], list[Any]]] = {
    "all-reduce": _all_reduce,
    "all-gather": _all_gather,
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _all_to_all,
    "collective-permute": _permute,
}
