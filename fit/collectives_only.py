"""The answer where only collectives were timed, no program: parameters and laws, and a reason for everything else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec

from ..data.store import RecordError
from .answer import (
    Answer,
    BreakEven,
    BreakEvenCount,
    CommunicationBound,
    Estimate,
    Growth,
    Meaning,
)
from .boundary import with_p_zero
from .breaks import break_warnings, breaks, reject_single_laws, why_not_sought
from .collective_predictions import collective_predictions
from .curves import collective_curves
from .guards import times_of_other_work
from .identifiability import unidentified
from .launches import LaunchTable
from .lawfit import LawFits, fit_laws
from .objective import Objective
from .optimum import no_optimum
from .question import QuestionError, check_largest, check_reference, check_size, check_strategy

FALLS = 0.25
"""A collective's time that falls by more than this share from one count to a larger one shows other links."""

REASON = "only collectives were measured, no program that uses them"


def collectives_only(
    table: LaunchTable,
    *,
    strategy: str | None = None,
    size: int | None = None,
    objective: Objective | None = None,
    reference: int | None = None,
    interval_method: str,
    max_devices: int | None = None,
    tolerance: float,
    confidence: float,
    margin: float,
) -> Answer:
    """Fit the laws to chains of collectives; ``sizes`` are their message bytes.

    Parameters
    ----------
    strategy : default: the first of the table
    size : message bytes; default: the largest measured
    max_devices : largest count to predict; default: the largest measured

    Raises
    ------
    RecordError
        If the table holds no chain of collectives.
    QuestionError
        If the strategy, size or reference count was not measured, ``max_devices`` lies below the reference, or the
        throughput is asked for, which only a program has.
    """
    cells = table.select("chain")
    if not cells:
        failed = next((f for f in table.failures if f.cell is not None and f.cell.role == "workload"), None)
        why = f"; it failed (first: {failed.cell}: {failed.error}: {failed.message})" if failed else ""
        raise RecordError(f"{table.source}: no cell of a workload was measured, nor a collective{why}.")
    strategy = check_strategy(tuple(dict.fromkeys(cell.strategy for cell in cells)), strategy)
    counts = table.devices("chain", strategy)
    sizes = tuple(sorted({cell.payload_bytes or 0 for cell in cells if cell.strategy == strategy}))
    size, reference = check_size(sizes, size), check_reference(counts, reference)
    largest = check_largest(counts, reference, max_devices)
    if objective == "throughput":
        raise QuestionError(f"the objective cannot be throughput: {REASON}, and only a program does work.")
    borders = breaks(table, strategy, confidence=confidence)
    fits = fit_laws(table, strategy, confidence=confidence, margin=margin)
    falls = _falls(table, strategy, margin)
    if falls is not None and falls.payload == sizes[-1]:
        fits = _reject_unjudged(fits, falls)
    fits = reject_single_laws(fits, borders)
    named = times_of_other_work(table, strategy, largest)
    return Answer(
        workload=table.plan.workload,
        strategy=strategy,
        unit="B",
        objective="time",
        path="strong",
        reference_devices=reference,
        largest_devices=largest,
        devices=counts,
        sizes=sizes,
        size=size,
        confidence=confidence,
        interval_method=interval_method,
        num_launches=table.num_launches if table.replicated else None,
        num_rounds=sum(block.shape[1] for block in table.rounds_s) or None,
        visible_devices=table.visible_devices,
        cores=table.cores,
        platform=table.platform,
        shared_resource=False,
        synthetic=table.synthetic,
        verdict="undecided",
        verdict_reason=REASON,
        confounded_with=(),
        collectives=None,
        growth={},
        growth_range=_growth(reference, largest, size),
        growth_step=None,
        causes={},
        input_transfer=(),
        collective_cost=(),
        communication_bound=_undefined(size, largest),
        optimal_devices=no_optimum(size, tolerance, REASON),
        optimal_by_size={},
        break_even=BreakEven(size=size, first=_no_count(), last=_no_count(), sizes=()),
        weak_efficiency=(),
        parameters=with_p_zero(table, strategy, fits),
        parameters_of=fits.parameters_of,
        laws=tuple(fits.reports),
        predictions=collective_predictions(
            table, strategy, fits, max_devices=max_devices, confidence=confidence, margin=margin
        ),
        curves=collective_curves(table, strategy, confidence),
        warnings=(*(one.text for one in named), *_warnings(table, strategy, fits, falls), *break_warnings(borders)),
        breaks=borders,
        breaks_not_sought=why_not_sought(table, strategy),
        unidentified=unidentified(table, strategy, fits),
        named_warnings=named,
    )


def _growth(reference: int, largest: int, size: int) -> Growth | None:
    if largest == reference:
        return None
    nothing = Estimate(reason=REASON)
    return Growth(from_devices=reference, to_devices=largest, size=size, latency_s=nothing, undecided=REASON)


def _undefined(size: int, num_devices: int) -> CommunicationBound:
    meaning = Meaning(estimate=None, interval=None, p_above=None, p_below=None, holds="undefined", reason=REASON)
    return CommunicationBound(
        size=size,
        num_devices=num_devices,
        share=meaning,
        exceeds_compute=meaning,
        growth=meaning,
        no_gain_even_with_free_dispatch=meaning,
        adjusted=False,
    )


def _no_count() -> BreakEvenCount:
    return BreakEvenCount(estimate=None, set=(), outcome="undecided", reason=REASON)


def _warnings(table: LaunchTable, strategy: str, fits: LawFits, falls: _Fall | None) -> tuple[str, ...]:
    found = ["synthetic data: made by the simulator, not measured"] if table.synthetic else []
    return (*found, REASON, *_one_payload(table, strategy, fits), *([falls.words] if falls else []), *fits.left_out)


def _one_payload(table: LaunchTable, strategy: str, fits: LawFits) -> list[str]:
    """Say what stands for the whole where a single payload cannot tell latency from bandwidth."""
    payloads = {cell.payload_bytes for cell in table.select("chain", strategy)}
    found = ((name, fits.parameters.get(name)) for name in ("alpha", "beta"))
    shown = [name for name, value in found if value and value.estimate and not value.upper_limit]
    if len(payloads) != 1 or len(shown) != 1:
        return []
    whole = "latency, and beta is taken as 0" if "alpha" in shown else "bandwidth, and alpha is taken as 0"
    return [
        f"one payload hardly tells latency from bandwidth: the times follow the {whole}; another payload would tell"
    ]


@dataclass(frozen=True, kw_only=True)
class _Fall:
    """A payload that takes much less time on more devices: no law with one alpha and one beta allows that."""

    payload: int
    slowest: int
    fastest: int
    ratio: float

    @property
    def words(self) -> str:
        """What a reader must know of it."""
        return (
            f"{self.payload} B take {self.ratio:.1f} times as long on {self.slowest} devices as on {self.fastest}: the "
            "bandwidth is not constant over these counts (links or nodes that more devices bring, another algorithm), "
            "so no alpha and beta of one law describe them; take the rows of one layout with --where, devices per node "
            "alike"
        )


def _falls(table: LaunchTable, strategy: str, margin: float) -> _Fall | None:
    """The largest payload whose time falls; None where none does.

    A law whose time cannot fall errs at one of two counts by the root of their ratio at least. Of the largest payload
    that is held against ``margin`` where the time falls from count to count; single times of small ones are noisy.
    """
    times: dict[int, dict[int, float]] = {}
    for cell, seconds in zip(table.cells, table.latency_s, strict=True):
        if cell.role == "chain" and cell.strategy == strategy and cell.k == 1 and cell.num_devices > 1:
            times.setdefault(cell.payload_bytes or 0, {})[cell.num_devices] = float(seconds.mean())
    for payload, by_count in sorted(times.items(), reverse=True):
        slowest = max(by_count, key=by_count.__getitem__)
        later = sorted(n for n in by_count if n > slowest)
        if not later:
            continue
        fastest = min(later, key=by_count.__getitem__)
        way = [by_count[n] for n in (slowest, *later) if n <= fastest]
        steady = payload == max(times) and len(way) > 2 and all(a > b for a, b in pairwise(way))
        ratio = way[0] / way[-1]
        if ratio > 1 / (1 - FALLS) or (steady and ratio > (1 + margin) ** 2):
            return _Fall(payload=payload, slowest=slowest, fastest=fastest, ratio=ratio)
    return None


def _reject_unjudged(fits: LawFits, falls: _Fall) -> LawFits:
    """Keep no law that was judged on nothing left out and whose time cannot fall; a free time for each count can."""
    unable = {law.name for law in fits.laws if law.law.all_reduce != "free"}
    reason = f"cannot fall as the times do from {falls.slowest} to {falls.fastest} devices"
    return replace(
        fits,
        kept=tuple(law for law in fits.kept if law.discrepancy is not None or law.name not in unable),
        reports=tuple(
            msgspec.structs.replace(one, judged=True, kept=False, reason=reason)
            if one.name in unable and not one.judged
            else one
            for one in fits.reports
        ),
    )
