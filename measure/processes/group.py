"""The processes of one launch, as their leader sees them: several streams of messages joined into one."""

from __future__ import annotations

import contextlib
import selectors
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from ...data.schema import Failure
from ..launch import local_ranks
from ..protocol import Finished, Message, Request, Round
from .blame import SILENT, WAITING, follows, root
from .joint import Joint
from .whereabouts import Whereabouts


class Rank(Protocol):
    """One process of a launch: local (``launch.Child``) or on another host. Leaving its block ends it at once."""

    @property
    def rank(self) -> int:
        """Its place among the processes of the launch."""
        ...

    def __enter__(self) -> Self:
        """Start it."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, with all it started; must not wait for anything that may not come."""
        ...

    def fileno(self) -> int:
        """Descriptor that is readable when ``take`` has something to return (for ``select``)."""
        ...

    def take(self) -> Sequence[Message] | None:
        """What it said since the last call, whole messages only, maybe none; called when ``fileno`` is readable.

        When it ended without ``Finished``, or cannot be reached any more, the last message is a ``Failure`` with one
        of the errors ``ENDS``; the call after that, and after ``Finished`` at the end, returns None.
        """
        ...

    def answer(self) -> None:
        """Let it go on after a ``Round``."""
        ...

    def stop(self) -> None:
        """Ask it to show where it is and to end; its ``Failure``, with the user's frames, comes through ``take``."""
        ...


Start = Callable[[Request], Sequence[Rank]]
"""From the first process's request to all processes of the launch, in the order of ranks."""

ENDS = ("Died", "Hung", "Lost", WAITING)
"""Errors of a process that is there no more."""
_SLICE_S = 0.5
_GRACE_S = 2.0
"""After a failure: until the others have said how they fare, so that the root can be told from what follows it."""


class Group:
    """The processes of one launch, ended when the block is left."""

    def __init__(self, request: Request, start: Start = local_ranks) -> None:
        self._request = request
        self._ranks = start(request)
        self._joint = Joint(len(self._ranks))
        self._doing = [Whereabouts() for _ in self._ranks]
        self._selector = selectors.DefaultSelector()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            opening.enter_context(self._selector)
            for rank in self._ranks:
                opening.enter_context(rank)
                self._selector.register(rank, selectors.EVENT_READ, rank)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def messages(self) -> Iterator[Message]:
        """Yield what the launch says until it ends; the last message is ``Finished``, or the ``Failure`` that ended it.

        Each ``Round`` is answered when the next message is asked for: the processes wait until then. What costs only
        its cell is a ``Failure`` on the way. Where a process dies, all fall silent, or a call fails that others are
        in, the launch is over: one ``Failure`` names the process and the reason at the root.

        Silence is counted in slices of listening: what whoever asked took over a message, or a time in which this
        process was itself stopped (a suspended job), is nobody's.
        """
        limit = self._request.plan.step_timeout_s
        slice_s, silent_s = min(_SLICE_S, limit), 0.0
        while self._selector.get_map():
            ends: dict[int, Failure] = {}
            began, heard = time.monotonic(), False
            # Before the end a last look: what was said while this process was stopped may still lie there.
            for rank, message in self._said(slice_s if silent_s < limit else 0.0):
                heard = True
                if isinstance(message, Failure) and self._is_the_end(message):
                    ends.setdefault(rank, self._of_rank(message, rank))
                for joint in () if ends else self._joint.add(rank, self._named(message, rank)):
                    yield joint
                    if isinstance(joint, Round):
                        for each in self._ranks:
                            each.answer()
                    if isinstance(joint, Finished) or (isinstance(joint, Failure) and self._is_the_end(joint)):
                        return
            if ends:
                yield self._root(ends)
                return
            if not heard and silent_s >= limit:
                yield self._hung(limit)
                return
            silent_s = 0.0 if heard else silent_s + min(slice_s, time.monotonic() - began)

    def _said(self, wait_s: float) -> Iterator[tuple[int, Message]]:
        """What any process says within a while."""
        for key, _ in self._selector.select(wait_s):
            said = key.data.take()
            if said is None:
                self._selector.unregister(key.fileobj)
                continue
            for message in said:
                self._doing[key.data.rank].note(message)
                yield key.data.rank, message

    def _named(self, message: Message, rank: int) -> Message:
        """A failure that costs its cell only names its process, unless that was done when all agreed on it."""
        if not isinstance(message, Failure) or message.stage != "visit" or len(self._ranks) == 1:
            return message
        return root([self._of_rank(message, rank)], 1)

    def _of_rank(self, failure: Failure, rank: int) -> Failure:
        return msgspec.structs.replace(failure, rank=rank) if len(self._ranks) > 1 else failure

    def _is_the_end(self, failure: Failure) -> bool:
        """Whether the launch cannot go on; what several processes build and compile they agree on themselves."""
        in_a_call = failure.stage == "visit" and failure.cell is not None and self._members(failure) > 1
        return failure.error in ENDS or failure.stage == "launch" or in_a_call

    def _members(self, failure: Failure) -> int:
        """Processes that take part in what failed."""
        if failure.cell is None:
            return len(self._ranks)
        plan = self._request.plan
        return -(-failure.cell.num_devices * plan.processes // plan.visible_devices)

    def _root(self, ends: dict[int, Failure]) -> Failure:
        """The one that the others follow from; ``ends`` are those known so far."""
        if len(self._ranks) == 1:
            return ends[0]
        self._listen(ends)
        if all(map(follows, ends.values())):
            self._stop(ends)
        return root(list(ends.values()), self._members(next(iter(ends.values()))))

    def _hung(self, limit: float) -> Failure:
        """Who keeps all others waiting; where several may, where each of them stands."""
        ends: dict[int, Failure] = {}
        self._stop(ends)
        found = ends[0] if len(self._ranks) == 1 else self._root(ends)
        stuck = [end for _, end in sorted(ends.items()) if not follows(end)]
        if not stuck:
            where = "it was ended inside JAX" if len(self._ranks) == 1 else self._who_waits(sorted(ends))
        elif len(stuck) == 1 or found.rank is None or found.error == SILENT:
            where = found.message
        else:
            where = "; ".join(f"rank {end.rank} was in {end.frames[-1]}" for end in stuck if end.frames)
            found = msgspec.structs.replace(found, rank=None)
        longer = f"{limit:g} s (if it only needs longer: --timeout)"
        return msgspec.structs.replace(found, error="Hung", message=f"no sign of life for {longer}; {where}")

    def _who_waits(self, ranks: Sequence[int]) -> str:
        if len(ranks) == len(self._ranks):
            return "all processes wait for each other"
        return f"{', '.join(f'rank {rank}' for rank in ranks)} waited for others that had finished"

    def _listen(self, ends: dict[int, Failure]) -> None:
        """Give the processes that have neither failed nor finished yet a while to do so."""
        until = time.monotonic() + _GRACE_S
        while self._others(ends) and self._selector.get_map() and (left := until - time.monotonic()) > 0:
            for rank, message in self._said(left):
                if isinstance(message, Failure) and self._is_the_end(message):
                    ends.setdefault(rank, self._of_rank(message, rank))

    def _stop(self, ends: dict[int, Failure]) -> None:
        """Ask all others where they are; one that does not even answer to that stands still."""
        for rank in self._others(ends):
            self._ranks[rank].stop()
        self._listen(ends)
        for rank in self._others(ends):
            doing = self._doing[rank]
            silent = Failure(
                sweep=self._request.sweep,
                launch=self._request.launch,
                stage=doing.step.stage,
                error=SILENT,
                message="it does not answer",
                cell=doing.cell,
                rank=rank,
            )
            ends[rank] = silent

    def _others(self, ends: dict[int, Failure]) -> list[int]:
        """Ranks that are still at work, as far as is known."""
        return [rank for rank, doing in enumerate(self._doing) if rank not in ends and not doing.finished]
