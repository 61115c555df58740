"""Who else was started with this process: its rank and the leader's address, read from the environment alone.

Nothing of JAX or MPI is imported: a launcher says all that is needed in variables. One process is no cluster: a plain
shell inside an allocation, or ``srun -n1``, measures by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..control_group import read_text
from ..workload import MeasureError

ADDRESS, PROCESSES, RANK = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
COMPLETION_INDEX = "JOB_COMPLETION_INDEX"
SECRET = "BREAKEVEN_KEY"
"""May hold a word that the ranks of one job share and nobody else knows."""

_FIRST_PORT, _PORTS = 61_000, 4_500
"""Above the ports that Linux hands out by itself (32768-60999)."""
_FIRST_SPECIAL_STEP = 0xFFFF_FFF0
"""Slurm's batch, extern and interactive steps have the numbers 0xfffffffb, -c and -a: no srun of the user's."""
_TELL = f"set {ADDRESS}, or give --coordinator, to HOST:PORT: the host where rank 0 runs and a free port of it"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """This process among those that were started together; rank 0 leads.

    Attributes
    ----------
    launcher : what started them, for messages
    host, port : where the leader listens
    key : shared by the ranks; a connection without it is refused
    """

    launcher: str
    rank: int
    processes: int
    host: str
    port: int
    key: bytes = field(repr=False)

    @property
    def leads(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What one kind of launcher says. ``identity`` names the job on all ranks; ``size_from``: the variable."""

    launcher: str
    rank: int
    processes: int
    size_from: str
    host: str | None = None
    identity: str = ""


def starter() -> str:
    """The process that started this rank and its neighbours: hydra's proxy, or the parent where there is none."""
    process = os.getppid()
    while process > 1:
        folder = Path(f"/proc/{process}")
        if read_text(folder / "comm").startswith("hydra_pmi_prox"):
            return str(process)
        parent = re.search(r"^PPid:\s*(\d+)", read_text(folder / "status"), re.MULTILINE)
        process = int(parent[1]) if parent else 0
    return str(os.getppid())


def detect(
    environment: Mapping[str, str] = os.environ,
    *,
    coordinator: str | None = None,
    starter: Callable[[], str] = starter,
) -> Cluster | None:
    """Find out whether several processes were started together, and which of them this is.

    Parameters
    ----------
    environment : variables, this process's own unless told
    coordinator : ``HOST:PORT`` of the leader, as the user gave it; wins over every variable
    starter : names the process that started the ranks of one host, where the launcher gives its job no name

    Returns
    -------
    Cluster or None
        None: one process, whoever started it.

    Raises
    ------
    MeasureError
        If variables are half set or contradict one another (they are named), or nothing says where the leader is.
    """
    launched = next(filter(None, (read(environment) for read in (_open_mpi, _hydra, _slurm, _pmi))), None)
    told = _told(environment, launched, coordinator)
    found = told or launched
    address = coordinator or environment.get(ADDRESS)
    if found is None:
        if coordinator is not None:
            raise MeasureError(
                f"--coordinator is for one of several processes, and nothing says how many there are and which this "
                f"is: start them with srun or mpiexec, or set {PROCESSES} and {RANK}."
            )
        return None
    if address is not None:
        host, port = _host_and_port(address, "--coordinator" if coordinator is not None else ADDRESS)
        return _cluster(found, host, port, address, environment)
    if found.host is None:
        raise MeasureError(
            f"{found.launcher} started {found.processes} processes on several hosts, and its variables do not say "
            f"where rank 0 runs: {_TELL}."
        )
    identity = found.identity or starter()
    return _cluster(found, found.host, _FIRST_PORT + zlib.crc32(identity.encode()) % _PORTS, identity, environment)


def refuse_several(environment: Mapping[str, str] = os.environ) -> None:
    """Raise MeasureError in one of several processes that a launcher started: each would measure by itself."""
    cluster = detect(environment)
    if cluster is not None:
        raise MeasureError(
            f"{cluster.launcher} started {cluster.processes} processes of this program, and each would measure by "
            "itself. Under a launcher use the command line, which joins them: breakeven study path/to/file.py:build."
        )


def _cluster(found: _Found, host: str, port: int, identity: str, environment: Mapping[str, str]) -> Cluster:
    secret = environment.get(SECRET, "")
    return Cluster(
        launcher=found.launcher,
        rank=found.rank,
        processes=found.processes,
        host=host,
        port=port,
        key=hashlib.sha256(f"breakeven {identity} {secret}".encode()).digest(),
    )


def _told(environment: Mapping[str, str], launched: _Found | None, coordinator: str | None) -> _Found | None:
    """What the user's own variables say, completed by the launcher's; they must agree on the number of processes."""
    rank_from = RANK if RANK in environment else COMPLETION_INDEX
    names = {name for name in (ADDRESS, PROCESSES, RANK) if name in environment}
    if not names or (launched is not None and names == {ADDRESS}):
        return None
    if ADDRESS not in names and coordinator is None and launched is None:
        present = " and ".join(sorted(names))
        raise MeasureError(f"{present} {'are' if len(names) > 1 else 'is'} set, but not {ADDRESS}; {_ALL_OR_NONE}.")
    if PROCESSES in environment:
        processes = _number(environment, PROCESSES, least=1)
    elif launched is not None:
        processes = launched.processes
    else:
        present = "--coordinator is given" if coordinator is not None else f"{ADDRESS} is set"
        raise MeasureError(f"{present}, but not {PROCESSES}; {_ALL_OR_NONE}.")
    if launched is not None and processes != launched.processes:
        raise MeasureError(
            f"{PROCESSES} is {processes}, but {launched.size_from} of {launched.launcher} is {launched.processes}; "
            "unset one, or make them equal."
        )
    if processes == 1:
        return None
    if rank_from in environment:
        rank = _rank(environment, rank_from, processes, PROCESSES)
    elif launched is not None:
        rank = launched.rank
    else:
        raise MeasureError(f"{PROCESSES} is set, but neither {RANK} nor {COMPLETION_INDEX}; {_ALL_OR_NONE}.")
    return _Found(
        launcher="variables" if launched is None else launched.launcher,
        rank=rank,
        processes=processes,
        size_from=PROCESSES,
        host=None if launched is None else launched.host,
        identity="" if launched is None else launched.identity,
    )


_ALL_OR_NONE = f"set {ADDRESS} (HOST:PORT of rank 0), {PROCESSES} and {RANK} for every process, or none of them"


def _open_mpi(environment: Mapping[str, str]) -> _Found | None:
    prefix = "OMPI_COMM_WORLD_"
    size, rank = f"{prefix}SIZE", f"{prefix}RANK"
    found = _ranked(environment, "Open MPI", rank, size)
    if found is None:
        return None
    # Version 5 names the job after the host that mpiexec runs on and its process; 4 has that host's address in a URI.
    # By default rank 0 runs on that host.
    name = environment.get("PMIX_NAMESPACE", "")
    uri = environment.get("OMPI_MCA_orte_hnp_uri", "")
    together = environment.get(f"{prefix}LOCAL_SIZE") == environment[size]
    named = re.fullmatch(r"prterun-(.+)-\d+@\d+", name)
    address = re.search(r"tcp6?://\[?([^,\]/]+?)(?:,|\]|:\d+$)", uri)
    host = "localhost" if together else named[1] if named else address[1] if address else None
    return replace(found, host=host, identity=name or uri.partition(";")[0])


def _hydra(environment: Mapping[str, str]) -> _Found | None:
    if "MPI_LOCALNRANKS" not in environment:
        return None
    found = _ranked(environment, "MPICH", "PMI_RANK", "PMI_SIZE")
    if found is None:
        return None
    together = environment["MPI_LOCALNRANKS"] == environment["PMI_SIZE"]
    return replace(found, host="localhost" if together else None)


def _pmi(environment: Mapping[str, str]) -> _Found | None:
    """Any other launcher that speaks to MPI programs through PMI says no more than rank and size."""
    if not {"PMI_RANK", "PMI_SIZE"} <= environment.keys():
        return None
    return _ranked(environment, "a PMI launcher", "PMI_RANK", "PMI_SIZE")


def _slurm(environment: Mapping[str, str]) -> _Found | None:
    """A step of ``srun``; the shell of ``salloc`` and the script of ``sbatch`` are no steps of several tasks."""
    step = environment.get("SLURM_STEP_ID", "")
    rank = environment.get("SLURM_PROCID", "")
    if not step and rank.isdecimal() and int(rank) > 0:
        # A batch script is number 0.
        raise MeasureError(f"SLURM_PROCID of srun is {rank}, but SLURM_STEP_ID is not set: set both, or neither.")
    if not step.isdecimal() or int(step) >= _FIRST_SPECIAL_STEP:
        return None
    # SLURM_NTASKS of an allocation stays in the environment of a step with another number of tasks.
    size = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in environment else "SLURM_NTASKS"
    found = _ranked(environment, "srun", "SLURM_PROCID", size)
    if found is None:
        return None
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_NODELIST")
    job = environment.get("SLURM_JOB_ID", "")
    return replace(found, host=first_host(nodes) if nodes else None, identity=f"slurm {job}.{step}")


def first_host(nodes: str) -> str:
    """The first host of a list as Slurm writes it: ``rack[2-3]-n[04,07-15],login`` gives ``rack2-n04``."""
    entry = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    if entry is None:
        raise MeasureError(f"SLURM_STEP_NODELIST is {nodes!r}, which names no host.")
    return re.sub(r"\[([^,\-\]]+)[^\]]*\]", r"\1", entry[0])


def _ranked(environment: Mapping[str, str], launcher: str, rank: str, size: str) -> _Found | None:
    """Rank and number of processes from a launcher's two variables; None where there is one process or neither."""
    if rank not in environment and size not in environment:
        return None
    for name, other in ((rank, size), (size, rank)):
        if name not in environment:
            raise MeasureError(f"{other} of {launcher} is set, but not {name}: set both, or neither.")
    processes = _number(environment, size, least=1)
    number = _rank(environment, rank, processes, size)
    if processes == 1:
        return None
    return _Found(launcher=launcher, rank=number, processes=processes, size_from=size)


def _number(environment: Mapping[str, str], name: str, *, least: int) -> int:
    text = environment[name]
    if not text.isdecimal() or int(text) < least:
        raise MeasureError(f"{name} is {text!r}; it must be a whole number from {least} on.")
    return int(text)


def _rank(environment: Mapping[str, str], name: str, processes: int, size_from: str) -> int:
    rank = _number(environment, name, least=0)
    if rank >= processes:
        raise MeasureError(f"{name} is {rank}, but {size_from} is {processes}: ranks count from 0 to {processes - 1}.")
    return rank


def _host_and_port(address: str, name: str) -> tuple[str, int]:
    """``HOST:PORT``; an IPv6 address stands in brackets."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:\[\]]+)):(\d{1,5})", address)
    if match is None or not 0 < int(match[3]) < 2**16:
        raise MeasureError(f"{name} is {address!r}; write HOST:PORT, as in node1:61234.")
    return match[1] or match[2], int(match[3])
