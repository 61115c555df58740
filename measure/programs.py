"""The programs behind the cells of a plan, built and prepared one by one in the measuring process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ..data.schema import Plan
from ..model.cell import Cell
from .controls import ControlRefused, accept_control, automatic_local, null_program
from .inventory import heaviest
from .prepare import Prepared, prepare
from .probes import chain, replay
from .workload import MeasureError, Workload

AXIS = "devices"
"""Name of the one axis of the mesh that ``build`` is given."""

Announce = Callable[[str], None]
Made = tuple[Prepared, str | None]
"""A program, and for a control where it came from."""


@dataclass(frozen=True)
class Programs:
    """Makes the programs of one workload; controls and probes need the workload's own program first.

    Each method takes a cell and a function to be told the stage (``compile`` comes after ``build``).
    """

    plan: Plan
    declared: Workload
    made: dict[Cell, Prepared] = field(default_factory=dict)

    def workload(self, cell: Cell, announce: Announce) -> Made:
        """The user's own program."""
        if cell.strategy not in self.declared.builds:
            raise MeasureError(
                f"no strategy {cell.strategy!r} in {self.declared.name}; it has {', '.join(self.declared.builds)}."
            )
        built = self.declared.builds[cell.strategy](_mesh(cell.num_devices), cell.size)
        announce("compile")
        program = prepare(built, place=cell.strategy not in self.declared.unplaced, work=self._work(cell))
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
            built = self.declared.local(_mesh(cell.num_devices), cell.size)
            announce("compile")
            source = "user" if ":" in self.declared.name else "hand-written"
            return prepare(built, work=self._work(cell)), source
        if workload.runs_alone:
            return workload, "automatic"
        announce("compile")
        return self._derived_local(cell, workload), "automatic"

    def _derived_local(self, cell: Cell, workload: Prepared) -> Prepared:
        compiled = _compiled(workload)
        fn = automatic_local(workload.fn, workload.args(), _mesh(cell.num_devices), workload=compiled)
        try:
            control = prepare(workload.with_function(fn), work=self._work(cell))
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
        return prepare(workload.with_function(fn)), "automatic"

    def probe(self, cell: Cell, announce: Announce) -> Made:
        """The workload's collectives alone: all of them (replay), or k of the heaviest (chain)."""
        facts = self._known(cell).facts
        assert facts is not None
        mesh = _mesh(cell.num_devices)
        if cell.role == "replay":
            built = replay(mesh, facts.collectives)
        else:
            assert cell.k is not None
            assert cell.payload_bytes is not None
            built = chain(mesh, heaviest(facts.collectives).kind, cell.k, cell.payload_bytes)
        announce("compile")
        return prepare(built), None

    def _known(self, cell: Cell) -> Prepared:
        program = self.workload_of(cell)
        assert program is not None
        return program

    def _work(self, cell: Cell) -> float | None:
        return None if self.declared.work is None else float(self.declared.work(cell.size_per_device))


def _compiled(workload: Prepared) -> Any:
    if workload.compiled is None:
        raise ControlRefused("the program cannot be lowered, so no control can be made for it.")
    return workload.compiled


def _mesh(num_devices: int) -> Any:
    # Not jax.make_mesh: since 0.9 its axes are Explicit, where a sharded contraction raises.
    return jax.sharding.Mesh(np.array(jax.devices()[:num_devices]), (AXIS,))
