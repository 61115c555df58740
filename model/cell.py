"""One point of a sweep: which program ran, on how many devices, at which size."""

from __future__ import annotations

from dataclasses import dataclass

ROLES = ("workload", "local", "null", "chain", "replay", "pair", "sentinel")
"""The workload; the same work without communication; the same arguments and outputs without work;
k dependent collectives; the workload's own collectives chained, without compute; k messages to and fro between two
devices; one fixed program that shows whether the machine drifts."""

QUEUED_ROLES = ("workload", "null")
"""Roles whose calls are also queued: the null program's time is then the host's part of a call, free of waking up."""

AS_WRITTEN = "as-written"
"""Strategy of a program that a user wrote, whatever it uses inside."""


def devices(count: int) -> str:
    """``1 device``, ``8 devices``."""
    return f"{count} device" if count == 1 else f"{count} devices"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What is timed as one: a role, how it is spread, and where in the (n, S) plane it stands.

    Attributes
    ----------
    role : one of ``ROLES``
    strategy : how the workload is spread over devices (``jit``, ``shard_map``, ``pmap``, ...)
    num_devices : n
    size : the *global* problem size S, in the workload's unit
    k : chain and pair only, the number of dependent collectives in one program
    payload_bytes : chain and pair only, the message of each collective, bytes
    pair : pair only, the two devices, by their places in the mesh
    """

    role: str
    strategy: str
    num_devices: int
    size: int
    k: int | None = None
    payload_bytes: int | None = None
    pair: tuple[int, int] | None = None

    @property
    def size_per_device(self) -> float:
        """S / n."""
        return self.size / self.num_devices

    @property
    def sort_key(self) -> tuple[int, str, int, int, tuple[int, int], int, int]:
        """Order for printing: role, strategy, size, devices, pair, payload, k."""
        return (
            ROLES.index(self.role),
            self.strategy,
            self.size,
            self.num_devices,
            self.pair or (0, 0),
            self.payload_bytes or 0,
            self.k or 0,
        )

    def __str__(self) -> str:
        probe = "" if self.k is None else f" k={self.k} {self.payload_bytes} B"
        place = devices(self.num_devices) if self.pair is None else "devices {} and {}".format(*self.pair)
        return f"{self.role}/{self.strategy} on {place}, size {self.size}{probe}"
