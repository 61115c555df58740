"""Cost laws: the menu, and the design matrix that a law gives to a set of cells.

::

    T(n, S) = c0                                   per program
            + entry [n > 1] + dispatch n_local     one process feeds n_local devices: n, or fewer where it has fewer
            + floor + gamma work                   compute, work of ONE device's program
            + sum_k alpha0 + steps_k alpha + bytes_k beta      communication, n > 1

Linear in the parameters, so one row of coefficients a cell says all. Times of roles: ``null`` has only the first two
lines, ``local`` has no communication, ``chain`` and ``replay`` have no compute and a constant of their own.
Facts of programs at other counts and sizes come from ``unmeasured.facts_at``, times there from ``decomposition.at``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from .cell import Cell
from .menu import ALL_REDUCES, executions, load
from .program import Collective, ProgramFacts

COMPUTES = ("per-device", "cores-limited", "constant", "by-local-size")
"""gamma w; gamma w n / min(n, cores); gamma n w (one device already uses all cores); one free time per S / n."""

SAME_WORK = 0.1
"""Works of cells of one per-device size that differ by less share one free compute time: a reduction adds a little."""

_FIXED = {
    "c0": ("s", "dispatch"),
    "c0_probe": ("s", "dispatch"),
    "entry": ("s", "dispatch"),
    "dispatch": ("s/device", "dispatch"),
    "floor": ("s", "compute"),
    "gamma": ("s/work", "compute"),
    "compute": ("s", "compute"),
    "alpha0": ("s", "communication"),
    "alpha": ("s", "communication"),
    "beta": ("s/B", "communication"),
    "collective": ("s", "communication"),
}
_ORDER = tuple(_FIXED)


@dataclass(frozen=True)
class Law:
    """One combination from the menu."""

    all_reduce: str
    compute: str

    def __post_init__(self) -> None:
        if self.all_reduce not in ALL_REDUCES:
            raise ValueError(f"all_reduce must be one of {', '.join(ALL_REDUCES)}, got {self.all_reduce!r}.")
        if self.compute not in COMPUTES:
            raise ValueError(f"compute must be one of {', '.join(COMPUTES)}, got {self.compute!r}.")

    @property
    def name(self) -> str:
        """For printing and as a key: ``ring, per-device``."""
        return f"{self.all_reduce}, {self.compute}"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How many devices one process feeds at most, and how many share the cores of one host. None: all of them."""

    per_process: int | None = None
    per_node: int | None = None


ONE_PROCESS = Spread()

MENU = tuple(Law(all_reduce, compute) for all_reduce, compute in product(ALL_REDUCES, COMPUTES))


@dataclass(frozen=True)
class Design:
    """Coefficients of P parameters in C cells: times are ``matrix @ parameters``.

    Attributes
    ----------
    matrix : ndarray, shape (C, P), SI units (columns differ by orders of magnitude: scale before solving)
    names, units, causes : of the columns; a cause is ``dispatch``, ``communication`` or ``compute``
    """

    matrix: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]
    causes: tuple[str, ...]


def design(
    law: Law,
    cells: Sequence[Cell],
    facts: Mapping[Cell, ProgramFacts | None],
    *,
    cores: int | None,
    spread: Spread = ONE_PROCESS,
) -> Design:
    """Build the design matrix of a law.

    Parameters
    ----------
    law : Law
    cells : sequence of C cells
    facts : mapping
        Facts of the cells' programs. A cell without facts (data from elsewhere) has work S / n, a ``chain`` then k
        all-reduces of its payload, a ``workload`` no known communication.
    cores : int or None
        Cores that the devices of a host share; only ``cores-limited`` reads it.
    spread : Spread
        Over processes and hosts.

    Returns
    -------
    Design
        Columns that are zero in every cell are left out.

    Raises
    ------
    ValueError
        If the law says nothing about some cell; ``undefined`` gives the same reason without raising.
    """
    if reason := undefined(law, cells, facts, cores=cores):
        raise ValueError(f"law {law.name!r} is not defined here: {reason}.")
    rows = [terms(law, cell, facts.get(cell), cores=cores, spread=spread) for cell in cells]
    names = sorted({name for row in rows for name, value in row.items() if value}, key=_column_key)
    matrix = np.array([[row.get(name, 0.0) for name in names] for row in rows], dtype=float).reshape(len(rows), -1)
    return Design(
        matrix=matrix,
        names=tuple(names),
        units=tuple(_FIXED[_stem(name)][0] for name in names),
        causes=tuple(cause_of(name) for name in names),
    )


def terms(
    law: Law, cell: Cell, facts: ProgramFacts | None, *, cores: int | None, spread: Spread = ONE_PROCESS
) -> dict[str, float]:
    """Return the coefficient of each parameter in the time of one cell (zeros may be left out)."""
    n = cell.num_devices
    probe = cell.role in ("chain", "replay")
    local = min(n, spread.per_process or n)
    row = {"c0_probe" if probe else "c0": 1.0, "entry": float(n > 1), "dispatch": float(local)}
    if cell.role in ("workload", "local"):
        row |= _compute_terms(law, cell, facts, cores, spread)
    if cell.role not in ("local", "null"):
        row |= _communication_terms(law, cell, facts)
    return row


def undefined(
    law: Law, cells: Sequence[Cell], facts: Mapping[Cell, ProgramFacts | None], *, cores: int | None
) -> str | None:
    """Return why a law says nothing about these cells, or None where it is defined."""
    working = [cell for cell in cells if cell.role in ("workload", "local")]
    works = {cell: work(cell, facts.get(cell)) for cell in working}
    if law.compute == "by-local-size":
        if reason := _mixed_work(works):
            return reason
    elif unknown := next((cell for cell in working if works[cell] is None), None):
        return f"the work of {unknown} is unknown"
    if law.compute == "cores-limited" and cores is None:
        return "the number of cores is not recorded"
    for cell in cells:
        try:
            terms(law, cell, facts.get(cell), cores=cores)
        except ValueError as error:
            return f"{cell}: {error}"
    return None


def work(cell: Cell, facts: ProgramFacts | None) -> float | None:
    """Work of one device in one call: the program's, or S / n for data without facts; None where unknown."""
    return cell.size_per_device if facts is None else facts.compute_work


def collectives_of(cell: Cell, facts: ProgramFacts | None) -> tuple[Collective, ...]:
    """Collectives of a cell's program; a chain without facts has k all-reduces of its payload."""
    if facts is not None:
        return facts.collectives
    if cell.role != "chain" or cell.payload_bytes is None:
        return ()
    payload = cell.payload_bytes
    return (
        Collective(
            kind="all-reduce",
            count=cell.k or 1,
            operands=1,
            message_bytes=payload,
            operand_bytes=(payload,),
            group_size=None,
        ),
    )


def cause_of(name: str) -> str:
    """Cause of a parameter: ``dispatch``, ``communication`` or ``compute``."""
    return _FIXED[_stem(name)][1]


def compute_name(size_per_device: float) -> str:
    """Name of the free compute time at one per-device size."""
    return f"compute[{_number(size_per_device)}]"


def collective_name(kind: str, num_devices: int, message_bytes: float) -> str:
    """Name of the free time of one collective; all-reduce is not spelled out."""
    suffix = "" if kind == "all-reduce" else f", {kind}"
    return f"collective[{num_devices}, {_number(message_bytes)}{suffix}]"


def _compute_terms(
    law: Law, cell: Cell, facts: ProgramFacts | None, cores: int | None, spread: Spread
) -> dict[str, float]:
    if law.compute == "by-local-size":
        return {compute_name(cell.size_per_device): 1.0}
    amount = work(cell, facts)
    if amount is None:
        raise ValueError("its work is unknown")
    n = min(cell.num_devices, spread.per_node or cell.num_devices)
    match law.compute:
        case "cores-limited":
            if cores is None:
                raise ValueError("the number of cores is not recorded")
            amount *= n / min(n, cores)
        case "constant":
            amount *= n
    return {"floor": 1.0, "gamma": float(amount)}


def _communication_terms(law: Law, cell: Cell, facts: ProgramFacts | None) -> dict[str, float]:
    collectives = collectives_of(cell, facts)
    if law.all_reduce != "free":
        total = load(collectives, cell.num_devices, law.all_reduce)
        return {"alpha0": total.collectives, "alpha": total.steps, "beta": total.bytes}
    row: dict[str, float] = {}
    for kind, count, group, message_bytes in executions(collectives, cell.num_devices):
        name = collective_name(kind, group, message_bytes)
        row[name] = row.get(name, 0.0) + count
    return row


def _mixed_work(works: Mapping[Cell, float | None]) -> str | None:
    """One free time per per-device size is wrong where that size does not determine the work (S x S matrices)."""
    seen: dict[float, float] = {}
    for cell, amount in works.items():
        if amount is None:
            continue
        other = seen.setdefault(cell.size_per_device, amount)
        if abs(amount - other) > SAME_WORK * max(amount, other):
            return f"cells of the same per-device size {_number(cell.size_per_device)} do different work"
    return None


def _stem(name: str) -> str:
    return name.split("[", 1)[0]


def _column_key(name: str) -> tuple[int, list[float], str]:
    inside = name[name.index("[") + 1 : -1].split(", ")[:2] if "[" in name else []
    return _ORDER.index(_stem(name)), [float(part) for part in inside], name


def _number(value: float) -> str:
    """Shortest text that reads back as the same number."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
