"""The answer where only collectives were timed, no program: parameters and laws, and a reason for everything else."""

from __future__ import annotations

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
from .guards import impossible_rates
from .identifiability import unidentified
from .launches import LaunchTable
from .lawfit import LawFits, fit_laws
from .optimum import no_optimum

FALLS = 0.25
"""A collective's time that falls by more than this share from one count to a larger one shows other links."""

REASON = "only collectives were measured, no program that uses them"


def collectives_only(
    table: LaunchTable,
    *,
    interval_method: str,
    max_devices: int | None = None,
    tolerance: float,
    confidence: float,
    margin: float,
) -> Answer:
    """Fit the laws to chains of collectives; ``sizes`` are their message bytes.

    Parameters
    ----------
    max_devices : largest count to predict; default: the largest measured

    Raises
    ------
    RecordError
        If the table holds no chain of collectives.
    """
    cells = table.select("chain")
    if not cells:
        failed = next((f for f in table.failures if f.cell is not None and f.cell.role == "workload"), None)
        why = f"; it failed (first: {failed.cell}: {failed.error}: {failed.message})" if failed else ""
        raise RecordError(f"{table.source}: no cell of a workload was measured, nor a collective{why}.")
    strategy = cells[0].strategy
    borders = breaks(table, strategy, confidence=confidence)
    fits = reject_single_laws(fit_laws(table, strategy, confidence=confidence, margin=margin), borders)
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
        parameters=with_p_zero(table, strategy, fits),
        laws=tuple(fits.reports),
        predictions=collective_predictions(
            table, strategy, fits, max_devices=max_devices, confidence=confidence, margin=margin
        ),
        curves=collective_curves(table, strategy, confidence),
        warnings=(*table.impossible, *_warnings(table, strategy, fits), *break_warnings(borders)),
        breaks=borders,
        breaks_not_sought=why_not_sought(table, strategy),
        unidentified=unidentified(table, strategy, fits),
        named_warnings=impossible_rates(table),
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


def _warnings(table: LaunchTable, strategy: str, fits: LawFits) -> tuple[str, ...]:
    found = ["synthetic data: made by the simulator, not measured"] if table.synthetic else []
    return (*found, REASON, *_one_payload(table, strategy, fits), *_falling(table, strategy), *fits.left_out)


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


def _falling(table: LaunchTable, strategy: str) -> list[str]:
    """Say where a payload takes much less time on more devices: no law with one alpha and one beta allows that."""
    times: dict[int, dict[int, float]] = {}
    for cell, seconds in zip(table.cells, table.latency_s, strict=True):
        if cell.role == "chain" and cell.strategy == strategy and cell.k == 1 and cell.num_devices > 1:
            times.setdefault(cell.payload_bytes or 0, {})[cell.num_devices] = float(seconds.mean())
    for payload, by_count in sorted(times.items(), reverse=True):
        slowest = max(by_count, key=by_count.__getitem__)
        later = {n: t for n, t in by_count.items() if n > slowest}
        if later and min(later.values()) < (1 - FALLS) * by_count[slowest]:
            fastest = min(later, key=later.__getitem__)
            return [
                f"{payload} B take {by_count[slowest] / later[fastest]:.1f} times as long on {slowest} devices as on "
                f"{fastest}: the bandwidth is not constant over these counts (links or nodes that more devices bring, "
                "another algorithm), so no alpha and beta of one law describe them; take the rows of one layout with "
                "--where, devices per node alike"
            ]
    return []
