"""Rows that cannot reach the goal, and why: a row that is not explained here is a fault."""

from __future__ import annotations

from fnmatch import fnmatchcase

GROWS_OTHERWISE = "no law of the menu grows so, and beyond the measured counts nothing says which way it goes on"
BEYOND_A_STEP = "one measured count beyond the step: no law of the menu has it, and nothing says how it goes on"
TWO_MODES = "of six launches with two modes one in eight sweeps sees one mode only, and none of its launches can tell"
WHERE_LOW = "printed only where the estimate is low: where the truth lies above 0, that is the half that misses"

REASONS: tuple[tuple[str, str, str, str], ...] = (
    ("bandwidth, bimodal launches", "*", "*", TWO_MODES),
    ("latency, n^1.4", "predictions", "*times the largest*", GROWS_OTHERWISE),
    ("latency, n^1.4", "counts", "optimum up to *", GROWS_OTHERWISE),
    ("bandwidth, step", "predictions", "*times the largest*", BEYOND_A_STEP),
    ("bandwidth, step", "counts", "optimum up to *", BEYOND_A_STEP),
    ("*", "parameters", "upper limits", WHERE_LOW),
)
"""Patterns of scenario, group and quantity, and the reason."""


def why(scenario: str, group: str, quantity: str) -> str:
    """The first reason whose patterns match; empty where there is none."""
    asked = (scenario, group, quantity)
    return next((reason for *patterns, reason in REASONS if all(map(fnmatchcase, asked, patterns))), "")
