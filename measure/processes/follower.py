"""A rank other than 0: joins its leader and runs what that asks for, launch by launch. It writes and prints nothing."""

from __future__ import annotations

import contextlib
import os
import platform
import select
import time
from collections.abc import Mapping

import msgspec

import breakeven

from ..endings import like_interrupts, signal_of
from ..launch import Child
from ..workload import MeasureError
from .cluster import ADDRESS, Cluster
from .link import Answer, Close, End, Hello, Leaving, Link, Lost, Order, Said, Start, Stop, connect
from .nodes import node


def follow(cluster: Cluster, workload: str, *, timeout_s: float, options: Mapping[str, str] | None = None) -> int:
    """Take part until the leader is done.

    Parameters
    ----------
    cluster : this process's
    workload : as the command line names it; a request for another is refused, whoever sends it
    timeout_s : longest wait for the leader to listen
    options : what else the command line asks for, by name; the leader refuses a rank that was given others

    Returns
    -------
    int
        The leader's exit code.

    Raises
    ------
    MeasureError
        If the leader cannot be reached, refuses this rank, or is gone before it is done.
    KeyboardInterrupt
        On Ctrl-C, SIGTERM and the like, which the leader is told.
    """
    with like_interrupts():
        try:
            link = connect(cluster.host, cluster.port, cluster.key, timeout_s)
        except TimeoutError as error:
            raise MeasureError(
                f"rank {cluster.rank} found no leader at {cluster.host}:{cluster.port} (from {cluster.launcher}) "
                f"within {timeout_s:g} s: {error}. Rank 0 must run there; if it runs elsewhere, give --coordinator "
                f"HOST:PORT or {ADDRESS}."
            ) from None
        try:
            return _Following(cluster, workload, dict(options or {}), link).run()
        except Lost:
            raise MeasureError(
                f"rank {cluster.rank}: the leader on {cluster.host} is gone, and this rank ends too. Start all ranks "
                "again with the same command, and the sweep goes on."
            ) from None
        except BaseException as error:
            signal = signal_of(error) if isinstance(error, KeyboardInterrupt) else None
            with contextlib.suppress(Lost):
                link.send(Leaving(reason=str(error) or type(error).__name__, signal=signal))
            raise
        finally:
            link.close()


class _Following:
    """A connection to the leader, and what it asks for."""

    def __init__(self, cluster: Cluster, workload: str, options: dict[str, str], link: Link[Order]) -> None:
        self._cluster, self._workload, self._options, self._link = cluster, workload, options, link

    def run(self) -> int:
        """Carry out orders; the exit code comes with the last."""
        self._link.send(
            Hello(
                rank=self._cluster.rank,
                processes=self._cluster.processes,
                host=platform.node(),
                node=node(),
                version=breakeven.__version__,
                workload=self._workload,
                options=self._options,
            )
        )
        order = self._link.receive()
        while not isinstance(order, Close):
            # An answer or an end may follow a launch that is over here.
            order = self._launch(order) if isinstance(order, Start) else self._link.receive()
        if order.reason is not None:
            raise MeasureError(order.reason)
        return order.code

    def _launch(self, start: Start) -> Order | None:
        """Run one launch's process, until the leader ends it; return the order that did."""
        if start.request.plan.workload != self._workload:
            raise MeasureError(
                f"rank {self._cluster.rank} was started for {self._workload} and asked for "
                f"{start.request.plan.workload}: it measures nothing else."
            )
        left = start.seconds_left
        request = msgspec.structs.replace(
            start.request,
            parent=os.getpid(),
            # This host's clock, not the leader's.
            ends_at=None if left is None else time.monotonic() + left,
        )
        with Child(request) as child:
            heard = [child, self._link]
            while True:
                ready, _, _ = select.select(heard, [], [])
                if child in ready:
                    messages = child.take()
                    said = Said(launch=request.launch, messages=tuple(messages or ()), ended=messages is None)
                    if (last := self._said_or_over(said)) is not None:
                        return last
                    if messages is None:
                        heard.remove(child)
                if self._link in ready:
                    order = self._link.receive()
                    if isinstance(order, Answer):
                        child.answer()
                    elif isinstance(order, Stop):
                        child.stop()
                    elif isinstance(order, End | Close):
                        return order

    def _said_or_over(self, said: Said) -> Close | None:
        """Tell the leader; where it has closed in order, its last word is here already, and is returned."""
        try:
            self._link.send(said)
        except Lost:
            while (order := self._link.receive(0)) is not None:
                if isinstance(order, Close):
                    return order
            raise
        return None
