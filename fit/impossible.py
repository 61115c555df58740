"""Times that no device of their kind can reach: found before anything is averaged, named, and left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ..data.rounds import TimedVisit
from ..data.schema import Program
from ..data.store import Record, RecordError
from ..model.cell import Cell
from ..model.peaks import memory_bandwidth, peak_flops

WHY = "the calls were not waited for (jax.block_until_ready), or the work is not that of one device and call"
MOST_NAMED = 5
BEYOND_CACHES = 2**29
"""Messages of so many bytes lie in the memory of a device, not in its caches."""


class Sifted(NamedTuple):
    """Visits that may count, and a sentence about each cell that lost some."""

    visits: list[TimedVisit]
    words: tuple[str, ...]


class _Bound(NamedTuple):
    """What one device does in a call, and the most of it that it can do in a second."""

    amount: float
    peak: float
    unit: str


class _Rate(NamedTuple):
    """The highest rate that a visit's calls imply, per second, and its bound."""

    visit: TimedVisit
    rate: float
    bound: _Bound


def leave_out_impossible(record: Record, visits: Sequence[TimedVisit]) -> Sifted:
    """Leave out what implies more operations, or bytes, per second than a device can do.

    Parameters
    ----------
    record : Record
    visits : those of the record that hold timed calls

    Returns
    -------
    Sifted
        Of a record of ours without the whole round, since cells are compared inside rounds; of data from elsewhere
        without the row. A program whose flops are unknown, or a device whose rates are, is not judged.

    Raises
    ------
    RecordError
        If every time of a cell is impossible: then its flops, or all of its times, are wrong.

    Notes
    -----
    The bound is the largest dense rate in any number format (``model.peaks``; of a host, its cores' widest vectors at
    6.5 GHz), so that what lies above it is wrong, and what lies below need not be right.
    """
    wrong = _impossible(record, visits)
    if not wrong:
        return Sifted(list(visits), ())
    foreign = all(sweep.foreign for sweep in record.sweeps)
    out = {_key(rate.visit, foreign) for rate in wrong}
    kept = [v for v in visits if _key(v, foreign) not in out]
    totals = Counter(v.cell for v in visits)
    for cell, rates in _by_cell(wrong).items():
        if len(rates) == totals[cell]:
            raise RecordError(f"{record.source}: every time of {cell} implies {_words(rates)}; {WHY}.")
    return Sifted(kept, tuple(_sentence(rates, totals[cell], foreign) for cell, rates in _by_cell(wrong).items()))


def _sentence(rates: Sequence[_Rate], total: int, foreign: bool) -> str:
    """What was left out of one cell; repeats of a foreign file are counted from 1."""
    places = ", ".join(str(rate.visit.visit.round + 1) for rate in rates[:MOST_NAMED])
    more = f" and {len(rates) - MOST_NAMED} more" if len(rates) > MOST_NAMED else ""
    what = f"repeat {places}{more} of {total}" if foreign else f"{len(rates)} of {total} visits, with their rounds,"
    return f"{rates[0].visit.cell}: {what} left out: {_words(rates)}; {WHY}"


def _impossible(record: Record, visits: Sequence[TimedVisit]) -> list[_Rate]:
    kinds = {(line.sweep, line.launch): line.device_kind for line in record.launches}
    foreign = {sweep.sweep for sweep in record.sweeps if sweep.foreign}
    bounds = {
        (program.sweep, program.launch, program.program): bound
        for program in record.programs
        if (bound := _bound(program, kinds.get((program.sweep, program.launch)), program.sweep in foreign))
    }
    found = []
    for v in visits:
        if bound := bounds.get((v.visit.sweep, v.visit.launch, v.visit.program)):
            # One call is enough: a median would hide it.
            rate = bound.amount / (min(v.visit.latency_ns[v.visit.warmups :]) * 1e-9)
            if rate > bound.peak:
                found.append(_Rate(v, rate, bound))
    return found


def _bound(program: Program, device_kind: str | None, foreign: bool) -> _Bound | None:
    """Flops of a program; bytes of a collective alone, which reads its message from memory once at least.

    Of both, what takes longer.
    """
    facts, cell, bounds = program.facts, program.cell, list[_Bound]()
    if facts is not None and facts.flops:
        # Where the program was compiled here, no peak means that its counted flops need not be those that ran.
        peak = peak_flops(device_kind) if foreign else facts.peak_flops
        if peak is not None:
            bounds.append(_Bound(facts.flops, peak, "Tflop/s"))
    beyond_caches = cell.role == "chain" and (cell.payload_bytes or 0) >= BEYOND_CACHES
    if beyond_caches and cell.num_devices > 1 and (peak := memory_bandwidth(device_kind)):
        bounds.append(_Bound(float((cell.k or 1) * (cell.payload_bytes or 0)), peak, "TB/s"))
    return max(bounds, key=lambda bound: bound.amount / bound.peak, default=None)


def _key(v: TimedVisit, foreign: bool) -> Hashable:
    """What is left out together."""
    line = v.visit
    return (line.sweep, line.launch, line.round, *((line.program,) if foreign else ()))


def _by_cell(rates: Sequence[_Rate]) -> dict[Cell, list[_Rate]]:
    found: dict[Cell, list[_Rate]] = {}
    for rate in rates:
        found.setdefault(rate.visit.cell, []).append(rate)
    return found


def _words(rates: Sequence[_Rate]) -> str:
    _, rate, bound = max(rates, key=lambda one: one.rate / one.bound.peak)
    return f"{rate / 1e12:,.4g} {bound.unit} on one device, which can do {bound.peak / 1e12:,.4g} at most"
