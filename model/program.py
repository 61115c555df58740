"""Facts of one compiled program, as plain data. Unknown is None, never a guess."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Collective:
    """One collective instruction of a compiled program.

    Attributes
    ----------
    kind : ``all-reduce``, ``all-gather``, ``reduce-scatter``, ``all-to-all``, ``collective-permute``,
        ``collective-broadcast``
    count : executions per call, loops multiplied in; None where a trip count is unknown
    operands : arrays in the instruction (a tuple all-reduce has several)
    message_bytes : sum of ``operand_bytes``
    operand_bytes : bytes of each operand. All-reduce, all-to-all, collective-permute and broadcast: the
        buffer on each device. All-gather: the gathered result; reduce-scatter: the input before scattering
        (both the total over the group, as in nccl-tests).
    group_size : devices that take part in one group; None where the text does not say
    """

    kind: str
    count: int | None
    operands: int
    message_bytes: int
    operand_bytes: tuple[int, ...]
    group_size: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramFacts:
    """What the compiler says about one program, for ONE device.

    Attributes
    ----------
    flops, bytes_accessed : per device and call; None where unknown (a loop of unknown trip count, no analysis)
    work : declared by the workload's author where XLA cannot know; else None
    collectives : in program order
    point_to_point : send and recv instructions
    callbacks : calls back into the host's Python
    custom_calls : targets of the other custom calls, each name once
    unknown_trip_counts : some loop's trip count is unknown
    inline : XLA's CPU client runs it in the calling thread (one device, below 1,000 counted flops); None: unknown
    num_arguments : arrays passed per call
    devices_used : devices the compiled program runs on; fewer than the mesh has where nothing lies on the others
    inputs_in_place : every argument already lies as the program wants it when it is called
    collectives_known : False for data from elsewhere that do not say what the program exchanges
    peak_flops : flops per second that one device cannot exceed, a generous bound; None where it is unknown, or where
        the counted flops need not be those that run
    padded_share : share of the size axis that is padding, where the size does not divide by the devices
    """

    flops: float | None = None
    bytes_accessed: float | None = None
    work: float | None = None
    collectives: tuple[Collective, ...] = ()
    point_to_point: int = 0
    callbacks: int = 0
    custom_calls: tuple[str, ...] = ()
    unknown_trip_counts: bool = False
    inline: bool | None = None
    num_arguments: int = 0
    devices_used: int | None = None
    inputs_in_place: bool = True
    collectives_known: bool = True
    peak_flops: float | None = None
    padded_share: float | None = None

    @property
    def communicates(self) -> bool:
        """Whether a collective or a point-to-point transfer was found."""
        return bool(self.collectives) or self.point_to_point > 0

    @property
    def can_rule_out_communication(self) -> bool:
        """No collective, transfer, callback or custom call, and inputs in place: nothing can communicate."""
        if not self.collectives_known:
            return False
        return not (self.communicates or self.callbacks or self.custom_calls) and self.inputs_in_place

    @property
    def compute_work(self) -> float | None:
        """Declared work, else flops, else None."""
        return self.work if self.work is not None else self.flops
