"""Facts of programs that were not compiled: work and message bytes at another count or size, from those that were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from .cell import Cell
from .decomposition import interpolate
from .program import Collective, ProgramFacts


@dataclass(frozen=True, kw_only=True)
class FactsAt:
    """Facts of a program at a cell.

    Attributes
    ----------
    facts : None where the data are from elsewhere and have none, or where they cannot be inferred (``reason``)
    measured : they are the compiled program's own
    outside : the cell's per-device size lies outside the measured ones
    """

    facts: ProgramFacts | None
    measured: bool
    outside: bool
    reason: str | None = None


def facts_at(facts: Mapping[Cell, ProgramFacts | None], cell: Cell) -> FactsAt:
    """Find or infer the facts of a cell's program.

    Work and message bytes follow power laws of n and S between neighbouring programs of the same role and strategy,
    so what is constant, or a product of powers, comes out exactly. (A per-device size alone would not do: two S x S
    matrix products of one S / n differ in work.) The walk goes along the sizes at a measured count, along the counts
    at a measured size (global, else per device), and otherwise along both. Programs on one device say nothing about
    collectives. A chain needs no facts: it is its k and its payload.
    """
    own = facts.get(cell)
    if own is not None:
        return FactsAt(facts=own, measured=True, outside=False)
    known = {
        (c.num_devices, c.size): found
        for c, found in facts.items()
        if found is not None and c.role == cell.role and c.strategy == cell.strategy and c.k == cell.k
    }
    local_sizes = [size / n for n, size in known]
    outside = bool(known) and not min(local_sizes) <= cell.size_per_device <= max(local_sizes)
    if not known or cell.role == "chain":
        return FactsAt(facts=None, measured=False, outside=outside)
    template = known[min(known, key=lambda place: _distance(place, cell))]
    try:
        inferred = replace(
            template,
            flops=None,
            bytes_accessed=None,
            inline=None,
            work=_infer({place: found.compute_work for place, found in known.items()}, cell),
            collectives=_collectives_at(known, cell),
        )
    except LookupError as error:
        return FactsAt(facts=None, measured=False, outside=outside, reason=str(error.args[0]))
    return FactsAt(facts=inferred, measured=False, outside=outside)


def _collectives_at(known: Mapping[tuple[int, int], ProgramFacts], cell: Cell) -> tuple[Collective, ...]:
    several = {place: found.collectives for place, found in known.items() if place[0] > 1}
    if cell.num_devices == 1 or not several:
        return ()
    shapes = {tuple((c.kind, c.count, c.operands) for c in collectives) for collectives in several.values()}
    if len(shapes) > 1:
        raise LookupError("the collectives differ between the measured counts or sizes, so those elsewhere are unknown")
    return tuple(_collective_at(several, cell, index) for index in range(len(shapes.pop())))


def _collective_at(several: Mapping[tuple[int, int], tuple[Collective, ...]], cell: Cell, index: int) -> Collective:
    like = {place: collectives[index] for place, collectives in several.items()}
    one = next(iter(like.values()))
    operand_bytes = []
    for operand in range(len(one.operand_bytes)):
        found = _infer({place: float(c.operand_bytes[operand]) for place, c in like.items()}, cell)
        if found is None:
            raise LookupError(f"how the payload of its {one.kind} depends on the device count was not measured")
        operand_bytes.append(round(found))
    # A group as large as the mesh, or a fixed part of it, is all that a count elsewhere can be guessed from.
    whole = all(c.group_size in (None, n) for (n, _), c in like.items())
    groups = {c.group_size for c in like.values()}
    if not whole and len(groups) > 1:
        raise LookupError(f"the groups of its {one.kind} differ between the measured counts")
    return replace(
        one,
        message_bytes=sum(operand_bytes),
        operand_bytes=tuple(operand_bytes),
        group_size=None if whole else groups.pop(),
    )


def _infer(known: Mapping[tuple[int, int], float | None], cell: Cell) -> float | None:
    """Power-law interpolation of a quantity known at some (n, S); None where it cannot be followed to the cell."""
    values = {place: value for place, value in known.items() if value is not None}
    n, size = cell.num_devices, cell.size
    if (n, size) in values:
        return values[n, size]
    if len(values) > 1 and len(set(values.values())) == 1:
        return next(iter(values.values()))
    along_sizes = _follow({s: v for (m, s), v in values.items() if m == n}, size)
    if along_sizes is not None:
        return along_sizes
    for on_path in (lambda _, s: s == size, lambda m, s: s * n == size * m):
        along_counts = _follow({m: v for (m, s), v in values.items() if on_path(m, s)}, n)
        if along_counts is not None:
            return along_counts
    by_count = {m: _follow({s: v for (m2, s), v in values.items() if m2 == m}, size) for m in {m for m, _ in values}}
    return _follow({m: v for m, v in by_count.items() if v is not None}, n)


def _follow(known: Mapping[int, float], place: int) -> float | None:
    """Value at a place from two or more measured ones; None where there are fewer."""
    if place in known:
        return known[place]
    if len(known) < 2:
        return None
    places = sorted(known)
    values = np.array([known[x] for x in places])
    return float(interpolate(np.array(places, dtype=float), values, float(place)))


def _distance(place: tuple[int, int], cell: Cell) -> float:
    n, size = place
    return abs(np.log(n / cell.num_devices)) + abs(np.log(size / cell.size))
