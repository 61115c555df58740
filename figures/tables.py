"""Tidy tables of an Answer: what the figures draw, and what is saved beside them as CSV, in SI units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..fit.answer import Answer, Estimate
from .style import REMAINDER

MEASURED = (
    *("strategy", "role", "size", "num_devices", "size_per_device"),
    *("latency_s", "latency_s_lower", "latency_s_upper", "throughput", "throughput_lower", "throughput_upper"),
)
QUANTITIES = ("latency_s", "cost", "speedup", "efficiency", "throughput")
PREDICTED = (
    *("strategy", "size", "num_devices", "size_per_device", "kind", "source"),
    *(name for q in QUANTITIES for name in (q, f"{q}_lower", f"{q}_upper")),
)
CAUSED = (
    *("strategy", "size", "num_devices", "cause", "source"),
    *("latency_s", "latency_s_lower", "latency_s_upper", "share", "share_lower", "share_upper"),
)
BREAK_EVEN = ("strategy", "num_devices", "size", "size_lower", "size_upper", "helps", "outcome", "reason")
Bounds = tuple[float, float, float]


def measured(answers: Sequence[Answer]) -> pd.DataFrame:
    """Measured times, one row a strategy, role, size and count; columns ``MEASURED``. A missing end is NaN.

    Throughput is S / T, the size of the call's whole input over its time, with the interval's ends turned round.
    """
    rows = []
    for answer in answers:
        for curve in answer.curves:
            for n, latency in zip(curve.num_devices, curve.latency_s, strict=True):
                share = curve.size if answer.path == "weak" else curve.size / n
                value, lower, upper = bounds(latency)
                rates = (share * n / np.array([value, upper, lower])).tolist()
                rows.append((curve.strategy, curve.role, curve.size, n, share, value, lower, upper, *rates))
    table = pd.DataFrame(rows, columns=list(MEASURED))
    # Answers about several strategies of one sweep each hold all curves.
    return table.drop_duplicates(["strategy", "role", "size", "num_devices"], ignore_index=True)


def predicted(answers: Sequence[Answer]) -> pd.DataFrame:
    """Times and ratios at every admissible count, measured or predicted; columns ``PREDICTED``."""
    rows = [
        (
            *(answer.strategy, p.size, p.num_devices, p.size_per_device, p.kind, p.source),
            *(value for q in QUANTITIES for value in bounds(getattr(p, q))),
        )
        for answer in answers
        for p in answer.predictions
    ]
    return pd.DataFrame(rows, columns=list(PREDICTED))


def known_counts(predicted: pd.DataFrame) -> pd.DataFrame:
    """Rows of the counts that are known at one size at least: a map needs no column without a number."""
    known = predicted.loc[predicted["speedup"].notna(), "num_devices"].unique()
    return predicted[predicted["num_devices"].isin(known)]


def causes(answers: Sequence[Answer]) -> pd.DataFrame:
    """Time by cause at the headline size, one row a count and cause; columns ``CAUSED``.

    Where some causes are not determined, a row ``unattributed`` holds what the others leave of the measured time.
    """
    rows = []
    for answer in answers:
        totals = _totals(answer)
        for n, parts in sorted(answer.causes.items()):
            known = {cause: part for cause, part in parts.items() if part.latency_s.estimate is not None}
            rows += [
                (answer.strategy, answer.size, n, cause, part.source, *bounds(part.latency_s), *bounds(part.share))
                for cause, part in known.items()
            ]
            if known and len(known) < len(parts) and n in totals:
                rest = totals[n] - sum(part.latency_s.estimate or 0.0 for part in known.values())
                nothing = (np.nan, np.nan)
                source = "time less the causes that are known"
                rows.append(
                    (answer.strategy, answer.size, n, REMAINDER, source, rest, *nothing, rest / totals[n], *nothing)
                )
    return pd.DataFrame(rows, columns=list(CAUSED))


def break_even_sizes(answers: Sequence[Answer]) -> pd.DataFrame:
    """Break-even sizes, one row a root (or one a count without any); columns ``BREAK_EVEN``."""
    rows = []
    for answer in answers:
        for found in answer.break_even.sizes:
            for root in found.roots or (Estimate(),):
                told = (found.helps, found.outcome, root.reason or found.reason)
                # Where every size is possible, none is drawn.
                size = (np.nan,) * 3 if root.interval == (None, None) else bounds(root)
                rows.append((answer.strategy, found.num_devices, *size, *told))
    return pd.DataFrame(rows, columns=list(BREAK_EVEN))


def bounds(estimate: Estimate) -> Bounds:
    """Estimate, lower and upper end; NaN for what is missing."""
    lower, upper = estimate.interval or (None, None)
    value, lower, upper = (np.nan if x is None else float(x) for x in (estimate.estimate, lower, upper))
    return value, lower, upper


def _totals(answer: Answer) -> dict[int, float]:
    """Measured time of the answer's strategy at the headline size, by count."""
    return {
        n: latency.estimate
        for curve in answer.curves
        if (curve.strategy, curve.role, curve.size) == (answer.strategy, "workload", answer.size)
        for n, latency in zip(curve.num_devices, curve.latency_s, strict=True)
        if latency.estimate is not None
    }
