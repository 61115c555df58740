"""What a reader must know beside each figure: what is drawn, from how many launches, with which confidence."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ..fit.answer import Answer
from ..model.cell import devices


def scaling(answers: Sequence[Answer], predicted: pd.DataFrame, *, ideal: bool) -> str:
    """Caption of time or throughput against devices."""
    answer = answers[0]
    what = "Throughput" if answer.objective == "throughput" else "Time per call"
    kinds = set(predicted["kind"])
    lines = [f"{what} of {answer.workload} against devices, {size_in_words(answer)}.", _points(answer)]
    if kinds & {"interpolated", "extrapolated"}:
        lines.append(f"Lines: prediction ({_predictors(answers, predicted)}){_bands(predicted)}.")
        if {c.strategy for c in answer.curves if c.role == "workload"} - set(predicted["strategy"]):
            lines.append("Thin lines join the points of the other strategies.")
    else:
        lines.append("Lines join the points.")
    if ideal:
        lines.append(f"Dotted: ideal scaling from {devices(answer.reference_devices)} of {_first_strategy(answer)}.")
    return " ".join([*lines, *_conditions(answer)])


def causes(answer: Answer, table: pd.DataFrame, *, narrow: bool) -> str:
    """Caption of time by cause; in a narrow figure the panels stand above each other."""
    first, second = ("Top", "Bottom") if narrow else ("Left", "Right")
    sources = "; ".join(f"{cause}: {_sources(part)}" for cause, part in table.groupby("cause", sort=False))
    return " ".join(
        [
            f"What a call of {answer.workload} ({answer.strategy}) is made of, {size_in_words(answer)}.",
            f"{first}: seconds by cause, stacked, means over launches (times of calls are geometric means); a "
            "difference below zero hangs below the axis.",
            f"{second}: shares of the call's time, {_intervals(answer)}.",
            f"Sources: {sources}.",
            *_conditions(answer),
        ]
    )


def _sources(part: pd.DataFrame) -> str:
    """Where a cause's numbers come from, by counts where that differs."""
    by_source = [(source, rows["num_devices"].tolist()) for source, rows in part.groupby("source", sort=False)]
    if len(by_source) == 1:
        return str(by_source[0][0])
    return ", ".join(f"{source} on {', '.join(map(str, counts))}" for source, counts in by_source)


def break_even(answer: Answer, predicted: pd.DataFrame, sizes: pd.DataFrame, *, numbers: bool) -> str:
    """Caption of the break-even map; ``numbers``: whether they stand in its cells."""
    what = "throughput" if answer.objective == "throughput" else "time per call"
    lines = [
        f"Speedup in {what} of {answer.workload} ({answer.strategy}) against {devices(answer.reference_devices)}, "
        "by size and devices; white is break-even, orange slower, violet faster.",
    ]
    if numbers:
        bold = ", bold where the interval excludes 1" if predicted["speedup_lower"].notna().any() else ""
        lines.append(f"Numbers are speedups{bold}; none are written under a break-even interval.")
    if sizes["size"].notna().any():
        lines.append(f"Diamonds: break-even sizes, {_intervals(answer)}; a bar that reaches the border is open there.")
    if (predicted["kind"] == "extrapolated").any():
        lines.append("Hatched: outside the measured range.")
    if (predicted["kind"] == "refused").any():
        lines.append("Grey: not predicted.")
    return " ".join([*lines, *_conditions(answer)])


def size_in_words(answer: Answer) -> str:
    """The headline size and the path: ``100 rows per device (weak scaling)``."""
    per = " per device" if answer.path == "weak" else ""
    return f"{answer.size:,} {answer.unit}{per} ({answer.path} scaling)"


def _points(answer: Answer) -> str:
    return f"Points: measured, {_intervals(answer)}."


def _intervals(answer: Answer) -> str:
    """Confidence, method and sample size; says when there are none."""
    any_interval = any(e.interval for curve in answer.curves for e in curve.latency_s)
    if not any_interval:
        return f"without intervals ({answer.interval_method})"
    launches, rounds = answer.num_launches, answer.num_rounds
    repeats = []
    if launches is not None and "launches" not in answer.interval_method:
        repeats.append(f"{launches} launch{'es' * (launches != 1)}")
    if rounds is not None:
        repeats.append(f"{rounds} round{'s' * (rounds != 1)}")
    return f"{answer.confidence:.0%} intervals ({'; '.join([answer.interval_method, *repeats])})"


def _predictors(answers: Sequence[Answer], predicted: pd.DataFrame) -> str:
    """The laws that predict; where none was kept, what stands in for them."""
    laws = dict.fromkeys(law.name for answer in answers for law in answer.laws if law.kept)
    others = predicted["kind"].isin(["interpolated", "extrapolated"])
    return "; ".join(laws or dict.fromkeys(predicted.loc[others, "source"]))


def _bands(predicted: pd.DataFrame) -> str:
    """What the prediction's bands and dashes mean, where there are any."""
    bands = ", bands: its intervals" if predicted["latency_s_lower"].notna().any() else ""
    return bands + (", dashed outside the measured counts" if (predicted["kind"] == "extrapolated").any() else "")


def _first_strategy(answer: Answer) -> str:
    return next((c.strategy for c in answer.curves if c.role == "workload"), answer.strategy)


def _conditions(answer: Answer) -> list[str]:
    """What restricts every statement of the figure."""
    found = []
    if answer.synthetic:
        found.append("Synthetic: the samples were simulated.")
    if (shared := answer.shared_cores) is not None:
        cores = f"{shared.cores} core{'s' * (shared.cores != 1)}"
        where = " a node" * (shared.devices < (answer.visible_devices or 0))
        found.append(f"Your {devices(shared.devices)}{where} share {cores}: counts beyond the cores add no hardware.")
    return found
