"""Plans of the two sweeps about links: messages between every two devices, and all-reduces over several ring orders."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..data.schema import Plan
from . import devices as host
from .clock import MAX_CALLS
from .pairs import ELEMENT_BYTES
from .processes.alignment import Layout
from .workload import MeasureError

DEFAULT_PAYLOADS = (4, 2**20)
"""Bytes: the first shows alpha, the last beta."""
DEFAULT_DEVICES = 8
LINKS = "links"
"""Stands for the workload, in both kinds of sweep."""
MESSAGES = "ppermute"
DEFAULT_ORDER, PROPOSED_ORDER = "default-order", "proposed-order"


def pairs_plan(
    available: host.Devices,
    *,
    devices: int | None = None,
    payloads: Sequence[int] = DEFAULT_PAYLOADS,
    launches: int = 6,
    budget_s: float | None = None,
    rounds: int | None = None,
    calls: int | None = None,
    warmups: int | None = None,
    step_timeout_s: float = 120.0,
    seed: int = 0,
    layout: Layout | None = None,
) -> Plan:
    """Plan messages between every two of the first ``devices`` devices.

    Parameters
    ----------
    available : what JAX finds in one process
    devices : how many; default all that there are; of forced host devices 8, or one in each of several processes
    payloads : bytes of a message, at least two sizes
    layout : processes and hosts; default one process

    Other parameters are those of ``Plan``.

    Raises
    ------
    MeasureError
        For anything that cannot be measured; the message says what to give instead.
    """
    host.refuse_nesting()
    layout = layout or Layout()
    few = DEFAULT_DEVICES if layout.processes == 1 else layout.processes
    most = host.MAX_FORCED if available.forced else layout.visible(available, 1)
    count = devices or (few if available.forced else most)
    if count < 2:
        raise MeasureError(f"one device has no links: --devices must be at least 2, got {count}.")
    if count > most:
        raise MeasureError(f"--devices {count}: JAX finds at most {most} here ({available.kind}).")
    visible = layout.visible(available, count)
    layout.check((count,), visible)
    if wrong := [size for size in payloads if size < 1 or size % ELEMENT_BYTES]:
        raise MeasureError(f"--payloads must be positive multiples of {ELEMENT_BYTES} bytes, got {wrong[0]}.")
    if len(set(payloads)) < len(payloads) or len(payloads) < 2:
        raise MeasureError(
            "--payloads: give at least two sizes, each once, as in 4,1MiB: alpha and beta are the line through them."
        )
    if calls is not None and not 1 <= calls <= MAX_CALLS:
        raise MeasureError(f"--calls must be from 1 to {MAX_CALLS}, got {calls}.")
    return Plan(
        workload=LINKS,
        path="strong",
        objective="time",
        devices=(count,),
        sizes=tuple(sorted(payloads)),
        strategies=(MESSAGES,),
        unit="B",
        divides=False,
        platform=available.platform,
        visible_devices=visible,
        launches=launches,
        budget_s=budget_s,
        rounds=rounds,
        warmups=warmups,
        calls=calls,
        queued_calls=0,
        controls=False,
        probes=False,
        step_timeout_s=step_timeout_s,
        seed=seed,
        processes=layout.processes,
        pairs=True,
    )


def orders_plan(pairs: Plan, proposed: Sequence[int]) -> Plan:
    """Plan all-reduces over the devices as they stand and in another order, measured side by side.

    Parameters
    ----------
    pairs : of the sweep that the order comes from; the all-reduces are such that a ring sends its payloads
    proposed : places of the devices

    Raises
    ------
    MeasureError
        If the order does not name each device once.
    """
    (count,) = pairs.devices
    if sorted(proposed) != list(range(count)):
        raise MeasureError(f"an order names each of the {count} devices once, got {tuple(proposed)}.")
    return msgspec.structs.replace(
        pairs,
        sizes=tuple(count * payload for payload in pairs.sizes),
        strategies=(DEFAULT_ORDER, PROPOSED_ORDER),
        pairs=False,
        orders=(tuple(range(count)), tuple(proposed)),
    )
