"""Does the tool find a difference where there is none?

`matmul` with its rows split exchanges nothing, so its control without communication is the identical program. Both are
measured on forced host devices and compared as any workload is with its control; what is then called a difference is a
false alarm. A sub-sweep is six launches of one count and size; it is tested at 5 % by the paired t over launches that
every share and cause rests on.

    python -m benchmarks.identical                      # measures for eight minutes, writes docs/identical.md and .csv
    python -m benchmarks.identical --record sweep.jsonl # takes a sweep measured before
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from breakeven.data.store import read
from breakeven.fit.intervals import p_differs
from breakeven.fit.launches import LaunchTable, from_record
from breakeven.measure.planning import make_plan
from breakeven.measure.sweep import run
from breakeven.measure.userfile import resolve
from scipy import stats

from .stamp import DOCS, stamp, write_rows

LAUNCHES = 6
LEVEL = 0.05
TESTS = 200
DEVICES, SIZES = (1, 2, 4, 8), (64, 128, 192, 256, 384)
MOST = int(stats.binom.ppf(0.99, TESTS, LEVEL))
"""False alarms that chance alone exceeds in one of a hundred repetitions of the study."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One sub-sweep: log(workload / control) of each of its launches."""

    num_devices: int
    size: int
    group: int
    log_ratios: tuple[float, ...]

    @property
    def p(self) -> float | None:
        """Two-sided p-value of the paired t test over the launches."""
        return p_differs(np.array(self.log_ratios))


def comparisons(table: LaunchTable) -> Iterator[Comparison]:
    """Cut a long sweep into sub-sweeps of six launches and compare the workload with its control in each cell."""
    for cell in table.select("workload"):
        ours = table.row(cell)
        control = table.time("local", cell.strategy, cell.num_devices, cell.size)
        if ours is None or control is None:
            continue
        ratios = np.log(ours / control)
        for group in range(len(ratios) // LAUNCHES):
            mine = ratios[group * LAUNCHES : (group + 1) * LAUNCHES]
            yield Comparison(num_devices=cell.num_devices, size=cell.size, group=group, log_ratios=tuple(mine.tolist()))


def alarms(found: Sequence[Comparison]) -> int:
    """Comparisons that call identical programs different."""
    return sum(one.p is not None and one.p < LEVEL for one in found)


def measure(path: Path, launches: int, budget_s: float) -> None:
    """Measure `matmul` beside its control."""
    plan = make_plan(
        resolve("matmul"), devices=DEVICES, sizes=SIZES, launches=launches, budget_s=budget_s, probes=False
    )
    run(plan, path, on_progress=lambda p: print(f"\rlaunch {p.launch} of {p.launches}", end="", file=sys.stderr))


def markdown(found: Sequence[Comparison], labels: dict[str, str]) -> str:
    """The page ``docs/identical.md``."""
    cells = sorted({(c.num_devices, c.size) for c in found})
    spread = {cell: [c for c in found if (c.num_devices, c.size) == cell] for cell in cells}
    lines = [
        "# Does it find a difference where there is none?",
        "",
        f"`matmul` (rows split, no collective) against its identical control: {len(found)} sub-sweeps of {LAUNCHES} "
        f"launches each, on forced host devices. The paired t over launches calls a difference at {LEVEL:.0%} in "
        f"**{alarms(found)}** of them; chance alone gives {LEVEL * len(found):.0f}, and more than {MOST} of {TESTS} "
        "in one of a hundred studies.",
        "",
        f"Made by `python -m benchmarks.identical`: {', '.join(f'{k} {v}' for k, v in labels.items())}.",
        "",
        "| devices | size | sub-sweeps | differences | mean ratio | spread of one launch |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (n, size), ours in spread.items():
        ratios = np.array([c.log_ratios for c in ours])
        lines.append(
            f"| {n} | {size} | {len(ours)} | {alarms(ours)} | {np.exp(ratios.mean()):.4f} | "
            f"{ratios.std(axis=1, ddof=1).mean():.2%} |"
        )
    return "\n".join([*lines, ""])


def rows_of(found: Iterable[Comparison]) -> Iterator[dict[str, object]]:
    """One row a sub-sweep, with the ratios that the test can be repeated from."""
    for one in found:
        ratios = {f"log_ratio_{i + 1}": f"{ratio:.6f}" for i, ratio in enumerate(one.log_ratios)}
        p = "" if one.p is None else f"{one.p:.4g}"
        yield {"devices": one.num_devices, "size": one.size, "group": one.group, **ratios, "p": p}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; 1 when the tool calls more differences than chance explains."""
    parser = argparse.ArgumentParser(description="A/A: identical programs measured side by side.")
    parser.add_argument("--record", type=Path, help="take this sweep of matmul instead of measuring")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        record = options.record or Path(folder) / "sweep.jsonl"
        if options.record is None:
            groups = TESTS // (len(DEVICES) * len(SIZES))
            measure(record, launches=groups * LAUNCHES, budget_s=480)
        found = list(comparisons(from_record(read(record))))
    labels = stamp(seed=0)
    page = markdown(found, labels)
    print(page)
    (DOCS / "identical.md").write_text(page)
    write_rows(DOCS / "identical.csv", rows_of(found), labels)
    return 0 if alarms(found) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
