"""The truths that a scenario draws: parameters and sizes at which its questions are hard."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from breakeven.model.law import Law
from breakeven.model.simulate import REGIMES, Truth, truth
from scipy import optimize

from .scenarios import BEYOND, DEVICES, LONG, LONG_SIZES, NUM_SIZES, SIZE_STEP, SPREAD, Scenario

NEAR, FAR = 1024, 2**20
"""At a fixed count the law is linear in size: two sizes tell all others."""
LAWS = ("ring", "log", "linear")


def draw_truth(scenario: Scenario, rng: np.random.Generator) -> Truth:
    """Parameters, counts and sizes as the scenario wants them."""
    if scenario.breaks:
        return _long(scenario, rng)
    if scenario.tie:
        return _at_a_tie(scenario, rng)
    true = _weak(scenario, rng) if scenario.path == "weak" else _strong(scenario, rng)
    return _on_the_border(true, scenario.border, scenario.scaled) if scenario.border else true


def causes_of(true: Truth, devices: tuple[int, ...], sizes: tuple[int, ...]) -> dict[tuple[int, int], dict[str, float]]:
    """True seconds by cause, at any counts and sizes of the axis: all at once, which a study of thousands needs."""
    laid = truth(
        true.parameters,
        law=true.law,
        path=true.path,
        devices=devices,
        sizes=sizes,
        collective_s=true.collective_s,
        controls=False,
        probes=False,
    )
    places = [(c.num_devices, c.size // c.num_devices if true.path == "weak" else c.size) for c in laid.cells]
    return {
        place: {cause: float(seconds[i]) for cause, seconds in laid.causes.items()} for i, place in enumerate(places)
    }


def true_tie(true: Truth, few: int, many: int, ratio: float = 1.0) -> float:
    """Size above which ``many`` take less than ``ratio`` times the time of ``few``, NaN without one."""
    lines = _lines(true, (few, many))
    return _tie(lines, few, many, ratio)


Lines = Mapping[int, tuple[float, float]]
"""Seconds at the sizes ``NEAR`` and ``FAR``, by count."""


def _lines(true: Truth, devices: tuple[int, ...]) -> Lines:
    found = causes_of(true, devices, (NEAR, FAR))
    return {n: (sum(found[n, NEAR].values()), sum(found[n, FAR].values())) for n in devices}


def _tie(lines: Lines, few: int, many: int, ratio: float = 1.0) -> float:
    near, far = (b - ratio * a for a, b in zip(lines[few], lines[many], strict=True))
    slope = (far - near) / (FAR - NEAR)
    return NEAR - near / slope if slope < 0 else np.nan


def _at(lines: Lines, size: float) -> dict[int, float]:
    """Seconds by count at any size."""
    return {n: near + (far - near) * (size - NEAR) / (FAR - NEAR) for n, (near, far) in lines.items()}


def _parameters(scenario: Scenario, rng: np.random.Generator) -> dict[str, float]:
    regime = REGIMES[str(rng.choice(scenario.regimes))]
    scattered = {name: value * float(np.exp(SPREAD * rng.standard_normal())) for name, value in regime.items()}
    return {name: 0.0 if name in scenario.zero else value for name, value in scattered.items()}


def _tied(scenario: Scenario, rng: np.random.Generator) -> tuple[dict, Lines, dict[tuple[int, int], float]]:
    """Arguments of ``truth``, its times, and the break-even size of every pair of counts: all have one."""
    while True:
        parameters = _parameters(scenario, rng)
        build = {
            "regime": parameters,
            "devices": DEVICES,
            "probes": False,
            "collective_s": scenario.collective(parameters) if scenario.collective else None,
        }
        lines = _lines(truth(sizes=(NEAR,), **build), DEVICES)
        ties: dict[tuple[int, int], float] = {p: _tie(lines, *p) for p in itertools.combinations(DEVICES, 2)}
        if all(512 < tie < 1e8 for tie in ties.values()):
            return build, lines, ties


def _strong(scenario: Scenario, rng: np.random.Generator) -> Truth:
    """Parameters that scatter around the regime's, with a break-even size for every pair of counts.

    Every other middle size lies within a tenth of one at which two counts tie, for the best or with one device: there
    sets are hard to get right.
    """
    build, lines, ties = _tied(scenario, rng)
    if rng.random() < 0.5:
        contested = [tie for pair, tie in ties.items() if pair[0] == DEVICES[0] or _both_best(lines, pair, tie)]
        middle = rng.choice(contested) * rng.uniform(0.9, 1.1)
    else:
        middle = ties[DEVICES[0], DEVICES[-1]] * 2 ** rng.uniform(-2, 2)
    return truth(sizes=_sizes(middle), **build)


def _at_a_tie(scenario: Scenario, rng: np.random.Generator) -> Truth:
    """One size, within a twentieth of one at which two counts tie: for the best, or one that may be first to help."""
    build, lines, ties = _tied(scenario, rng)
    contested = _both_best if scenario.tie == "best" else _first_to_help
    size = rng.choice([tie for pair, tie in ties.items() if contested(lines, pair, tie)]) * rng.uniform(0.95, 1.05)
    return truth(sizes=_sizes(size, (DEVICES[-1],)), **build)


def _long(scenario: Scenario, rng: np.random.Generator) -> Truth:
    """Many counts, any law of the menu that has a formula, sizes at which any cause may lead."""
    law = Law(str(rng.choice(LAWS)), "per-device")
    sizes = _sizes(NEAR * 256 ** rng.random(), (LONG[-1],) * LONG_SIZES)
    return truth(_parameters(scenario, rng), law=law, devices=LONG, sizes=sizes, controls=False, probes=False)


def _weak(scenario: Scenario, rng: np.random.Generator) -> Truth:
    """Sizes per device up to about the one from which on eight devices are 90 % efficient."""
    while True:
        parameters = _parameters(scenario, rng)
        probe = truth(parameters, devices=DEVICES, sizes=(NEAR,), path="weak", probes=False)
        reached = true_tie(probe, 1, DEVICES[-1], ratio=1 / 0.9)
        if 4096 < reached < 1e8:
            break
    sizes = _sizes(reached * 2 ** rng.uniform(-5, -2))
    return truth(parameters, devices=DEVICES, sizes=sizes, path="weak", probes=False)


def _sizes(middle: float, units: Sequence[int] = (DEVICES[-1],) * (NUM_SIZES - 1) + (BEYOND[-1],)) -> tuple[int, ...]:
    """A factor of ``SIZE_STEP`` apart, of these units: all measured counts divide them, the largest all predicted."""
    wanted = [middle * SIZE_STEP ** (step - len(units) // 2) for step in range(len(units))]
    return tuple(unit * max(1, round(size / unit)) for size, unit in zip(wanted, units, strict=True))


def _both_best(lines: Lines, pair: tuple[int, int], size: float) -> bool:
    """Whether no third count is faster where two tie."""
    times = _at(lines, round(size))
    return all(times[pair[0]] <= t for n, t in times.items() if n not in pair)


def _first_to_help(lines: Lines, pair: tuple[int, int], size: float) -> bool:
    """Whether a count ties with one device, and no smaller one is faster."""
    times = _at(lines, size)
    return pair[0] == DEVICES[0] and all(times[n] >= times[pair[0]] for n in DEVICES if n < pair[1])


def _on_the_border(true: Truth, border: str, scaled: tuple[str, ...]) -> Truth:
    """The same sweep with some parameters scaled until the answer is neither yes nor no."""

    def at(log_scale: float) -> dict[str, float]:
        scale = float(np.exp(log_scale))
        return {k: v * (scale if k in scaled else 1) for k, v in true.parameters.items()}

    # Nothing else is asked, so the largest size is enough.
    size = true.sizes[-1:]

    def distance(log_scale: float) -> float:
        causes = causes_of(replace(true, parameters=at(log_scale)), true.devices, size)
        return distances({n: seconds for (n, _), seconds in causes.items()})[border]

    root = float(optimize.brentq(distance, -12, 12, xtol=1e-6))
    return truth(at(root), devices=true.devices, sizes=size, probes=False)


def distances(causes: Mapping[int, Mapping[str, float]], ends: tuple[int, int] | None = None) -> dict[str, float]:
    """By how much each meaning lies above its null value, from true seconds by count and cause; and other borders.

    Above 0 the meaning holds, communication leads all other causes (``verdict``), is no longer negligible
    (``equivalence``), or the largest count costs more than one device (``tie``; ``no_difference``: by over 5 %).
    ``ends``: counts that growth is told between, where they are not the smallest and the largest.
    """
    counts = sorted(causes)
    first, last = causes[counts[0]], causes[counts[-1]]
    total_first, total_last = sum(first.values()), sum(last.values())
    before, after = (causes[n] for n in ends or (counts[0], counts[-1]))
    grown = after["communication"] - before["communication"]
    gain = max(0.0, before["compute"] - after["compute"])
    no_dispatch = {n: first["dispatch"] + causes[n]["compute"] + causes[n]["communication"] for n in counts[1:]}
    compute_only = {n: first["dispatch"] + causes[n]["compute"] for n in counts[1:]}
    best = min(sum(causes[n].values()) for n in counts[1:])
    return {
        "share": last["communication"] / total_last - 0.5,
        "exceeds_compute": (last["communication"] - last["compute"]) / total_last,
        "growth": min(grown - gain, grown - 0.05 * sum(before.values())) / sum(before.values()),
        "no_gain_even_with_free_dispatch": min(
            min(np.log(t / total_first) for t in no_dispatch.values()),
            max(np.log(total_first / t) for t in compute_only.values()),
        ),
        "verdict": (last["communication"] - max(last["compute"], last["dispatch"])) / total_last,
        "equivalence": last["communication"] / total_last - 0.05,
        "dispatch_share": last["dispatch"] / total_last - 0.5,
        "prevents_gain": min(np.log(best / total_first), np.log(total_first / min(no_dispatch.values()))),
        "no_difference": np.log(total_last / total_first / 1.05),
        "tie": np.log(total_last / total_first),
    }
