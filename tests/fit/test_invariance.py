"""The whole answer in other units and other orders: estimates scale, sets and verdict stay.

Start-up of processes is a fixed number of seconds, so the cheapest remedy may change with the unit; nothing else may.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.data.simulated import simulated_record
from breakeven.fit.launches import LaunchTable, from_record
from breakeven.fit.report import answer
from breakeven.model.simulate import sample, truth
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

SECONDS = ("latency_s", "per_device_s", "intercept_s")
SETTINGS = settings(
    max_examples=4,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
"""Few and never shrunk: an answer takes half a second."""


@cache
def sweep(regime: str, *, sizes: tuple[int, ...] = (4096, 65536), seed: int = 0, controls: bool = True) -> LaunchTable:
    made = truth(regime, devices=(1, 2, 4, 8), sizes=sizes, controls=controls, probes=False)
    plan = Plan(
        workload="mine.py:build",
        path="strong",
        objective="time",
        devices=made.devices,
        sizes=sizes,
        strategies=("jit",),
        visible_devices=8,
        controls=controls,
        probes=False,
    )
    times = sample(made.times_s, launches=5, rounds=2, calls=3, seed=seed)
    return from_record(simulated_record(plan, made.cells, times, facts=made.facts, cores=64))


def scaled(table: LaunchTable, factor: float) -> LaunchTable:
    return replace(
        table, latency_s=table.latency_s * factor, rounds_s=tuple(block * factor for block in table.rounds_s)
    )


def permuted(table: LaunchTable, seed: int) -> LaunchTable:
    """Launches in another order, and cells in another order."""
    rng = np.random.default_rng(seed)
    launches, cells = rng.permutation(table.num_launches), rng.permutation(len(table.cells))
    return replace(
        table.take(launches),
        cells=tuple(table.cells[i] for i in cells),
        latency_s=table.latency_s[np.ix_(cells, launches)],
        rounds_s=tuple(table.rounds_s[g][cells] for g in launches),
    )


def decisions(found: dict) -> dict:
    """What has no unit."""
    best, starts = found["optimal_devices"], found["break_even"]
    bound = found["communication_bound"]
    meanings = ("share", "exceeds_compute", "growth", "no_gain_even_with_free_dispatch")
    return {
        "verdict": found["verdict"],
        "optimum": (best["estimate"], best["set"], best["outcome"], best["within_tolerance"]),
        "optima": {size: one["set"] for size, one in found["optimal_by_size"].items()},
        "first": (starts["first"]["estimate"], starts["first"]["set"]),
        "last": (starts["last"]["estimate"], starts["last"]["set"]),
        "helps": [(one["helps"], one["outcome"], len(one["roots"])) for one in starts["sizes"]],
        "holds": [bound[name]["holds"] for name in meanings],
        "kept": [law["name"] for law in found["laws"] if law["kept"]],
        "identified": {name: one["identified"] for name, one in found["parameters"].items()},
        "untold": [one["parameters"] for one in found["unidentified"]],
    }


def numbers(found: object, path: tuple = ()) -> dict[tuple, float]:
    """Every estimate and interval end of what is said of parameters, causes, shares, sizes and predictions."""
    if isinstance(found, dict):
        return {key: value for name, one in found.items() for key, value in numbers(one, (*path, name)).items()}
    if isinstance(found, list | tuple):
        return {key: value for i, one in enumerate(found) for key, value in numbers(one, (*path, i)).items()}
    return {path: float(found)} if isinstance(found, float) and not isinstance(found, bool) else {}


NUMERIC = ("parameters", "causes", "growth_range", "break_even", "communication_bound", "weak_efficiency", "curves")


def unit_of(path: tuple, found: dict) -> int:
    """1 where the number is a time, 0 where it has no time in it."""
    if path[0] == "parameters":
        # p-values of a parameter have no unit.
        return int(path[2] in ("estimate", "interval", "upper_limit"))
    return int(any(name in SECONDS for name in path))


def compare(first: dict, second: dict, factor: float) -> None:
    assert decisions(second) == decisions(first)
    for part in NUMERIC:
        ours, theirs = (numbers(one[part], (part,)) for one in (first, second))
        assert ours.keys() == theirs.keys()
        for path, value in ours.items():
            if path[-1] == "p_zero":
                # From a thousand seeded draws, which meet the launches in another order: Monte Carlo error.
                assert theirs[path] == pytest.approx(value, abs=0.002 + 5 * math.sqrt(2 * value * (1 - value) / 1000))
                continue
            expected = value * (factor if unit_of(path, first) else 1.0)
            # The scale of a difference of times is that of the times: cancellation is no change.
            rounding = 0 if part == "parameters" else 1e-9
            scale = factor * largest_time(first) if unit_of(path, first) else 1.0
            assert theirs[path] == pytest.approx(expected, rel=1e-6, abs=rounding * scale), path


def largest_time(found: dict) -> float:
    return max(one["estimate"] for curve in found["curves"] for one in curve["latency_s"])


def said(table: LaunchTable) -> dict:
    found = msgspec.to_builtins(answer(table))
    assert not any(math.isnan(value) or math.isinf(value) for value in numbers(found).values())
    return found


@cache
def untouched(regime: str) -> dict:
    return said(sweep(regime))


@pytest.mark.parametrize("regime", ["compute", "latency"])
@SETTINGS
@given(exponent=st.floats(-6, 6))
def test_seconds_or_microseconds(regime, exponent):
    table = sweep(regime)
    compare(untouched(regime), said(scaled(table, 10.0**exponent)), 10.0**exponent)


@pytest.mark.parametrize("regime", ["dispatch", "bandwidth"])
@SETTINGS
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_cells_and_launches(regime, seed):
    table = sweep(regime)
    compare(untouched(regime), said(permuted(table, seed)), 1.0)


def test_workload_alone_in_other_units():
    """Where most parameters are tied: the pseudo-inverse must not see the unit either."""
    table = sweep("latency", controls=False)
    compare(said(table), said(scaled(table, 1e6)), 1e6)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_sizes_that_differ_by_1e12(factor):
    """Recovered without noise: columns differ by twelve orders of magnitude within themselves."""
    sizes = (8, 8 * 10**6, 8 * 10**12)
    made = truth({"c0": 2e-5, "dispatch": 2e-6, "gamma": 1e-14}, sizes=sizes, bytes_per_element=0, probes=False)
    table = sweep("compute", sizes=(4096, 65536))
    latency = factor * made.times_s[:, None] * (1 + 1e-9 * np.random.default_rng(0).standard_normal((1, 5)))
    found = said(
        replace(
            table,
            plan=msgspec.structs.replace(table.plan, sizes=sizes),
            cells=made.cells,
            latency_s=latency,
            facts=made.facts,
            rounds_s=(),
        )
    )
    assert found["parameters"]["dispatch"]["estimate"] == pytest.approx(2e-6 * factor, rel=1e-3)
    assert found["parameters"]["gamma"]["estimate"] == pytest.approx(1e-14 * factor, rel=1e-3)
