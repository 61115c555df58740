"""Whether breaks are seen where there are none, and where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from breakeven.fit.breaks import breaks

from .checks import Check, error
from .scenarios import JUMP, POWER_OF
from .sweeps import Sweep


def structure(sweep: Sweep) -> Iterator[Check]:
    """Times under one law, and the same times with a jump."""
    found = breaks(sweep.table, sweep.strategy)
    yield error("break: false alarm", said=bool(found), wrong=bool(found))
    if sweep.seed % POWER_OF == 0:
        yield _jump(sweep)


def _jump(sweep: Sweep) -> Check:
    """Whether a jump in all times beyond some count is found just there, with a smaller count and a larger beside."""
    table, counts = sweep.table, sweep.true.devices
    at = np.random.default_rng(sweep.seed).integers(2, len(counts) - 1)
    beyond = np.array([cell.num_devices >= counts[at] for cell in table.cells])
    jumped = replace(table, latency_s=np.where(beyond[:, None], JUMP, 1.0) * table.latency_s)
    places = {(found.below, found.above) for found in breaks(jumped, sweep.strategy)}
    return Check(
        group="breaks",
        quantity=f"jump of {JUMP:g} found at its place",
        kind="choice",
        answered=True,
        holds=(counts[at - 1], counts[at]) in places,
    )
