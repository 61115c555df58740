"""What is proposed to be measured next, as it is printed: the sweep, what it is worth, and the cells that matter."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..answer import Estimate


class SweepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep to run. ``pooled``: the same plan again, to be put into one file with the pilot.

    ``command`` is None where the pilot came from elsewhere and nothing here can measure it.
    """

    devices: tuple[int, ...]
    sizes: tuple[int, ...]
    controls: bool
    probes: bool
    launches: int
    rounds: int
    calls: int
    pooled: bool
    command: str | None


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep and what it is worth.

    ``half_width`` as ``NextPoint.wanted``. ``wall_s``: start-up included; ``device_s``: seconds of the calls times the
    devices they keep busy. ``reduction_per_device_s``: by which share of the present variance it lessens it, over
    ``device_s``; None where there is no interval now.
    """

    plan: SweepPlan
    half_width: float
    wall_s: float
    device_s: float
    reduction_per_device_s: float | None


class CellWeight(msgspec.Struct, frozen=True, kw_only=True):
    """What one cell of the best sweep contributes.

    ``variance_share``: of the answer's variance; ``device_s_share``: of the cost; ``ideal_share``: of the calls, if
    every cell could have its own number (c-optimal for device-seconds).
    """

    role: str
    num_devices: int
    size: int
    k: int | None
    payload_bytes: int | None
    variance_share: float
    device_s_share: float
    ideal_share: float


class NextPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The next sweep for one question.

    Attributes
    ----------
    target : ``break-even``, ``optimum`` or a parameter's name; ``about``: the question in words
    current : the answer now, and its half width
    wanted : half width that is enough: a share of the estimate, for the optimum a log ratio. None where the pilot does
        not determine the answer at all and half widths are in its unit (``relative`` is False)
    best : None where nothing helps, or nothing is needed (``reason``)
    reached : whether ``best`` is expected to be enough; True where nothing is needed
    assumptions : what is not in the record
    """

    target: str
    about: str
    strategy: str
    unit: str
    path: Literal["strong", "weak"]
    confidence: float
    budget_s: float
    num_launches: int | None
    current: Estimate
    current_half_width: float | None
    wanted: float | None
    relative: bool
    best: Option | None
    others: tuple[Option, ...]
    cells: tuple[CellWeight, ...]
    reached: bool
    reason: str | None
    assumptions: tuple[str, ...]
