"""Named warnings of what around a sweep makes its times, or even its verdict, mean less than they seem to."""

from __future__ import annotations

from ..data.machines import by_host, described, surroundings_differ
from .answer import NamedWarning
from .checks.drift import drift_over, drift_within
from .crowding import crowd, full_crowd
from .intervals import MIN_LAUNCHES
from .launches import LaunchTable
from .verdict import shared_resource

CORES_PER_DEVICE = 2
"""A host device runs its own threads beside the one that dispatches to it."""
OTHERS = 0.1
"""Share of the cores that others may keep busy."""
STOLEN, THROTTLED = 0.02, 0.01
"""Shares of the time that a hypervisor may give to others, and of one core's that a control group may withhold."""
CLOCK = 0.01
"""Share of the shortest time that a step or a reading of the clock may take."""
JUMP_S, JUMP_SHARE, SLEPT_S = 0.1, 1e-3, 0.1
"""A wall clock that is kept in time by the network moves by up to 0.5 ms a second."""
FREQUENCIES = 0.1
"""Share by which the fastest core's frequency may differ between launches."""
LEVEL = 0.05
"""Of the drift that is warned of; six launches rarely show one at the 1 % of the diagnostics."""


def named_warnings(table: LaunchTable, strategy: str, largest: int) -> tuple[NamedWarning, ...]:
    """All that apply.

    Parameters
    ----------
    table : LaunchTable
    strategy, largest : in question: its counts up to the largest one asked for
    """
    found = [
        *_crowding(table, strategy, largest),
        *_throttling(table),
        *_other_load(table),
        *_coarse_clock(table),
        *_drift(table),
        *_frequency(table),
        *_clocks(table),
        *_unlike_machines(table),
    ]
    return tuple(found)


def _crowding(table: LaunchTable, strategy: str, largest: int) -> list[NamedWarning]:
    shared = crowd(table, largest)
    if shared is not None and shared_resource(table, strategy, largest=largest):
        full = full_crowd(table) or shared
        text = (
            f"{full.devices} host devices share {full.cores} cores: times beyond the measured counts are not predicted"
        )
        return [NamedWarning(name="forced-devices", text=text, doubts_verdict=True)]
    if shared is None or shared.cores >= CORES_PER_DEVICE * shared.devices:
        return []
    text = (
        f"{shared.cores} core{'s' * (shared.cores > 1)} for {shared.devices} "
        f"device{'s' * (shared.devices > 1)}, fewer than {CORES_PER_DEVICE} a device: a device may wait for its own "
        "host's threads"
    )
    return [NamedWarning(name="few-cores", text=text, doubts_verdict=True)]


def _throttling(table: LaunchTable) -> list[NamedWarning]:
    shares = [c.throttled_s / c.seconds for c in table.closings if c.throttled_s is not None]
    held = [share for share in shares if share > THROTTLED]
    heat = sum(c.heat_throttles or 0 for c in table.closings)
    texts = []
    if held:
        # Added up over the cores: processes on several may lose more than all of one core's time.
        texts.append(
            f"the control group held processes back for up to {_percent(max(held))} of one core's time in "
            f"{_of(held, table)}"
        )
    if heat:
        texts.append(f"cores were slowed down for heat {heat} time{'s' * (heat > 1)}")
    return [NamedWarning(name="throttled", text="; ".join(texts), doubts_verdict=True)] if texts else []


def _other_load(table: LaunchTable) -> list[NamedWarning]:
    known = [c.others_busy_cores for c in table.closings if c.others_busy_cores is not None]
    stolen = [c.stolen_share for c in table.closings if c.stolen_share is not None and c.stolen_share > STOLEN]
    texts = []
    cores = _watched_cores(table)
    if cores is not None:
        busy = [one for one in known if one > OTHERS * cores]
        if busy:
            texts.append(f"others kept up to {max(busy):.1f} of {cores} cores busy in {_of(busy, table)}")
    if stolen:
        texts.append(f"the hypervisor gave up to {_percent(max(stolen))} of the time to others in {_of(stolen, table)}")
    if texts:
        return [NamedWarning(name="other-load", text="; ".join(texts), doubts_verdict=True)]
    return [] if known else _load_before(table)


def _watched_cores(table: LaunchTable) -> int | None:
    """Cores that closings tell the load of: those of the first process; several processes may have more together."""
    machines = table.launches[0].machines if table.launches else ()
    return len(machines[0].affinity) if len(machines) > 1 and machines[0].affinity else table.cores


def _load_before(table: LaunchTable) -> list[NamedWarning]:
    """Where no launch says what others did, the load before the first one: later ones hold our own."""
    first = table.launches[0] if table.launches else None
    if first is None or first.load_average is None or first.cores is None or first.load_average <= first.cores:
        return []
    text = (
        f"the load average was {first.load_average:.1f} on {first.cores} cores before the first launch: something else "
        "was running, or had been in the minute before"
    )
    return [NamedWarning(name="other-load", text=text)]


def _coarse_clock(table: LaunchTable) -> list[NamedWarning]:
    clocks = [machine for launch in table.launches for machine in launch.machines[:1]]
    step_ns = max((m.clock_resolution_ns or 0.0 for m in clocks), default=0.0)
    reading_ns = max((m.clock_overhead_ns or 0.0 for m in clocks), default=0.0)
    shortest_ns = float(table.latency_s.min()) * 1e9
    texts = [
        f"{what} takes {ns:.0f} ns, {_percent(ns / shortest_ns)} of the shortest time"
        for what, ns in (("a step of the clock", step_ns), ("a reading of the clock", reading_ns))
        if ns > CLOCK * shortest_ns
    ]
    return [NamedWarning(name="coarse-clock", text="; ".join(texts), doubts_verdict=True)] if texts else []


def _drift(table: LaunchTable) -> list[NamedWarning]:
    found = [("over the sweep", drift_over(table)), ("in a launch", drift_within(table))]
    texts = [f"{drift.words} {where}" for where, drift in found if drift is not None and drift.alarms(LEVEL)]
    if not texts:
        return []
    text = f"{'; '.join(texts)}: shares and differences, paired inside rounds, stand, times and parameters do not"
    return [NamedWarning(name="drift", text=text)]


def _frequency(table: LaunchTable) -> list[NamedWarning]:
    governors = {machine.governor for launch in table.launches for machine in launch.machines if machine.governor}
    fastest = [c.frequency_mhz[1] for c in table.closings if c.frequency_mhz is not None]
    texts = []
    if saving := sorted(g for g in governors if "powersave" in g):
        texts.append(f"the frequency governor is {saving[0]}: the clock follows the load")
    if fastest and min(fastest) < (1 - FREQUENCIES) * max(fastest):
        texts.append(f"the fastest core ran at {min(fastest):.0f} to {max(fastest):.0f} MHz at the ends of launches")
    return [NamedWarning(name="frequency", text="; ".join(texts))] if texts else []


def _clocks(table: LaunchTable) -> list[NamedWarning]:
    jumps = [c.clock_jump_s for c in table.closings if c.clock_jump_s and _jumped(c.clock_jump_s, c.seconds)]
    slept = [c.suspended_s for c in table.closings if c.suspended_s and c.suspended_s > SLEPT_S]
    found = []
    if jumps:
        text = (
            f"the wall clock jumped by {max(jumps, key=abs):.4g} s in {_of(jumps, table)}: its time stamps are wrong, "
            "the times of calls, from another clock, are not"
        )
        found.append(NamedWarning(name="clock-jump", text=text))
    if slept:
        text = f"the machine slept up to {max(slept):.3g} s in {_of(slept, table)}: before and after it may differ"
        found.append(NamedWarning(name="suspended", text=text))
    return found


def _jumped(jump_s: float, seconds: float) -> bool:
    return abs(jump_s) > JUMP_S + JUMP_SHARE * seconds


def _unlike_machines(table: LaunchTable) -> list[NamedWarning]:
    others = [found for line in table.launches if (found := surroundings_differ(table.launches[0], line))]
    if not others:
        return []
    texts = [f"{len(others)} of {len(table.launches)} launches differ from the first in {described(others[0])}"]
    hosts = by_host(table.launches)
    if len(hosts) > 1 and min(map(len, hosts)) >= MIN_LAUNCHES:
        texts.append(f"each host has {MIN_LAUNCHES} launches or more: split the file to ask each by itself")
    return [NamedWarning(name="unlike-machines", text="; ".join(texts))]


def _of(found: list[float], table: LaunchTable) -> str:
    return f"{len(found)} of {table.num_launches} launches"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 1 else f"{100 * share:.2g} %"
