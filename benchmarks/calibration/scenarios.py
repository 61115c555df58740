"""The scenarios: kinds of truths, and how they are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from breakeven.model.simulate import REGIMES, CollectiveCost
from breakeven.study.until import MOST_LAUNCHES

ROUNDS, CALLS = 4, 8
NOISE: Mapping[str, float] = {
    "launch_sd": 0.06,
    "cell_launch_sd": 0.03,
    "round_sd": 0.02,
    "visit_sd": 0.01,
    "call_sd": 0.10,
    "tail": 0.01,
}
DEVICES = (1, 2, 4, 8)
BEYOND = (16, 32)
"""Counts that are only predicted."""
NUM_SIZES, SIZE_STEP = 5, 4
LAW_SIZES = 3
"""Laws are fitted to the largest sizes: the cost of a fit grows steeply with the number of cells."""
LONG, LONG_SIZES = (1, 2, 4, 8, 16, 32), 3
"""Counts and number of sizes where breaks are looked for."""
JUMP, POWER_OF = 1.5, 10
"""The break that is to be found; looked for in one of so many sweeps, since its p-value takes a second."""
SPREAD = 0.4
"""Standard deviation of the log of a truth's parameters around those of its regime."""
COMMUNICATION = ("alpha0", "alpha", "beta")
DISPATCH = ("c0", "entry", "dispatch")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One kind of truth, measured in one way.

    Attributes
    ----------
    name, about : for the table
    regimes : of which a sweep takes one
    launches : G
    noise : what differs from ``NOISE``, or goes beyond it
    zero : parameters that are 0
    bimodal : name of the argument of ``sample`` and the probability: calls shorter than the median take it
    path : of the sweep
    collective : from parameters to the cost of an all-reduce that no law of the menu has
    border : a name in ``distances``: a cause (``scaled``) is scaled until that distance is 0
    scaled : parameters that go up and down together
    laws : whether laws are fitted, which takes most of the time
    until : goals; ``launches`` are the most, and each sweep stops at its first look that reaches the goal
    tie : one size, at which two counts nearly tie: for the best, or a count that may be first to help with one device
    breaks : whether breaks are looked for, over six counts and under any law of the menu, and nothing else
    """

    name: str
    about: str
    regimes: tuple[str, ...]
    launches: int = 6
    noise: Mapping[str, float] = field(default_factory=dict)
    zero: tuple[str, ...] = ()
    bimodal: tuple[str, float] | None = None
    path: str = "strong"
    collective: Callable[[Mapping[str, float]], CollectiveCost] | None = None
    border: str | None = None
    scaled: tuple[str, ...] = COMMUNICATION
    laws: bool = True
    until: tuple[str, ...] = ()
    tie: Literal["best", "first"] | None = None
    breaks: bool = False

    @property
    def standard(self) -> bool:
        """One of the four that the others vary."""
        return self.name in REGIMES

    @property
    def mean_over_median(self) -> float:
        """Mean of a launch's time over its median, which is the true time: what a mean over launches estimates."""
        spreads = {**NOISE, **self.noise}
        return float(np.exp(sum(spreads[s] ** 2 for s in NOISE if s not in ("call_sd", "tail")) / 2))


def _superlinear(parameters: Mapping[str, float]) -> CollectiveCost:
    alpha0, alpha, beta = (parameters[name] for name in COMMUNICATION)
    return lambda n, v: alpha0 + 2 * alpha * (n**1.4 - 1) + 2 * beta * v * (n - 1) / n


def _node_of_four(parameters: Mapping[str, float]) -> CollectiveCost:
    alpha0, alpha, beta = (parameters[name] for name in COMMUNICATION)
    return lambda n, v: alpha0 + (1 if n <= 4 else 2.5) * 2 * (n - 1) * (alpha + beta * v / n)


def _border(border: str, about: str, scaled: tuple[str, ...] = COMMUNICATION) -> Scenario:
    name = f"border: {border.replace('_', ' ')}"
    return Scenario(name=name, about=about, regimes=tuple(REGIMES), border=border, scaled=scaled)


def _until(kind: str, about: str, *goals: str, tie: Literal["best", "first"] | None = None) -> Scenario:
    return Scenario(
        name=f"stopping: {kind}",
        about=f"launches are added, {MOST_LAUNCHES} at most, until {about}",
        regimes=tuple(REGIMES),
        launches=MOST_LAUNCHES,
        until=goals,
        tie=tie,
    )


SCENARIOS = (
    *(Scenario(name=regime, about=f"{regime} bound", regimes=(regime,)) for regime in REGIMES),
    *(
        Scenario(
            name=f"{regime}, {g} launches",
            about=f"{g} launches",
            regimes=(regime,),
            launches=g,
            laws=(regime, g) != ("bandwidth", 12),
        )
        for g in (3, 12)
        for regime in ("latency", "bandwidth")
    ),
    *(
        Scenario(
            name=f"latency, noise {100 * sd:g} %",
            about=f"calls spread by {100 * sd:g} %",
            regimes=("latency",),
            noise={"call_sd": sd},
            laws=sd > 0.1,
        )
        for sd in (0.05, 0.20)
    ),
    Scenario(
        name="latency, unlike launches",
        about="launches differ by 25 %, a cell between launches by 8 %",
        regimes=("latency",),
        noise={"launch_sd": 0.25, "cell_launch_sd": 0.08},
    ),
    Scenario(
        name="latency, drift",
        about="times rise by 15 % within a launch",
        regimes=("latency",),
        noise={"drift": 0.15},
        laws=False,
    ),
    Scenario(
        name="latency, bimodal visits",
        about="a fifth of the visits to small calls take half as long again",
        regimes=("latency",),
        bimodal=("slow_visits", 0.2),
    ),
    Scenario(
        name="bandwidth, bimodal launches",
        about="in three of ten launches a small call takes half as long again",
        regimes=("bandwidth",),
        bimodal=("slow_launches", 0.3),
    ),
    Scenario(
        name="latency, n^1.4",
        about="the all-reduce's latency grows as n^1.4: no law of the menu",
        regimes=("latency",),
        collective=_superlinear,
    ),
    Scenario(
        name="bandwidth, step",
        about="beyond four devices the all-reduce costs 2.5 times as much: no law of the menu",
        regimes=("bandwidth",),
        collective=_node_of_four,
    ),
    Scenario(name="bandwidth, zeros", about="alpha and entry are 0", regimes=("bandwidth",), zero=("alpha", "entry")),
    Scenario(name="latency, zeros", about="beta and dispatch are 0", regimes=("latency",), zero=("beta", "dispatch")),
    Scenario(name="latency, weak", about="a fixed size per device", regimes=("latency",), path="weak"),
    _border("share", "communication is half of the time"),
    _border("exceeds_compute", "communication equals compute"),
    _border("growth", "communication grows by just what counts, or by what compute gains"),
    _border("no_gain_even_with_free_dispatch", "with dispatch free the best count ties with one device"),
    _border("verdict", "communication ties with the largest other cause"),
    _border("equivalence", "communication is 5 % of the time, the margin of its equivalence with none"),
    _border("dispatch_share", "dispatch is half of the time", DISPATCH),
    _border("prevents_gain", "the best count just does not beat one device, as dispatch grows", DISPATCH),
    _border("no_difference", "the largest count costs 5 % more than one device, the margin of no difference"),
    _border("tie", "the largest count costs what one device does"),
    _until(
        "widths",
        "an interval is narrow enough",
        "break-even ±10%",
        "break-even ±5%",
        "share ±5%",
        "share ±3%",
    ),
    _until("optimum", "the best count is sure, where two nearly tie", "optimum", tie="best"),
    _until("first", "the first count that helps is sure, where one nearly ties with one device", "first", tie="first"),
    Scenario(
        name="breaks",
        about=f"{', '.join(map(str, LONG))} devices, {LONG_SIZES} sizes, no break; and the same with times "
        f"{JUMP:g} times as long beyond some count, in one of {POWER_OF} sweeps",
        regimes=tuple(REGIMES),
        breaks=True,
    ),
)
