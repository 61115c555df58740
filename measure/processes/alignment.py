"""How a launch's devices are spread over processes and hosts, and which counts take whole ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..devices import Devices
from ..workload import MeasureError

_SHOWN = 16
_MOST_IDLE = 8


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Processes of a launch, the hosts they run on, and whether a launcher started them (each with its own devices)."""

    processes: int = 1
    nodes: int = 1
    launched: bool = False

    def visible(self, available: Devices, largest: int) -> int:
        """Devices of all processes together.

        Parameters
        ----------
        available : what JAX finds in the first process
        largest : count asked for

        Raises
        ------
        MeasureError
            If they cannot be shared out.
        """
        if available.forced:
            return -(-largest // self.processes) * self.processes
        if self.launched:
            return available.count * self.processes
        if self.processes > 1 and available.platform != "gpu":
            raise MeasureError(
                f"processes: on {available.platform} one process has all devices of a host; start one a host with the "
                "launcher of your cluster (srun, mpiexec), and leave --processes out."
            )
        if available.count % self.processes:
            raise MeasureError(
                f"processes: {self.processes} cannot share {available.count} devices evenly; give a number that "
                f"divides {available.count}."
            )
        return available.count

    def check_busy(self, largest: int) -> None:
        """Refuse a host full of processes of ours that have no device at the largest count; a few may look on."""
        if not self.launched and self.processes > max(largest, _MOST_IDLE):
            raise MeasureError(
                f"processes: {self.processes} asked for, but the largest count is {largest}, and a process without a "
                f"device takes no part. Give at most {max(largest, _MOST_IDLE)}, or a larger count."
            )

    def fits(self, count: int, visible: int) -> bool:
        """Whether a count lies within one process, or takes whole ones; the same with hosts."""
        wholes = (visible // self.processes, visible // self.nodes)
        return all(count <= whole or count % whole == 0 for whole in wholes)

    def defaults(self, counts: Sequence[int], visible: int) -> tuple[int, ...]:
        """Those counts that are possible, and all devices."""
        return tuple(sorted({visible, *(count for count in counts if self.fits(count, visible))}))

    def check(self, counts: Sequence[int], visible: int) -> None:
        """Refuse a count that would take a part of a process or host beside whole ones.

        Raises
        ------
        MeasureError
            It names the count and those that are possible.
        """
        for count in counts:
            if not self.fits(count, visible):
                possible = [str(n) for n in range(1, visible + 1) if self.fits(n, visible)]
                shown = ", ".join(possible if len(possible) <= _SHOWN else [*possible[:_SHOWN], "...", possible[-1]])
                hosts = f" on {self.nodes} hosts" if self.nodes > 1 else ""
                raise MeasureError(
                    f"devices: {count} of {visible} devices in {self.processes} processes{hosts} would take a part of "
                    f"one beside whole ones, and its time would speak of neither. Possible: {shown}."
                )
