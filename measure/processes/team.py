"""The processes of one launch, from within one of them: what they agree on, and the barrier before a call.

Everything goes through the coordination service of JAX; this is the only module that knows its calls. Nothing here
gives up by itself: a process that never comes is found by the parents, who hear that all have fallen silent.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

import msgspec

from ..protocol import Request
from .head_start import round_trip_s

T = TypeVar("T")

BARRIER = "coordination service"
"""Name of the barrier in the record."""

_CONNECT_S = 120
"""Until all processes have started: the slowest host imports JAX from a busy file system."""
_HEARTBEAT_S = 100
_SHUTDOWN_S = 10
_PATIENCE_MS = 24 * 3600 * 1000


class Team:
    """One process alone: agrees with itself.

    Attributes
    ----------
    rank : place of this process among those of the launch; the first one leads
    size : how many there are
    round_trips_s : of each process to the service that opens the barrier
    """

    rank = 0
    size = 1
    round_trips_s: tuple[float, ...] = (0.0,)

    def lead(self, value: T, kind: Any) -> T:  # noqa: ARG002 - what the others must be told to read
        """Return the first process's value, of type ``kind``, in all of them; theirs is not looked at."""
        return value

    def gather(self, value: T, members: tuple[int, ...], kind: Any) -> tuple[T, ...]:  # noqa: ARG002 - as in ``lead``
        """Return what each of ``members`` gave, in their order, in all of them; each calls it, the others do not."""
        return (value,)

    def barrier(self, members: tuple[int, ...]) -> None:
        """Wait until each of ``members`` has come; where there is one, this takes no time."""


class Processes(Team):
    """Several processes that JAX has joined."""

    def __init__(self, client: Any, rank: int, size: int) -> None:
        self._client = client
        self.rank, self.size = rank, size
        self._led = 0
        self._gathered = Counter[tuple[int, ...]]()
        key = f"breakeven/ping/{rank}"
        self._set(key, rank)
        own = round_trip_s(lambda: self._get(key, int))
        self.round_trips_s = self.gather(own, tuple(range(size)), float)

    def lead(self, value: T, kind: Any) -> T:
        """See ``Team``."""
        key = f"breakeven/lead/{self._led}"
        self._led += 1
        if self.rank == 0:
            self._set(key, value)
            return value
        return self._get(key, kind)

    def gather(self, value: T, members: tuple[int, ...], kind: Any) -> tuple[T, ...]:
        """See ``Team``."""
        if len(members) == 1:
            return (value,)
        key = f"breakeven/gather/{_name(members)}/{self._gathered[members]}"
        self._gathered[members] += 1
        if self.rank != members[0]:
            self._set(f"{key}/{self.rank}", value)
            return self._get(key, tuple[kind, ...])
        values = (value, *(self._get(f"{key}/{rank}", kind) for rank in members[1:]))
        self._set(key, values)
        return values

    def barrier(self, members: tuple[int, ...]) -> None:
        """See ``Team``."""
        if len(members) > 1:
            self._client.wait_at_barrier(f"breakeven/{_name(members)}", _PATIENCE_MS, list(members))

    def _set(self, key: str, value: Any) -> None:
        self._client.key_value_set(key, msgspec.json.encode(value).decode())

    def _get(self, key: str, kind: Any) -> Any:
        return msgspec.json.decode(self._client.blocking_key_value_get(key, _PATIENCE_MS), type=kind)


def _name(members: tuple[int, ...]) -> str:
    return "-".join(map(str, members))


def join(request: Request) -> Team:
    """Join the launch's other processes, if there are any; to be called before any backend starts.

    Raises
    ------
    RuntimeError
        If they do not all come.
    """
    if request.coordinator is None:
        return Team()
    import jax
    from jax._src.distributed import global_state  # jax.distributed has no barrier and no key-value store

    size = request.plan.processes
    # The default today, but what is measured should not depend on that.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # It would take SIGTERM for itself.
    jax.config.update("jax_enable_preemption_service", False)
    jax.distributed.initialize(
        request.coordinator,
        size,
        request.rank,
        local_device_ids=request.local_devices,
        # What the environment says of a cluster, the parents have read.
        cluster_detection_method="deactivate",
        initialization_timeout=_CONNECT_S,
        heartbeat_timeout_seconds=_HEARTBEAT_S,
        shutdown_timeout_seconds=_SHUTDOWN_S,
    )
    return Processes(global_state.client, request.rank, size)
