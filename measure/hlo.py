"""Facts of a compiled program, read from the text of its HLO and from XLA's cost analysis.

Whatever the text does not say becomes None. Collectives count where they run: a loop multiplies by its known trip
count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..model.program import Collective, ProgramFacts
from .hlo_module import Instruction, Module, array_bytes, first_group

INLINE_FLOPS = 1000.0
"""XLA's CPU client runs a one-device program with fewer counted flops than this in the calling thread."""

UNREADABLE = "unreadable HLO"
"""Stands among the custom calls where part of the text was not understood."""

LOCAL_TARGETS = {
    "TopK": "selects inside one device's array",
    "lapack_": "LAPACK on one device's matrix, in the host's memory",
    "__onednn$": "oneDNN kernel of one device",
    "__cublas$": "cuBLAS kernel of one device",
    "__cudnn$": "cuDNN kernel of one device",
    "__cub$": "CUB sort of one device's array",
    "__gpu$TopK": "selects inside one device's array",
    "cusolver_": "cuSOLVER on one device's matrix",
    "cu_threefry2x32": "random bits, made where they are used",
    "AllocateBuffer": "uninitialised memory of one device",
}
"""Custom calls that cannot communicate, by the start of their target, with the reason. Any other is unknown:
a user's kernel may well send. The GPU entries are from XLA's sources, not from a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HloSummary:
    """What the text of one program says.

    ``trip_counts`` has one entry a loop reached, None where the compiler does not know it; the other fields are
    those of ``ProgramFacts``.
    """

    collectives: tuple[Collective, ...] = ()
    point_to_point: int = 0
    callbacks: int = 0
    custom_calls: tuple[str, ...] = ()
    trip_counts: tuple[int | None, ...] = ()


def program_facts(
    compiled: Any, args: Sequence[Any], *, work: float | None = None, in_place: bool = True
) -> ProgramFacts:
    """Return the facts of one compiled program, for one device.

    Parameters
    ----------
    compiled : jax.stages.Compiled
    args : sequence of pytrees
        What a call is given; only its arrays are counted.
    work : float, optional
        Per-device work that the author declares where XLA cannot know it, in any fixed unit.
    in_place : bool
        Whether every argument lies as the program wants it when it is called.

    Returns
    -------
    ProgramFacts
        ``flops`` and ``bytes_accessed`` are None when a loop runs other than once: XLA's cost analysis counts a
        loop body once, whatever its trip count.
    """
    import jax

    summary = summarize(compiled.as_text() or "")
    flops, bytes_accessed = counted_cost(compiled)
    trusted = all(count == 1 for count in summary.trip_counts)
    return ProgramFacts(
        flops=flops if trusted else None,
        bytes_accessed=bytes_accessed if trusted else None,
        work=work,
        collectives=summary.collectives,
        point_to_point=summary.point_to_point,
        callbacks=summary.callbacks,
        custom_calls=summary.custom_calls,
        unknown_trip_counts=None in summary.trip_counts,
        inline=_runs_inline(compiled, flops),
        num_arguments=len(jax.tree.leaves(args)),
        devices_used=_devices_used(compiled),
        inputs_in_place=in_place,
    )


def _devices_used(compiled: Any) -> int:
    """Of this process and, as far as outputs lie there, of others."""
    import jax

    outputs = jax.tree.leaves(compiled.output_shardings)
    return max(len(compiled.runtime_executable().local_devices()), *(sharding.num_devices for sharding in outputs), 1)


def counted_cost(compiled: Any) -> tuple[float | None, float | None]:
    """Flops and bytes that XLA's cost analysis counts for one device, each loop body once; None where it has none."""
    analysis = compiled.cost_analysis()
    if not analysis:
        return None, None
    flops, bytes_accessed = (analysis.get(key, 0.0) for key in ("flops", "bytes accessed"))
    # XLA writes -1 for "not analysed".
    return (flops if flops >= 0 else None), (bytes_accessed if bytes_accessed >= 0 else None)


def _runs_inline(compiled: Any, counted_flops: float | None) -> bool | None:
    devices = compiled.runtime_executable().local_devices()
    if len(devices) != 1 or devices[0].platform != "cpu":
        return False
    return None if counted_flops is None else counted_flops < INLINE_FLOPS


def summarize(text: str) -> HloSummary:
    """Read what a program's HLO text says about communication and loops.

    Notes
    -----
    A collective in a branch of a ``conditional`` has count None: which branch runs is known only when it runs.
    A start/done pair counts once, at its start. A loop's condition runs once more than its body.
    Send and recv to the host are the way accelerators call back into Python, so they are callbacks.
    """
    module = Module.parse(text)
    collectives: list[Collective] = []
    trip_counts: list[int | None] = []
    # What could not be read may communicate, like unknown code.
    custom_calls = [] if module.readable else [UNREADABLE]
    callbacks = point_to_point = 0
    for instruction, computation, count in module.walk():
        opcode = instruction.opcode
        if kind := instruction.collective_kind:
            collectives.append(_describe(module, instruction, kind, computation, count))
        elif opcode == "while":
            trip_counts.append(instruction.trip_count)
        elif opcode in ("send", "recv"):
            to_host = "is_host_transfer=true" in instruction.attributes
            callbacks += to_host
            point_to_point += not to_host
        elif opcode in ("infeed", "outfeed"):
            callbacks += 1
        elif opcode.startswith("custom-call") and opcode != "custom-call-done":
            target = first_group(r'custom_call_target="([^"]*)"', instruction.attributes) or "unnamed"
            if "callback" in target:
                callbacks += 1
            elif not target.startswith(tuple(LOCAL_TARGETS)):
                custom_calls.append(target)
    return HloSummary(
        collectives=tuple(collectives),
        point_to_point=point_to_point,
        callbacks=callbacks,
        custom_calls=tuple(dict.fromkeys(custom_calls)),
        trip_counts=tuple(trip_counts),
    )


def parse_collectives(text: str) -> tuple[Collective, ...]:
    """The collectives of a program's HLO text, in program order."""
    return summarize(text).collectives


def named_collectives(text: str) -> dict[str, Collective]:
    """The collectives of a program's HLO text by the names of their instructions, as a profiler writes them."""
    module = Module.parse(text)
    return {
        instruction.name: _describe(module, instruction, kind, computation, count)
        for instruction, computation, count in module.walk()
        if (kind := instruction.collective_kind)
    }


def _describe(module: Module, instruction: Instruction, kind: str, computation: str, count: int | None) -> Collective:
    """One collective; sizes follow the conventions of ``Collective``."""
    operands = instruction.operands[:1] if kind == "ragged-all-to-all" else instruction.operands
    if kind == "all-gather":
        # A start returns (operands, results, ...), the plain form the results alone.
        first = len(operands) if instruction.opcode.endswith("-start") else 0
        sizes = array_bytes(instruction.type)[first : first + len(operands)]
    else:
        sizes = [sum(array_bytes(module.type_of(operand, computation))) for operand in operands]
    return Collective(
        kind=kind,
        count=count,
        operands=len(operands),
        message_bytes=sum(sizes),
        operand_bytes=tuple(sizes),
        group_size=_group_size(instruction.attributes, module.num_devices),
    )


def _group_size(attributes: str, num_devices: int | None) -> int | None:
    """Devices in one group, from whichever syntax the attributes use; None where groups differ or are not said."""
    if pairs := first_group(r"source_target_pairs=\{((?:\{\d+,\s*\d+\}(?:,\s*)?)*)\}", attributes):
        return _largest_component([(int(a), int(b)) for a, b in re.findall(r"(\d+),\s*(\d+)", pairs)])
    if found := re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}", attributes):
        sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", found[1])}
        axes = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", found[2])
        return math.prod(int(part) if part else sizes[name] for name, part in axes)
    if found := first_group(r"replica_groups=\[([\d,]+)\]<=", attributes):
        return math.prod(int(size) for size in found.split(",")[1:])
    if found := first_group(r"replica_groups=\{((?:\{[\d,\s]*\}(?:,\s*)?)*)\}", attributes):
        sizes = {len(group.split(",")) for group in re.findall(r"\{([^}]*)\}", found)}
        return sizes.pop() if len(sizes) == 1 else None
    # An empty list means one group of all.
    return num_devices if "replica_groups={}" in attributes else None


def _largest_component(pairs: list[tuple[int, int]]) -> int:
    """Devices that a permutation joins, in the largest set of them."""
    groups: list[set[int]] = []
    for pair in pairs:
        joined = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in joined] + [set(pair).union(*joined)]
    return max(len(group) for group in groups)
