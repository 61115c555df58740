"""How many of the devices share one node's cores, where devices are made of cores."""

from __future__ import annotations

import math
from typing import NamedTuple

from .launches import LaunchTable


class Crowd(NamedTuple):
    """Devices of one node, and the cores that its processes may use together."""

    devices: int
    cores: int


def crowd(table: LaunchTable, num_devices: int) -> Crowd | None:
    """Devices of the first node among the first ``num_devices``, and its cores; None elsewhere than on CPU or not said.

    Processes of one node may be bound to the same cores or to cores of their own: the union counts.
    """
    if table.platform != "cpu" or table.cores is None:
        return None
    launch = table.launches[0] if table.launches else None
    per_node = None if launch is None else launch.devices_per_node
    devices = num_devices if per_node is None else min(num_devices, per_node)
    together = [] if launch is None else [m for m in launch.machines if m.boot == launch.machines[0].boot]
    if len(together) < 2 or not all(m.affinity for m in together):
        return Crowd(devices, table.cores)
    allowed = len(set[int]().union(*(m.affinity for m in together)))
    quotas = [math.ceil(m.quota_cores) for m in together if m.quota_cores is not None]
    return Crowd(devices, max(1, min([allowed, *quotas])))
