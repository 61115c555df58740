"""Going on with a record: only the same plan, and only on the same kind of device."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

from ..data.machines import Difference, devices_differ, surroundings_differ
from ..data.schema import Launch, Plan
from .workload import MeasureError

_SPOKEN = {
    "queued_calls": "queued calls",
    "budget_s": "budget in seconds",
    "step_timeout_s": "timeout in seconds",
    "visible_devices": "devices at each launch",
}
"""Fields of a plan whose names no option has."""


def check_same_plan(ours: Plan, theirs: Plan, path: Path) -> None:
    """Raise MeasureError where a file holds a sweep of another plan; it names what differs."""
    different = [
        f"{_SPOKEN.get(name, name)} ({getattr(theirs, name)} there, {getattr(ours, name)} now)"
        for name in Plan.__struct_fields__
        # A trace changes no time, so that it may be asked for later.
        if name != "trace" and getattr(ours, name) != getattr(theirs, name)
    ]
    if different:
        raise MeasureError(
            f"{path} holds a sweep of another plan; they differ in {', '.join(different)}. "
            "Give another file with -o, or the same options to go on."
        )


def check_same_machine(before: Launch, now: Launch, path: Path) -> None:
    """Refuse to add a launch on another kind of device, and warn where other things differ that may change times.

    Raises
    ------
    MeasureError
        If the kinds of device differ.
    """
    if found := devices_differ(before, now):
        raise MeasureError(
            f"{path} was measured on another kind of device: {_told(found)}. Such times are never pooled: give another "
            "file with -o."
        )
    if found := surroundings_differ(before, now):
        warnings.warn(
            f"{path}: its last launch and this one differ in {_told(found)}; both are kept, and say so.", stacklevel=2
        )


def _told(found: Iterable[Difference]) -> str:
    return ", ".join(f"{name} ({before} there, {now} now)" for name, before, now in found)
