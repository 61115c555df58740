"""The answer where only collectives were timed, no program: parameters and laws, and a reason for everything else."""

from __future__ import annotations

from .answer import (
    Answer,
    BreakEven,
    BreakEvenCount,
    CommunicationBound,
    Estimate,
    Growth,
    Meaning,
)
from .curves import collective_curves
from .launches import LaunchTable
from .lawfit import LawFits, fit_laws
from .optimum import no_optimum

REASON = "only collectives were measured, no program that uses them"


def collectives_only(
    table: LaunchTable, *, interval_method: str, tolerance: float, confidence: float, margin: float
) -> Answer:
    """Fit the laws to chains of collectives; ``sizes`` are their message bytes.

    Raises
    ------
    ValueError
        If the table holds no chain of collectives.
    """
    cells = table.select("chain")
    if not cells:
        raise ValueError(f"{table.source}: neither a program nor a collective was measured.")
    strategy = cells[0].strategy
    fits = fit_laws(table, strategy, confidence=confidence, margin=margin)
    counts = table.devices("chain", strategy)
    sizes = tuple(sorted({cell.payload_bytes or 0 for cell in cells}))
    size, largest = sizes[-1], counts[-1]
    return Answer(
        workload=table.plan.workload,
        strategy=strategy,
        unit="B",
        objective="time",
        path="strong",
        reference_devices=counts[0],
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
        growth_range=_growth(counts, size),
        growth_step=None,
        causes={},
        input_transfer=(),
        collective_cost=(),
        communication_bound=_undefined(size, largest),
        optimal_devices=no_optimum(size, tolerance, REASON),
        optimal_by_size={},
        break_even=BreakEven(size=size, first=_no_count(), last=_no_count(), sizes=()),
        weak_efficiency=(),
        parameters=dict(fits.parameters),
        laws=tuple(fits.reports),
        predictions=(),
        curves=collective_curves(table, strategy, confidence),
        warnings=_warnings(table, fits),
    )


def _growth(counts: tuple[int, ...], size: int) -> Growth | None:
    if len(counts) < 2:
        return None
    nothing = Estimate(reason=REASON)
    return Growth(from_devices=counts[0], to_devices=counts[-1], size=size, latency_s=nothing, undecided=REASON)


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


def _warnings(table: LaunchTable, fits: LawFits) -> tuple[str, ...]:
    found = ["synthetic data: made by the simulator, not measured"] if table.synthetic else []
    return (*found, REASON, *fits.left_out)
