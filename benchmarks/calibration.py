"""Do the intervals and sets hold the truth as often as they say?

Sweeps of six launches are simulated in four regimes and answered as measured ones are; every answer is compared with
the truth behind it. From the repository's root:

    python -m benchmarks.calibration            # 500 sweeps a regime, writes docs/calibration.md and .csv
    python -m benchmarks.calibration --small    # 60 a regime, writes nothing

Truths are drawn anew for each sweep, and its sizes are laid around the size at which the largest count breaks even.
Counts (optimum, first and last to help) are asked at the middle size, where they lie close together; shares and the
meanings of "communication bound" at the largest.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import datetime
import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from breakeven.data.schema import Plan
from breakeven.fit.answer import BreakEvenSize, Estimate
from breakeven.fit.attribution import parts
from breakeven.fit.breakeven import break_even
from breakeven.fit.communication import communication_bound
from breakeven.fit.growth import growth
from breakeven.fit.launches import LaunchTable
from breakeven.fit.optimum import optimum
from breakeven.model.simulate import REGIMES, Truth, sample, truth
from scipy import stats

DOCS = Path(__file__).resolve().parents[1] / "docs"
CONFIDENCE = 0.95
LEAST_COVERAGE = 0.93
LAUNCHES, ROUNDS, CALLS = 6, 4, 8
NOISE = {"launch_sd": 0.06, "cell_launch_sd": 0.03, "round_sd": 0.02, "visit_sd": 0.01, "call_sd": 0.10, "tail": 0.01}
DEVICES = (1, 2, 4, 8)
NUM_SIZES, SIZE_STEP = 5, 4
SPREAD = 0.4
"""Standard deviation of the log of a truth's parameters around those of its regime."""

FALSE_YES = "communication bound: no false yes"
TRUE_YES = "communication bound: no false no"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One answer against its truth: whether it was given, whether it held, and how wide it was."""

    quantity: str
    answered: bool
    holds: bool
    width: float = np.nan


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """All checks of one quantity in one regime; an answer that was not given counts as held."""

    regime: str
    quantity: str
    sweeps: int
    answered: int
    held: int
    required: int
    median_width: float
    width_unit: str

    @property
    def passed(self) -> bool:
        """Whether coverage is not significantly below what is required."""
        return self.held >= self.required


UNITS = {
    "communication's share of the time": "share",
    "communication's share of the growth": "share",
    "optimal count": "counts in the set",
    "first count that helps": "counts in the set",
    "last count that helps": "counts in the set",
    "break-even size, 2 devices": "upper / lower end",
    "break-even size, 8 devices": "upper / lower end",
    FALSE_YES: "",
    TRUE_YES: "",
}


def draw_truth(regime: str, rng: np.random.Generator) -> Truth:
    """A strong sweep whose parameters scatter around the regime's, with break-even sizes on 2 and 8 devices.

    Every other middle size lies within a tenth of one at which two counts tie, for the best or with one device: there
    sets are hard to get right.
    """
    while True:
        parameters = {k: v * float(np.exp(SPREAD * rng.standard_normal())) for k, v in REGIMES[regime].items()}
        probe = truth(parameters, devices=DEVICES, sizes=(1024,), controls=False, probes=False)
        ties = {pair: true_tie(probe, *pair) for pair in itertools.combinations(DEVICES, 2)}
        if all(512 < tie < 1e8 for tie in ties.values()):
            break
    if rng.random() < 0.5:
        contested = [tie for pair, tie in ties.items() if pair[0] == DEVICES[0] or _both_best(probe, pair, tie)]
        middle = rng.choice(contested) * rng.uniform(0.9, 1.1)
    else:
        middle = ties[DEVICES[0], DEVICES[-1]] * 2 ** rng.uniform(-2, 2)
    steps = np.arange(NUM_SIZES) - NUM_SIZES // 2
    # Every count divides a multiple of the largest.
    sizes = tuple(DEVICES[-1] * max(1, round(middle * SIZE_STEP**step / DEVICES[-1])) for step in steps.tolist())
    return truth(parameters, devices=DEVICES, sizes=sizes, probes=False)


def _both_best(true: Truth, pair: tuple[int, int], size: float) -> bool:
    """Whether no third count is faster where two tie."""
    times = {n: true.latency_s(n, round(size)) for n in DEVICES}
    return all(times[pair[0]] <= t for n, t in times.items() if n not in pair)


def true_tie(true: Truth, few: int, many: int) -> float:
    """Size from which on the larger count is faster, NaN without one: at a fixed count the law is linear in size."""
    near, far = 1024, 2**20
    gaps = [true.latency_s(many, s) - true.latency_s(few, s) for s in (near, far)]
    slope = (gaps[1] - gaps[0]) / (far - near)
    return near - gaps[0] / slope if slope < 0 else np.nan


def simulate(true: Truth, seed: int) -> LaunchTable:
    """The table that six launches of the sweep would give."""
    calls = sample(true.times_s, launches=LAUNCHES, rounds=ROUNDS, calls=CALLS, seed=seed, **NOISE)
    rounds = np.median(calls, axis=-1)
    plan = Plan(
        workload="simulated",
        path=true.path,
        objective="time",
        devices=true.devices,
        sizes=true.sizes,
        strategies=(true.strategy,),
    )
    return LaunchTable(plan=plan, cells=true.cells, latency_s=rounds.mean(axis=-1), facts=true.facts, synthetic=True)


def check(true: Truth, table: LaunchTable) -> Iterator[Check]:
    """Ask every question of one sweep."""
    strategy, middle, largest = true.strategy, true.sizes[NUM_SIZES // 2], true.sizes[-1]
    last = true.devices[-1]
    causes = {n: true.causes_at(n, largest) for n in true.devices}
    totals = {n: sum(c.values()) for n, c in causes.items()}

    share = parts(table, strategy, last, largest, confidence=CONFIDENCE)["communication"].share
    yield _interval("communication's share of the time", share, causes[last]["communication"] / totals[last])
    grown = growth(table, strategy, 1, last, largest, confidence=CONFIDENCE).shares.get("communication", Estimate())
    share_of_growth = causes[last]["communication"] / (totals[last] - totals[1])
    yield _interval("communication's share of the growth", grown, share_of_growth)

    best = optimum(table, strategy, None, axis_size=middle, confidence=CONFIDENCE)
    times = {n: true.latency_s(n, middle) for n in true.devices}
    yield _set("optimal count", best.set, min(times, key=times.__getitem__))
    helps = break_even(table, strategy, None, axis_size=middle, confidence=CONFIDENCE)
    winners = [n for n in true.devices if times[n] < times[1]]
    yield _set("first count that helps", helps.first.set, winners[0] if winners else None)
    yield _set("last count that helps", helps.last.set, winners[-1] if winners else None)
    for sizes in helps.sizes:
        if (name := f"break-even size, {sizes.num_devices} devices") in UNITS:
            yield from _root(name, sizes, true_tie(true, 1, sizes.num_devices), true.sizes)

    bound = communication_bound(table, strategy, size=largest, confidence=CONFIDENCE)
    said: dict[bool, list[str]] = {True: [], False: []}
    for meaning, value in true_meanings(causes).items():
        said[value > 0].append(getattr(bound, meaning).holds)
    if said[False]:
        yield Check(quantity=FALSE_YES, answered="undecided" not in said[False], holds="yes" not in said[False])
    if said[True]:
        yield Check(quantity=TRUE_YES, answered="undecided" not in said[True], holds="no" not in said[True])


def true_meanings(causes: dict[int, dict[str, float]]) -> dict[str, float]:
    """Each meaning's number less its null value, from true seconds by count and cause; above 0: it holds."""
    counts = sorted(causes)
    first, last = causes[counts[0]], causes[counts[-1]]
    total_first, total_last = sum(first.values()), sum(last.values())
    grown = last["communication"] - first["communication"]
    gain = max(0.0, first["compute"] - last["compute"])
    no_dispatch = {n: first["dispatch"] + causes[n]["compute"] + causes[n]["communication"] for n in counts[1:]}
    compute_only = {n: first["dispatch"] + causes[n]["compute"] for n in counts[1:]}
    return {
        "share": last["communication"] / total_last - 0.5,
        "exceeds_compute": (last["communication"] - last["compute"]) / total_last,
        "growth": min(grown - gain, grown - 0.05 * total_first) / total_first,
        "no_gain_even_with_free_dispatch": min(
            min(np.log(t / total_first) for t in no_dispatch.values()),
            max(np.log(total_first / t) for t in compute_only.values()),
        ),
    }


def summarise(regime: str, checks: Sequence[Check]) -> list[Row]:
    """One row a quantity."""
    rows = []
    for quantity, unit in UNITS.items():
        ours = [c for c in checks if c.quantity == quantity]
        if not ours:
            continue
        widths = [c.width for c in ours if np.isfinite(c.width)]
        least = 1 - 0.05 if quantity in (FALSE_YES, TRUE_YES) else LEAST_COVERAGE
        rows.append(
            Row(
                regime=regime,
                quantity=quantity,
                sweeps=len(ours),
                answered=sum(c.answered for c in ours),
                held=sum(c.holds for c in ours),
                required=int(stats.binom.ppf(0.01, len(ours), least)),
                median_width=float(np.median(widths)) if widths else np.nan,
                width_unit=unit,
            )
        )
    return rows


def run(sweeps: int, seed: int) -> list[Row]:
    """Simulate and check ``sweeps`` sweeps in each regime."""
    rows = []
    for regime, stream in zip(REGIMES, np.random.SeedSequence(seed).spawn(len(REGIMES)), strict=True):
        rng = np.random.default_rng(stream)
        checks: list[Check] = []
        for _ in range(sweeps):
            true = draw_truth(regime, rng)
            checks += check(true, simulate(true, int(rng.integers(2**31))))
        rows += summarise(regime, checks)
    return rows


def _interval(quantity: str, estimate: Estimate, value: float) -> Check:
    if estimate.interval is None:
        return Check(quantity=quantity, answered=False, holds=True)
    lower, upper = (float(end) for end in estimate.interval if end is not None)
    return Check(quantity=quantity, answered=True, holds=lower <= value <= upper, width=upper - lower)


def _set(quantity: str, members: Sequence[int | None], value: int | None) -> Check:
    return Check(quantity=quantity, answered=True, holds=value in members, width=len(members))


def _root(quantity: str, found: BreakEvenSize, root: float, sizes: Sequence[int]) -> Iterator[Check]:
    """A root outside the measured sizes is not asked for."""
    if not sizes[0] <= root <= sizes[-1]:
        return
    holds = any((low is None or low <= root) and (high is None or root <= high) for low, high in found.pieces)
    (low, high), *more = found.pieces or ((None, None),)
    width = high / low if low and high and not more else np.nan
    yield Check(quantity=quantity, answered=found.outcome == "found", holds=holds, width=width)


def write_csv(path: Path, rows: Sequence[Row], stamp: dict[str, str]) -> None:
    """The table, every line with the stamp, so that it can stand alone."""
    with path.open("w", newline="") as file:
        names = [f.name for f in dataclasses.fields(Row)]
        writer = csv.DictWriter(file, [*names, "passed", *stamp])
        writer.writeheader()
        for row in rows:
            writer.writerow({**dataclasses.asdict(row), "passed": row.passed, **stamp})


def markdown(rows: Sequence[Row], stamp: dict[str, str]) -> str:
    """The page ``docs/calibration.md``."""
    said = ", ".join(f"{name} {value}" for name, value in stamp.items())
    lines = [
        "# Do the intervals hold?",
        "",
        f"Simulated strong sweeps on {', '.join(map(str, DEVICES))} devices and {NUM_SIZES} sizes, a factor of "
        f"{SIZE_STEP} apart: {LAUNCHES} launches of {ROUNDS} rounds, {CALLS} calls a visit; "
        f"spreads {', '.join(f'{k} {v}' for k, v in NOISE.items())}. Parameters scatter by {SPREAD} (log scale) around "
        "their regime's. Nominal confidence 95 %. All of these answers come from the measured cells, without a law.",
        "",
        f"Made by `python -m benchmarks.calibration`: {said}.",
        "",
        "*Held*: sweeps whose answer held the truth; one that gave no answer counts as held, and *answered* counts "
        "the others. A count that is not in a set, a break-even size outside all its pieces, a share outside its "
        "interval is a miss. *Required*: the first percentile of what "
        f"{LEAST_COVERAGE:.0%} coverage gives (95 % for a false yes or no). "
        "Half of the sweeps ask for counts within a tenth of a size at which two of them tie.",
        "",
        "| regime | quantity | sweeps | answered | held | required | median width | |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for r in rows:
        width = f"{r.median_width:.3g} ({r.width_unit})" if np.isfinite(r.median_width) else ""
        verdict = "" if r.passed else "**too low**"
        lines.append(
            f"| {r.regime} | {r.quantity} | {r.sweeps} | {r.answered} | {r.held} | {r.required} | {width} | {verdict} |"
        )
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; 1 when some coverage is too low."""
    parser = argparse.ArgumentParser(description="Coverage of intervals and sets on simulated sweeps.")
    parser.add_argument("--small", action="store_true", help="60 sweeps a regime instead of 500; writes nothing")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rows = run(60 if options.small else 500, options.seed)
    stamp = {
        "seed": str(options.seed),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        "version": version("breakeven"),
    }
    print(markdown(rows, stamp))
    if not options.small:
        DOCS.mkdir(exist_ok=True)
        (DOCS / "calibration.md").write_text(markdown(rows, stamp))
        write_csv(DOCS / "calibration.csv", rows, stamp)
    return 0 if all(row.passed for row in rows) else 1


def _commit() -> str:
    """The commit that is measured, with a plus sign where files differ from it; ``none`` outside a repository."""
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--dirty=+"],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "none"


if __name__ == "__main__":
    sys.exit(main())
