"""Two sweeps side by side, or two strategies of one: what changed, cell by cell, cause by cause. Never pooled.

Sweeps have launches of their own, so their times are compared by Welch's t on the log scale; strategies of one sweep
share launches and are compared launch by launch. Cells that only one side has are named and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import numpy as np

from ...model.cell import devices
from ..answer import CAUSES, Estimate, NamedWarning
from ..attribution import attribute
from ..guards import times_of_other_work
from ..intervals import holm, t_estimate, why_no_interval
from ..lawfit import LawFits, fit_laws
from ..surroundings import named_warnings
from .machine_speed import MachineSpeed, at_one_speed, machine_speed
from .paired_line import PairedLine, paired_line
from .sides import Side, same_system, setup_differences, unlike_programs

MARGIN = 0.05
"""Times that differ by less are called the same; printed beside the answer."""

UNSTEADY = ("throttled", "other-load", "drift", "frequency", "clock-jump", "suspended", "unlike-machines")
"""States of a machine that one sweep may have met and the other not, and that its sentinel need not show."""

Change = Literal["faster", "slower", "same", "undecided"]


class CellRatio(msgspec.Struct, frozen=True, kw_only=True):
    """One cell on both sides: seconds a call, and the second's time over the first's.

    ``p``: of "they are equal", two-sided, after Holm over the workload's cells. ``change``: of the second side;
    ``same``: the ratio lies within the margin, by two one-sided tests.
    """

    num_devices: int
    size: int
    first_s: Estimate
    second_s: Estimate
    ratio: Estimate
    p: float | None
    change: Change


class CauseChange(msgspec.Struct, frozen=True, kw_only=True):
    """One cause at one cell: seconds on both sides and the second's less the first's; ``p`` after Holm."""

    cause: str
    num_devices: int
    size: int
    first_s: Estimate
    second_s: Estimate
    difference: Estimate
    p: float | None
    differs: bool | None


class ParameterChange(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter of the law fitted to both sides; SI units, ``p`` after Holm over the parameters."""

    name: str
    unit: str
    first: Estimate
    second: Estimate
    difference: Estimate
    p: float | None
    differs: bool | None


class TwoSweeps(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two sides.

    ``not_comparable``: how the compiled programs differ (collectives, bytes, work): then the ratios compare unlike
    programs. ``setup``: how plan and machine differ. ``only_first``, ``only_second``: cells the other side lacks.
    ``paired``: launches are shared. ``law``: common to both, whose ``parameters`` are compared. ``machine``: whether
    the machine itself was as fast in both, where both have a sentinel. Where it was not, a change is decided only if it
    is the same as measured and at one speed. ``warnings``: what the times of a side say against themselves, and
    what its machine was doing meanwhile.
    """

    first: str
    second: str
    unit: str
    path: Literal["strong", "weak"]
    paired: bool
    confidence: float
    margin: float
    not_comparable: tuple[str, ...]
    setup: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    cells: tuple[CellRatio, ...]
    causes: tuple[CauseChange, ...]
    law: str | None
    parameters: tuple[ParameterChange, ...]
    line: PairedLine
    outcome: Literal["decided", "undecided", "not comparable"]
    reason: str
    machine: MachineSpeed | None = None
    warnings: tuple[str, ...] = ()


class NothingInCommon(ValueError):
    """The two sides share no cell of the workload."""


def compare(first: Side, second: Side, *, paired: bool, confidence: float = 0.95, margin: float = MARGIN) -> TwoSweeps:
    """Compare two sides at the workload's common cells.

    Parameters
    ----------
    first, second : Side
        A ratio is second over first, a difference second less first.
    paired : whether both come from the same launches, in the same order
    confidence : of the intervals and, less 1, level of the tests
    margin : share within which times are the same

    Raises
    ------
    NothingInCommon
        If no cell was measured on both sides, or one sweep is strong and the other weak.
    """
    if first.table.plan.path != second.table.plan.path:
        raise NothingInCommon(
            f"{first.label} is a {first.table.plan.path} sweep and {second.label} a {second.table.plan.path} one: "
            "their sizes do not mean the same. Compare sweeps of one path."
        )
    ours, theirs = _places(first), _places(second)
    common = sorted(ours.keys() & theirs.keys(), key=lambda place: (place[1], place[0]))
    if not common:
        raise NothingInCommon(
            f"{first.label} and {second.label} share no device count and size of the workload: {_words(ours)} against "
            f"{_words(theirs)}. Measure the same --devices and --sizes."
        )
    paired = paired and first.table.replicated and second.table.replicated
    test = _Test(paired=paired, confidence=confidence)
    unlike = unlike_programs(first, second, common)
    machine = None
    if not paired and same_system(first, second):
        machine = machine_speed(first.table, second.table, confidence=confidence)
    found = _changes(first, second, common, test, margin)
    if machine is not None and machine.matters:
        tables = at_one_speed(first.table, second.table)
        one, other = (replace(side, table=table) for side, table in zip((first, second), tables, strict=True))
        found = _in_both(found, _changes(one, other, common, test, margin))
    cells, line = found.cells, found.line
    decided = line.kind != "undecided" or any(cell.change != "undecided" for cell in cells)
    return TwoSweeps(
        first=first.label,
        second=second.label,
        unit=first.table.plan.unit,
        path="weak" if first.table.plan.path == "weak" else "strong",
        paired=paired,
        confidence=confidence,
        margin=margin,
        not_comparable=unlike,
        setup=setup_differences(first, second),
        only_first=tuple(f"{devices(n)} at size {size}" for n, size in sorted(ours.keys() - theirs.keys())),
        only_second=tuple(f"{devices(n)} at size {size}" for n, size in sorted(theirs.keys() - ours.keys())),
        cells=cells,
        causes=found.causes,
        law=found.law,
        parameters=found.parameters,
        line=line,
        outcome="not comparable" if unlike else "decided" if decided else "undecided",
        reason=_reason(unlike, cells, line, machine),
        machine=machine,
        warnings=_warnings(first, second),
    )


def _warnings(first: Side, second: Side) -> tuple[str, ...]:
    """What the times of either side, and the state of its machine, say against them; what both say once."""
    ours, theirs = ({f"{one.name}: {one.text}": side.label for one in _named(side)} for side in (first, second))
    return tuple(
        words if words in ours and words in theirs else f"{label}: {words}" for words, label in (ours | theirs).items()
    )


def _named(side: Side) -> list[NamedWarning]:
    around = named_warnings(side.table, side.strategy, side.table.devices()[-1])
    unsteady = [one for one in around if one.name in UNSTEADY]
    return [*times_of_other_work(side.table, side.strategy), *unsteady]


@dataclass(frozen=True, kw_only=True)
class _Changes:
    """All that may have changed."""

    cells: tuple[CellRatio, ...]
    causes: tuple[CauseChange, ...]
    law: str | None
    parameters: tuple[ParameterChange, ...]
    line: PairedLine


def _changes(first: Side, second: Side, common: list[tuple[int, int]], test: _Test, margin: float) -> _Changes:
    law, parameters = _parameters(first, second, test)
    ours, theirs = _places(first), _places(second)
    return _Changes(
        cells=_cells(first, second, common, test, margin),
        causes=_causes(first, second, common, test),
        law=law,
        parameters=parameters,
        line=paired_line(
            {place: first.table.latency_s[ours[place]] for place in common},
            {place: second.table.latency_s[theirs[place]] for place in common},
            paired=test.paired,
            confidence=test.confidence,
        ),
    )


def _direction(one: CauseChange | ParameterChange) -> tuple[bool | None, bool]:
    """Whether it changed, and if so, whether it grew."""
    return one.differs, bool(one.differs and (one.difference.estimate or 0.0) > 0)


def _line_direction(line: PairedLine) -> tuple[str, bool, bool]:
    """The kind of line, and on which side of "nothing changed" its constant and its factor lie, if they count."""
    constant, factor = line.offset_s or line.intercept_s, line.factor or line.slope
    return (
        line.kind,
        line.kind != "proportional" and (constant.estimate or 0.0) > 0,
        line.kind != "additive" and (factor.estimate or 1.0) > 1,
    )


def _in_both(measured: _Changes, level: _Changes) -> _Changes:
    """What was measured, undecided wherever it is another change at one speed of the machine."""
    changes = {(cell.num_devices, cell.size): cell.change for cell in level.cells}
    causes = {(one.cause, one.num_devices, one.size): _direction(one) for one in level.causes}
    parameters = {one.name: _direction(one) for one in level.parameters} if measured.law == level.law else {}
    line = measured.line
    if line.kind != "undecided" and _line_direction(line) != _line_direction(level.line):
        words = "at one speed of the machine it is not the same line"
        line = msgspec.structs.replace(line, kind="undecided", words=words, offset_s=None, factor=None)
    return _Changes(
        cells=tuple(
            cell
            if changes[cell.num_devices, cell.size] == cell.change
            else msgspec.structs.replace(cell, change="undecided")
            for cell in measured.cells
        ),
        causes=tuple(
            one
            if causes.get((one.cause, one.num_devices, one.size)) == _direction(one)
            else msgspec.structs.replace(one, differs=None)
            for one in measured.causes
        ),
        law=measured.law,
        parameters=tuple(
            one if parameters.get(one.name) == _direction(one) else msgspec.structs.replace(one, differs=None)
            for one in measured.parameters
        ),
        line=line,
    )


@dataclass(frozen=True, kw_only=True)
class _Test:
    """Student t on the difference of two samples of launches: paired, or Welch's."""

    paired: bool
    confidence: float

    def difference(self, first: np.ndarray, second: np.ndarray) -> tuple[Estimate, float | None]:
        """Mean of second less first with its interval, and the two-sided p-value of "they are equal"."""
        from scipy import stats

        estimate = float(second.mean() - first.mean())
        if reason := self._why_not(first, second):
            return Estimate(estimate=estimate if np.isfinite(estimate) else None, reason=reason), None
        found = stats.ttest_rel(second, first) if self.paired else stats.ttest_ind(second, first, equal_var=False)
        low, high = found.confidence_interval(self.confidence)
        return Estimate(estimate=estimate, interval=(float(low), float(high))), float(found.pvalue)

    def within(self, first: np.ndarray, second: np.ndarray, margin: float) -> bool:
        """Whether the difference lies within ± margin, by two one-sided tests at this level."""
        from scipy import stats

        if self._why_not(first, second):
            return False
        # The interval of twice the level lies within the margin exactly when both tests reject.
        found = stats.ttest_rel(second, first) if self.paired else stats.ttest_ind(second, first, equal_var=False)
        low, high = found.confidence_interval(2 * self.confidence - 1)
        return bool(-margin < low and high < margin)

    def _why_not(self, first: np.ndarray, second: np.ndarray) -> str | None:
        if self.paired:
            return why_no_interval(second - first)
        return why_no_interval(first) or why_no_interval(second)


def _places(side: Side) -> dict[tuple[int, int], int]:
    """Rows of the workload's cells by (count, entry of the size axis)."""
    return {
        (cell.num_devices, side.table.axis_size(cell)): i
        for i, cell in enumerate(side.table.cells)
        if cell.role == "workload" and cell.strategy == side.strategy
    }


def _words(places: Mapping[tuple[int, int], int]) -> str:
    counts, sizes = (sorted(set(axis)) for axis in zip(*places, strict=True))
    return f"devices {', '.join(map(str, counts))} at sizes {', '.join(map(str, sizes))}"


def _cells(
    first: Side, second: Side, common: list[tuple[int, int]], test: _Test, margin: float
) -> tuple[CellRatio, ...]:
    ours, theirs = _places(first), _places(second)
    pairs = [(np.log(first.table.latency_s[ours[p]]), np.log(second.table.latency_s[theirs[p]])) for p in common]
    tested = [test.difference(a, b) for a, b in pairs]
    adjusted = holm([p for _, p in tested])
    found = []
    for place, (a, b), (log_ratio, _), p in zip(common, pairs, tested, adjusted, strict=True):
        change: Change = "undecided"
        if p is not None and p < 1 - test.confidence:
            change = "slower" if b.mean() > a.mean() else "faster"
        # Both may hold: a difference can be real and too small to matter.
        if test.within(a, b, float(np.log1p(margin))):
            change = "same"
        found.append(
            CellRatio(
                num_devices=place[0],
                size=place[1],
                first_s=_exp(t_estimate(a, test.confidence)),
                second_s=_exp(t_estimate(b, test.confidence)),
                ratio=_exp(log_ratio),
                p=p,
                change=change,
            )
        )
    return tuple(found)


def _causes(first: Side, second: Side, common: list[tuple[int, int]], test: _Test) -> tuple[CauseChange, ...]:
    """Changes of each cause where both sides determine it, without a law."""
    found: list[tuple[str, tuple[int, int], np.ndarray, np.ndarray]] = []
    for n, size in common:
        a, b = (attribute(side.table, side.strategy, n, size) for side in (first, second))
        if a is None or b is None:
            continue
        for cause in CAUSES:
            x, y = a.seconds.get(cause), b.seconds.get(cause)
            # Seconds from a control and from a probe are not the same quantity.
            if x is not None and y is not None and a.sources.get(cause) == b.sources.get(cause):
                found.append((cause, (n, size), x, y))
    tested = [test.difference(x, y) for *_, x, y in found]
    adjusted = holm([p for _, p in tested])
    return tuple(
        CauseChange(
            cause=cause,
            num_devices=place[0],
            size=place[1],
            first_s=t_estimate(x, test.confidence),
            second_s=t_estimate(y, test.confidence),
            difference=difference,
            p=p,
            differs=None if p is None else p < 1 - test.confidence,
        )
        for (cause, place, x, y), (difference, _), p in zip(found, tested, adjusted, strict=True)
    )


def _parameters(first: Side, second: Side, test: _Test) -> tuple[str | None, tuple[ParameterChange, ...]]:
    """Changes of the parameters of the law that both sides report, where both determine them."""
    a, b = (fit_laws(side.table, side.strategy, confidence=test.confidence) for side in (first, second))
    name = _common_law(a, b)
    if name is None:
        return None, ()
    columns, others = (next(law.design for law in fits.laws if law.name == name) for fits in (a, b))
    x, y = a.unconstrained[name], b.unconstrained[name]
    found = []
    for parameter, unit in zip(columns.names, columns.units, strict=True):
        if parameter not in others.names:
            continue
        i, j = columns.names.index(parameter), others.names.index(parameter)
        if x.known.identified[parameter] and y.known.identified[parameter]:
            found.append((parameter, unit, x.values[i], y.values[j]))
    tested = [test.difference(u, v) for *_, u, v in found]
    adjusted = holm([p for _, p in tested])
    changes = tuple(
        ParameterChange(
            name=parameter,
            unit=unit,
            first=t_estimate(u, test.confidence),
            second=t_estimate(v, test.confidence),
            difference=difference,
            p=p,
            differs=None if p is None else p < 1 - test.confidence,
        )
        for (parameter, unit, u, v), (difference, _), p in zip(found, tested, adjusted, strict=True)
    )
    return name, changes


def _common_law(first: LawFits, second: LawFits) -> str | None:
    """The law that one side reports and both may use; without such a law parameters mean nothing."""
    adequate = [{r.name for r in fits.reports if r.kept or r.adequate} for fits in (first, second)]
    both = adequate[0] & adequate[1]
    return next((name for name in (first.parameters_of, second.parameters_of) if name in both), min(both, default=None))


def _reason(
    unlike: tuple[str, ...], cells: tuple[CellRatio, ...], line: PairedLine, machine: MachineSpeed | None
) -> str:
    if unlike:
        return "the compiled programs are unlike, so their times do not answer which is the better of two ways"
    changes = [cell.change for cell in cells]
    if all(change == "undecided" for change in changes):
        why = next((cell.ratio.reason for cell in cells if cell.ratio.reason), "the intervals are too wide")
        if machine is not None and machine.matters:
            why = "the machine itself may not have been as fast in both"
        return line.words if line.kind != "undecided" else f"no cell is decided: {why}"
    counts = [f"{changes.count(c)} {c}" for c in ("slower", "faster", "same", "undecided") if c in changes]
    return f"of {len(changes)} cells: {', '.join(counts)}"


def _exp(value: Estimate) -> Estimate:
    """A log as what it is the log of."""
    if value.estimate is None:
        return value
    ends = value.interval
    interval = None if ends is None else tuple(None if end is None else float(np.exp(end)) for end in ends)
    return Estimate(estimate=float(np.exp(value.estimate)), interval=interval, reason=value.reason)  # pyright: ignore
