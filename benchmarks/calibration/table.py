"""From checks to rows, and from rows to the committed table and its page."""

from __future__ import annotations

import csv
import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from .checks import Check, Kind
from .known import why
from .questions import WIDTHS
from .scenarios import BEYOND, CALLS, DEVICES, NOISE, NUM_SIZES, POWER_OF, ROUNDS, SCENARIOS, SIZE_STEP, SPREAD

LEAST, MOST = 0.93, 0.97
LEVEL = 0.05
REMARKS = {
    "counts": "The optimum up to 32 devices rests on laws.",
    "parameters": "*Of the true law*: how often the law they are reported for is the true one, without a goal; alpha0, "
    "alpha and beta count only then. *Upper limits*: all one-sided limits by themselves, printed where an interval "
    "would reach 0: a truth far above 0 gets one only when the estimate happens to be low.",
    "stopping": "Coverage is that at the stop: at the first look that reached the goal, or after the last launch. "
    "*Reached*: how often the goal was, without a goal. Wrong decisions are among the tests, *decided* where reached.",
    "breaks": f"How often, without a goal; asked of one sweep in {POWER_OF}. False alarms are among the tests.",
    "predictions": "From laws: the union over all that are kept, never less than the true law's own interval.",
}
CHANCE = "by no more than chance explains"
FEW = 50
"""Rows of fewer answers say nothing and are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """All checks of one quantity in one scenario.

    Attributes
    ----------
    sweeps, answered, held : in how many it was asked, answered, and right
    rate : of an *error*: of all sweeps, how many it got wrong; else: of the answers, how many hold the truth
    monte_carlo_error : its standard error
    median_width : NaN where there is none
    """

    scenario: str
    group: str
    quantity: str
    kind: Kind
    sweeps: int
    answered: int
    held: int
    rate: float
    monte_carlo_error: float
    median_width: float

    @property
    def goal(self) -> str:
        """In words."""
        return {
            "interior": f"{100 * LEAST:g} to {100 * MOST:g} %",
            "set": f"at least {100 * LEAST:g} %",
            "error": f"at most {100 * LEVEL:g} %",
            "choice": "",
        }[self.kind]

    @property
    def verdict(self) -> str:
        """``within``, ``conservative`` (above the goal), ``too low``, or of a test ``too many``."""
        if self.kind == "choice":
            return ""
        if self.kind == "error":
            # Simulated error rates scatter around 5 %: two standard errors are theirs.
            if self.rate > LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / self.sweeps):
                return "too many"
            return "within"
        if self.rate < LEAST:
            return "too low"
        return "conservative" if self.kind == "interior" and self.rate > MOST else "within"

    @property
    def missed(self) -> bool:
        """Whether the goal is missed by more than chance explains: the first percentile of what the goal allows."""
        if self.kind == "choice":
            return False
        least, of = (1 - LEVEL, self.sweeps) if self.kind == "error" else (LEAST, self.answered)
        return bool(self.held < stats.binom.ppf(0.01, of, least))

    @property
    def reason(self) -> str:
        """Why the goal is not reached, where that is known or chance is enough; empty where it is."""
        if self.verdict not in ("too low", "too many"):
            return ""
        return why(self.scenario, self.group, self.quantity) or ("" if self.missed else CHANCE)


def summarise(scenario: str, checks: Iterable[Check], *, least: int = FEW) -> list[Row]:
    """One row a quantity, in the order in which the questions come."""
    by_quantity: dict[tuple[str, str, Kind], list[Check]] = defaultdict(list)
    for check in checks:
        by_quantity[check.group, check.quantity, check.kind].append(check)
    rows = [_row(scenario, *key, found) for key, found in by_quantity.items()]
    return [row for row in rows if (row.sweeps if row.kind == "error" else row.answered) >= least]


def _row(scenario: str, group: str, quantity: str, kind: Kind, checks: Sequence[Check]) -> Row:
    answered = [c for c in checks if c.answered]
    counted = checks if kind == "error" else answered
    held = sum(c.holds for c in counted)
    rate = (held / len(counted) if counted else np.nan) if kind != "error" else 1 - held / len(checks)
    # One more of either outcome, so that a rate of 0 or 1 has an error too.
    shrunk = (held + 1) / (len(counted) + 2)
    widths = [c.width for c in answered if np.isfinite(c.width)]
    return Row(
        scenario=scenario,
        group=group,
        quantity=quantity,
        kind=kind,
        sweeps=len(checks),
        answered=len(answered),
        held=held,
        rate=float(rate),
        monte_carlo_error=float(np.sqrt(shrunk * (1 - shrunk) / (len(counted) + 2))),
        median_width=float(np.median(widths)) if widths else np.nan,
    )


def write_csv(path: Path, rows: Sequence[Row], stamp: Mapping[str, str]) -> None:
    """The table, every line with the stamp, so that it can stand alone."""
    names = [f.name for f in dataclasses.fields(Row)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*names, "goal", "verdict", "reason", *stamp])
        writer.writeheader()
        for row in rows:
            numbers = {
                "rate": f"{row.rate:.4f}",
                "monte_carlo_error": f"{row.monte_carlo_error:.4f}",
                "median_width": f"{row.median_width:.3g}",
            }
            said = {"goal": row.goal, "verdict": row.verdict, "reason": row.reason}
            writer.writerow({**dataclasses.asdict(row), **numbers, **said, **stamp})


def markdown(rows: Sequence[Row], stamp: Mapping[str, str]) -> str:
    """The page ``docs/calibration.md``."""
    groups = [*WIDTHS, "tests"]
    lines = [*_head(rows, stamp), "", *_outside(rows)]
    for group in groups:
        if mine := [row for row in rows if row.group == group]:
            grid = _list(mine) if group == "tests" else _grid(mine)
            lines += ["", f"## {group[0].upper()}{group[1:]}", "", *_legend(group), "", *grid]
    return "\n".join([*lines, ""])


def _head(rows: Sequence[Row], stamp: Mapping[str, str]) -> list[str]:
    said = ", ".join(f"{name} {value}" for name, value in stamp.items())
    most = max((row.sweeps for row in rows), default=0)
    counts = ", ".join(map(str, DEVICES))
    return [
        "# Do the intervals hold?",
        "",
        f"Made by `python -m benchmarks.calibration`: {said}. Up to {most} simulated sweeps a row.",
        "",
        f"Sweeps on {counts} devices and {NUM_SIZES} sizes, a factor of {SIZE_STEP} apart: six launches unless the "
        f"scenario says otherwise, of {ROUNDS} rounds, {CALLS} calls a visit; spreads "
        f"{', '.join(f'{k} {v:g}' for k, v in NOISE.items())}. Each draws its own parameters, scattered by {SPREAD} "
        "(log scale) around its regime's, and its sizes around the one at which the largest count breaks even. In half "
        "of them counts are asked for within a tenth of a size at which two counts tie. All is answered as for a "
        "measured sweep, at a nominal 95 %, and compared with the truth.",
        "",
        "- A cell reads *coverage ± Monte Carlo standard error (median width)*, coverage in % of the answers given; "
        '*of N %* where some sweeps got no answer ("cannot tell"), which is neither right nor wrong.',
        f"- Goal: {100 * LEAST:g} to {100 * MOST:g} % for intervals of continuous quantities; at least {100 * LEAST:g} "
        "% for sets of counts or sizes and what lies at a bound (columns with ≥). Tests may err in 5 % (and two "
        "standard errors).",
        "- **Bold** misses the goal. *Italic* is conservative: above it, a wider answer than need be.",
        "- All times and shares: Student t over launches. Parameters: t over the launches' unconstrained fits. "
        f"Predictions (up to {BEYOND[-1]} devices): the union over the laws kept, each ± t √(s²/G + d²) with "
        "Satterthwaite's degrees of freedom.",
        "",
        "| scenario | |",
        "| --- | --- |",
        *(f"| {s.name} | {s.about} |" for s in SCENARIOS if any(row.scenario == s.name for row in rows)),
    ]


def _outside(rows: Sequence[Row]) -> list[str]:
    """How many rows are within the goal, and which are not."""
    judged = [row for row in rows if row.kind != "choice"]
    count = {v: sum(row.verdict == v for row in judged) for v in ("within", "conservative", "too low", "too many")}
    low = [row for row in judged if row.verdict in ("too low", "too many")]
    lines = [
        "## In short",
        "",
        f"{len(judged)} rows: {count['within']} within the goal, {count['conservative']} conservative, "
        f"{len(low)} outside it{':' if low else '.'}",
    ]
    if low:
        lines += ["", "| scenario | quantity | rate, % | why |", "| --- | --- | ---: | --- |"]
        lines += [
            f"| {r.scenario} | {r.group}: {r.quantity} | {100 * r.rate:.1f} ± {100 * r.monte_carlo_error:.1f} | "
            f"{r.reason or 'not explained'} |"
            for r in low
        ]
    return lines


def _legend(group: str) -> list[str]:
    if group == "tests":
        return ["Errors in % of all sweeps, ± Monte Carlo standard error. At a border what is tested is just true."]
    widths = f"Widths: {WIDTHS[group]}. " if WIDTHS[group] else ""
    return [f"{widths}{REMARKS.get(group, '')}".rstrip()]


def _grid(rows: Sequence[Row]) -> list[str]:
    """Scenarios down, quantities across."""
    columns = list(dict.fromkeys((row.quantity, row.kind) for row in rows))
    cells = {(row.scenario, row.quantity, row.kind): row for row in rows}
    names = [f"{quantity}{' ≥' if kind == 'set' else ''}" for quantity, kind in columns]
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' ---: |' * len(columns)}"]
    for scenario in dict.fromkeys(row.scenario for row in rows):
        texts = [_cell(cells.get((scenario, *column))) for column in columns]
        lines.append(f"| {scenario} | {' | '.join(texts)} |")
    return lines


def _list(rows: Sequence[Row]) -> list[str]:
    """Tests down, each with its scenarios."""
    lines = ["| test | scenario | errors | decided |", "| --- | --- | ---: | ---: |"]
    for quantity in dict.fromkeys(row.quantity for row in rows):
        lines += [
            f"| {quantity} | {row.scenario} | {_rate(row)} | {100 * row.answered / row.sweeps:.0f} % |"
            for row in rows
            if row.quantity == quantity
        ]
    return lines


def _rate(row: Row) -> str:
    rate = f"{100 * row.rate:.1f} ± {100 * row.monte_carlo_error:.1f}"
    return {"too low": f"**{rate}**", "too many": f"**{rate}**", "conservative": f"*{rate}*"}.get(row.verdict, rate)


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    rate = _rate(row)
    share = 100 * row.answered / row.sweeps
    width = f" ({row.median_width:.2g})" if np.isfinite(row.median_width) else ""
    return f"{rate}{width}{f' of {share:.0f} %' if share < 99.5 else ''}"
