"""Communication's share of the time by the reported law, beside the share measured without any law."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .answer import Estimate, LawShare
from .attribution import attribute
from .intervals import p_differs, t_estimate, tost
from .launches import LaunchTable
from .lawfit import FittedLaw, LawFits
from .meanings import percent

MARGIN = 0.05
"""Shares that differ by less of the time count as the same."""


def law_share(
    table: LaunchTable, strategy: str, num_devices: int, size: int, fits: LawFits, *, confidence: float = 0.95
) -> LawShare | None:
    """Compare the two shares at one measured cell, paired by launch.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    num_devices : int
    size : int
        Entry of the plan's size axis.
    fits : LawFits
        Its reported law is the one asked.

    Returns
    -------
    LawShare or None
        None where the workload was not measured there. ``agree`` is ``yes`` where the shares are equivalent within
        ``MARGIN`` of the time, ``no`` where they differ significantly and are not.
    """
    split = attribute(table, strategy, num_devices, size)
    if split is None:
        return None
    law = next((one for one in fits.laws if one.name == fits.parameters_of), None)
    by_law, why_not = _share(law, num_devices, size)
    seconds = split.seconds.get("communication")
    measured = None if seconds is None else seconds / split.total
    if by_law is None or measured is None:
        reason = why_not if by_law is None else split.undecided
        difference, agree = Estimate(reason=reason), "undecided"
    else:
        difference = t_estimate(by_law - measured, confidence)
        agree = _agree(by_law - measured, confidence)
        reason = _words(agree, difference)
    return LawShare(
        num_devices=num_devices,
        size=size,
        law=None if law is None else law.name,
        by_law=Estimate(reason=why_not) if by_law is None else t_estimate(by_law, confidence),
        measured=Estimate(reason=split.undecided) if measured is None else t_estimate(measured, confidence),
        difference=difference,
        margin=MARGIN,
        agree=agree,
        reason=reason,
    )


def _share(law: FittedLaw | None, num_devices: int, size: int) -> tuple[np.ndarray | None, str | None]:
    """The share by launch, or None and why."""
    if law is None:
        return None, "no law was fitted"
    causes, total = law.causes(num_devices, size), law.latency_s(num_devices, size)
    if causes is None or total is None:
        return None, f"law {law.name!r} does not tell the causes apart here"
    return causes["communication"] / total, None


def _agree(difference: np.ndarray, confidence: float) -> Literal["yes", "no", "undecided"]:
    if tost(difference, MARGIN, confidence=confidence).equivalent:
        return "yes"
    p = p_differs(difference)
    return "no" if p is not None and p < 1 - confidence else "undecided"


def _words(agree: str, difference: Estimate) -> str:
    if difference.interval is None:
        return difference.reason or "undecided"
    said = {
        "yes": f"the same within {percent(MARGIN)} of the time",
        "no": "the law and the data disagree",
        "undecided": f"neither the same within {percent(MARGIN)} of the time nor different",
    }
    return said[agree]
