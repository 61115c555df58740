"""Does a sweep give the same answer twice?

Sweeps of `mean-all` with different seeds, one after the other. Each says by three routes what its one all-reduce costs,
with an interval over its own launches; the intervals are held against the mean over all sweeps, as measured and at one
speed of the machine. A virtual machine may get 1.5 times faster while this runs; the sentinel of each sweep says so.

    python -m benchmarks.repeats                 # measures for twenty minutes, writes docs/repeats.md and .csv
    python -m benchmarks.repeats --keep folder   # leaves the records there, and takes up what it finds
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from breakeven.data.store import read
from breakeven.fit.collective_cost import NAMES, chain_route, difference_route, replay_route
from breakeven.fit.launches import from_record
from breakeven.measure.planning import make_plan
from breakeven.measure.sweep import run
from breakeven.measure.userfile import resolve

from .stamp import DOCS, stamp, write_rows

SWEEPS, LEAST = 20, 17
LAUNCHES, BUDGET_S = 6, 60.0
"""What `breakeven measure` takes by default. Within 24 s a launch has 4 to 18 rounds of three calls, and one slow visit
moves its mean: of workload − local 15 and 16 of 20 intervals held the mean over all sweeps on 8 and 4 devices."""
DEVICES, SIZE = (2, 4, 8), 100
ROUTES = {"chain": chain_route, "replay": replay_route, "difference": difference_route}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one sweep says of the collective's cost, seconds, by one route on one count; and its sentinel's time."""

    seed: int
    route: str
    num_devices: int
    estimate: float
    lower: float
    upper: float
    sentinel_s: float

    def at(self, sentinel_s: float) -> Cost:
        """The same on a machine where the sentinel takes so long."""
        factor = sentinel_s / self.sentinel_s
        scaled = {name: factor * getattr(self, name) for name in ("estimate", "lower", "upper")}
        return replace(self, **scaled, sentinel_s=sentinel_s)

    def holds(self, value: float) -> bool:
        """Whether the interval does."""
        return self.lower <= value <= self.upper


def measure(path: Path, seed: int) -> None:
    """One sweep, or the rest of it."""
    plan = make_plan(
        resolve("mean-all"),
        devices=DEVICES,
        sizes_per_device=[SIZE],
        launches=LAUNCHES,
        budget_s=BUDGET_S,
        seed=seed,
    )
    run(plan, path)


def costs(path: Path, seed: int) -> list[Cost]:
    """The collective's cost by every route on every count."""
    table = from_record(read(path))
    assert table.sentinel_log_s is not None
    sentinel_s = float(np.exp(table.sentinel_log_s.mean()))
    found = []
    for route, ask in ROUTES.items():
        for n in DEVICES:
            answer = ask(table, "jit", n, SIZE).estimate(0.95)
            lower, upper = answer.interval or (None, None)
            if answer.estimate is None or lower is None or upper is None:
                raise SystemExit(f"{path}: no interval by {route} on {n}: {answer.reason}")
            found.append(
                Cost(
                    seed=seed,
                    route=route,
                    num_devices=n,
                    estimate=answer.estimate,
                    lower=lower,
                    upper=upper,
                    sentinel_s=sentinel_s,
                )
            )
    return found


def held(found: Sequence[Cost], route: str, num_devices: int) -> tuple[int, float]:
    """How many intervals hold the mean over all sweeps, and that mean."""
    ours = [one for one in found if (one.route, one.num_devices) == (route, num_devices)]
    pooled = float(np.mean([one.estimate for one in ours]))
    return sum(one.holds(pooled) for one in ours), pooled


def spread(found: Sequence[Cost], route: str, num_devices: int) -> float:
    """Standard deviation of the sweeps' costs, as a share of their mean."""
    ours = [one.estimate for one in found if (one.route, one.num_devices) == (route, num_devices)]
    return float(np.std(ours, ddof=1) / np.mean(ours))


def at_one_speed(found: Sequence[Cost]) -> list[Cost]:
    """All costs as if the sentinel took in every sweep what it took in their (geometric) mean."""
    common = float(np.exp(np.mean([np.log(one.sentinel_s) for one in found])))
    return [one.at(common) for one in found]


def markdown(found: Sequence[Cost], labels: dict[str, str]) -> str:
    """The page ``docs/repeats.md``."""
    sweeps = {one.seed: one.sentinel_s for one in found}
    level = at_one_speed(found)
    lines = [
        "# Does it give the same answer twice?",
        "",
        f"{len(sweeps)} sweeps of `mean-all` (one all-reduce of 4 bytes, {SIZE} rows a device) on forced host devices, "
        f"each of {LAUNCHES} launches in {BUDGET_S:g} s with its own seed. An interval over the launches of one sweep "
        f"is held against the mean over all sweeps; the goal is {LEAST} of {SWEEPS}.",
        "",
        f"The sentinel, a fixed program in every round, took {1e6 * min(sweeps.values()):.0f} to "
        f"{1e6 * max(sweeps.values()):.0f} µs by sweep: that is how fast the machine itself was. *At one speed*: each "
        "sweep's costs times the sentinel's mean over the sweeps by its time in this one. An interval speaks of the "
        "minute in which it was measured, so the goal is for costs at one speed.",
        "",
        "The routes differ by what they hold: a chain's slope is one more collective in a program that has begun, "
        "*workload − local* also what the first costs a call (the devices' threads that meet), and the replay starts "
        "from a program without work before it.",
        "",
        f"Made by `python -m benchmarks.repeats`: {', '.join(f'{k} {v}' for k, v in labels.items())}.",
        "",
        "| route | devices | pooled cost | held at one speed | held as measured | spread at one speed | as measured | "
        "mean half width |",
        "| :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for route in ROUTES:
        for n in DEVICES:
            number, pooled = held(level, route, n)
            measured, _ = held(found, route, n)
            ours = [one for one in level if (one.route, one.num_devices) == (route, n)]
            half = np.mean([(one.upper - one.lower) / 2 for one in ours])
            lines.append(
                f"| {NAMES[route]} | {n} | {1e6 * pooled:.1f} µs | {number} of {len(ours)} | {measured} of {len(ours)} "
                f"| {spread(level, route, n):.1%} | {spread(found, route, n):.1%} | {half / pooled:.1%} |"
            )
    return "\n".join([*lines, ""])


def rows_of(found: Iterable[Cost]) -> Iterator[dict[str, object]]:
    """One row a sweep, route and count."""
    for one in found:
        place: dict[str, object] = {"sweep_seed": one.seed, "route": one.route, "devices": one.num_devices}
        times = {"cost_s": one.estimate, "lower_s": one.lower, "upper_s": one.upper, "sentinel_s": one.sentinel_s}
        yield place | {name: f"{seconds:.4g}" for name, seconds in times.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; 1 when fewer intervals than the goal hold the pooled cost at one speed, by any route and count."""
    parser = argparse.ArgumentParser(description="The same sweep again and again.")
    parser.add_argument("--keep", type=Path, help="folder of the records; those that are there are not measured again")
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="fewer write nothing")
    options = parser.parse_args(arguments)
    found: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.sweeps):
            path = (options.keep or Path(folder)) / f"mean-all-{seed}.jsonl"
            measure(path, seed)
            found += costs(path, seed)
            print(f"\rsweep {seed + 1} of {options.sweeps}", end="", file=sys.stderr)
    labels = stamp(seed=0)
    page = markdown(found, labels)
    print(page)
    if options.sweeps >= SWEEPS:
        (DOCS / "repeats.md").write_text(page)
        write_rows(DOCS / "repeats.csv", rows_of(found), labels)
    needed = LEAST * options.sweeps / SWEEPS
    level = at_one_speed(found)
    return 0 if all(held(level, route, n)[0] >= needed for route in ROUTES for n in DEVICES) else 1


if __name__ == "__main__":
    sys.exit(main())
