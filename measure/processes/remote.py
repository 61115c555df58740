"""The leader's side of a cluster: waits until every rank is there, and hands each launch to all of them."""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import msgspec

import breakeven

from ...data.schema import Failure
from ..endings import Ended
from ..launch import Child, free_port
from ..protocol import Message, Request
from ..workload import MeasureError
from .cluster import ADDRESS, Cluster
from .group import Rank
from .link import Answer, Close, End, Hello, Leaving, Link, Lost, Order, Report, Said, Start, Stop, accept, listen
from .nodes import alias, node
from .spread import Place, uneven
from .whereabouts import Whereabouts

_LOCAL = ("localhost", "127.0.0.1", "::1")


class Followers:
    """Ranks 1, 2, ... of a cluster, joined while the block lasts; leaving it ends them.

    Parameters
    ----------
    cluster : this process's, which leads
    workload : as the command line names it: no rank does anything else
    timeout_s : longest wait for all ranks to come
    options : what else the command line asks for, by name: each rank must have been given the same

    Raises
    ------
    MeasureError
        On entering, if a rank does not come (it is named), came twice, or was started for something else, or if the
        ranks do not lie evenly on their hosts.
    """

    def __init__(
        self, cluster: Cluster, workload: str, *, timeout_s: float, options: Mapping[str, str] | None = None
    ) -> None:
        self._cluster, self._workload, self._timeout_s = cluster, workload, timeout_s
        self._options = options or {}
        self._joined: dict[int, _Follower] = {}
        self.code = 0

    @property
    def nodes(self) -> int:
        """Running systems that the ranks are spread over."""
        return len({node(), *(follower.hello.node for follower in self._joined.values())})

    @property
    def processes(self) -> int:
        """Ranks, this one included."""
        return self._cluster.processes

    def __enter__(self) -> Self:
        try:
            self._wait_for_all()
            self._check_spread()
        except BaseException as error:
            self._close(2, str(error) if isinstance(error, MeasureError) else None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(self.code)

    def start(self, request: Request) -> Sequence[Rank]:
        """Return the ranks of one launch: a child of this process, and those that the followers start.

        Raises
        ------
        MeasureError
            If a follower is gone: the others cannot go on without it.
        """
        for follower in self._joined.values():
            if follower.gone:
                raise MeasureError(
                    f"{follower.name} is gone, and without it nothing more can be measured. What was measured is "
                    "kept: start all ranks again with the same command, and it goes on."
                )
        host = "127.0.0.1" if self._cluster.host in _LOCAL else self._cluster.host
        request = msgspec.structs.replace(request, coordinator=f"{_bracketed(host)}:{free_port()}")
        remote = [
            Remote(msgspec.structs.replace(request, rank=rank), self._joined[rank]) for rank in sorted(self._joined)
        ]
        return [Child(request), *remote]

    def _wait_for_all(self) -> None:
        cluster, deadline = self._cluster, time.monotonic() + self._timeout_s
        try:
            server = listen(cluster.port, local=cluster.host in _LOCAL)
        except OSError as error:
            raise MeasureError(
                f"rank 0 cannot listen at port {cluster.port} of this host ({error.strerror}): is another sweep of "
                f"this job running? Give a free port with --coordinator {cluster.host}:PORT or {ADDRESS}."
            ) from None
        with server:
            while missing := sorted(set(range(1, cluster.processes)) - self._joined.keys()):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise MeasureError(_describe_missing(missing, cluster, self._timeout_s))
                if (link := accept(server, cluster.key, left)) is not None:
                    self._welcome(link)

    def _check_spread(self) -> None:
        hellos = [self._joined[rank].hello for rank in sorted(self._joined)]
        places = [Place(node(), platform.node()), *(Place(hello.node, hello.host) for hello in hellos)]
        if reason := uneven(places):
            raise MeasureError(reason)

    def _welcome(self, link: Link[Report]) -> None:
        try:
            hello = link.receive(self._timeout_s)
        except Lost:
            hello = None
        if not isinstance(hello, Hello):
            link.close()
            return
        known = self._joined.get(hello.rank)
        follower = _Follower(link, hello)
        if refusal := _refusal(hello, known, self._cluster, self._workload, self._options):
            # Kept, so that it hears why.
            self._joined[-1] = follower
            raise MeasureError(f"{follower.name} {refusal}")
        self._joined[hello.rank] = follower

    def _close(self, code: int, reason: str | None = None) -> None:
        for follower in self._joined.values():
            with contextlib.suppress(Lost):
                follower.link.send(Close(code=code, reason=reason))
        for follower in self._joined.values():
            follower.link.finish()


def _refusal(
    hello: Hello, known: _Follower | None, cluster: Cluster, workload: str, options: Mapping[str, str]
) -> str | None:
    """Why a rank cannot take part."""
    if hello.version != breakeven.__version__:
        return f"runs breakeven {hello.version}, rank 0 runs {breakeven.__version__}: install one version everywhere."
    if hello.workload != workload:
        return f"was started for workload {hello.workload}, rank 0 for {workload}: give all ranks the same command."
    for name in sorted(options.keys() | hello.options):
        theirs, ours = hello.options.get(name), options.get(name)
        if theirs != ours:
            return f"was started {_told(name, theirs)}, rank 0 {_told(name, ours)}: give all ranks the same command."
    if hello.processes != cluster.processes or not 0 < hello.rank < cluster.processes:
        return f"says that there are {hello.processes} processes, rank 0 that there are {cluster.processes}."
    if known is not None:
        return f"is there twice, on {known.hello.host} too: every process needs a rank of its own."
    return None


def _told(name: str, value: str | None) -> str:
    return f"without {name}" if value is None else f"with {name} {value}".rstrip()


def _describe_missing(missing: Sequence[int], cluster: Cluster, timeout_s: float) -> str:
    ranks = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
    return (
        f"{ranks} of {cluster.processes} did not come within {timeout_s:g} s. Rank 0 waits on {platform.node()}, and "
        f"the others look for it at {cluster.host}:{cluster.port} (from {cluster.launcher}): check that they were "
        "started, and that they can reach that address."
    )


class _Follower:
    """A rank that has joined."""

    def __init__(self, link: Link[Report], hello: Hello) -> None:
        self.link, self.hello = link, hello
        self.gone = False

    @property
    def name(self) -> str:
        """For messages."""
        return f"rank {self.hello.rank} on {self.hello.host}"


class Remote:
    """One launch of a follower: what ``launch.Child`` is for a process of this host."""

    def __init__(self, request: Request, follower: _Follower) -> None:
        self._request, self._follower = request, follower
        self._doing = Whereabouts()
        self._ended = False

    @property
    def rank(self) -> int:
        """Its place among the processes of the launch."""
        return self._request.rank

    def __enter__(self) -> Self:
        ends_at = self._request.ends_at
        left = None if ends_at is None else ends_at - time.monotonic()
        self._order(Start(request=self._request, seconds_left=left))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._order(End())

    def fileno(self) -> int:
        """Descriptor of the connection."""
        return self._follower.link.fileno()

    def answer(self) -> None:
        """Let it go on after a round."""
        self._order(Answer())

    def stop(self) -> None:
        """Ask it to show where it is and to end."""
        self._order(Stop())

    def take(self) -> Sequence[Message] | None:
        """What its process said; a ``Failure`` when the connection is lost, and None after the last.

        Raises
        ------
        Ended
            If a signal ended the follower: that is for the whole sweep.
        """
        if self._ended:
            return None
        taken: list[Message] = []
        try:
            while (report := self._follower.link.receive(0)) is not None:
                taken += self._of_this_launch(report)
                if self._ended:
                    break
        except Lost as error:
            self._ended = self._follower.gone = True
            taken.append(self._failure(str(error)))
        return taken

    def _of_this_launch(self, report: Report) -> Sequence[Message]:
        if isinstance(report, Leaving):
            self._follower.gone = True
            if report.signal is not None:
                raise Ended(report.signal)
            raise Lost(report.reason)
        # What the launch before had still under way when it was ended comes first.
        if not isinstance(report, Said) or report.launch != self._request.launch:
            return ()
        self._ended = report.ended
        for message in report.messages:
            self._doing.note(message)
        return report.messages

    def _failure(self, reason: str) -> Failure:
        hello, salt = self._follower.hello, self._request.host_salt
        host = hello.host if salt is None else alias(hello.host, salt)
        return Failure(
            sweep=self._request.sweep,
            launch=self._request.launch,
            stage=self._doing.step.stage,
            error="Lost",
            message=f"lost on {host}: {reason}",
            cell=self._doing.cell,
            rank=self.rank,
        )

    def _order(self, order: Order) -> None:
        # A follower that is gone is noticed where its messages are read.
        with contextlib.suppress(Lost):
            self._follower.link.send(order)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
