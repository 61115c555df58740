"""What this process needs to know of a workload and of the devices, without importing a user's file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from ..model.cell import AS_WRITTEN
from . import devices as host
from .informant import Informant
from .userfile import place_of, resolve
from .workload import MeasureError, Workload


def described(workload: str | Callable[..., Any], platform: str | None = None) -> tuple[Workload, host.Devices]:
    """A workload by its name, and the devices to measure it on, from one child process.

    Parameters
    ----------
    workload : as for ``resolve``; built-in ones, and a function that is already imported, need no child
    platform : ``cpu`` is always there, and not looked for; else the devices are those that JAX finds

    Returns
    -------
    Workload, Devices
        The builds of a workload in a user's file are called in the processes that measure, not here.

    Raises
    ------
    MeasureError
        As ``resolve`` and ``detect`` do, and if importing the file ends the process.
    """
    host.refuse_nesting()
    if callable(workload) or (place := place_of(workload)) is None:
        return resolve(workload), host.CPU if platform == "cpu" else host.detect()
    with Informant(host.informing_environment(platform), workload) as informant:
        devices = host.devices_of(informant)
        line = informant.line()
        if line is None:
            raise MeasureError(f"{place[0]}: importing it ended the process, which {informant.how_it_ended()}.")
    said = json.loads(line)
    if "error" in said:
        raise MeasureError(said["error"])
    return Workload(name=workload, builds={AS_WRITTEN: _elsewhere}, **said), host.CPU if platform == "cpu" else devices


def _elsewhere(_mesh: object, _size: int) -> NoReturn:
    raise MeasureError("this workload is only described here; the processes that measure build it.")
