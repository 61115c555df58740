"""Differences paired by round, by t test, sign test and signed ranks: do they say the same?

The replicate is the launch here too, by the median of its rounds. Rounds inside a launch are not independent: where
cells differ between launches as much as between rounds, ten rounds in each of six launches show a difference that does
not exist in 28 % of cases by the sign test over all rounds and in 38 % by signed ranks; over launches in 3 %.
"""

from __future__ import annotations

import msgspec
import numpy as np

from ..model.cell import Cell
from .answer import Estimate, PairedTests
from .intervals import t_estimate, why_no_interval
from .launches import LaunchTable
from .objective import Costs
from .ranks import hodges_lehmann, sign_p

DIFFERENCES = {"communication": ("workload", "local"), "compute": ("local", "null")}
SPEEDUP = "speedup"
SAID = {1: "above", -1: "below", 0: "no difference from"}


def paired_tests(table: LaunchTable, costs: Costs, size: int, *, confidence: float = 0.95) -> tuple[PairedTests, ...]:
    """Test communication, compute and speedup at the largest count asked for.

    Parameters
    ----------
    table : LaunchTable
    costs : Costs
        The strategy, and objective and reference count of the speedup.
    size : int
        Entry of the plan's size axis.

    Returns
    -------
    tuple of PairedTests
        *communication*: workload less local, *compute*: local less null, seconds; *speedup*: the reference count's cost
        over the largest count's. Those whose cells were measured; none where nothing says what a launch is.
    """
    plan, strategy = table.plan, costs.strategy
    counts = [n for n in table.devices("workload", strategy) if costs.reference <= n <= costs.max_devices]

    def rounds(role: str, num_devices: int) -> list[np.ndarray] | None:
        cell = Cell(role=role, strategy=strategy, num_devices=num_devices, size=plan.global_size(num_devices, size))
        return [block[table.cells.index(cell)] for block in table.rounds_s] if cell in table.cells else None

    found = []
    for name, roles in DIFFERENCES.items():
        first, second = (rounds(role, counts[-1]) for role in roles)
        if first and second:
            found.append(_tests(name, [a - b for a, b in zip(first, second, strict=True)], confidence))
    reference, largest = (rounds("workload", n) for n in (costs.reference, counts[-1]))
    if counts[-1] > costs.reference and reference and largest:
        units = costs.at(counts[-1], size).units / costs.at(costs.reference, size).units
        logs = [np.log(a * units / b) for a, b in zip(reference, largest, strict=True)]
        found.append(_tests(SPEEDUP, logs, confidence, ratio=True))
    return tuple(found)


def _tests(name: str, values: list[np.ndarray], confidence: float, *, ratio: bool = False) -> PairedTests:
    """Test values of each launch's rounds against 0; with ``ratio`` they are logarithms, and printed without."""
    launches = [found for launch in values if (found := launch[np.isfinite(launch)]).size]
    rounds = np.concatenate(launches) if launches else np.empty(0)
    means, medians = (np.array([f(launch) for launch in launches]) for f in (np.mean, np.median))
    t, ranks, p = t_estimate(means, confidence), hodges_lehmann(medians, confidence), sign_p(medians)
    agree, reason = None, why_no_interval(means) or ranks.reason
    if reason is None:
        sign = int(np.sign(np.sum(np.sign(medians)))) if p is not None and p < 1 - confidence else 0
        said = {"the t test": _side(t), "the sign test": sign, "Hodges-Lehmann": _side(ranks)}
        agree = len(set(said.values())) == 1
        if not agree:
            words = (f"{test} says {SAID[side]} {1 if ratio else 0}" for test, side in said.items())
            reason = f"the tests disagree: {', '.join(words)}"
    return PairedTests(
        name=name,
        unit="ratio" if ratio else "s",
        rounds=rounds.size,
        positive=int((rounds > 0).sum()),
        launches=len(launches),
        sign_p=p,
        hodges_lehmann=_exponential(ranks) if ratio else ranks,
        t=_exponential(t) if ratio else t,
        agree=agree,
        reason=reason,
    )


def _side(value: Estimate) -> int:
    """On which side of 0 the interval lies; 0 where it holds 0."""
    lower, upper = value.interval or (None, None)
    return int(lower is not None and lower > 0) - int(upper is not None and upper < 0)


def _exponential(value: Estimate) -> Estimate:
    def exponential(number: float | None) -> float | None:
        return None if number is None else float(np.exp(number))

    ends = None if value.interval is None else (exponential(value.interval[0]), exponential(value.interval[1]))
    return msgspec.structs.replace(value, estimate=exponential(value.estimate), interval=ends)
