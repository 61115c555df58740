"""Breaks: counts or sizes at which a curve stops obeying one law.

Over counts: leaving a node, in-switch reduction that turns on. Over sizes and payloads: another protocol (eager and
rendezvous), another algorithm. One device is a case of its own, so the step from 1 to 2 is growth, never a break.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ..model.cell import Cell, devices
from .answer import Break, Estimate
from .changepoint import Change, Curve, Form, Terms, change_point
from .intervals import EXACT, log_t_estimate, p_differs, residual_estimate
from .launches import LaunchTable
from .segment_trend import SegmentTrend
from .trend import Baseline

if TYPE_CHECKING:
    from .lawfit import LawFits

MARGIN = 0.10
"""A break changes the time by more than this against the law below it: an error at which no law is adequate."""

SEGMENT_MARGIN = 0.25
"""The same along sizes and payloads, where curves are long and bend: a protocol switch changes more."""
FEWEST_COUNTS = 5
FEWEST_COLLECTIVE_COUNTS = 4
"""Of collectives every law has fewer terms: nothing that shrinks with the count."""
FEWEST_SIZES = 6
CAUTION = 0.5
"""Share of the level that is asked of a p-value: the law that it is drawn from is itself an estimate, so that on one
short and noisy curve up to twice the level was passed without a border."""
WINDOW = 8
"""Places of a part that is searched by itself."""
MOST_CURVES = 8
"""Curves that are searched together, spread evenly over the sizes."""


def breaks(table: LaunchTable, strategy: str, *, confidence: float = 0.95, seed: int = 0) -> tuple[Break, ...]:
    """Find the breaks of one strategy: of the workload's times, and of the chains of collectives.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    confidence : a break's p-value lies below ``CAUTION`` times 1 minus it, corrected for all curves of its axis

    Returns
    -------
    tuple of Break
        By axis (counts, sizes, payloads), then place.
    """
    level = CAUTION * (1 - confidence)
    found = []
    for role, axis in (("workload", "count"), ("chain", "count"), ("workload", "size"), ("chain", "payload")):
        curves = _curves(table, role, strategy, axis)
        if not curves:
            continue
        if axis == "count":
            beside = [c for s in _others(table, role, strategy) for c in _curves(table, role, s, axis).values()]
            found += _over_counts(table, role, strategy, curves, beside, level=level, confidence=confidence, seed=seed)
        else:
            found += _over_sizes(table, axis, curves, level=level, confidence=confidence, seed=seed)
    return tuple(found)


def why_not_sought(table: LaunchTable, strategy: str) -> str | None:
    """Why nothing was looked for along the counts; None where it was."""
    role, fewest = ("workload", FEWEST_COUNTS) if table.strategies else ("chain", FEWEST_COLLECTIVE_COUNTS)
    counts = [n for n in table.devices(role, strategy) if n > 1]
    if len(counts) >= fewest:
        return None
    return f"a break over counts needs {fewest} counts above one, and {len(counts)} were measured"


def reject_single_laws(fits: LawFits, found: Sequence[Break]) -> LawFits:
    """Keep no law over a break in the counts; what is left to predict is the trend beyond it.

    Returns
    -------
    LawFits
        The same where no break over counts was found.
    """
    borders = [b for b in found if b.axis == "count"]
    if not borders:
        return fits
    places = sorted({(b.below, b.above) for b in borders})
    reason = f"one law over the break between {_in_words(borders)} devices is rejected"
    assert isinstance(fits.baseline, Baseline)
    return replace(
        fits,
        kept=(),
        baseline=SegmentTrend(baseline=fits.baseline, borders=tuple(places)),
        reports=tuple(
            r
            if r.misfit is None
            else msgspec.structs.replace(r, judged=True, adequate=False, kept=False, reason=reason)
            for r in fits.reports
        ),
    )


def break_warnings(found: Sequence[Break]) -> tuple[str, ...]:
    """What a reader of predictions and parameters must know about the breaks."""
    warnings = []
    if borders := [b for b in found if b.axis == "count"]:
        border = "border" if all(b.factor.estimate and b.factor.estimate < 1 for b in borders) else "node border"
        warnings.append(
            f"single-law model over the {border} rejected: the times break between {_in_words(borders)} devices, "
            "so no law predicts, and trends only from counts beyond it"
        )
    if segments := [b for b in found if b.axis != "count"]:
        what = "payload" if segments[0].axis == "payload" else "size"
        warnings.append(f"the times break along the {what}: a law's latency and bandwidth are means over the segments")
    return tuple(warnings)


def program_terms(cores: int | None) -> Terms:
    """Terms of a program's time over counts, all with coefficients of at least 0.

    Work and messages that shrink as 1 / n; what grows towards a constant as (n - 1) / n (a constant is the sum of
    the two); latency of n - 1 and of ceil(log2 n) steps; an exchange of shards, (n - 1) / n²; work that stops
    shrinking at the number of cores.
    """

    def columns(n: np.ndarray) -> np.ndarray:
        shared = [] if cores is None else [1 / np.minimum(n, cores)]
        return np.column_stack([(n - 1) / n, 1 / n, n - 1, np.ceil(np.log2(n)), (n - 1) / n**2, *shared])

    return columns


def collective_terms(n: np.ndarray) -> np.ndarray:
    """Terms of one collective of a fixed payload over counts: none falls as the count rises."""
    return np.column_stack([(n - 1) / n, np.ones_like(n), n - 1, np.ceil(np.log2(n))])


def in_switch_terms(n: np.ndarray) -> np.ndarray:
    """A sum formed in the switch: n + 1 passes of V / n bytes instead of 2 (n - 1)."""
    return ((n + 1) / n)[:, None]


def payload_terms(size: np.ndarray) -> np.ndarray:
    """Latency, a bandwidth that is reached slowly, bytes."""
    return np.column_stack([np.ones_like(size), size, np.sqrt(size), size**0.75])


def size_terms(size: np.ndarray) -> np.ndarray:
    """Powers of the size, from a constant to the work of a product of square matrices."""
    return np.column_stack([np.ones_like(size), np.sqrt(size), size, size**2, size**3])


PROGRAM_FORMS = (
    Form(name="what is exchanged", term=0),
    Form(name="what is divided among the devices", term=1),
    Form(name="latency", term=2),
)
COLLECTIVE_FORMS = (
    Form(name="bandwidth", term=0),
    Form(name="latency", term=1),
    Form(name="in-switch reduction", instead=in_switch_terms),
)
PAYLOAD_FORMS = (Form(name="latency", term=0), Form(name="bandwidth", term=1))
SIZE_FORMS = (Form(name="latency", term=0), Form(name="time per unit of work", term=2))


def _curves(table: LaunchTable, role: str, strategy: str, axis: str) -> dict[int, Curve]:
    """Curves long enough to be searched, by their place on the other axis."""
    series: dict[int, dict[int, np.ndarray]] = {}
    for cell in table.select(role, strategy):
        place = _place(table, cell, axis)
        row = table.row(cell)
        if place is not None and row is not None and np.isfinite(row).all():
            series.setdefault(place[0], {})[place[1]] = row / (cell.k or 1)
    fewest = FEWEST_SIZES
    if axis == "count":
        fewest = FEWEST_COLLECTIVE_COUNTS if role == "chain" else FEWEST_COUNTS
    return {
        where: Curve(places=np.array(sorted(one), dtype=float), times_s=np.array([one[x] for x in sorted(one)]))
        for where, one in sorted(series.items())
        if len(one) >= fewest
    }


def _place(table: LaunchTable, cell: Cell, axis: str) -> tuple[int, int] | None:
    """(the curve, the place on it), or None for a cell that lies on none."""
    if cell.role == "chain":
        # Longer chains repeat the collective; their slope has no dispatch, but one of them is enough for a border.
        if not cell.payload_bytes or cell.k != 1:
            return None
        size = cell.payload_bytes
    else:
        size = table.axis_size(cell)
    if cell.num_devices == 1:
        return None
    return (size, cell.num_devices) if axis == "count" else (cell.num_devices, size)


def _others(table: LaunchTable, role: str, strategy: str) -> list[str]:
    return sorted({cell.strategy for cell in table.select(role)} - {strategy})


def _over_counts(
    table: LaunchTable,
    role: str,
    strategy: str,
    curves: dict[int, Curve],
    beside: Sequence[Curve],
    *,
    level: float,
    confidence: float,
    seed: int,
) -> list[Break]:
    chosen = _spread_evenly(curves)
    terms, forms, fewest = collective_terms, COLLECTIVE_FORMS, FEWEST_COLLECTIVE_COUNTS
    if role == "workload":
        last = max(curve.places[-1] for curve in chosen.values())
        cores = table.cores if table.cores is not None and 1 < table.cores < last else None
        terms, forms, fewest = program_terms(cores), PROGRAM_FORMS, FEWEST_COUNTS
    found = []
    for change, parts in _segments(
        list(chosen.values()), terms, forms, fewest=fewest, beside=beside[:MOST_CURVES], level=level, seed=seed
    ):
        factor = _factor(change, parts, confidence)
        found.append(
            Break(
                axis="count",
                role="chain" if role == "chain" else "workload",
                below=int(change.below),
                above=int(change.above),
                places=tuple(chosen),
                factor=factor,
                excess=change.excess,
                changes=change.form.name,
                p=_p(change),
                reason=_count_reason(table, role, strategy, change, factor),
            )
        )
    return found


def _over_sizes(
    table: LaunchTable, axis: str, curves: dict[int, Curve], *, level: float, confidence: float, seed: int
) -> list[Break]:
    terms, forms = (payload_terms, PAYLOAD_FORMS) if axis == "payload" else (size_terms, SIZE_FORMS)
    unit = "B" if axis == "payload" else table.plan.unit
    found = []
    for n, curve in curves.items():
        # Each count is searched by itself, since a threshold may lie at V or at V / n.
        for change, parts in _segments(
            [curve], terms, forms, fewest=4, level=level / len(curves), margin=SEGMENT_MARGIN, least=(2, 2), seed=seed
        ):
            found.append(
                Break(
                    axis="payload" if axis == "payload" else "size",
                    role="chain" if axis == "payload" else "workload",
                    below=int(change.below),
                    above=int(change.above),
                    places=(n,),
                    factor=_factor(change, parts, confidence),
                    excess=change.excess,
                    changes=change.form.name,
                    p=min(1.0, _p(change) * len(curves)),
                    reason=(
                        f"on {devices(n)} from {int(change.below):,} to {int(change.above):,} {unit} the time is "
                        f"{change.excess:.3g} times what the law below gives ({change.form.name} changes)"
                    ),
                )
            )
    return sorted(found, key=lambda b: (b.below, b.places))


def _segments(
    curves: list[Curve],
    terms: Terms,
    forms: Sequence[Form],
    *,
    fewest: int,
    level: float,
    seed: int,
    margin: float = MARGIN,
    least: tuple[int, int] = (1, 2),
    beside: Sequence[Curve] = (),
) -> Iterator[tuple[Change, list[Curve]]]:
    """Borders in order: the likeliest one, then those on either side of it."""
    curves = [curve for curve in curves if len(curve.places) >= fewest]
    if not curves:
        return
    search = {"terms": terms, "forms": forms, "beside": beside, "margin": margin, "least": least, "seed": seed}
    change = _first_border(curves, search, level)
    if change is None:
        return
    first, last = _ends(curves)
    options = {"fewest": fewest, "level": level, "margin": margin, "least": least, "seed": seed, "beside": beside}
    yield from _segments([c.between(first, change.below) for c in curves], terms, forms, **options)
    yield change, curves
    yield from _segments([c.between(change.above, last) for c in curves], terms, forms, **options)


def _first_border(curves: list[Curve], search: Mapping, level: float) -> Change | None:
    """The border of the whole curves; where a second one hides it, the surest one inside a window."""
    places = np.unique(np.concatenate([curve.places for curve in curves]))
    starts = range(0, len(places) - WINDOW, WINDOW // 2)
    if starts:
        level /= 2
    change = change_point(curves, level=level, **search)
    if change is not None and _p(change) <= level:
        return change
    if not starts:
        return None
    windows = [(places[i], places[min(i + WINDOW, len(places)) - 1]) for i in (*starts, len(places) - WINDOW)]
    each = level / len(windows)
    changes = [change_point([c.between(*ends) for c in curves], level=each, **search) for ends in windows]
    surest = min((c for c in changes if c is not None), key=_p, default=None)
    if surest is None or _p(surest) > each:
        return None
    return replace(surest, p=_p(surest) * len(windows))


def _ends(curves: Sequence[Curve]) -> tuple[float, float]:
    return min(c.places[0] for c in curves), max(c.places[-1] for c in curves)


def _p(change: Change) -> float:
    """p-value of the search; where launches were repeated, at least that of the excess over launches."""
    over_launches = p_differs(change.log_excess.mean(axis=0))
    return change.p if over_launches is None else max(change.p, over_launches)


def _factor(change: Change, curves: Sequence[Curve], confidence: float) -> Estimate:
    """Measured time above over below, geometric mean over the curves."""
    logs = []
    for curve in curves:
        at = [np.flatnonzero(curve.places == place) for place in (change.below, change.above)]
        if all(index.size for index in at):
            below, above = (np.log(curve.times_s[index[0]]) for index in at)
            logs.append(above - below)
    mean = np.mean(logs, axis=0)
    if mean.size > 1:
        return log_t_estimate(np.exp(mean), confidence)
    error = change.spread * np.sqrt(2 / len(logs))
    exact = change.spread <= EXACT
    return residual_estimate(float(mean[0]), error, change.freedom, confidence, log=True, exact=exact)


def _count_reason(table: LaunchTable, role: str, strategy: str, change: Change, factor: Estimate) -> str:
    below, above = int(change.below), int(change.above)
    law = (
        f"from {below} to {above} devices the time is {change.excess:.3g} times what the law of the smaller counts "
        f"gives ({change.form.name} {'turns on' if change.form.instead else 'changes'})"
    )
    ratio = factor.estimate or 1.0
    if role == "chain":
        return f"{law}; no law of the menu has a collective's time fall as devices are added" if ratio < 1 else law
    if table.plan.path == "strong" and ratio > 1 + MARGIN and not table.devices("local", strategy):
        # Nothing but the exchange can grow where the work of each device shrinks; dispatch does not jump at a border.
        return (
            f"{law}; work per device falls by {above / below:.3g} there, so the rise can only be communication: "
            "communication-bound, indirect evidence (no split was measured)"
        )
    return law


def _spread_evenly(curves: dict[int, Curve]) -> dict[int, Curve]:
    if len(curves) <= MOST_CURVES:
        return curves
    keys = sorted(curves)
    chosen = {keys[round(i)] for i in np.linspace(0, len(keys) - 1, MOST_CURVES).tolist()}
    return {key: curves[key] for key in sorted(chosen)}


def _in_words(borders: Sequence[Break]) -> str:
    return ", ".join(f"{below} and {above}" for below, above in sorted({(b.below, b.above) for b in borders}))
