"""Whether two launches ran on the same kind of device, and what else differs between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .schema import Launch

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
    hosts = [", ".join(machine.host or "" for machine in launch.machines) for launch in (one, other)]
    names = ("cores", "jax", "jaxlib", "python", "xla_flags")
    return _said([Difference("host", *hosts), *(Difference(n, getattr(one, n), getattr(other, n)) for n in names)])


def described(found: Iterable[Difference]) -> str:
    """``host (a and b), jax (0.9 and 0.10)``."""
    return ", ".join(f"{name} ({one} and {other})" for name, one, other in found)


def _said(found: Iterable[Difference]) -> list[Difference]:
    return [d._replace(name=_WORDS.get(d.name, d.name)) for d in found if d.one and d.other and d.one != d.other]
