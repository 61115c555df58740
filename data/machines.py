"""Whether two launches ran on the same kind of device, and what else differs between them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .schema import Launch, Machine

LEFT_OUT = "(left out)"
"""What a record holds in place of a value that may be secret or name a host."""

HASHED = re.compile(r"host-[0-9a-f]{10}")
"""What a sweep that hides its hosts calls one; another sweep calls the same host otherwise."""

_COMPUTING = ("JAX_", "XLA_", "LIBTPU_", "TF_XLA_")
"""Variables that can change which program runs; the others below only how it runs."""
_RUNNING = (
    *("NCCL_", "RCCL_", "CUDA_", "GLOO_", "UCX_", "FI_"),
    *("OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS_", "MALLOC_", "LD_PRELOAD"),
)
_WHERE_OR_WHO = re.compile(
    r"XLA_FLAGS|ADDR|HOST|PORT|URI|NODE|SERVER|RANK|PROCESS|VISIBLE|HOME|DIR|PATH|FILE|CACHE|DUMP|LOG|TRACEBACK|"
    r"NCCL_DEBUG|(^|_)IDS?(_|$)"
)
"""In the names of variables that say where things are, which of several this is, or what is printed."""
_UNSET = "not set"

_WORDS = {"device_kind": "device kind", "xla_flags": "XLA_FLAGS"}


class Difference(NamedTuple):
    """Something in which two launches differ. What one of them does not say is no difference."""

    name: str
    one: object
    other: object


def devices_differ(one: Launch, other: Launch) -> list[Difference]:
    """What differs in the kind of devices. Host devices are as different as the processors they are made of."""
    names = ("platform", "cpu" if other.platform == "cpu" else "device_kind")
    return _said(Difference(name, getattr(one, name), getattr(other, name)) for name in names)


def surroundings_differ(one: Launch, other: Launch) -> list[Difference]:
    """What else differs and may change times: hosts, cores, versions, flags, variables."""
    names = ("cores", "jax", "jaxlib", "python", "xla_flags")
    same_names = (Difference(n, getattr(one, n), getattr(other, n)) for n in names)
    return _said([*_hosts_differ(one, other), *same_names, *_variables_differ(one, other)])


def settings(launch: Launch) -> tuple[object, ...]:
    """Versions, flags and variables under which one program is lowered to one text."""
    variables = sorted(_variables(launch, _COMPUTING).items())
    return (launch.jax, launch.jaxlib, launch.xla_flags, *variables)


def cores_together(machines: Sequence[Machine]) -> int | None:
    """Cores that the processes of one node may use together, bound to the same ones or to cores of their own.

    None where one of them does not say. One group's quota is told by each process in it, and not which group that is:
    processes in containers of their own may have more together, and are then called crowded too soon, not too late.
    """
    if not machines or not all(machine.affinity for machine in machines):
        return None
    allowed = len(set[int]().union(*(machine.affinity for machine in machines)))
    quotas = [math.ceil(machine.quota_cores) for machine in machines if machine.quota_cores is not None]
    return max(1, min([allowed, *quotas]))


def by_host(launches: Iterable[Launch]) -> list[list[Launch]]:
    """Launches that say where they ran, together with those of which nothing says that they ran elsewhere."""
    groups: list[list[Launch]] = []
    for launch in launches:
        if launch.machines:
            group = next((group for group in groups if not _said(_hosts_differ(group[0], launch))), None)
            if group is None:
                groups.append([launch])
            else:
                group.append(launch)
    return groups


def _hosts_differ(one: Launch, other: Launch) -> list[Difference]:
    """Nothing where one system ran both, whatever it was called, or where the names do not tell."""
    boots = [[machine.boot for machine in launch.machines] for launch in (one, other)]
    if boots[0] == boots[1] and None not in boots[0]:
        return []
    hosts = [", ".join(machine.host or "" for machine in launch.machines) for launch in (one, other)]
    hidden = [all(HASHED.fullmatch(m.host or "") for m in launch.machines) for launch in (one, other)]
    if hidden[0] != hidden[1] or (hidden[0] and one.sweep != other.sweep):
        return []
    return [Difference("host", *hosts)]


def _variables(launch: Launch, prefixes: tuple[str, ...]) -> dict[str, str]:
    """Of a launch's first process, without those that say where or who."""
    pairs = (v.partition("=")[::2] for machine in launch.machines[:1] for v in machine.variables)
    return {name: value for name, value in pairs if name.startswith(prefixes) and not _WHERE_OR_WHO.search(name)}


def _variables_differ(one: Launch, other: Launch) -> list[Difference]:
    """Nothing where one of them names no variables, or leaves the value out."""
    if not all(launch.machines and launch.machines[0].variables for launch in (one, other)):
        return []
    a, b = (_variables(launch, _COMPUTING + _RUNNING) for launch in (one, other))
    values = {name: (a.get(name, _UNSET), b.get(name, _UNSET)) for name in sorted(a | b)}
    return [Difference(n, *both) for n, both in values.items() if not any(LEFT_OUT in value for value in both)]


def described(found: Iterable[Difference]) -> str:
    """``host (a and b), jax (0.9 and 0.10)``."""
    return ", ".join(f"{name} ({one} and {other})" for name, one, other in found)


def _said(found: Iterable[Difference]) -> list[Difference]:
    return [d._replace(name=_WORDS.get(d.name, d.name)) for d in found if d.one and d.other and d.one != d.other]
