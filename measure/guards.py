"""Programs whose time would mean nothing, and what makes a time mean something else; one function a fault.

A fault that makes the numbers meaningless raises ``MeasureError`` and costs the cell. One that only shifts their
meaning is returned, kept in the record, and said beside the answer.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from ..model.peaks import peak_flops
from .call_watch import leaves_work, watch
from .controls import ControlRefused, differences
from .host_peak import host_peak_flops
from .workload import MeasureError

if TYPE_CHECKING:
    from ..model.cell import Cell
    from ..model.program import ProgramFacts
    from .prepare import Prepared

_GONE = ("Buffer has been deleted or donated", "Array has been deleted")
_NARROW = re.compile(r"\b(?:bf16|f16|[su][48]|f[48]\w*)\[")
_TWICE = "donate the same buffer twice"
_SAME_TWICE = (
    "the same array is given twice where it is donated; make a copy of it (jnp.copy), so that each is its own."
)


def refuse_outputs(outputs: Any) -> None:
    """Refuse ready outputs that say that nothing was computed: none, no number among them, NaN, or nothing finite."""
    leaves = jax.tree.leaves(outputs)
    if not leaves:
        raise MeasureError("the function returned nothing; return its result, so that it can be waited for.")
    if not any(map(_is_number, leaves)):
        names = ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in leaves))
        raise MeasureError(
            f"the function returned no array and no number ({names}); return what it computes, so that it can be "
            "waited for."
        )
    inexact = [values for leaf in leaves for values in _inexact(leaf)]
    if any(np.isnan(values).any() for values in inexact):
        raise MeasureError("the function returned NaN; its time would mean nothing. Check its inputs at this size.")
    if inexact and all(values.size and np.isinf(values).all() for values in inexact):
        raise MeasureError(
            "the function returned nothing but infinity; its time would mean nothing. Check its inputs at this size."
        )


def _is_number(leaf: Any) -> bool:
    if isinstance(leaf, jax.Array | int | float | complex | np.number | np.bool_):
        return True
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc"


def _inexact(leaf: Any) -> Iterator[np.ndarray]:
    """The values of a leaf that can be NaN or infinite, each stored part once."""
    if isinstance(leaf, jax.Array):
        if jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact):
            yield from (np.asarray(shard.data) for shard in leaf.addressable_shards if shard.replica_id == 0)
    elif isinstance(leaf, float | complex | np.inexact) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc"):
        yield np.asarray(leaf)


def refuse_used_up(args: Sequence[Any]) -> None:
    """Refuse arguments that an earlier call has donated: ``build`` handed the same arrays out twice."""
    if _any_deleted(args):
        raise MeasureError(
            "build returned an array that an earlier call used up (donated); make the state anew in each build, not "
            "once for the whole file."
        )


def refuse_donated(args: Sequence[Any]) -> None:
    """Refuse a function whose arguments are gone after its first call."""
    if _any_deleted(args):
        raise MeasureError(
            "fn donates its arguments; return (step, state, rest), so that each call gets the new state."
        )


def refuse_donated_twice(lowered: Any, args: Sequence[Any]) -> None:
    """Refuse a function that is given one array where it donates one and again elsewhere: XLA ends the process."""
    leaves, infos = jax.tree.leaves(args), jax.tree.leaves(lowered.args_info[0])
    # Equal Python numbers may be one object, and get a buffer each.
    given = Counter(id(leaf) for leaf in leaves if isinstance(leaf, jax.Array))
    if any(info.donated and given[id(leaf)] > 1 for leaf, info in zip(leaves, infos, strict=True)):
        raise MeasureError(_SAME_TWICE)


def refuse_donated_rest(rest: Sequence[Any]) -> None:
    """Refuse a step that uses up what it needs again beside its state."""
    if _any_deleted(rest):
        raise MeasureError(
            "step donates an argument besides its state, or an array of the state is in rest too, and the next call "
            "needs it; donate the state alone (donate_argnums=0) and let rest hold arrays of its own."
        )


def _any_deleted(tree: Any) -> bool:
    return any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in jax.tree.leaves(tree))


@contextlib.contextmanager
def donations_named() -> Iterator[None]:
    """Say what to do where the runtime says that a buffer was donated."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if _TWICE in str(error):
            raise MeasureError(_SAME_TWICE) from error
        if any(words in str(error) for words in _GONE):
            raise MeasureError(
                "fn uses an array that an earlier call has donated; take it as an argument and return its successor, "
                "as (step, state, rest), or do not donate it."
            ) from error
        raise


def watch_plain_calls(
    fn: Callable[..., Any],
    args: Callable[[], tuple[Any, ...]],
    idle_s: float,
    *,
    before_calls: Callable[[], None],
) -> int:
    """Watch later calls of a program that runs as plain Python.

    Parameters
    ----------
    fn : callable
        Was called once before.
    args : callable
        Gives the arguments of a call; a state as a copy.
    idle_s : float, seconds
        ``work_in_pause`` before the first call.
    before_calls : callable
        Called before each series of calls, when what was seen so far refuses nothing; may raise.

    Returns
    -------
    int, bytes
        Moved to the devices at each call, at least; 0: nothing.

    Raises
    ------
    MeasureError
        If every call compiles something again, or work goes on after what was returned is ready.
    """
    before_calls()
    # The second call may compile for what the first one returned.
    jax.block_until_ready(fn(*args()))
    given = args()
    seen = watch(lambda: fn(*given))
    if seen.compiled:
        raise MeasureError(
            f"every call compiles again ({', '.join(dict.fromkeys(seen.compiled))}), and its time is the compiler's: "
            "make jitted functions once, outside of fn (jax.jit around loops, conditions and lambdas too), with static "
            "arguments that are hashable and do not change, and the same shapes at each call."
        )
    before_calls()
    if leaves_work(lambda: fn(*args()), idle_s):
        raise MeasureError(
            "work goes on after everything that fn returned is ready: its time is that of starting the work. Return "
            "the arrays that it computes, or wait for them in fn (jax.block_until_ready)."
        )
    on_host = sum(leaf.nbytes for leaf in jax.tree.leaves(given) if isinstance(leaf, np.ndarray))
    return max(seen.moved_bytes, on_host) if seen.transfers else 0


def refuse_unlike_control(workload: Any, local: Any) -> None:
    """Refuse a given control, compiled, that is known to communicate or to compute other than its workload does.

    What cannot be compared (loops of other or unknown length, code unknown to XLA) passes; bytes and outputs that
    differ are left to the reader of the record.

    Raises
    ------
    ControlRefused
    """
    for kind, words in differences(workload, local):
        if kind in ("loops", "uncounted"):
            return
        if kind in ("communicates", "flops"):
            raise ControlRefused(f"{words} Give local=build_local the same work without the collectives.")


def with_bounds(facts: ProgramFacts, program: Prepared, cell: Cell) -> ProgramFacts:
    """Facts with the most that a device could compute, and with how much of the size axis is padding."""
    return replace(facts, peak_flops=_peak(facts, program.compiled), padded_share=padded_share(program, cell))


def _peak(facts: ProgramFacts, compiled: Any) -> float | None:
    """None where the counted flops need not be those that run: a branch not taken, code unknown to XLA."""
    text = compiled.as_text() or ""
    if facts.custom_calls or " conditional(" in text:
        return None
    devices = compiled.runtime_executable().local_devices()
    if devices[0].platform != "cpu":
        return peak_flops(devices[0].device_kind)
    host = host_peak_flops(os.cpu_count() or 1, narrow=_NARROW.search(text) is not None)
    # Devices of this process compute at the same time on the same cores.
    return None if host is None else host / len(devices)


def padded_share(program: Prepared, cell: Cell) -> float:
    """Share of an axis that is padding, where the size does not divide by the devices.

    Notes
    -----
    An array that goes in or comes out is split evenly, so a program for a size that does not divide has arrays as long
    as the next multiple of n: split on that axis, or with one row a device and a whole number of elements in each. An
    array inside, split by a sharding constraint, is padded by XLA.
    """
    if cell.size % cell.num_devices == 0:
        return 0.0
    args = program.args()
    whole = math.ceil(cell.size / cell.num_devices) * cell.num_devices
    leaves = [leaf for leaf in jax.tree.leaves(args) if isinstance(leaf, jax.Array) and leaf.ndim]
    outside = 1 - cell.size / whole if any(_splits(leaf, whole, cell.num_devices) for leaf in leaves) else 0.0
    inside = _uneven_constraints(jax.make_jaxpr(program.fn)(*args).jaxpr)
    return max(outside, *inside, 0.0)


def _splits(leaf: jax.Array, whole: int, num_devices: int) -> bool:
    axes = zip(leaf.shape, leaf.sharding.shard_shape(leaf.shape), strict=True)
    stacked = leaf.ndim > 1 and leaf.shape[0] == num_devices and leaf.shape[0] * leaf.shape[1] == whole
    return stacked or any(full == whole and part * num_devices == whole for full, part in axes)


def _uneven_constraints(jaxpr: Any) -> Iterator[float]:
    """Share of padding on each axis that a sharding constraint splits unevenly, at any depth."""
    for equation in jaxpr.eqns:
        sharding = equation.params.get("sharding")
        if equation.primitive.name == "sharding_constraint" and isinstance(sharding, NamedSharding):
            for size, names in zip(equation.invars[0].aval.shape, sharding.spec, strict=False):
                # None, and what is left to the compiler (PartitionSpec.UNCONSTRAINED), name no axis.
                axes = (names,) if isinstance(names, str) else names if isinstance(names, tuple) else ()
                parts = math.prod(sharding.mesh.shape[name] for name in axes)
                yield 1 - size / (math.ceil(size / parts) * parts) if size else 0.0
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=_has_jaxpr):
            if _has_jaxpr(value):
                yield from _uneven_constraints(getattr(value, "jaxpr", value))


def _has_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")
