"""Control programs: the same call without work (``null``), the same work without communication (``local``)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..model.control import same_bytes, same_flops
from .hlo import counted_cost, summarize
from .stand_ins import without_communication
from .workload import MeasureError

if TYPE_CHECKING:
    from jax.sharding import Mesh, PartitionSpec

MOST_QUOTED = 100
"""Characters quoted of an error that a user's code raises on shapes it was not written for."""
ADVICE = "Give a control yourself: @breakeven.workload(local=build_local)."


class ControlRefused(MeasureError):
    """No automatic local control for this program; the message says why."""


def null_program(compiled: Any, args: Sequence[Any]) -> Callable[..., Any]:
    """Return a jitted program with the arguments and outputs of ``compiled`` and no work.

    Parameters
    ----------
    compiled : jax.stages.Compiled
    args : sequence of pytrees
        What a call of ``compiled`` is given.

    Returns
    -------
    callable
        Takes ``args``. Outputs have the shapes, dtypes and shardings of the original's and are zero, except that
        an output that reuses a donated argument of its shape *is* that argument: nothing has to be written.
    """
    import jax
    import jax.numpy as jnp

    donated = donated_arguments(compiled)
    outputs, tree = jax.tree.flatten(compiled.out_info)
    shardings = jax.tree.leaves(compiled.output_shardings)

    def null(*arguments: Any) -> Any:
        spare = [leaf for index in donated for leaf in jax.tree.leaves(arguments[index])]
        results = []
        for output in outputs:
            same = (i for i, leaf in enumerate(spare) if (leaf.shape, leaf.dtype) == (output.shape, output.dtype))
            index = next(same, None)
            results.append(jnp.zeros(output.shape, output.dtype) if index is None else spare.pop(index))
        return jax.tree.unflatten(tree, results)

    return jax.jit(
        null,
        in_shardings=tuple(_in_shardings(compiled, args)),
        out_shardings=jax.tree.unflatten(tree, shardings),
        donate_argnums=donated,
        # An argument costs its share of the dispatch whether or not it is read.
        keep_unused=True,
    )


def donated_arguments(compiled: Any) -> tuple[int, ...]:
    """Positions of the arguments that a call uses up."""
    import jax

    infos = compiled.args_info[0]
    return tuple(i for i, info in enumerate(infos) if any(leaf.donated for leaf in jax.tree.leaves(info)))


def _in_shardings(compiled: Any, args: Sequence[Any]) -> Iterator[Any]:
    """One tree of shardings an argument; an argument that XLA dropped keeps the sharding it comes with."""
    import jax

    for argument, wanted in zip(args, compiled.input_shardings[0], strict=True):
        leaves, tree = jax.tree.flatten(argument)
        # jit marks a dropped argument by None, which is not a leaf unless told.
        known = jax.tree.leaves(wanted, is_leaf=lambda sharding: sharding is None)
        yield jax.tree.unflatten(
            tree, [own or getattr(leaf, "sharding", None) for own, leaf in zip(known, leaves, strict=True)]
        )


def automatic_local(
    fn: Callable[..., Any], args: Sequence[Any], mesh: Mesh, *, workload: Any = None
) -> Callable[..., Any]:
    """Try to derive the ``local`` control of ``fn``: its own code, run by each device on its own shards.

    Parameters
    ----------
    fn : callable
        The workload's function, jitted or not.
    args : sequence of pytrees
        Placed arguments; an array without a ``NamedSharding`` is taken as replicated.
    mesh : jax.sharding.Mesh
        The mesh over which the arguments are laid out.
    workload : jax.stages.Compiled, optional
        The compiled workload. Its outputs' layout and donation are then kept, so that a step's new state can be
        the next call's state; otherwise outputs count as replicated.

    Returns
    -------
    callable
        Jitted, takes ``args``. Not yet accepted: compile it and ask ``accept_control``.

    Raises
    ------
    ControlRefused
        If the arguments are laid out over another mesh, or the code does not run on shards.

    Notes
    -----
    ``shard_map(fn, in_specs from the arguments' shardings, out_specs=P(), check_vma=False)``. While it is traced
    the collectives of ``jax.lax`` return a local array of the same shape, sharding constraints do nothing, and an
    inner ``jax.shard_map`` runs its body, also one made before where ``stand_ins.keep_bodies`` came first. What was
    traced or imported by name before keeps its collectives, and ``accept_control`` then finds them.
    """
    import jax
    from jax.sharding import PartitionSpec as P

    in_specs = tuple(jax.tree.map(lambda leaf: _spec(leaf, mesh), argument) for argument in args)
    donated: tuple[int, ...] = ()
    out_specs: Any = P()
    if workload is not None:
        donated = donated_arguments(workload)
        out_specs = jax.tree.map(lambda sharding: getattr(sharding, "spec", P()), workload.output_shardings)
    # Only jit is taken off: other wrappers (vmap, grad, a user's own) are part of the program.
    inner = getattr(fn, "__wrapped__", fn) if hasattr(fn, "lower") else fn

    def body(*shards: Any) -> Any:
        with without_communication():
            return inner(*shards)

    local = jax.jit(
        jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False),
        donate_argnums=donated,
    )
    try:
        local.lower(*args)
    except Exception as error:
        # The user's code, on shapes it was not written for, may raise anything.
        first_line = (str(error).strip() or "no message").splitlines()[0]
        quoted = textwrap.shorten(first_line, MOST_QUOTED, placeholder=" ...")
        raise ControlRefused(
            f"the program does not run on one device's shards ({type(error).__name__}: {quoted}). {ADVICE}"
        ) from error
    return local


def _spec(leaf: Any, mesh: Mesh) -> PartitionSpec:
    from jax.sharding import NamedSharding, PartitionSpec

    sharding = getattr(leaf, "sharding", None)
    if not isinstance(sharding, NamedSharding):
        return PartitionSpec()
    if sharding.mesh != mesh:
        raise ControlRefused(
            f"an argument lies on another mesh ({dict(sharding.mesh.shape)}) than the one given ({dict(mesh.shape)}), "
            f"as pmap's do. {ADVICE}"
        )
    return sharding.spec


def accept_control(workload: Any, local: Any) -> None:
    """Check a local control against its workload, both compiled.

    Raises
    ------
    ControlRefused
        Unless the control has no communication, the same output shards, the same loops with known trip counts,
        flops within 5 % and the reduction's own, and bytes within 5 % and 2.5 times the messages.
    """
    for _, words in differences(workload, local):
        raise ControlRefused(words)


Difference = Literal["communicates", "unknown code", "uncounted", "loops", "outputs", "flops", "bytes"]


def differences(workload: Any, local: Any) -> Iterator[tuple[Difference, str]]:
    """How a local control differs from its workload, both compiled, or why that cannot be known; worst first."""
    theirs, ours = summarize(workload.as_text() or ""), summarize(local.as_text() or "")
    if ours.collectives or ours.point_to_point:
        kinds = sorted({collective.kind for collective in ours.collectives}) or ["send/recv"]
        yield "communicates", f"the control still communicates ({', '.join(kinds)})."
    if ours.custom_calls:
        yield "unknown code", f"the control calls code that may communicate ({', '.join(ours.custom_calls)})."
    if None in theirs.trip_counts + ours.trip_counts:
        yield "uncounted", "a loop's trip count is unknown, so the work cannot be compared."
    if sorted(map(str, theirs.trip_counts)) != sorted(map(str, ours.trip_counts)):
        yield (
            "loops",
            f"the loops differ: trip counts {theirs.trip_counts} in the workload, {ours.trip_counts} in the control.",
        )
    if _output_shards(workload) != _output_shards(local):
        yield (
            "outputs",
            f"the output shards differ: {_output_shards(workload)} in the workload, {_output_shards(local)} "
            "in the control.",
        )
    yield from _costs(workload, local, sum(collective.message_bytes for collective in theirs.collectives))


def _costs(workload: Any, local: Any, message_bytes: int) -> Iterator[tuple[Difference, str]]:
    """Both counts take each loop body once, and the loops are equal, so the counts compare."""
    rules: tuple[tuple[Difference, str, Callable[[float, float, float], bool]], ...] = (
        ("flops", "flops", same_flops),
        ("bytes", "bytes accessed", same_bytes),
    )
    for (kind, name, same), theirs, ours in zip(rules, counted_cost(workload), counted_cost(local), strict=True):
        if theirs is None or ours is None:
            yield "uncounted", f"XLA does not count the {name} of this program, so the work cannot be compared."
        elif not same(theirs, ours, message_bytes):
            yield kind, f"the work differs: {name} {theirs:g} in the workload, {ours:g} in the control."


def _output_shards(compiled: Any) -> list[tuple[tuple[int, ...], str]]:
    """Shape and dtype of one device's part of each output."""
    import jax

    outputs = jax.tree.leaves(compiled.out_info)
    shardings = jax.tree.leaves(compiled.output_shardings)
    return [
        (sharding.shard_shape(output.shape), str(output.dtype))
        for output, sharding in zip(outputs, shardings, strict=True)
    ]
