"""How the ranks lie on hosts and accelerators, and which spreads no mesh of whole hosts can be taken from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from ...data.schema import Launch
from ..machine import BUS


class Place(NamedTuple):
    """Where one rank runs. ``node`` tells running systems apart (several containers of one have several hosts)."""

    node: str | None
    host: str | None


def place(launch: Launch) -> Place:
    """Where the process ran that says this of itself; all None where it does not say."""
    return next((Place(machine.boot or machine.host, machine.host) for machine in launch.machines), Place(None, None))


def uneven(places: Sequence[Place]) -> str | None:
    """Why ranks in these places cannot measure together: they must fill hosts in their order, as many on each.

    The first n devices are those of the first ranks: only so do they fill one host before they begin another.
    """
    blocks = [list(same) for _, same in groupby(places, key=lambda one: one.node)]
    if len({len(block) for block in blocks}) == 1 and len(blocks) == len({one.node for one in places}):
        return None
    told = ", ".join(f"{len(block)} on {block[0].host or 'an unnamed host'}" for block in blocks)
    return (
        f"the ranks lie, in their order, {told}. Counts of devices that fill whole hosts need equally many ranks on "
        "every host, and all of one before those of the next: start them with srun --ntasks-per-node=K "
        "--distribution=block, or mpiexec -ppn K (Open MPI: --map-by ppr:K:node)."
    )


def shared(launches: Sequence[Launch]) -> str | None:
    """Why the devices of these ranks are not as many as they seem: several count the same accelerators as their own.

    Nothing is said where a rank does not name its accelerators, or where they are divided (MIG): a driver then names
    fewer than there are devices.
    """
    by_node: dict[str | None, list[int]] = defaultdict(list)
    for rank, launch in enumerate(launches):
        by_node[place(launch).node].append(rank)
    for ranks in by_node.values():
        there = [_accelerators(launches[rank]) for rank in ranks]
        devices = sum(launches[rank].devices_per_process or 0 for rank in ranks)
        known = set().union(*there)
        if all(there) and devices > len(known):
            named = ", ".join(map(str, ranks))
            return (
                f"ranks {named} on {place(launches[ranks[0]]).host or 'one host'} have {devices} devices together, "
                f"but that host has {len(known)} accelerators: several ranks see the same ones. Give each its own "
                "(srun --gpus-per-task=K, or CUDA_VISIBLE_DEVICES of each rank), or start one rank a host."
            )
    return None


def _accelerators(launch: Launch) -> set[str]:
    """Places on the bus of what the driver names; empty where that says nothing about devices."""
    if "MIG" in (launch.device_kind or ""):
        return set()
    texts = [text for machine in launch.machines for text in machine.accelerators]
    found = [re.search(rf"{re.escape(BUS)} ([^,]+)", text) for text in texts]
    return {one[1] for one in found if one} if all(found) else set()
