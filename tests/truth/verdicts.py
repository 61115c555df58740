"""The blind answer held against the truth, quantity by quantity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .imposed import Truth

LARGEST_ERROR = {"alpha": 0.05, "beta": 0.04, "gamma": 0.05}
"""Relative: seconds a step, seconds a byte, seconds an item."""
LARGEST_REGRET = 0.02


@dataclass(frozen=True, kw_only=True)
class Row:
    """One quantity. ``error``: relative; of a count, its regret; None where there is no number."""

    quantity: str
    imposed: float
    found: float | None
    lower: float | None
    upper: float | None
    error: float | None
    limit: float | None
    passed: bool


def compare(truth: Truth, answer: Mapping[str, Any], *, slack: float = 1.0) -> list[Row]:
    """All rows; ``slack`` times the limits are allowed."""
    return [
        *_parameters(truth, answer, slack),
        *_counts(truth, answer, slack),
        *_break_even_sizes(truth, answer, slack),
    ]


def _parameters(truth: Truth, answer: Mapping[str, Any], slack: float) -> Iterator[Row]:
    imposed = {"alpha": truth.round_trip_s, "beta": truth.beta, "gamma": truth.seconds_per_item}
    for name, true in imposed.items():
        found = answer["parameters"].get(name, {})
        lower, upper = found.get("interval") or (None, None)
        estimate, limit = found.get("estimate"), slack * LARGEST_ERROR[name]
        error = None if estimate is None else estimate / true - 1
        yield Row(
            quantity=name,
            imposed=true,
            found=estimate,
            lower=lower,
            upper=upper,
            error=error,
            limit=limit,
            passed=error is not None and abs(error) <= limit,
        )


def _counts(truth: Truth, answer: Mapping[str, Any], slack: float) -> Iterator[Row]:
    limit = slack * LARGEST_REGRET
    for size in truth.sizes:
        found = answer["optimal_by_size"][str(size)]
        best = min(truth.devices, key=lambda n: truth.latency_s(n, size))
        count, counts = found["estimate"], found["set"]
        regret = None if count is None else truth.regret(count, size)
        yield Row(
            quantity=f"best count, {size} items",
            imposed=best,
            found=count,
            lower=min(counts, default=None),
            upper=max(counts, default=None),
            error=regret,
            limit=limit,
            passed=regret is not None and regret <= limit,
        )


def _break_even_sizes(truth: Truth, answer: Mapping[str, Any], slack: float) -> Iterator[Row]:
    """For each count a piece of the set, bounded on both sides, must hold the true size; with slack it may be near."""
    limit = (slack - 1) * LARGEST_ERROR["alpha"]
    by_count = {found["num_devices"]: found for found in answer["break_even"]["sizes"]}
    for count in truth.devices[1:]:
        true = truth.break_even_size(count)
        found = by_count.get(count, {"roots": [], "pieces": []})
        roots = [root["estimate"] for root in found["roots"]]
        nearest = min(roots, key=lambda root: abs(math.log(root / true)), default=None)
        pieces = [piece for piece in found["pieces"] if None not in piece]
        holding = [piece for piece in pieces if piece[0] <= true <= piece[1]]
        lower, upper = (holding or pieces or [(None, None)])[0]
        yield Row(
            quantity=f"break-even size of {count}",
            imposed=true,
            found=nearest,
            lower=lower,
            upper=upper,
            error=None if nearest is None else nearest / true - 1,
            limit=limit or None,
            passed=bool(holding) or (nearest is not None and abs(nearest / true - 1) < limit),
        )
