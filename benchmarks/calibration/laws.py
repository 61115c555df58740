"""What rests on a law: parameters, predictions, the best count beyond the measured ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from breakeven.fit.answer import Estimate
from breakeven.fit.boundary import with_p_zero
from breakeven.fit.launches import LaunchTable
from breakeven.fit.law_share import law_share
from breakeven.fit.lawfit import LawFits, fit_laws
from breakeven.fit.objective import Costs
from breakeven.fit.optimum import optimum

from .checks import CONFIDENCE, LEVEL, Check, error, members, parameter, ratio
from .scenarios import BEYOND, COMMUNICATION, LAW_SIZES
from .sweeps import Sweep

DRAWS = 199
"""Of a bootstrap p-value: enough for its size at 5 %, and a fifth of the cost of the default."""


def laws(sweep: Sweep) -> Iterator[Check]:
    """Parameters, predictions and the best count beyond the measured ones: all that rests on a law or the trend."""
    table = sweep.part(sweep.true.sizes[-LAW_SIZES:])
    fits = fit_laws(table, sweep.strategy)
    yield from parameters(sweep, table, fits)
    strategy, last = sweep.strategy, sweep.true.devices[-1]
    between = BEYOND[-1] * round(np.sqrt(sweep.true.sizes[-2] * sweep.largest) / BEYOND[-1])
    places = [(f"{n // last} times the largest count", n, sweep.largest) for n in BEYOND]
    places += [("a size between", last, between)] if between not in sweep.true.sizes else []
    # What ``predictions`` prints, without the counts that nobody asks about here.
    costs = Costs.of(table, strategy, fits, max_devices=BEYOND[-1])
    for name, n, size in places:
        found = costs.at(n, size)
        by = "trend" if found.source == fits.baseline.name else "laws"
        latency = found.log_latency().natural(CONFIDENCE) if found.routes else Estimate()
        yield ratio("predictions", f"{name}, by {by}", latency, sweep.true.latency_s(n, size))
    if sweep.scenario.standard or sweep.scenario.collective:
        best = optimum(table, strategy, fits, axis_size=sweep.largest, max_devices=BEYOND[-1])
        times = sweep.times(costs.admissible(sweep.largest), sweep.largest)
        yield members(f"optimum up to {BEYOND[-1]}", best.set, min(times, key=times.__getitem__))


def parameters(sweep: Sweep, table: LaunchTable, fits: LawFits) -> Iterator[Check]:
    """Parameters as printed: an interval, or at 0 a one-sided limit. Communication's only under the true law.

    Where parameters are 0 in truth, the test of that; under the true law its share beside the law-free one.
    """
    true = fits.parameters_of == sweep.true.law.name
    if not sweep.true.collective_s:
        yield Check(group="parameters", quantity="of the true law", kind="choice", answered=True, holds=true)
    found_at = with_p_zero(table, sweep.strategy, fits, draws=DRAWS) if sweep.scenario.zero else fits.parameters
    for name, found in found_at.items():
        if name not in sweep.true.parameters or (name in COMMUNICATION and (not true or sweep.true.collective_s)):
            continue
        value = sweep.true.parameters[name] * sweep.scenario.mean_over_median
        yield from parameter(name, found, value)
        if value == 0 and found.p_zero is not None:
            yield error(f"parameter 0: {name}", said=True, wrong=found.p_zero < LEVEL)
    if true and not sweep.true.collective_s:
        shares = law_share(table, sweep.strategy, sweep.true.devices[-1], sweep.largest, fits)
        said = "undecided" if shares is None else shares.agree
        yield error("share by the true law: differs", said=said != "undecided", wrong=said == "no")
