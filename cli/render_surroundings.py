"""The table of what was around each launch, in ``show`` and ``diagnose``."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.schema import Closing
from ..data.surroundings import Surroundings
from . import units
from .text import sentence, table

_HEADERS = ("launch", "cores", "MHz", "warm-ups", "others", "stolen", "held back", "clock", "slept")


def surroundings(found: Sequence[Surroundings]) -> str | None:
    """One row a launch; None where the record says nothing."""
    if not found:
        return None
    rows = [_row(one) for one in found]
    # A column that no launch fills says nothing.
    kept = [i for i in range(len(_HEADERS)) if any(row[i] != "-" for row in rows)]
    text = table([_HEADERS[i] for i in kept], [[row[i] for i in kept] for row in rows], numeric=range(1, len(kept)))
    return "\n".join([sentence(_title(found)), text])


def _title(found: Sequence[Surroundings]) -> str:
    """What the launches share: hosts, governors, and the clock that times calls."""
    machines = [machine for one in found for machine in one.machines]
    hosts = list(dict.fromkeys(machine.host for machine in machines if machine.host))
    governors = list(dict.fromkeys(machine.governor for machine in machines if machine.governor))
    steps = [machine.clock_resolution_ns for machine in machines if machine.clock_resolution_ns is not None]
    readings = [machine.clock_overhead_ns for machine in machines if machine.clock_overhead_ns is not None]
    said = [f"host {units.joined(hosts)}"] if hosts else []
    said += [f"governor {units.joined(governors)}"] if governors else []
    said += [f"clock steps of {max(steps):.0f} ns"] if steps else []
    said += [f"{max(readings):.0f} ns a reading"] if readings else []
    return "surroundings" + (f": {', '.join(said)}" if said else "")


def _row(one: Surroundings) -> tuple[str, ...]:
    before = one.machines[0].frequency_mhz if one.machines else None
    frequency = one.closing.frequency_mhz or before if one.closing else before
    return (
        one.launch[:8],
        "-" if one.cores is None else str(one.cores),
        "-" if frequency is None else _span(*frequency),
        "-" if one.warmups is None else str(one.warmups),
        *(["-"] * 5 if one.closing is None else _closed(one.closing)),
    )


def _closed(closing: Closing) -> tuple[str, ...]:
    held = [] if closing.throttled_s is None else [f"{closing.throttled_s:.1f} s"]
    held += [f"heat x{closing.heat_throttles}"] if closing.heat_throttles else []
    return (
        "-" if closing.others_busy_cores is None else f"{closing.others_busy_cores:.2f} cores",
        "-" if closing.stolen_share is None else f"{100 * closing.stolen_share:.1f} %",
        ", ".join(held) or "-",
        "-" if closing.clock_jump_s is None else f"{1e3 * closing.clock_jump_s:+.1f} ms",
        "-" if closing.suspended_s is None else f"{closing.suspended_s:.1f} s",
    )


def _span(lowest: float, highest: float) -> str:
    return f"{lowest:.0f}" if round(lowest) == round(highest) else f"{lowest:.0f}-{highest:.0f}"
