"""How many of the devices share one node's cores, where devices are made of cores."""

from __future__ import annotations

import math

from ..data.machines import cores_together
from ..data.schema import Machine
from .answer import Crowd
from .launches import LaunchTable


def crowd(table: LaunchTable, num_devices: int) -> Crowd | None:
    """Devices of the first node among the first ``num_devices``, and its cores; None elsewhere than on CPU or not said.

    Processes of one node may be bound to the same cores or to cores of their own: the union counts, of those processes
    that hold the devices.
    """
    if table.platform != "cpu" or table.cores is None:
        return None
    launch = table.launches[0] if table.launches else None
    per_node = None if launch is None else launch.devices_per_node
    devices = num_devices if per_node is None else min(num_devices, per_node)
    together = [] if launch is None else [m for m in launch.machines if _node(m) == _node(launch.machines[0])]
    several = len(together) > 1
    if launch is not None and launch.devices_per_process is not None:
        together = together[: math.ceil(num_devices / launch.devices_per_process)]
    cores = cores_together(together) if several else None
    return Crowd(devices=devices, cores=table.cores if cores is None else cores)


def full_crowd(table: LaunchTable) -> Crowd | None:
    """The crowd of all visible devices; of the plan's largest count where nothing says how many there were."""
    return crowd(table, table.visible_devices or table.plan.devices[-1])


def _node(machine: Machine) -> str | None:
    """The running system, as the launch counted its nodes."""
    return machine.boot or machine.host
