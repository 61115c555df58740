"""The processes that a command measures with: its own, or those that a launcher started together with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import typer

from . import options, output

if TYPE_CHECKING:
    from ..measure.processes.cluster import Cluster
    from ..measure.processes.group import Start


@dataclass(frozen=True, kw_only=True)
class Company:
    """What the command line said about processes; the launcher may know more.

    ``timeout`` is also the longest wait for the others; ``hide_hosts``: whether names of hosts are hashed; ``options``:
    what the command does, which must be the same for all ranks.
    """

    processes: int | None = None
    coordinator: str | None = None
    timeout: str = "120s"
    hide_hosts: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Processes of a launch, the running systems they are on, whether a launcher started them, and how they start."""

    processes: int
    nodes: int
    launched: bool
    start: Start


_OWN = ("workload", "file", "coordinator", "record", "folder", "as_json")
"""Each rank's own; the workload is compared by itself."""


def asked_of(context: typer.Context) -> dict[str, str]:
    """What a command was asked to do, by option; where it writes and how it shows that concerns its own rank only."""
    named = {parameter.name: parameter.opts[0] for parameter in context.command.params if parameter.name}
    known = {named[name]: value for name, value in context.params.items() if name in named and name not in _OWN}
    told = {name: value for name, value in known.items() if value is not None and value is not False}
    words = {name: "" if value is True else str(value) for name, value in told.items()}
    return {"the command": str(context.info_name)} | words


@contextlib.contextmanager
def joined(workload: str, company: Company) -> Iterator[Ranks]:
    """Lead the ranks while the block lasts; any other rank than 0 follows here, and never enters the block.

    The others end with this command's exit code.

    Parameters
    ----------
    workload : as the command line names it: no rank measures another

    Raises
    ------
    MeasureError
        If the environment contradicts itself, or not all ranks come.
    """
    from ..measure.launch import local_ranks
    from ..measure.processes.cluster import detect

    timeout_s = options.timeout(company.timeout)
    cluster = detect(coordinator=company.coordinator)
    if cluster is None:
        start = _hiding(local_ranks) if company.hide_hosts else local_ranks
        yield Ranks(processes=company.processes or 1, nodes=1, launched=False, start=start)
        return
    if company.processes not in (None, cluster.processes):
        output.bad_argument(
            "--processes",
            f"{company.processes}, but {cluster.launcher} started {cluster.processes}; leave the option out.",
        )
    if not cluster.leads:
        _follow(cluster, workload, timeout_s, company.options)
    from ..measure.endings import like_interrupts
    from ..measure.processes.remote import Followers

    with like_interrupts(), contextlib.ExitStack() as open_:
        followers = Followers(cluster, workload, timeout_s=timeout_s, options=company.options)
        try:
            open_.enter_context(followers)
        except KeyboardInterrupt as interruption:
            output.interrupted(interruption)
        try:
            yield Ranks(
                processes=cluster.processes,
                nodes=followers.nodes,
                launched=True,
                start=_hiding(followers.start) if company.hide_hosts else followers.start,
            )
        except BaseException as error:
            followers.code = _exit_code(error)
            raise


def _follow(cluster: Cluster, workload: str, timeout_s: float, asked: Mapping[str, str]) -> NoReturn:
    """Take part, and end as the leader does. It alone speaks, also about a signal that came to all."""
    from ..measure.endings import signal_of
    from ..measure.processes.follower import follow

    try:
        code = follow(cluster, workload, timeout_s=timeout_s, options=asked)
    except KeyboardInterrupt as interruption:
        code = 128 + signal_of(interruption)
    raise typer.Exit(code)


def _hiding(start: Start) -> Start:
    """Start processes that record hashes instead of names of hosts."""
    import msgspec

    from ..measure.processes.nodes import salt_of

    return lambda request: start(msgspec.structs.replace(request, host_salt=salt_of(request.sweep)))


def _exit_code(error: BaseException) -> int:
    """What ``app.main`` will exit with."""
    from ..measure.endings import signal_of

    if isinstance(error, KeyboardInterrupt):
        return 128 + signal_of(error)
    bad = output.BAD_INPUT if isinstance(error, ValueError | OSError) else 1
    return getattr(error, "exit_code", bad)
