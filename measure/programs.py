"""The programs behind the cells of a plan, built and prepared one by one in the measuring process."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from ..data.schema import MAX_AMOUNT, Plan
from ..model.cell import Cell
from . import guards, sentinel
from .controls import ControlRefused, accept_control, automatic_local, null_program
from .inventory import heaviest
from .pairs import ping_pong
from .prepare import Prepared, prepare
from .probes import chain, replay
from .processes.meshes import AXIS, first_devices, mesh_of
from .workload import MeasureError, Workload

CALL = "call"
Announce = Callable[..., None]
Made = tuple[Prepared, str | None]
"""A program, and for a control where it came from."""


@dataclass(frozen=True)
class Programs:
    """Makes the programs of one workload; controls and probes need the workload's own program first.

    Each method takes a cell and a function to be told the stage: ``compile`` comes after ``build``, ``CALL`` before
    every call of a program that is not announced yet, with the program's fingerprint where it was lowered.
    """

    plan: Plan
    declared: Workload
    made: dict[Cell, Prepared] = field(default_factory=dict)

    def make(self, cell: Cell, announce: Announce) -> Made:
        """The program of a cell, by its role."""
        if cell.role == self.plan.leading_role != "workload":
            return self.link(cell, announce)
        return _BY_ROLE[cell.role](self, cell, announce)

    def workload(self, cell: Cell, announce: Announce) -> Made:
        """The user's own program."""
        if cell.strategy not in self.declared.builds:
            raise MeasureError(
                f"no strategy {cell.strategy!r} in {self.declared.name}; it has {', '.join(self.declared.builds)}."
            )
        built = self.declared.builds[cell.strategy](mesh_of(cell.num_devices), cell.size)
        announce("compile")
        _refuse_disabled_jit()
        place = cell.strategy not in self.declared.unplaced
        program = prepare(built, place=place, work=self._work(cell), before_call=partial(announce, CALL))
        if program.facts is not None:
            program = replace(program, facts=guards.with_bounds(program.facts, program, cell))
        self.made[cell] = program
        return program, None

    def workload_of(self, cell: Cell) -> Prepared | None:
        """The workload's program that a control or probe belongs to; None where it could not be made."""
        return self.made.get(
            Cell(role="workload", strategy=cell.strategy, num_devices=cell.num_devices, size=cell.size)
        )

    def local(self, cell: Cell, announce: Announce) -> Made:
        """The same work without communication: as given, the workload itself where it has none, or derived."""
        workload = self._known(cell)
        if self.declared.local is not None:
            built = self.declared.local(mesh_of(cell.num_devices), cell.size)
            announce("compile")
            source = "user" if ":" in self.declared.name else "hand-written"
            control = prepare(built, work=self._work(cell), before_call=partial(announce, CALL))
            if workload.compiled is not None and control.compiled is not None:
                guards.refuse_unlike_control(workload.compiled, control.compiled)
            return control, source
        if workload.runs_alone:
            return workload, "automatic"
        announce("compile")
        return self._derived_local(cell, workload, announce), "automatic"

    def _derived_local(self, cell: Cell, workload: Prepared, announce: Announce) -> Prepared:
        compiled = _compiled(workload)
        fn = automatic_local(workload.fn, workload.args(), mesh_of(cell.num_devices), workload=compiled)
        try:
            built = workload.with_function(fn)
            control = prepare(built, work=self._work(cell), before_call=partial(announce, CALL))
        except Exception as error:
            # The derived program is ours, not the user's: that it does not run is a refusal.
            raise ControlRefused(f"the derived control does not run ({type(error).__name__}: {error}).") from error
        accept_control(compiled, control.compiled)
        return control

    def null(self, cell: Cell, announce: Announce) -> Made:
        """The same arguments and outputs, no work."""
        workload = self._known(cell)
        announce("compile")
        fn = null_program(_compiled(workload), workload.args())
        return prepare(workload.with_function(fn), before_call=partial(announce, CALL)), "automatic"

    def probe(self, cell: Cell, announce: Announce) -> Made:
        """The workload's collectives alone: all of them (replay), or k of the heaviest (chain)."""
        facts = self._known(cell).facts
        assert facts is not None
        mesh = mesh_of(cell.num_devices)
        if cell.role == "replay":
            built = replay(mesh, facts.collectives)
        else:
            assert cell.k is not None
            assert cell.payload_bytes is not None
            built = chain(mesh, heaviest(facts.collectives).kind, cell.k, cell.payload_bytes)
        announce("compile")
        return prepare(built, before_call=partial(announce, CALL)), None

    def link(self, cell: Cell, announce: Announce) -> Made:
        """Messages between two devices, or all-reduces over the devices in the order of the cell's strategy."""
        assert cell.k is not None
        assert cell.payload_bytes is not None
        devices = np.array(first_devices(cell.num_devices))
        if cell.pair is None:
            order = self.plan.orders[self.plan.strategies.index(cell.strategy)]
            mesh = jax.sharding.Mesh(devices[list(order)], (AXIS,))
            built = chain(mesh, "all-reduce", cell.k, cell.payload_bytes)
        elif self.plan.processes == 1:
            # A mesh of the two alone: the others' threads would be waited for at every message.
            mesh = jax.sharding.Mesh(devices[list(cell.pair)], (AXIS,))
            built = ping_pong(mesh, (0, 1), cell.k, cell.payload_bytes)
        else:
            built = ping_pong(jax.sharding.Mesh(devices, (AXIS,)), cell.pair, cell.k, cell.payload_bytes)
        announce("compile")
        return prepare(built, before_call=partial(announce, CALL)), None

    def sentinel(self, cell: Cell, announce: Announce) -> Made:
        """The fixed program that shows whether the machine drifts."""
        built = sentinel.build(cell.size)
        announce("compile")
        return prepare(built, before_call=partial(announce, CALL)), None

    def _known(self, cell: Cell) -> Prepared:
        program = self.workload_of(cell)
        assert program is not None
        return program

    def _work(self, cell: Cell) -> float | None:
        work = self.declared.work
        return None if work is None else _finite_work(work(cell.size_per_device), cell.size_per_device)


def _finite_work(value: Any, local_size: float) -> float:
    """What ``work`` returned, as a number of flops or bytes."""
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= MAX_AMOUNT:
        beyond = isinstance(value, int) and abs(value) > sys.float_info.max  # its digits may be too many to print
        raise MeasureError(
            f"work({local_size:g}) returned {'a larger integer than any float' if beyond else reprlib.repr(value)}; it "
            f"must return the flops (or bytes) of one device, a number from 0 to {MAX_AMOUNT:g}."
        )
    return number


def _refuse_disabled_jit() -> None:
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
        raise MeasureError(
            "jax_disable_jit is on, and what is not compiled cannot be measured: switch it off, in the workload's file "
            "or as JAX_DISABLE_JIT in the environment."
        )


def _compiled(workload: Prepared) -> Any:
    if workload.compiled is None:
        raise ControlRefused("the program cannot be lowered, so no control can be made for it.")
    return workload.compiled


_BY_ROLE: dict[str, Callable[[Programs, Cell, Announce], Made]] = {
    "workload": Programs.workload,
    "local": Programs.local,
    "null": Programs.null,
    "chain": Programs.probe,
    "replay": Programs.probe,
    "sentinel": Programs.sentinel,
}
