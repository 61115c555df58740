"""A simulator of sweeps: true times by cause from a law, and noisy samples of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .cell import Cell
from .decomposition import by_cause
from .law import Design, Law, design
from .menu import executions
from .program import Collective, ProgramFacts

CHAIN_LENGTHS = (1, 4, 16)
PAYLOAD_FACTORS = (0.25, 1.0, 4.0)
FLOPS_PER_ELEMENT = 100.0
BYTES_PER_ELEMENT = 1

SLOW = 1.5
"""The second mode of a bimodal cell over its first."""

CollectiveCost = Callable[[int, int], float]
"""Seconds of one all-reduce on n devices of a message of that many bytes."""

_COMMON = {
    "c0": 20e-6,
    "c0_probe": 15e-6,
    "entry": 20e-6,
    "dispatch": 2e-6,
    "floor": 5e-6,
    "gamma": 1e-11,
    "alpha0": 2e-6,
    "alpha": 1e-6,
    "beta": 1e-10,
}

REGIMES: Mapping[str, Mapping[str, float]] = {
    "compute": {**_COMMON, "gamma": 1e-9},
    "dispatch": {**_COMMON, "dispatch": 30e-6, "gamma": 1e-10},
    "latency": {**_COMMON, "alpha": 20e-6, "gamma": 1.5e-10},
    "bandwidth": {**_COMMON, "beta": 5e-9, "gamma": 4e-10},
}
"""Parameters, SI units, under which the named cause (latency and bandwidth: communication) is the largest part of a
call on 8 devices at the largest default size. ``gamma`` counts flops, of which an element costs 100."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A sweep whose times are known.

    Attributes
    ----------
    law, parameters : what generates the times; SI units
    path : ``strong`` (``sizes`` are global) or ``weak`` (per device); devices, sizes : the sweep's axes
    cells : C cells; facts : of their programs
    times_s : ndarray, shape (C,), seconds; causes : the same by cause
    cores : that the devices share; None: each has its own
    collective_s : cost of an all-reduce where it does not follow the law
    """

    law: Law
    parameters: Mapping[str, float]
    path: str
    devices: tuple[int, ...]
    sizes: tuple[int, ...]
    strategy: str
    cells: tuple[Cell, ...]
    facts: Mapping[Cell, ProgramFacts]
    times_s: np.ndarray
    causes: Mapping[str, np.ndarray]
    cores: int | None
    collective_s: CollectiveCost | None = None
    _bytes_per_element: int = field(repr=False, default=BYTES_PER_ELEMENT)

    def causes_at(self, num_devices: int, axis_size: int) -> dict[str, float]:
        """True time by cause, seconds, of the workload at any count and entry of the size axis, measured or not."""
        size = axis_size * num_devices if self.path == "weak" else axis_size
        cell = Cell(role="workload", strategy=self.strategy, num_devices=num_devices, size=size)
        facts = {cell: _facts(cell, _payload(axis_size, self._bytes_per_element))}
        causes = _true_causes(self.law, self.parameters, facts, self.cores, self.collective_s)
        return {cause: float(t[0]) for cause, t in causes.items()}

    def latency_s(self, num_devices: int, axis_size: int) -> float:
        """True time of one call of the workload, seconds."""
        return sum(self.causes_at(num_devices, axis_size).values())


def truth(
    regime: str | Mapping[str, float],
    *,
    law: Law | None = None,
    path: str = "strong",
    devices: tuple[int, ...] = (1, 2, 4, 8),
    sizes: tuple[int, ...] = (4096, 16384, 65536),
    strategy: str = "jit",
    cores: int | None = None,
    bytes_per_element: int = BYTES_PER_ELEMENT,
    collective_s: CollectiveCost | None = None,
    controls: bool = True,
    probes: bool = True,
) -> Truth:
    """Lay out a whole sweep with its true times.

    Parameters
    ----------
    regime : name in ``REGIMES``, or parameters by name (those left out are 0; not for ``free`` or ``by-local-size``)
    law : Law, default ring and per-device
    path : ``strong`` or ``weak``; sizes : global, or per device
    bytes_per_element : the workload all-reduces once, this many bytes for each element of the size axis, the same on
        every count (a gradient); 0: no collective at all
    collective_s : cost of one all-reduce, instead of the law's: a network that no law of the menu describes
    controls, probes : whether local and null, chain and replay are in it

    Returns
    -------
    Truth

    Raises
    ------
    ValueError
        If the regime, a parameter or the path is unknown, or a law with free times is asked for.
    """
    law = law or Law("ring", "per-device")
    if path not in ("strong", "weak"):
        raise ValueError(f"path must be strong or weak, got {path!r}.")
    parameters = _parameters(regime, law)
    facts: dict[Cell, ProgramFacts] = {}
    for n in devices:
        for axis_size in sizes:
            size = axis_size * n if path == "weak" else axis_size
            payload = _payload(axis_size, bytes_per_element)
            communicates = n > 1 and payload > 0
            roles = [
                "workload",
                *(["local", "null"] if controls else []),
                *(["replay"] if communicates and probes else []),
            ]
            for role in roles:
                cell = Cell(role=role, strategy=strategy, num_devices=n, size=size)
                facts[cell] = _facts(cell, payload)
        payload = _payload(sizes[-1], bytes_per_element)
        if n > 1 and payload > 0 and probes:
            size = sizes[-1] * n if path == "weak" else sizes[-1]
            facts |= {cell: _facts(cell, 0) for cell in _chains(strategy, n, size, payload)}
    facts = {cell: facts[cell] for cell in sorted(facts, key=lambda cell: cell.sort_key)}
    causes = _true_causes(law, parameters, facts, cores, collective_s)
    return Truth(
        law=law,
        parameters=parameters,
        path=path,
        devices=devices,
        sizes=sizes,
        strategy=strategy,
        cells=tuple(facts),
        facts=facts,
        times_s=np.sum(list(causes.values()), axis=0),
        causes=causes,
        cores=cores,
        collective_s=collective_s,
        _bytes_per_element=bytes_per_element,
    )


def sample(
    times_s: np.ndarray,
    *,
    launches: int,
    rounds: int,
    calls: int,
    seed: int,
    launch_sd: float = 0.03,
    cell_launch_sd: float = 0.02,
    round_sd: float = 0.02,
    visit_sd: float = 0.01,
    call_sd: float = 0.10,
    tail: float = 0.01,
    drift: float = 0.0,
    slow_visits: ArrayLike = 0.0,
    slow_launches: ArrayLike = 0.0,
) -> np.ndarray:
    """Draw the times that a sweep would measure.

    Parameters
    ----------
    times_s : ndarray, shape (C,), seconds
        True medians.
    launches, rounds, calls : G, R and K
    seed : of ``numpy.random.default_rng``
    launch_sd : spread of a launch, common to all its cells
    cell_launch_sd : spread of a cell between launches
    round_sd : spread of a round, common to its cells (drift)
    visit_sd : spread of a visit
    call_sd : spread of a call's body
    tail : probability that a call is a spike, 2 times its body or more (an exponential excess of mean 4)
    drift : by how much the times of a launch rise from its first to its last round, evenly on the log scale
    slow_visits, slow_launches : array_like, shape () or (C,)
        Probability that a visit, or a whole launch, runs a cell in a second mode, ``SLOW`` times slower.

    Returns
    -------
    ndarray, shape (C, G, R, K), seconds

    Notes
    -----
    All spreads are standard deviations of normal effects on the logarithm, so times stay positive and their medians
    true. One spike in a hundred is what quiet machines show. A drift is centred on the true times, and the mean over
    both modes is the true time.
    """
    times_s = np.asarray(times_s, dtype=float)
    if times_s.ndim != 1 or not np.all(times_s > 0):
        raise ValueError("times_s must be one positive time a cell.")
    if min(launches, rounds, calls) < 1:
        raise ValueError(f"launches, rounds and calls must be at least 1, got {launches}, {rounds} and {calls}.")
    if not 0 <= tail <= 1:
        raise ValueError(f"tail must be a probability, got {tail}.")
    if not drift > -1:
        raise ValueError(f"drift must be above -1, got {drift}. Use 0.1 for 10 % more in the last round.")
    rng = np.random.default_rng(seed)
    shape = (len(times_s), launches, rounds, calls)
    effects = (
        launch_sd * rng.standard_normal((1, launches, 1, 1))
        + cell_launch_sd * rng.standard_normal((len(times_s), launches, 1, 1))
        + round_sd * rng.standard_normal((1, launches, rounds, 1))
        + visit_sd * rng.standard_normal((len(times_s), launches, rounds, 1))
        + call_sd * rng.standard_normal(shape)
    )
    spikes = np.where(rng.random(shape) < tail, 2 + rng.exponential(4.0, shape), 1.0)
    times = times_s[:, None, None, None] * np.exp(effects) * spikes
    times = times * np.exp(np.log1p(drift) * np.linspace(-0.5, 0.5, rounds) if rounds > 1 else 0.0)[..., None]
    for probability, reach in ((slow_launches, (launches, 1)), (slow_visits, (launches, rounds))):
        times = times * _modes(probability, (len(times_s), *reach), rng)[..., None]
    return times


def _modes(probability: ArrayLike, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Factors of mean 1, shape (C, launches, rounds): ``SLOW`` times apart, the slower with this probability."""
    p = np.broadcast_to(np.asarray(probability, dtype=float), shape[:1])[:, None, None]
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("slow_visits and slow_launches must be probabilities, one or one a cell.")
    if not p.any():
        return np.ones((1, 1, 1))
    return np.where(rng.random(shape) < p, SLOW, 1.0) / (1 + p * (SLOW - 1))


def _parameters(regime: str | Mapping[str, float], law: Law) -> dict[str, float]:
    if law.all_reduce == "free" or law.compute == "by-local-size":
        raise ValueError(f"law {law.name!r} has free times: it describes data and generates none.")
    if isinstance(regime, str):
        if regime not in REGIMES:
            raise ValueError(f"regime must be one of {', '.join(REGIMES)}, got {regime!r}.")
        return dict(REGIMES[regime])
    if unknown := set(regime) - set(_COMMON):
        raise ValueError(f"unknown parameters {', '.join(sorted(unknown))}; known are {', '.join(_COMMON)}.")
    return {name: float(regime.get(name, 0.0)) for name in _COMMON}


def _true_causes(
    law: Law,
    parameters: Mapping[str, float],
    facts: Mapping[Cell, ProgramFacts],
    cores: int | None,
    collective_s: CollectiveCost | None,
) -> dict[str, np.ndarray]:
    columns: Design = design(law, tuple(facts), facts, cores=cores)
    causes = by_cause(columns, np.array([parameters[name] for name in columns.names]))
    if collective_s is not None:
        causes["communication"] = np.array([_seconds(collective_s, cell, known) for cell, known in facts.items()])
    return causes


def _seconds(collective_s: CollectiveCost, cell: Cell, facts: ProgramFacts) -> float:
    found = executions(facts.collectives, cell.num_devices)
    return float(sum(count * collective_s(group, message_bytes) for _, count, group, message_bytes in found))


def _chains(strategy: str, num_devices: int, size: int, payload: int) -> list[Cell]:
    payloads = sorted({max(1, round(payload * factor)) for factor in PAYLOAD_FACTORS})
    return [
        Cell(role="chain", strategy=strategy, num_devices=num_devices, size=size, k=k, payload_bytes=message_bytes)
        for message_bytes in payloads
        for k in CHAIN_LENGTHS
    ]


def _payload(axis_size: int, bytes_per_element: int) -> int:
    return axis_size * bytes_per_element


def _facts(cell: Cell, payload: int) -> ProgramFacts:
    """What the compiler would say about a synthetic program."""
    if cell.role == "chain":
        collectives = (_all_reduce(cell.k or 1, cell.payload_bytes or 0, cell.num_devices),)
    elif cell.role in ("workload", "replay") and cell.num_devices > 1 and payload > 0:
        collectives = (_all_reduce(1, payload, cell.num_devices),)
    else:
        collectives = ()
    flops = FLOPS_PER_ELEMENT * cell.size_per_device if cell.role in ("workload", "local") else 0.0
    return ProgramFacts(flops=flops, collectives=collectives, inline=False, num_arguments=1)


def _all_reduce(count: int, message_bytes: int, num_devices: int) -> Collective:
    return Collective(
        kind="all-reduce",
        count=count,
        operands=1,
        message_bytes=message_bytes,
        operand_bytes=(message_bytes,),
        group_size=num_devices,
    )
