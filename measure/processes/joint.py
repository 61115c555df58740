"""What several processes say of one launch, as one stream: its first process speaks, the others' times are joined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
import numpy as np

from ...data.machines import cores_together
from ...data.schema import Failure, Launch, Visit
from ..protocol import Finished, Message, Round, Starts
from ..workload import MeasureError
from .spread import place, shared, uneven
from .team import BARRIER


class Joint:
    """Joins the messages of ``size`` processes.

    ``Launch``, ``Round`` and ``Finished`` come when all have said theirs; visits before their round. All else of a
    process but the first is left out: what it builds and how it goes on is the first one's word.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._launches: dict[int, Launch] = {}
        self._visits: dict[tuple[int, int], dict[int, Visit]] = defaultdict(dict)
        self._starts: dict[tuple[int, int], dict[int, Starts]] = defaultdict(dict)
        self._rounds: dict[int, Round] = {}
        self._finished: set[int] = set()

    def add(self, rank: int, message: Message) -> Iterator[Message]:
        """Take what one process said; yield what can be said now."""
        match message:
            case Launch():
                self._launches[rank] = message
                if len(self._launches) == self._size:
                    yield self._joined_launch()
            case Visit():
                self._visits[message.round, message.program][rank] = message
            case Starts():
                self._starts[message.round, message.program][rank] = message
            case Round():
                self._rounds[rank] = message
                if len(self._rounds) == self._size:
                    yield from self._joined_visits()
                    yield self._rounds[0]
                    self._rounds.clear()
            case Finished():
                self._finished.add(rank)
                if len(self._finished) == self._size:
                    yield message
            case _ if rank == 0 or isinstance(message, Failure):
                yield message

    def _joined_launch(self) -> Launch | Failure:
        """The first one's, with all machines; a failure where the processes cannot be compared."""
        launches = [self._launches[rank] for rank in range(self._size)]
        first = launches[0]
        for rank, launch in enumerate(launches):
            for what, name in _SAME.items():
                there, here = getattr(launch, name), getattr(first, name)
                if there != here:
                    return _refused(
                        first,
                        f"rank {rank} has {what} {there}, rank 0 has {here}; all processes of a launch need the same.",
                        rank=rank,
                    )
        if self._size > 1 and (reason := uneven(list(map(place, launches))) or shared(launches)):
            return _refused(first, reason)
        machines = tuple(chain.from_iterable(launch.machines for launch in launches))
        of_node: dict[str | None, list[Launch]] = defaultdict(list)
        for launch in launches:
            for machine in launch.machines:
                of_node[machine.boot or machine.host].append(launch)
        nodes = len(of_node) or 1
        return msgspec.structs.replace(
            first,
            machines=machines,
            cores=min(filter(None, map(_cores, of_node.values() or [launches])), default=None),
            processes=self._size,
            nodes=nodes,
            devices_per_node=None if first.visible_devices is None else first.visible_devices // nodes,
            barrier=BARRIER if self._size > 1 else None,
        )

    def _joined_visits(self) -> Iterator[Visit]:
        """The visits of a round, in the first process's order: each call as long as the slowest took."""
        of_first = [(key, by_rank) for key, by_rank in self._visits.items() if 0 in by_rank]
        for key, by_rank in sorted(of_first, key=lambda visit: visit[1][0].position):
            starts = self._starts.get(key, {})
            if by_rank.keys() < starts.keys():
                continue  # one of them failed, and the visit with it
            visits = [by_rank[rank] for rank in sorted(by_rank)]
            if len(visits) == 1:
                yield visits[0]
                continue
            queued = [visit.queued_ns for visit in visits if visit.queued_ns is not None]
            yield msgspec.structs.replace(
                visits[0],
                latency_ns=_slowest([visit.latency_ns for visit in visits]),
                dispatch_ns=_slowest([visit.dispatch_ns for visit in visits]),
                queued_ns=max(queued, default=None),
                ranks_ns=tuple(visit.latency_ns for visit in visits),
                skew_ns=self._skew_ns([starts[rank].starts_ns for rank in sorted(starts)], visits[0].warmups),
            )
        self._visits.clear()
        self._starts.clear()

    def _skew_ns(self, starts: Sequence[Sequence[int]], warmups: int) -> int | None:
        """Median over the timed calls of the last start less the first; None without a clock that all share."""
        boots = {machine.boot for launch in self._launches.values() for machine in launch.machines}
        if len(boots) != 1 or None in boots:
            return None
        timed = np.array(starts)[:, warmups:]
        return int(np.median(timed.max(axis=0) - timed.min(axis=0)))


def _cores(launches: Sequence[Launch]) -> int | None:
    """Cores of one node, as its processes say; the fewest that one of them may use where not all are told."""
    told = [launch.cores for launch in launches if launch.cores is not None]
    if not told:
        return None
    return cores_together([machine for launch in launches for machine in launch.machines]) or min(told)


def _refused(first: Launch, message: str, rank: int | None = None) -> Failure:
    return Failure(
        sweep=first.sweep,
        launch=first.launch,
        stage="launch",
        error=MeasureError.__name__,
        message=message,
        rank=rank,
    )


def _slowest(ranks: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(max, zip(*ranks, strict=True)))


_SAME = {
    "platform": "platform",
    "device kind": "device_kind",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "device count": "devices_per_process",
}
