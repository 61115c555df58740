"""Does the proposed next sweep reach a break-even size sooner than a grid fixed beforehand?

Two ways to know the size at which 8 devices cost the same as one to 10 % either way, on simulated machines: a grid of
seven sizes, laid without knowing the answer; and a short pilot over the same range, followed by what
``fit.planning.next_point`` proposes. Both add launches until ``fit.planning.stopping`` lets them stop, after six at the
earliest. From the repository's root:

    python -m benchmarks.next_point            # 30 machines for cost, 2,400 for coverage; writes docs/next.*
    python -m benchmarks.next_point --small    # 4 and 60, writes nothing
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from breakeven.data.schema import Plan
from breakeven.fit.answer import Estimate
from breakeven.fit.breakeven import break_even
from breakeven.fit.launches import LaunchTable
from breakeven.fit.planning.launch_cost import LaunchCost
from breakeven.fit.planning.next_point import next_point
from breakeven.fit.planning.stopping import MIN_LAUNCHES_AT_LOOK, Precision, look, look_confidence
from breakeven.model.simulate import REGIMES, Truth, sample, truth
from scipy import stats

from .stamp import DOCS, stamp, write_rows

DEVICES = (1, 2, 4, 8)
GOAL = Precision(relative=0.10)
LEAST_COVERAGE = 0.93
LARGEST_RATIO = 0.5
NOISE = {"launch_sd": 0.06, "cell_launch_sd": 0.03, "round_sd": 0.02, "visit_sd": 0.01, "call_sd": 0.10, "tail": 0.01}
ROUNDS, CALLS, WARMUPS = 4, 8, 2
NUM_SIZES = 7
PILOT_LAUNCHES = 3
MOST_LAUNCHES = 60
MOST_PLANS = 4
"""New sweeps that are asked for when one turns out not to hold the answer."""
COST = LaunchCost(start_s=2.0, program_s=0.1, calls=CALLS, warmups=WARMUPS, queued_calls=0)
BUDGET_S = 300.0
SPREAD = 0.4
"""Standard deviation of the log of a truth's parameters around those of its regime."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A simulated machine: the law behind its times, and the size that is to be found."""

    regime: str
    parameters: dict[str, float]
    root: float
    first_size: float


@dataclass(kw_only=True)
class Sweep:
    """A sweep under way on a machine: launches are drawn one after the other, and their cost is counted.

    ``true`` is all that is measured; only the workload on one and on the most devices is drawn, the rest answers
    nothing here.
    """

    true: Truth
    seed: int
    rounds: int
    launches: int = 0
    _drawn: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ends = (self.true.devices[0], self.true.devices[-1])
        self._rows = [i for i, c in enumerate(self.true.cells) if c.role == "workload" and c.num_devices in ends]
        calls = sample(
            self.true.times_s[self._rows],
            launches=MOST_LAUNCHES,
            rounds=self.rounds,
            calls=CALLS,
            seed=self.seed,
            **NOISE,
        )
        self._drawn = np.median(calls, axis=-1)

    @property
    def timed_s(self) -> float:
        """Seconds of all calls so far."""
        return float(self.launches * self.rounds * (CALLS + WARMUPS) * self.true.times_s.sum())

    @property
    def wall_s(self) -> float:
        """The same with the start of every launch."""
        return self.timed_s + self.launches * COST.startup_s(len(self.true.cells))

    def table(self) -> LaunchTable:
        """What was measured so far."""
        plan = Plan(
            workload="simulated",
            path="strong",
            objective="time",
            devices=self.true.devices,
            sizes=self.true.sizes,
            strategies=(self.true.strategy,),
            platform="gpu",
            visible_devices=DEVICES[-1],
            controls=False,
            probes=False,
        )
        rounds = self._drawn[:, : self.launches]
        return LaunchTable(
            plan=plan,
            cells=tuple(self.true.cells[i] for i in self._rows),
            latency_s=rounds.mean(axis=-1),
            rounds_s=tuple(rounds[:, g] for g in range(self.launches)),
            facts=self.true.facts,
            synthetic=True,
        )


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How one search ended. ``timed_s``: device calls only; ``wall_s``: with the start of every launch."""

    stopped: bool
    held: bool
    timed_s: float
    wall_s: float
    launches: int
    sweeps: int = 1


def draw(rng: np.random.Generator, step: float) -> Machine:
    """A machine whose break-even size lies anywhere between the second size of the grid and the last but one."""
    regime = str(rng.choice(list(REGIMES)))
    while True:
        parameters = {k: v * float(np.exp(SPREAD * rng.standard_normal())) for k, v in REGIMES[regime].items()}
        probe = truth(parameters, devices=DEVICES, sizes=(1024,), controls=False, probes=False)
        root = _tie(probe)
        if 512 < root < 1e8:
            break
    return Machine(
        regime=regime, parameters=parameters, root=root, first_size=root / step ** rng.uniform(1, NUM_SIZES - 2)
    )


def _tie(true: Truth) -> float:
    """Size from which on eight devices are faster than one: at a fixed count the law is linear in size."""
    near, far = 1024, 2**20
    gaps = [true.latency_s(DEVICES[-1], s) - true.latency_s(DEVICES[0], s) for s in (near, far)]
    slope = (gaps[1] - gaps[0]) / (far - near)
    return near - gaps[0] / slope if slope < 0 else np.nan


def lay(machine: Machine, sizes: Sequence[float], *, devices: Sequence[int], controls: bool) -> Truth:
    """A sweep on a machine; sizes divide by every count."""
    whole = sorted({DEVICES[-1] * max(1, round(size / DEVICES[-1])) for size in sizes})
    return truth(machine.parameters, devices=tuple(devices), sizes=tuple(whole), controls=controls, probes=False)


def grids(machine: Machine, seed: int, *, step: float) -> tuple[Ending, Ending]:
    """Measure the fixed grid until the answer is narrow enough; the lean one's cells answer, the rest only cost."""
    sizes = [machine.first_size * step**i for i in range(NUM_SIZES)]
    sweep = Sweep(true=lay(machine, sizes, devices=(DEVICES[0], DEVICES[-1]), controls=False), seed=seed, rounds=ROUNDS)
    for sweep.launches in range(MIN_LAUNCHES_AT_LOOK, MOST_LAUNCHES + 1):
        stop, found = _look(sweep)
        if stop:
            break
    else:
        stop = False
    full = dataclasses.replace(sweep, true=lay(machine, sizes, devices=DEVICES, controls=True))
    return tuple(_ending([each], found, machine, stopped=stop) for each in (full, sweep))  # type: ignore[return-value]


def adaptive(machine: Machine, seed: int, *, step: float) -> Ending:
    """A pilot of three sizes over the grid's range, then what is proposed, until the answer is narrow enough."""
    ends = (DEVICES[0], DEVICES[-1])
    sizes = [machine.first_size * step**i for i in (0, NUM_SIZES // 2, NUM_SIZES - 1)]
    pilot = Sweep(true=lay(machine, sizes, devices=ends, controls=False), seed=seed, rounds=ROUNDS)
    pilot.launches = PILOT_LAUNCHES
    sweeps = [pilot]
    stop, found = False, Estimate()
    while not stop and len(sweeps) <= MOST_PLANS and (following := _propose(sweeps[-1], machine, seed + len(sweeps))):
        sweeps.append(following)
        for following.launches in range(MIN_LAUNCHES_AT_LOOK, MOST_LAUNCHES + 1):
            stop, found = _look(following)
            # An end that is open after the first look says that the answer lies elsewhere: propose anew.
            if stop or found.interval is None or None in found.interval:
                break
    return _ending(sweeps, found, machine, stopped=stop)


def _propose(sweep: Sweep, machine: Machine, seed: int) -> Sweep | None:
    proposed = next_point(
        sweep.table(),
        target="break-even",
        cost=COST,
        budget_s=BUDGET_S,
        precision=GOAL.wanted,
        confidence=look_confidence(),
    )
    if proposed.best is None:
        return None
    plan = proposed.best.plan
    true = lay(machine, plan.sizes, devices=plan.devices, controls=False)
    return Sweep(true=true, seed=seed, rounds=plan.rounds)


def _look(sweep: Sweep) -> tuple[bool, Estimate]:
    table = sweep.table()
    found = break_even(
        table, sweep.true.strategy, None, axis_size=sweep.true.sizes[-1], confidence=look_confidence(), max_devices=8
    ).sizes[-1]
    root = found.roots[0] if len(found.roots) == 1 else Estimate(reason="not one root")
    return look(root, sweep.launches, GOAL).stop, root


def _ending(sweeps: Sequence[Sweep], found: Estimate, machine: Machine, *, stopped: bool) -> Ending:
    held = True
    if found.interval is not None:
        lower, upper = found.interval
        held = (lower is None or lower <= machine.root) and (upper is None or machine.root <= upper)
    return Ending(
        stopped=stopped,
        held=held,
        timed_s=sum(s.timed_s for s in sweeps),
        wall_s=sum(s.wall_s for s in sweeps),
        launches=sum(s.launches for s in sweeps),
        sweeps=len(sweeps),
    )


WAYS = {
    "proposed": "a pilot of 3 sizes on 1 and 8 devices, then what `next` proposes",
    "grid": f"{NUM_SIZES} sizes on 1, 2, 4, 8 devices with controls",
    "lean grid": f"{NUM_SIZES} sizes on 1 and 8 devices, the workload alone",
}
GRID_STEP = 2.0
"""Between the sizes of the grid; with 4 the bend between two sizes alone costs it twice the launches."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way, over all sweeps. ``ratio``: median over the sweeps of the proposed way's seconds over this one's."""

    way: str
    sweeps: int
    timed_s: float
    wall_s: float
    ratio_timed: float
    ratio_wall: float
    launches: float
    coverage_sweeps: int
    stopped: int
    held: int
    required: int

    @property
    def passed(self) -> bool:
        """Coverage is not significantly too low; and of the grid, that it takes twice the seconds."""
        return self.held >= self.required and (self.way != "grid" or self.ratio_timed <= LARGEST_RATIO)


def search(task: tuple[int, int]) -> tuple[Ending, Ending, Ending]:
    """One machine, searched in every way; the grids measure the same launches."""
    seed, number = task
    rng = np.random.default_rng([seed, number])
    machine, noise = draw(rng, GRID_STEP), int(rng.integers(2**31))
    return (adaptive(machine, noise, step=GRID_STEP), *grids(machine, noise + 100, step=GRID_STEP))


def run(timed: int, coverage: int, seed: int, workers: int = 1) -> list[Row]:
    """Search ``coverage`` machines, and compare the seconds of the first ``timed`` of them."""
    tasks = [(seed, number) for number in range(coverage)]
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            endings = list(pool.map(search, tasks, chunksize=50))
    else:
        endings = [search(task) for task in tasks]
    return list(_rows(endings, timed))


def _rows(endings: Sequence[tuple[Ending, Ending, Ending]], timed: int) -> Iterator[Row]:
    ours = [ending[0] for ending in endings]
    for way, mine in zip(WAYS, zip(*endings, strict=True), strict=True):
        yield Row(
            way=way,
            sweeps=timed,
            timed_s=float(np.median([e.timed_s for e in mine[:timed]])),
            wall_s=float(np.median([e.wall_s for e in mine[:timed]])),
            ratio_timed=float(np.median([a.timed_s / e.timed_s for a, e in zip(ours[:timed], mine, strict=False)])),
            ratio_wall=float(np.median([a.wall_s / e.wall_s for a, e in zip(ours[:timed], mine, strict=False)])),
            launches=float(np.mean([e.launches for e in mine])),
            coverage_sweeps=len(mine),
            stopped=sum(e.stopped for e in mine),
            held=sum(e.held for e in mine),
            required=int(stats.binom.ppf(0.01, len(mine), LEAST_COVERAGE)),
        )


def markdown(rows: Sequence[Row], stamped: dict[str, str]) -> str:
    """The page ``docs/next.md``."""
    first = rows[0]
    lines = [
        "# Does `breakeven next` pay?",
        "",
        "The size at which 8 devices cost the same as one is to be known to ±10 % at the stop. Simulated machines "
        f"({', '.join(REGIMES)} bound, parameters scattered by {SPREAD} on the log scale, the size anywhere in the "
        f"middle four steps of the grid), {ROUNDS} rounds of {CALLS} calls; spreads "
        f"{', '.join(f'{k} {v}' for k, v in NOISE.items())}. Every way looks after each launch from the sixth on, with "
        f"the interval that `fit/planning/stopping.py` asks for, and gives up after {MOST_LAUNCHES}. The grid's sizes "
        f"lie a factor of {GRID_STEP:g} apart.",
        "",
        f"Made by `python -m benchmarks.next_point`: {', '.join(f'{k} {v}' for k, v in stamped.items())}.",
        "",
        *(f"- *{way}*: {text}" for way, text in WAYS.items()),
        "",
        f"Seconds are medians over {first.sweeps} machines; *timed* are the calls (with warm-ups), *wall* adds "
        f"{COST.start_s:g} s a launch and {COST.program_s:g} s a program. *Ratio*: the proposed way's over this "
        f"one's, median. *Held*: the interval at the end holds the truth, of {first.coverage_sweeps} machines; "
        f"*required*: the first percentile of what {LEAST_COVERAGE:.0%} coverage gives.",
        "",
        "| way | timed, s | ratio | wall, s | ratio | launches | stopped | held | coverage | required |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {r.way} | {r.timed_s:.3g} | {r.ratio_timed:.2f} | {r.wall_s:.3g} | {r.ratio_wall:.2f} | {r.launches:.1f} "
        f"| {r.stopped} | {r.held} | {100 * r.held / r.coverage_sweeps:.1f} % | {r.required} |"
        for r in rows
    ]
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; 1 when it costs more than half of the grid's seconds, or covers too little."""
    parser = argparse.ArgumentParser(description="Seconds and coverage of the proposed sweep against a fixed grid.")
    parser.add_argument(
        "--small", action="store_true", help="4 and 60 machines instead of 30 and 2,400; writes nothing"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    timed, coverage = (4, 60) if options.small else (30, 2400)
    rows = run(timed, coverage, options.seed, workers=1 if options.small else os.cpu_count() or 1)
    stamped = stamp(options.seed)
    print(markdown(rows, stamped))
    if not options.small:
        (DOCS / "next.md").write_text(markdown(rows, stamped))
        write_rows(DOCS / "next.csv", ({**dataclasses.asdict(row), "passed": row.passed} for row in rows), stamped)
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
