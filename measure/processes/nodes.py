"""Which host a process runs on, and what the record calls it."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
from pathlib import Path

import msgspec

from ...data.schema import Machine
from ..control_group import read_text
from ..machine import boot
from ..variables import LEFT_OUT

_NAMES_HOSTS = re.compile(r"HOST|ADDR|URI|NODE|SERVER|DIR", re.IGNORECASE)


def node(root: Path = Path("/")) -> str:
    """Name the running system: the same for all its processes, whatever the hosts are called."""
    return boot(root) or platform.node()


def alias(host: str, salt: str) -> str:
    """Return what stands for a host's name: the same within a sweep, and of no use to look the name up."""
    return f"host-{hashlib.sha256(f'{salt} {host}'.encode()).hexdigest()[:10]}"


def hidden(found: Machine, salt: str | None) -> Machine:
    """A machine without names of hosts or folders, those in its variables included; with no salt, as it is."""
    if salt is None:
        return found
    kept = []
    for variable in found.variables:
        name, _, value = variable.partition("=")
        names_host = _NAMES_HOSTS.search(name) or (found.host is not None and found.host in value)
        kept.append(f"{name}={LEFT_OUT if names_host else without_folders(value)}")
    host = None if found.host is None else alias(found.host, salt)
    return msgspec.structs.replace(found, host=host, variables=tuple(kept))


def without_folders(text: str) -> str:
    """Return the value of a variable, or flags, without the words that hold a path; flags keep their names."""
    return re.sub(r"([^\s=/]*=)?\S*/\S*", rf"\g<1>{LEFT_OUT}", text)


@functools.cache
def salt_of(sweep: str, root: Path = Path("/")) -> str:
    """Return a word that the record does not hold, the same whenever this system goes on with this sweep.

    Notes
    -----
    Made of the system's own identifier, which is to stay within it (``man machine-id``): whoever has the record
    cannot try names of hosts. Where there is none the word is random, one for this process: a sweep that goes on
    shows new names.
    """
    identifier = read_text(root / "etc/machine-id").strip() or os.urandom(16).hex()
    return hashlib.sha256(f"breakeven {identifier} {sweep}".encode()).hexdigest()
