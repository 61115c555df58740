"""The text of ``show``: what is in a record."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..data.schema import Plan
from ..model.cell import Cell, devices
from . import units
from .record_summary import CellSummary, FailureSummary, RecordSummary, role_counts
from .render_surroundings import surroundings
from .text import page, pairs, sentence, table

_ENVIRONMENT = {
    "platform": "platform",
    "device_kind": "device kind",
    "visible_devices": "visible devices",
    "cores": "cores",
    "cpu": "cpu",
    "system": "system",
    "python": "python",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "xla_flags": "XLA_FLAGS",
}

_PROCESSES = {
    "processes": "processes",
    "devices_per_process": "devices a process",
    "nodes": "nodes",
    "devices_per_node": "devices a node",
    "barrier": "barrier",
}
"""Said where there are several."""


def show(summary: RecordSummary) -> str:
    """Return the whole summary, ready to print."""
    return page(
        _head(summary),
        f"plan\n{pairs(_plan(summary.plan, foreign=summary.foreign))}",
        _environment(summary),
        _skew(summary),
        _launches(summary),
        surroundings(summary.surroundings),
        _cells(summary),
        _failures(summary.failures),
    )


def measured(path: Path, found: dict[str, int]) -> str:
    """What ``measure`` says when it is done, and what to do next."""
    word = shell_word(path)
    failed = f", {found['failures']} failures ('breakeven show {word}' lists them)" if found["failures"] else ""
    return "\n".join(
        [
            sentence(
                f"{path}: {found['samples']:,} calls of {found['cells']} cells in {found['launches']} launches{failed}"
            ),
            f"next:  breakeven explain {word}",
        ]
    )


def shell_word(path: Path | str) -> str:
    """A file as one word of a shell's command, not to be taken for an option."""
    return shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))


def _head(summary: RecordSummary) -> str:
    kind = "simulated" if summary.synthetic else "read from another tool's log" if summary.foreign else "measured"
    by = f"by breakeven {summary.version}" if summary.version else ""
    launches = f"{len(summary.launches)} launch{'es' if len(summary.launches) != 1 else ''}"
    if summary.traced:
        launches += f", and {summary.traced} program{'s' if summary.traced != 1 else ''} traced, not timed"
    lines = [
        f"{summary.source}: {', '.join(filter(None, (kind, summary.created, by)))}",
        f"{summary.samples:,} calls in {summary.visits:,} visits of {len(summary.cells)} cells, {launches}",
    ]
    return "\n".join(sentence(line) for line in lines)


def _plan(plan: Plan, *, foreign: bool) -> list[tuple[str, str]]:
    per_device = plan.path == "weak"
    sizes = ", ".join(units.size_text(size, "", per_device=False).strip() for size in plan.sizes)
    links = plan.pairs or bool(plan.orders)
    if links:
        # What is in a message knows neither path nor objective.
        measured = "messages between pairs" if plan.pairs else "all-reduces over devices in two orders"
        entries = [("links", measured), ("devices", str(plan.devices[-1])), ("messages", f"{sizes} {plan.unit}")]
    else:
        entries = [
            ("workload", plan.workload),
            ("strategies", ", ".join(plan.strategies)),
            ("devices", ", ".join(map(str, plan.devices))),
            ("sizes", f"{sizes} {plan.unit}{' per device' if per_device else ''} ({plan.path} scaling)"),
            ("objective", plan.objective),
        ]
    if foreign:
        return entries
    entries += [
        ("launches", f"{plan.launches}"),
        ("budget", "none" if plan.budget_s is None else units.duration(plan.budget_s)),
        ("warm-ups", f"{_warmups(plan)}, stored but left out"),
        ("seed", f"{plan.seed}"),
    ]
    left_out = [name for name, kept in (("controls", plan.controls), ("probes", plan.probes)) if not (kept or links)]
    return entries + ([("left out", ", ".join(left_out))] if left_out else [])


def _warmups(plan: Plan) -> str:
    return "by a trend test in each launch" if plan.warmups is None else f"{plan.warmups} a visit"


def _environment(summary: RecordSummary) -> str | None:
    entries = _ENVIRONMENT | (_PROCESSES if summary.plan.processes > 1 else {})
    found = [(text, str(summary.environment[key])) for key, text in entries.items() if key in summary.environment]
    return f"environment\n{pairs(found)}" if found else None


def _skew(summary: RecordSummary) -> str | None:
    if not summary.skew_s:
        return None
    header = "skew: how far apart the processes began a call, median"
    rows = [(devices(n), units.duration(skew)) for n, skew in summary.skew_s.items()]
    return f"{header}\n{pairs(rows)}"


def _launches(summary: RecordSummary) -> str | None:
    if not any(launch.started for launch in summary.launches):
        return None
    rows = [
        (
            launch.launch[:8],
            launch.started,
            f"{launch.complete_rounds} of {launch.rounds}",
            f"{launch.visits:,}",
            f"{launch.samples:,}",
        )
        for launch in summary.launches
    ]
    headers = ("launch", "started", "complete rounds", "visits", "calls")
    return f"launches\n{table(headers, rows, numeric=(2, 3, 4))}"


def _cells(summary: RecordSummary) -> str | None:
    if not summary.cells:
        return None
    roles = units.joined(f"{count} {role}" for role, count in role_counts(summary.cells).items())
    rows = [_cell(entry) for entry in summary.cells]
    headers = ("role", "strategy", "devices", "global size", "calls", "median", "compile", "")
    return f"cells: {roles}\n{table(headers, rows, numeric=(2, 3, 4, 5, 6))}"


def _cell(entry: CellSummary) -> tuple[str, ...]:
    cell = entry.cell
    remarks = [_probe(cell)] if cell.k is not None else []
    remarks += [f"{entry.control} control"] if entry.control else []
    remarks += ["barred"] if entry.barred else []
    return (
        cell.role,
        cell.strategy,
        str(cell.num_devices),
        f"{cell.size:,}",
        f"{entry.samples:,}",
        "-" if entry.median_s is None else units.duration(entry.median_s),
        "-" if entry.compile_s is None else units.duration(entry.compile_s),
        ", ".join(remarks),
    )


def _probe(cell: Cell) -> str:
    pair = "" if cell.pair is None else "{} and {}, ".format(*cell.pair)
    return f"{pair}k = {cell.k}, {units.byte_count(cell.payload_bytes)}"


def _failures(failures: tuple[FailureSummary, ...]) -> str | None:
    if not failures:
        return None
    lines = ["failures"]
    for failure in failures:
        times = f" ({failure.times} times)" if failure.times > 1 else ""
        where = f" {failure.cell}" if failure.cell else ""
        text = f"{failure.stage}{where}: {failure.error}: {failure.message}{times}"
        lines.append(sentence(text, indent=2))
        lines.extend(f"    {frame}" for frame in failure.frames)
    return "\n".join(lines)
