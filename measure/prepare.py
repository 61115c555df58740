"""From what a ``build`` returned to a program that can be timed: checked, compiled once, its inputs in place."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax

from ..model.program import ProgramFacts
from . import guards
from .call_watch import work_in_pause
from .fingerprint import fingerprint
from .hlo import program_facts
from .processes.meshes import from_host
from .workload import MeasureError

_SETTLE = 3
"""Compilations after which a carried state must come out as it went in."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A program ready to be timed; its first call was made and its outputs were checked.

    Attributes
    ----------
    call : starts one call; the outputs may not be ready yet
    fn, args : what is called; a carried state as a copy of the latest
    carries : whether the first argument is a state that each call replaces
    compiled : None where the program could not be lowered: it is timed with its program unknown
    compile_s : lowering and compiling, seconds
    moved_bytes : moved to the devices at each call, as far as can be seen; None: nothing
    pieces : of a function that was not jitted, and was compiled as one program: how many it starts when it is called as
        it is, about; None: one
    fingerprint : of what was lowered; None where nothing was
    """

    call: Callable[[], Any]
    fn: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    carries: bool = False
    compiled: Any | None = None
    facts: ProgramFacts | None = None
    compile_s: float | None = None
    moved_bytes: int | None = None
    pieces: int | None = None
    fingerprint: str | None = None

    @property
    def runs_alone(self) -> bool:
        """Whether no device can wait for another: no collective, transfer, callback or custom call."""
        facts = self.facts
        return facts is not None and not (facts.communicates or facts.callbacks or facts.custom_calls)

    def with_function(self, fn: Callable[..., Any]) -> tuple[Any, ...]:
        """What ``build`` would return for another function of the same arguments."""
        args = self.args()
        return (fn, args[0], args[1:]) if self.carries else (fn, args)


def _at_once(_fingerprint: str | None = None) -> None:
    """Wait for nobody."""


def prepare(
    built: Any, *, place: bool = True, work: float | None = None, before_call: Callable[..., None] = _at_once
) -> Prepared:
    """Compile what ``build`` returned, put its inputs in place, and call it once.

    Parameters
    ----------
    built : ``(fn, args)``, or ``(step, state, rest)`` where the first output of each call is the next state
    place : whether inputs are moved to where the compiled program wants them; else each call moves them
    work : declared work of one device, where XLA cannot know it
    before_call : called when all is ready for calls that other processes may take part in, and they must know of each
        other that none has failed; given the program's fingerprint where it was lowered; may raise

    Raises
    ------
    MeasureError
        If ``built`` has another form, or one of the guards finds that times would mean nothing. What the user's own
        code raises passes through.
    """
    fn, args, carries = _parts(built)
    guards.refuse_used_up(args)
    jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
    try:
        start = time.perf_counter()
        pieces = None if jitted is fn else _pieces(jitted, args)
        lowered = jitted.lower(*args)
        compiled = lowered.compile()
        compile_s = time.perf_counter() - start
    except Exception:  # noqa: BLE001 - plain Python that cannot be traced still runs; if not, its own error is raised
        return _as_it_is(fn, args, carries, before_call)
    _refuse_static(compiled, args)
    guards.refuse_donated_twice(lowered, args)
    wanted = _wanted(compiled, args)
    in_place = all(map(_lies, jax.tree.leaves(args), wanted))
    placed = _placed(args, wanted) if place else args
    if carries:
        carrying = _carrying(jitted, lowered, compiled, placed, compile_s, before_call, in_place=in_place, work=work)
        return replace(carrying, pieces=pieces)
    facts = program_facts(compiled, placed, work=work, in_place=in_place)
    moved = sum(leaf.nbytes for leaf, w in zip(jax.tree.leaves(placed), wanted, strict=True) if not _lies(leaf, w))
    mark = fingerprint(lowered)
    before_call(mark)
    with guards.donations_named():
        guards.refuse_outputs(jax.block_until_ready(compiled(*placed)))
    guards.refuse_donated(placed)
    return Prepared(
        call=lambda: compiled(*placed),
        fn=fn,
        args=lambda: placed,
        compiled=compiled,
        facts=facts,
        compile_s=compile_s,
        moved_bytes=moved or None,
        pieces=pieces,
        fingerprint=mark,
    )


def _parts(built: Any) -> tuple[Callable[..., Any], tuple[Any, ...], bool]:
    """Function, arguments, and whether the first argument is a state that is carried on."""
    if built is None:
        raise MeasureError("build returned nothing; it must return (fn, args) or (step, state, rest).")
    if not isinstance(built, tuple) or len(built) not in (2, 3) or not callable(built[0]):
        raise MeasureError(
            f"build must return (fn, args) or (step, state, rest), got {_describe(built)}; args and rest are tuples."
        )
    last = built[-1]
    if not isinstance(last, tuple | list):
        word = "args" if len(built) == 2 else "rest"
        raise MeasureError(f"{word}, the last that build returns, must be a tuple of arguments, got {_describe(last)}.")
    return (built[0], tuple(last), False) if len(built) == 2 else (built[0], (built[1], *last), True)


def _describe(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(type(item).__name__ for item in value)})"
    return type(value).__name__


def _pieces(jitted: Any, args: tuple[Any, ...]) -> int | None:
    """Operations and jitted functions at the top of a function; a wrapper around one jitted function is that one."""
    count = len(jitted.trace(*args).jaxpr.eqns)
    return count if count > 1 else None


def _refuse_static(compiled: Any, args: tuple[Any, ...]) -> None:
    if compiled.in_tree != jax.tree.structure((args, {})):
        raise MeasureError(
            "fn takes static arguments; bind them (functools.partial or a closure), so that args holds arrays only."
        )


def _wanted(compiled: Any, args: tuple[Any, ...]) -> list[Any]:
    """The compiled program's sharding of each leaf of ``args``; None for one that it does not use."""
    shardings = jax.tree.leaves(compiled.input_shardings[0], is_leaf=lambda x: x is None)
    present = [leaf is not None for leaf in jax.tree.leaves(args, is_leaf=lambda x: x is None)]
    return [sharding for sharding, there in zip(shardings, present, strict=True) if there]


def _lies(leaf: Any, wanted: Any) -> bool:
    """Whether an argument already lies as wanted; NumPy arrays and Python numbers never do."""
    return wanted is None or (isinstance(leaf, jax.Array) and leaf.sharding.is_equivalent_to(wanted, leaf.ndim))


def _placed(args: tuple[Any, ...], wanted: list[Any]) -> tuple[Any, ...]:
    leaves, structure = jax.tree.flatten(args)
    moved = [leaf if w is None else _moved(leaf, w) for leaf, w in zip(leaves, wanted, strict=True)]
    return jax.tree.unflatten(structure, moved)


def _moved(leaf: Any, wanted: Any) -> Any:
    if wanted.is_fully_addressable or (isinstance(leaf, jax.Array) and not leaf.is_fully_addressable):
        return jax.device_put(leaf, wanted)
    return from_host(leaf, wanted)


def _as_it_is(
    fn: Callable[..., Any], args: tuple[Any, ...], carries: bool, before_call: Callable[..., None]
) -> Prepared:
    """A function that cannot be lowered, called as plain Python."""
    idle_s = work_in_pause()
    before_call()
    with guards.donations_named():
        outputs = jax.block_until_ready(fn(*args))
        guards.refuse_outputs(outputs)
        if not carries:
            guards.refuse_donated(args)
            program = Prepared(call=lambda: fn(*args), fn=fn, args=lambda: args)
        else:
            guards.refuse_donated_rest(args[1:])
            carried = _Carried(fn, _next_state(outputs, args[0]), args[1:])
            program = Prepared(call=carried, fn=fn, args=carried.args, carries=True)
        moved = guards.watch_plain_calls(fn, program.args, idle_s, before_calls=before_call)
        return replace(program, moved_bytes=moved or None)


def _carrying(
    jitted: Any,
    lowered: Any,
    compiled: Any,
    args: tuple[Any, ...],
    compile_s: float,
    before_call: Callable[..., None],
    *,
    in_place: bool,
    work: float | None,
) -> Prepared:
    """A step that carries its state; compiled for the state as it comes out, as calling it again and again would."""
    for _ in range(_SETTLE):
        # Read before the call: it may donate the state.
        facts = program_facts(compiled, args, work=work, in_place=in_place)
        mark = fingerprint(lowered)
        before_call(mark)
        with guards.donations_named():
            outputs = jax.block_until_ready(compiled(*args))
        guards.refuse_outputs(outputs)
        guards.refuse_donated_rest(args[1:])
        state, before = _next_state(outputs, args[0]), args
        args = (state, *args[1:])
        if _goes_in_again(compiled, before, args):
            carried = _Carried(compiled, state, args[1:])
            return Prepared(
                call=carried,
                fn=jitted,
                args=carried.args,
                carries=True,
                compiled=compiled,
                facts=facts,
                compile_s=compile_s,
                fingerprint=mark,
            )
        start = time.perf_counter()
        lowered = jitted.lower(*args)
        compiled = lowered.compile()
        compile_s = time.perf_counter() - start
    raise MeasureError(
        "the state that step returns differs from the one it takes (shape, type or sharding) at every call; "
        "make them equal, for instance with out_shardings."
    )


def _goes_in_again(compiled: Any, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """Whether the compiled program takes the arguments with the new state."""
    same_type = all(
        jax.typeof(old) == jax.typeof(new)
        for old, new in zip(jax.tree.leaves(before[0]), jax.tree.leaves(after[0]), strict=True)
    )
    return same_type and all(map(_lies, jax.tree.leaves(after[0]), _wanted(compiled, after)))


def _next_state(outputs: Any, state: Any) -> Any:
    """The first output; or all of it, where the step returns nothing but its state."""
    structure = jax.tree.structure(state)
    if isinstance(outputs, tuple | list) and outputs and jax.tree.structure(outputs[0]) == structure:
        return outputs[0]
    if jax.tree.structure(outputs) == structure:
        return outputs
    raise MeasureError(
        "the first output of step must be the next state, with the same structure as the state it takes."
    )


class _Carried:
    """Calls a step on the state of its last call."""

    def __init__(self, step: Callable[..., Any], state: Any, rest: tuple[Any, ...]) -> None:
        self._step, self._state, self._rest = step, state, rest
        self._alone: bool | None = None

    def __call__(self) -> Any:
        outputs = self._step(self._state, *self._rest)
        if self._alone is None:
            self._alone = _next_state(outputs, self._state) is outputs
        self._state = outputs if self._alone else outputs[0]
        return outputs

    def args(self) -> tuple[Any, ...]:
        """The arguments of the next call; the state a copy, since the step may donate its own."""
        return (jax.tree.map(_copy, self._state), *self._rest)


def _copy(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, jax.Array) else leaf
