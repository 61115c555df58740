"""What is measured: named ways to build one program for a mesh and a size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from jax.sharding import Mesh

Build = Callable[["Mesh", int], tuple[Any, ...]]
"""``build(mesh, size)`` returns ``(fn, args)``, or ``(step, state, rest)`` where each call's first output is the
next state. ``size`` is always the global size S."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A program family over (mesh, size), in one or several strategies.

    Attributes
    ----------
    name : as the command line has it: a built-in's name or ``path/to/file.py:build``
    builds : by strategy; the first one has the controls
    path : default path of a sweep; None: the user must choose with --sizes or --sizes-per-device
    unit : of size, for printing
    local : the control without communication for the first strategy, same arguments and per-device work
    work : per-device work as a function of the local size S / n, where XLA cannot know it
    divides : a global size must divide by n
    unplaced : strategies whose inputs stay where ``build`` left them, so that each call moves them
    sizes, devices : defaults of a built-in, on its path's axis
    """

    name: str
    builds: Mapping[str, Build]
    path: Literal["strong", "weak"] | None = None
    unit: str = "elements"
    local: Build | None = None
    work: Callable[[float], float] | None = None
    divides: bool = True
    unplaced: frozenset[str] = field(default_factory=frozenset)
    sizes: tuple[int, ...] = ()
    devices: tuple[int, ...] = (1, 2, 4, 8)
    summary: str = ""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of ``builds``, in order."""
        return tuple(self.builds)


NO_WORKLOAD = Workload(name="", builds={})
"""Stands where links between devices are measured instead of a program."""


class MeasureError(ValueError):
    """A user's mistake or a program that cannot be measured; the message says what to do."""
