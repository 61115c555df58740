"""A profiler's trace as JAX writes it (``.xplane.pb``): which operation ran on which device, from when to when.

Two layouts are read. On the host platform operations lie on the threads that ran them and name their device; on
accelerators each device has a plane of its own, with a line ``XLA Ops`` or a line a stream. The layout of accelerators
is from what is published about it, not from a run.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .workload import MeasureError

CALL_MARK = "breakeven call"
"""Name of the annotation around each traced call."""

_DEVICE_PLANE = re.compile(r"/device:[A-Z]+:(\d+)")
_OPS_LINE = "XLA Ops"

Span = tuple[int, int]
"""Begin and end, nanoseconds on the profile's clock."""


@dataclass(frozen=True)
class CallProfile:
    """What ran during one call.

    Attributes
    ----------
    spans : by device and name of the HLO instruction, its executions in order
    """

    spans: dict[int, dict[str, list[Span]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def executions(self, device: int, name: str) -> list[Span]:
        """When a device executed an instruction, in order."""
        return self.spans.get(device, {}).get(name, [])

    def busy_ns(self, device: int) -> int:
        """Time in which the device executed at least one operation, collectives and their waiting included."""
        total, reached = 0, 0
        for begin, end in sorted(span for spans in self.spans.get(device, {}).values() for span in spans):
            total += max(0, end - max(begin, reached))
            reached = max(reached, end)
        return total


def read(folder: Path) -> list[CallProfile]:
    """Read the only profile under a folder, call by call.

    Returns
    -------
    list of CallProfile
        One a marked call. An operation belongs to the last call that began before it: calls are made one at a time.

    Raises
    ------
    MeasureError
        If there is none, or more than one.
    """
    from jax.profiler import ProfileData

    paths = list(folder.rglob("*.xplane.pb"))
    if len(paths) != 1:
        raise MeasureError(f"JAX's profiler wrote {len(paths)} files (*.xplane.pb) where one was expected.")
    planes = list(ProfileData.from_file(str(paths[0])).planes)
    begins = sorted(int(e.start_ns) for e in _host_events(planes) if e.name == CALL_MARK)
    calls = [CallProfile() for _ in begins]
    for device, name, span in _operations(planes):
        index = bisect_right(begins, span[0]) - 1
        if index >= 0:
            calls[index].spans[device][name].append(span)
    for call in calls:
        for spans in call.spans.values():
            for executions in spans.values():
                executions.sort()
    return calls


def _host_events(planes: Iterable[Any]) -> Iterator[Any]:
    return (e for plane in planes if plane.name.startswith("/host:") for line in plane.lines for e in line.events)


def _operations(planes: list[Any]) -> Iterator[tuple[int, str, Span]]:
    """Device, name of the HLO instruction, span."""
    for plane in planes:
        if found := _DEVICE_PLANE.match(plane.name):
            for event, name in _on_device_plane(plane):
                yield int(found[1]), name, _span(event)
    for event in _host_events(planes):
        stats = dict(event.stats)
        if "hlo_op" in stats and "device_ordinal" in stats:
            yield int(stats["device_ordinal"]), stats["hlo_op"], _span(event)


def _on_device_plane(plane: Any) -> Iterator[tuple[Any, str]]:
    """Operations of one accelerator: of its line of operations, else those on its streams that name one."""
    lines = list(plane.lines)
    ops = [line for line in lines if line.name == _OPS_LINE]
    for event in (e for line in ops or lines for e in line.events):
        name = dict(event.stats).get("hlo_op")
        if name is not None:
            yield event, name
        elif ops:
            # There the event's own name is the instruction's text: ``%name = type opcode(...)``.
            yield event, event.name.partition(" = ")[0].removeprefix("%")


def _span(event: Any) -> Span:
    begin = int(event.start_ns)
    return begin, begin + int(event.duration_ns)
