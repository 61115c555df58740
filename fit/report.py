"""Everything the data say about one strategy, assembled from the fits into one ``Answer``."""

from __future__ import annotations

import textwrap
from typing import cast

from .adequacy import MIN_COUNTS
from .answer import Answer, NamedWarning
from .attribution import UNPLACED, counts_at, parts
from .boundary import with_p_zero
from .breakeven import break_even
from .breaks import break_warnings, breaks, reject_single_laws, why_not_sought
from .chain_parameters import with_chains
from .checks.diagnostics import table_diagnostics
from .collective_cost import collective_costs, workload_facts
from .collectives_only import collectives_only
from .communication import communication_bound
from .crowding import full_crowd
from .curves import program_curves
from .dispatch_bound import dispatch_bound
from .growth import growth_step, headline_growth
from .guards import guard_warnings
from .identifiability import unidentified
from .input_transfer import input_transfers
from .intervals import MIN_LAUNCHES
from .launches import LaunchTable
from .law_share import law_share
from .lawfit import LawFits, fit_laws
from .no_difference import MARGIN, no_difference
from .objective import Costs, Objective
from .optimum import optimum
from .overlap import overlaps
from .paired import paired_tests
from .predictions import predictions
from .question import check_largest, check_reference, check_size, check_strategy
from .queued import queued_law
from .scaling_numbers import scaling_numbers
from .separation import separating_devices
from .slope import device_slope
from .surroundings import named_warnings
from .traced import traced_calls, why_not_traced
from .verdict import verdict
from .weak import weak_efficiency

MOST_QUOTED = 120
"""Characters of a failure's reason among the warnings; the record holds all of it."""


def answer(
    table: LaunchTable,
    *,
    strategy: str | None = None,
    size: int | None = None,
    objective: Objective | None = None,
    reference: int | None = None,
    max_devices: int | None = None,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    margin: float = 0.10,
    equivalence: float = MARGIN,
    seed: int = 0,
) -> Answer:
    """Fit a table and answer every question about one strategy.

    Parameters
    ----------
    table : LaunchTable
    strategy : default: the plan's first
    size : headline entry of the plan's size axis (S, or per device on the weak path); default: the largest measured
    objective : ``time`` or ``throughput``; default: the plan's
    reference : count n0 that others are compared with; default: the smallest measured
    max_devices : largest count asked for; default: the largest measured
    tolerance : share above the least cost that ``optimal_devices.within_tolerance`` may have
    confidence : of every interval and set
    margin : held-out error below which a law is adequate
    equivalence : share by which costs may differ that count as the same
    seed : of the resampling

    Raises
    ------
    QuestionError
        If the strategy, size or reference count was not measured, or ``max_devices`` lies below the reference, or of
        collectives alone more is asked than their time.
    """
    if not table.strategies:
        return collectives_only(
            table,
            strategy=strategy,
            size=size,
            objective=objective,
            reference=reference,
            interval_method=_interval_method(table),
            max_devices=max_devices,
            tolerance=tolerance,
            confidence=confidence,
            margin=margin,
        )
    strategy = check_strategy(table.strategies, strategy)
    sizes, counts = table.sizes("workload", strategy), table.devices("workload", strategy)
    size = check_size(sizes, size)
    reference = check_reference(counts, reference)
    largest = check_largest(counts, reference, max_devices)
    objective = objective or cast("Objective", table.plan.objective)
    borders = breaks(table, strategy, confidence=confidence, seed=seed)
    fits = reject_single_laws(fit_laws(table, strategy, confidence=confidence, margin=margin), borders)
    costs = {"objective": objective, "reference": reference, "max_devices": max_devices}
    bounds = {"reference": reference, "largest": largest, "fits": fits, "confidence": confidence}
    decision = verdict(table, strategy, size=size, objective=objective, **bounds)
    named = _doubts_first((*guard_warnings(table, strategy, largest), *named_warnings(table, strategy, largest)))
    growth = headline_growth(table, strategy, size, **bounds)
    best = {
        s: optimum(table, strategy, fits, axis_size=s, tolerance=tolerance, confidence=confidence, seed=seed, **costs)
        for s in sizes
    }
    facts = workload_facts(table, strategy, largest, size)
    compared = Costs.of(table, strategy, fits, **costs)
    return Answer(
        workload=table.plan.workload,
        strategy=strategy,
        unit=table.plan.unit,
        objective=objective,
        path=cast("str", table.plan.path),  # pyright: ignore[reportArgumentType]
        reference_devices=reference,
        largest_devices=largest,
        devices=counts,
        sizes=sizes,
        size=size,
        confidence=confidence,
        interval_method=_interval_method(table),
        num_launches=table.num_launches if table.replicated else None,
        num_rounds=sum(block.shape[1] for block in table.rounds_s) or None,
        visible_devices=table.visible_devices,
        cores=table.cores,
        platform=table.platform,
        shared_resource=decision.shared_resource,
        synthetic=table.synthetic,
        verdict=decision.verdict,
        verdict_reason=decision.reason,
        confounded_with=decision.confounded_with,
        collectives=None if facts is None else facts.collectives,
        growth={} if growth is None else growth.shares,
        growth_range=growth,
        growth_step=growth_step(table, strategy, size, fits=fits, confidence=confidence),
        causes={
            n: parts(table, strategy, n, size, fits=fits, confidence=confidence)
            for n in counts_at(table, strategy, size, largest=largest)
        },
        input_transfer=input_transfers(table, size=size, largest=largest, confidence=confidence),
        collective_cost=collective_costs(table, strategy, size, largest=largest, confidence=confidence),
        communication_bound=communication_bound(table, strategy, size=size, **bounds),
        optimal_devices=best[size],
        optimal_by_size=best,
        break_even=break_even(table, strategy, fits, axis_size=size, confidence=confidence, **costs),
        weak_efficiency=weak_efficiency(table, strategy, reference=reference, confidence=confidence),
        parameters=with_chains(
            table, strategy, fits, with_p_zero(table, strategy, fits, seed=seed), confidence=confidence
        ),
        parameters_of=fits.parameters_of,
        laws=tuple(fits.reports),
        predictions=predictions(table, strategy, fits, confidence=confidence, **costs),
        curves=program_curves(table, confidence),
        warnings=(
            *_warnings(table, strategy, fits, reference, largest, named),
            *_beyond_what_was_judged(fits, counts[-1], max_devices),
            *break_warnings(borders),
        ),
        breaks=borders,
        breaks_not_sought=why_not_sought(table, strategy),
        overlap=overlaps(table, strategy, size, largest=largest, confidence=confidence),
        unidentified=unidentified(table, strategy, fits),
        diagnostics=table_diagnostics(table, strategy, fits, confidence=confidence),
        slope=device_slope(table, strategy, size, reference=reference, largest=largest, confidence=confidence),
        separating_devices=separating_devices(table, strategy, fits),
        scaling_numbers=scaling_numbers(table, strategy, fits, axis_size=size, confidence=confidence),
        dispatch_bound=dispatch_bound(table, strategy, size, **bounds),
        paired=paired_tests(table, compared, size, confidence=confidence),
        no_difference=no_difference(compared, size, margin=equivalence, confidence=confidence),
        traced=traced_calls(table, strategy, largest=largest, confidence=confidence),
        queued=queued_law(table, strategy, size, largest=largest, confidence=confidence),
        law_share=law_share(table, strategy, largest, size, fits, confidence=confidence),
        named_warnings=named,
        shared_cores=full_crowd(table) if decision.shared_resource else None,
        doubts=() if decision.verdict == "undecided" else tuple(one.name for one in named if one.doubts_verdict),
    )


def _doubts_first(named: tuple[NamedWarning, ...]) -> tuple[NamedWarning, ...]:
    """Those that may change the verdict first, else in their order."""
    return tuple(sorted(named, key=lambda one: not one.doubts_verdict))


def _interval_method(table: LaunchTable) -> str:
    if not table.replicated:
        return "residuals, replication unknown"
    if table.num_launches < MIN_LAUNCHES:
        return "none: fewer than three launches"
    return f"Student t over {table.num_launches} launches"


def _warnings(
    table: LaunchTable,
    strategy: str,
    fits: LawFits,
    reference: int,
    largest: int,
    named: tuple[NamedWarning, ...],
) -> tuple[str, ...]:
    """What a reader must know beside the numbers, most important first."""
    found = []
    if table.synthetic:
        found.append("synthetic data: made by the simulator, not measured")
    found += [f"{one.name}: {one.text}" for one in named if one.doubts_verdict]
    found += table.assumed
    if fewer := [str(n) for n in table.devices("workload", strategy) if n < reference]:
        found.append(f"counts below the reference of {reference} are left out: measured were {', '.join(fewer)}")
    if table.replicated and table.num_launches < MIN_LAUNCHES:
        found.append(f"{table.num_launches} complete launches: no intervals; measure at least {MIN_LAUNCHES}")
    if table.partial_launches:
        found.append(f"no intervals of times: {table.partial_launches}")
    elif table.foreign and not table.replicated:
        found.append(
            "no intervals of times: nothing says which rows come from independent runs; where a column does, name it "
            "with --columns launch=NAME (three runs or more, each with every cell)"
        )
    found += _about_the_program(table, strategy, largest)
    if table.refused:
        found.append(f"no local control: {table.refused}")
    if table.excluded_launches:
        found.append(f"{table.excluded_launches} launches that do not hold every cell once are left out")
    lost = {
        str(f.cell): f"{f.error}: {textwrap.shorten(f.message, MOST_QUOTED, placeholder=' ...')}"
        for f in table.failures
        if f.cell is not None and f.stage in ("visit", "compile", "build")
    }
    found += [f"failed while measuring: {cell} ({reason})" for cell, reason in sorted(lost.items())]
    found += why_not_traced(table)
    if not fits.kept:
        found.append("no law predicts held-out cells well enough and as well as the trend: predictions are the trend's")
    found += [f"{one.name}: {one.text}" for one in named if not one.doubts_verdict]
    return tuple(found)


def _beyond_what_was_judged(fits: LawFits, last: int, max_devices: int | None) -> list[str]:
    """A law that errs little on sizes left out may still be wrong about counts beyond the measured ones."""
    kept = {law.name for law in fits.kept}
    judged = any(one.held_out_count is not None for one in fits.reports if one.name in kept)
    if max_devices is None or max_devices <= last or not kept or judged:
        return []
    return [
        f"beyond {last} devices the laws were judged on sizes alone, and their intervals hold only if one of them goes "
        f"on to hold: leaving a count out takes {MIN_COUNTS + 1} counts or more"
    ]


def _about_the_program(table: LaunchTable, strategy: str, largest: int) -> list[str]:
    """What the compiled programs show that makes their times mean less than they seem to."""
    cells = [c for c in table.select("workload", strategy) if c.num_devices <= largest]
    known = [(c, facts) for c in cells if (facts := table.facts.get(c)) is not None]
    found = []
    if idle := [(c, f.devices_used) for c, f in known if f.devices_used and f.devices_used < c.num_devices]:
        cell, used = max(idle, key=lambda pair: pair[0].num_devices)
        found.append(
            f"on {cell.num_devices} devices the compiled program uses {used}: nothing it is given lies on the others; "
            "place its arguments over the mesh (jax.device_put with a NamedSharding)"
        )
    if any(not f.inputs_in_place for _, f in known) and not strategy.endswith(UNPLACED):
        found.append(
            "the arguments did not lie where the compiled program wants them; they were placed before timing, and "
            "calls with arguments as they were take longer (input transfer)"
        )
    return found
