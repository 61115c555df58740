"""Simulated sweeps: a truth and the table that measuring it would give."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from breakeven.data.schema import Plan
from breakeven.fit.launches import LaunchTable
from breakeven.model.simulate import Truth, sample

from .scenarios import BEYOND, CALLS, NOISE, NUM_SIZES, ROUNDS, Scenario
from .truths import causes_of, draw_truth, true_tie


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One simulated sweep with the truth behind it."""

    scenario: Scenario
    true: Truth
    table: LaunchTable
    seed: int

    @property
    def strategy(self) -> str:
        """The only one."""
        return self.true.strategy

    @property
    def middle(self) -> int:
        """The size at which counts are asked for."""
        return self.true.sizes[NUM_SIZES // 2]

    @property
    def largest(self) -> int:
        """The size at which shares and meanings are asked for."""
        return self.true.sizes[-1]

    @cached_property
    def causes(self) -> dict[int, dict[str, float]]:
        """True medians, seconds, by count and cause at the largest size."""
        return {n: causes for (n, _), causes in causes_of(self.true, self.true.devices, (self.largest,)).items()}

    @cached_property
    def totals(self) -> dict[int, float]:
        """Their sums."""
        return {n: sum(causes.values()) for n, causes in self.causes.items()}

    @cached_property
    def costs(self) -> dict[int, float]:
        """True cost under the plan's objective by count, measured and beyond, at the middle size."""
        weak = self.true.path == "weak"
        return {n: t / (n if weak else 1) for n, t in self.times((*self.true.devices, *BEYOND), self.middle).items()}

    def times(self, devices: Sequence[int], axis_size: int) -> dict[int, float]:
        """True time of a call by count, seconds."""
        found = causes_of(self.true, tuple(devices), (axis_size,))
        return {n: sum(causes.values()) for (n, _), causes in found.items()}

    def part(self, sizes: tuple[int, ...]) -> LaunchTable:
        """The cells of some sizes: what is asked of one size must not cost five."""
        rows = [i for i, cell in enumerate(self.table.cells) if self.table.axis_size(cell) in sizes]
        return replace(
            self.table,
            cells=tuple(self.table.cells[i] for i in rows),
            latency_s=self.table.latency_s[rows],
            rounds_s=tuple(block[rows] for block in self.table.rounds_s),
        )

    def tie(self, num_devices: int) -> float:
        """Size above which a count costs less than one device, NaN without one."""
        return true_tie(self.true, 1, num_devices, num_devices if self.true.path == "weak" else 1)


def draw(scenario: Scenario, rng: np.random.Generator) -> Sweep:
    """A truth of the scenario, and what measuring it would give."""
    true = draw_truth(scenario, rng)
    seed = int(rng.integers(2**31))
    return Sweep(scenario=scenario, true=true, table=_measured(scenario, true, seed), seed=seed)


def streams(scenario: Scenario, seed: int, chunk: int) -> np.random.Generator:
    """Random numbers of one chunk of sweeps, the same whatever else runs."""
    return np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(scenario.name.encode()), chunk]))


def _measured(scenario: Scenario, true: Truth, seed: int) -> LaunchTable:
    """The table that the launches would give."""
    modes = {}
    if scenario.bimodal:
        argument, probability = scenario.bimodal
        modes[argument] = np.where(true.times_s < np.median(true.times_s), probability, 0.0)
    noise = {**NOISE, **scenario.noise, **modes}
    calls = sample(true.times_s, launches=scenario.launches, rounds=ROUNDS, calls=CALLS, seed=seed, **noise)
    rounds = np.median(calls, axis=-1)
    plan = Plan(
        workload="simulated",
        path=true.path,
        objective="throughput" if true.path == "weak" else "time",
        devices=true.devices,
        sizes=true.sizes,
        strategies=(true.strategy,),
    )
    return LaunchTable(
        plan=plan,
        cells=true.cells,
        latency_s=rounds.mean(axis=-1),
        rounds_s=tuple(rounds.transpose(1, 0, 2)),
        facts=true.facts,
        synthetic=True,
    )
