"""Twelve rules for reporting parallel performance: which of them a sweep and its answer meet, and by what.

After T. Hoefler, R. Belli, Scientific Benchmarking of Parallel Computing Systems, SC '15,
doi:10.1145/2807591.2807644. The rules are put in our own words.
"""

from __future__ import annotations

import msgspec

from ...data.schema import Plan
from ...data.store import Record
from ..answer import Diagnostic
from ..intervals import MIN_LAUNCHES
from ..launches import LaunchTable

SETUP = ("platform", "device_kind", "visible_devices", "cores", "python", "jax", "jaxlib", "cpu", "system", "xla_flags")
"""Fields of a launch that describe machine and software; ``xla_flags`` may be absent because none were set."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule: ``met`` is None where the record cannot show it (``words`` says what is left to the author)."""

    number: int
    title: str
    met: bool | None
    words: str


def rules(record: Record, table: LaunchTable, diagnostics: tuple[Diagnostic, ...]) -> tuple[Rule, ...]:
    """Check the twelve rules.

    Parameters
    ----------
    record, table : the same measurements
    diagnostics : of them, for the rules that ask whether an assumption was checked

    Returns
    -------
    tuple of Rule, in order
    """
    return (
        _base_case(table),
        _subset(table),
        _costs(table),
        _ratios(table),
        _intervals(table),
        _normality(table, diagnostics),
        _comparison(table),
        _centre(table, diagnostics),
        _setup(record),
        _timing(record, table),
        _bounds(table),
        _plots(table),
    )


def _base_case(table: LaunchTable) -> Rule:
    counts = table.devices()
    title = "a speedup names its base case and the base's absolute time"
    if len(counts) < 2:
        return Rule(number=1, title=title, met=None, words="one device count only: there is no speedup")
    words = f"base: the same program on {counts[0]} device{'s' if counts[0] > 1 else ''}, its time in seconds beside it"
    if counts[0] > 1:
        return Rule(number=1, title=title, met=False, words=f"{words}; a single device was not measured")
    return Rule(number=1, title=title, met=True, words=f"{words}; not a best serial program, so say so")


def _subset(table: LaunchTable) -> Rule:
    title = "a reason for every part left out: benchmarks, applications, resources"
    lost = sorted({str(failure.cell) for failure in table.failures if failure.cell is not None})
    idle = (table.visible_devices or 0) - max(table.devices() or (0,))
    said = [*(f"failed: {cell}" for cell in lost[:3]), *([f"{idle} visible devices never used"] if idle > 0 else [])]
    said += [f"{table.excluded_launches} launches left out"] if table.excluded_launches else []
    words = "; ".join(said) or "no cell failed, no launch was left out"
    return Rule(number=2, title=title, met=None, words=f"{words}; why these counts and sizes is yours to say")


def _costs(table: LaunchTable) -> Rule:
    title = "costs by the arithmetic mean, rates by the harmonic mean"
    words = "a cell's time in a launch is the arithmetic mean over rounds of visit medians"
    if not table.replicated:
        words = "a cell's time is the arithmetic mean over its repeats"
    else:
        words += "; over launches the mean of logs, a typical launch, not a total"
    return Rule(number=3, title=title, met=True, words=f"{words}; rates are work over that time, never averaged")


def _ratios(table: LaunchTable) -> Rule:
    title = "no summary of ratios where their costs are known; else the geometric mean"
    words = (
        "speedups and efficiencies are ratios of summarised times"
        if not table.replicated
        else ("a ratio is formed inside each launch, where both times are known, and averaged as a geometric mean")
    )
    return Rule(number=4, title=title, met=True, words=words)


def _intervals(table: LaunchTable) -> Rule:
    title = "say whether values are deterministic; if not, give confidence intervals"
    if not table.replicated:
        words = "nothing says which rows are independent runs: no interval of a time (--columns launch=NAME gives one)"
        if table.partial_launches:
            words = f"no interval of a time: {table.partial_launches}"
        return Rule(number=5, title=title, met=False, words=words)
    if table.num_launches < MIN_LAUNCHES:
        words = f"{table.num_launches} launch{'es' if table.num_launches > 1 else ''}: no interval; three are the least"
        return Rule(number=5, title=title, met=False, words=words)
    words = f"not deterministic; Student t over {table.num_launches} launches on every number"
    return Rule(number=5, title=title, met=True, words=words)


def _normality(table: LaunchTable, diagnostics: tuple[Diagnostic, ...]) -> Rule:
    title = "no normal distribution assumed without a check"
    if not table.replicated or table.num_launches < MIN_LAUNCHES:
        return Rule(number=6, title=title, met=None, words="no interval, so no distribution is assumed")
    asked = ("normal launches", "one population", "drift over launches", "replicates differ")
    found = {one.name: one for one in diagnostics if one.name in asked}
    failed = [one.name for one in found.values() if one.passed is False]
    unknown = [one.name for one in found.values() if one.passed is None]
    words = "t is used on means over rounds, of log times; checked: normal launches, one population, drift, copies"
    if failed:
        return Rule(number=6, title=title, met=False, words=f"{words}; failed: {', '.join(failed)}")
    if unknown or not found:
        return Rule(number=6, title=title, met=None, words=f"{words}; could not run: {', '.join(unknown) or 'any'}")
    return Rule(number=6, title=title, met=True, words=words)


def _comparison(table: LaunchTable) -> Rule:
    title = "compare by a sound test, not by two averages"
    if not table.replicated or table.num_launches < MIN_LAUNCHES:
        return Rule(number=7, title=title, met=False, words="without three launches nothing is tested")
    words = "differences are paired by launch, t over launches, Holm within each family of questions"
    return Rule(number=7, title=title, met=True, words=words)


def _centre(table: LaunchTable, diagnostics: tuple[Diagnostic, ...]) -> Rule:
    title = "ask whether mean or median is what matters; a worst case needs percentiles"
    split = next((one for one in diagnostics if one.name == "one population" and one.passed is False), None)
    if split is not None:
        words = f"{split.where}: {split.words}; one number describes neither"
        return Rule(number=8, title=title, met=False, words=words)
    words = "medians of calls, for the time of a typical call; "
    words += (
        "the raw calls are kept, so that percentiles can be taken"
        if table.replicated and not table.foreign
        else ("percentiles only if the file holds single calls")
    )
    return Rule(number=8, title=title, met=None, words=f"{words}; whether tails matter is yours to say")


def _setup(record: Record) -> Rule:
    title = "all factors, their levels and the whole setup on record"
    if not record.launches or record.sweeps[0].foreign:
        words = "the file names no machine and no software; say them beside the numbers"
        return Rule(number=9, title=title, met=False, words=words)
    if any(sweep.synthetic for sweep in record.sweeps):
        return Rule(number=9, title=title, met=None, words="simulated: there is no machine")
    needed = [name for name in SETUP if name != "xla_flags"]
    missing = [name for name in needed if any(getattr(launch, name) is None for launch in record.launches)]
    words = f"each launch records {len(needed) - len(missing)} of {len(needed)} facts of machine and software"
    varied = [name for name in needed if len({getattr(launch, name) for launch in record.launches}) > 1]
    if missing:
        words += f"; missing: {', '.join(missing)}"
    if varied:
        words += f"; differs between launches: {', '.join(varied)}"
    return Rule(number=9, title=title, met=not missing and not varied, words=f"{words}; plan, seed and order too")


def _timing(record: Record, table: LaunchTable) -> Rule:
    title = "how parallel time is measured, synchronised and summarised"
    if table.foreign:
        words = "the file does not say what the clock enclosed, nor how processes were summarised"
        return Rule(number=10, title=title, met=False, words=words)
    plan = record.sweeps[0].plan
    words = "simulated calls" if table.synthetic else f"{_clocked(plan)}; {_warmups(plan)}, then the median"
    return Rule(number=10, title=title, met=not table.synthetic or None, words=words)


def _clocked(plan: Plan) -> str:
    if plan.processes == 1:
        return (
            "one process drives all devices: a call is timed until its results are ready on every device, so it is the "
            "slowest device's time; no barrier"
        )
    return (
        f"{plan.processes} processes pass a barrier before each call; a call is timed until its results are ready in "
        "each of them, and the longest counts; every process's time and the skew of their starts are kept"
    )


def _warmups(plan: Plan) -> str:
    return "warm-ups by a trend test" if plan.warmups is None else f"{plan.warmups} warm-ups a visit"


def _bounds(table: LaunchTable) -> Rule:
    title = "a bound or an ideal beside the measured numbers"
    has_local = bool(table.select("local", None))
    words = "ideal scaling is drawn"
    if has_local:
        return Rule(
            number=11, title=title, met=True, words=f"{words}, and the same work without communication was measured"
        )
    words += "; no control without communication was measured, so nothing bounds what removing it could give"
    return Rule(number=11, title=title, met=True, words=words)


def _plots(table: LaunchTable) -> Rule:
    title = "enough in a plot to read it; lines only where values between them mean something"
    words = "points with intervals; a line is the law, drawn solid only inside the measured counts"
    return Rule(number=12, title=title, met=True if len(table.devices()) > 1 else None, words=words)
