"""Whether two launches ran on the same kind of device, and what else differs between them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .schema import Launch, Machine

HASHED = re.compile(r"host-[0-9a-f]{10}")
"""What a sweep that hides its hosts calls one; another sweep calls the same host otherwise."""

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
    """What else differs and may change times: hosts, cores, versions, flags."""
    names = ("cores", "jax", "jaxlib", "python", "xla_flags")
    return _said([*_hosts_differ(one, other), *(Difference(n, getattr(one, n), getattr(other, n)) for n in names)])


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


def described(found: Iterable[Difference]) -> str:
    """``host (a and b), jax (0.9 and 0.10)``."""
    return ", ".join(f"{name} ({one} and {other})" for name, one, other in found)


def _said(found: Iterable[Difference]) -> list[Difference]:
    return [d._replace(name=_WORDS.get(d.name, d.name)) for d in found if d.one and d.other and d.one != d.other]
