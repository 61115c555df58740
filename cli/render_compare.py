"""The text of ``compare``: laws and rivals of one sweep, or two sides and what changed."""

from __future__ import annotations

from ..fit.comparing.league import NOTHING_LEFT, Contender, League, RivalCurve
from ..fit.comparing.paired_line import PairedLine
from ..fit.comparing.two_sweeps import CauseChange, CellRatio, ParameterChange, TwoSweeps
from ..model.cell import devices
from . import units
from .text import page, pairs, sentence, table

_SYMBOLS = {
    "rate": "lambda (rate, 1/s)",
    "contention": "sigma (contention)",
    "coherency": "kappa (coherency)",
    "serial": "serial fraction",
}
MOST_ROWS = 40


def rivals(found: League) -> str:
    """Laws and rivals by what they err on cells left out."""
    return page(_league_heading(found), _standings(found), _curves(found), _used(found))


def two_sides(found: TwoSweeps) -> str:
    """Two sweeps or two strategies, and what changed from the first to the second."""
    return page(
        _unlike(found),
        _sides_heading(found),
        _cells(found),
        _line(found),
        _causes(found),
        _parameters(found),
        _alone(found),
    )


def _league_heading(found: League) -> str:
    sizes = units.sizes_text(found.sizes, found.unit, per_device=found.path == "weak")
    lines = [f"{found.workload} ({found.strategy}) on {units.joined(found.devices)} devices, {sizes}"]
    left_out = []
    if found.held_out_counts:
        left_out.append(f"counts {units.joined(found.held_out_counts)}")
    if len(found.sizes) > 1:
        left_out.append("one size in turn")
    lines.append(f"left out: {units.joined(left_out)}" if left_out else f"cannot tell: {found.reason}")
    if found.num_launches:
        lines.append(f"{found.num_launches} launches; p: as good as the best, paired t over launches, Holm")
    return "\n".join(sentence(line) for line in lines)


def _standings(found: League) -> str:
    rows = [
        (
            one.name,
            _percent(one.misfit),
            _percent(one.loss.estimate),
            _percent(one.held_out_count),
            _percent(one.held_out_size),
            _percent(one.regret),
            "best" if one.name == found.best else units.probability(one.p),
            "yes" if one.may_predict else "no",
        )
        for one in sorted(found.contenders, key=_order)
    ]
    headers = ("law or rival", "misfit", "loss", "count out", "size out", "regret", "p", "may predict")
    lines = [
        "median relative errors on the workload's cells: all of them, a count left out, a size left out; loss: mean "
        "|log error| on what was left out, by which they are ranked",
        table(headers, rows, numeric=(1, 2, 3, 4, 5, 6)),
    ]
    return "\n".join([sentence(lines[0]), lines[1]])


def _order(one: Contender) -> tuple[bool, float]:
    """The least loss first; those that predict nothing that was left out come last."""
    return one.loss.estimate is None, one.loss.estimate or 0.0


def _curves(found: League) -> str | None:
    """Constants of the laws of the throughput at the largest size."""
    shown = [(one.name, one.curves[-1]) for one in found.contenders if one.curves]
    if not shown:
        return None
    size = units.size_text(shown[0][1].size, found.unit, per_device=found.path == "weak")
    return "\n".join([f"constants at {size}", *(_curve(name, curve) for name, curve in shown)])


def _curve(name: str, curve: RivalCurve) -> str:
    said = [
        f"{_SYMBOLS[key]} {'at bound 0' if key in curve.at_bound else units.ratio_estimate(value)}"
        for key, value in curve.parameters.items()
    ]
    if name == "USL":
        said.append(f"optimum {curve.optimum}" if curve.optimum is not None else f"no optimum: {curve.reason}")
    elif curve.reason == NOTHING_LEFT:
        said.append(NOTHING_LEFT)
    return sentence(f"{name}: {', '.join(said)}", indent=2)


def _used(found: League) -> str:
    lines = [
        f"predictions come from: {'; '.join(found.used)} ('breakeven fit' judges laws on all programs, with controls "
        "and probes; here all contenders know the workload's times alone)"
    ]
    if found.best is not None:
        lines.insert(0, f"least error where a {found.judged_on} is left out: {found.best}")
    return "\n".join(sentence(line) for line in lines)


def _unlike(found: TwoSweeps) -> str | None:
    if not found.not_comparable:
        return None
    return "\n".join(
        ["not comparable: the compiled programs differ", *(sentence(t, indent=2) for t in found.not_comparable)]
    )


def _sides_heading(found: TwoSweeps) -> str:
    how = "paired by launch" if found.paired else "launches of their own (Welch's t)"
    lines = [
        f"{found.second} against {found.first}: {found.reason}",
        f"intervals {100 * found.confidence:g} %, {how}; p after Holm over the cells, intervals by themselves; "
        f"same: within {100 * found.margin:g} %",
        *(f"differs in {words}" for words in found.setup),
        *_machine(found),
    ]
    return "\n".join(sentence(line) for line in lines)


def _machine(found: TwoSweeps) -> list[str]:
    """That the machine itself was faster or slower, or may have been."""
    if found.machine is None or not found.machine.matters:
        return []
    times = units.ratio_estimate(found.machine.ratio)
    sure = found.machine.p is not None and found.machine.p < 1 - found.confidence
    opening = f"the machine itself {'differs' if sure else 'may differ'}"
    return [
        f"{opening}: the sentinel, one fixed program, took {times} times as long in {found.second}. Ratios hold that "
        "too; a change is decided only where it is the same at one speed"
    ]


def _cells(found: TwoSweeps) -> str:
    rows = [_cell(found, cell) for cell in found.cells[:MOST_ROWS]]
    headers = ("size", "devices", "first", "second", "second / first", "p", "second is")
    lines = [table(headers, rows, numeric=(0, 1, 5))]
    if len(found.cells) > MOST_ROWS:
        lines.append(f"  and {len(found.cells) - MOST_ROWS} cells more: --json has all")
    reasons = dict.fromkeys(cell.ratio.reason for cell in found.cells if cell.ratio.reason)
    lines.extend(sentence(f"no interval: {reason}", indent=2) for reason in reasons)
    return "\n".join(lines)


def _cell(found: TwoSweeps, cell: CellRatio) -> tuple[str, ...]:
    return (
        units.size_text(cell.size, found.unit if found.unit in units.BYTES else "", per_device=False).strip(),
        str(cell.num_devices),
        units.duration(cell.first_s.estimate),
        units.duration(cell.second_s.estimate),
        units.ratio_estimate(cell.ratio),
        units.probability(cell.p),
        cell.change,
    )


def _line(found: TwoSweeps) -> str:
    line = found.line
    lines = [sentence(f"line over {line.num_cells} cells, second = a + b first: {_kind(line)}")]
    entries = []
    if line.intercept_s.estimate is not None:
        entries.append(("a", f"{units.time_estimate(line.intercept_s)}, p of 0: {units.probability(line.p_intercept)}"))
        entries.append(("b", f"{units.ratio_estimate(line.slope)}, p of 1: {units.probability(line.p_slope)}"))
    if line.offset_s is not None:
        entries.append(("constant", units.time_estimate(line.offset_s)))
    if line.factor is not None:
        entries.append(("factor", units.ratio_estimate(line.factor)))
    if entries:
        lines.append(pairs(entries))
    if line.method and entries:
        lines.append(sentence(f"intervals: {line.method}", indent=2))
    lines.extend(
        sentence(
            f"does not follow, left out: {devices(stray.num_devices)}, size {stray.size:,}: "
            f"{units.duration(stray.first_s)} and {units.duration(stray.second_s)}, {_off(stray.residual_s)} the line",
            indent=2,
        )
        for stray in line.strays
    )
    return "\n".join(lines)


def _kind(line: PairedLine) -> str:
    return f"undecided, {line.words}" if line.kind == "undecided" else f"{line.kind}, {line.words}"


def _off(residual_s: float) -> str:
    return f"{units.duration(abs(residual_s))} {'above' if residual_s > 0 else 'below'}"


def _causes(found: TwoSweeps) -> str | None:
    """Causes at the largest size and count that both sides have; the others are in the JSON."""
    if not found.causes:
        return None
    size = max(one.size for one in found.causes)
    count = max(one.num_devices for one in found.causes if one.size == size)
    here = [one for one in found.causes if (one.num_devices, one.size) == (count, size)]
    rows = [(one.cause, *_change(one)) for one in here]
    where = f"{devices(count)}, {units.size_text(size, found.unit, per_device=found.path == 'weak')}"
    headers = ("", "first", "second", "second − first", "p", "changed")
    return f"which cause changed, {where}\n{table(headers, rows, numeric=(4,))}"


def _change(one: CauseChange) -> tuple[str, ...]:
    return (
        units.duration(one.first_s.estimate),
        units.duration(one.second_s.estimate),
        units.time_estimate(one.difference),
        units.probability(one.p),
        _verdict(one.differs),
    )


def _verdict(differs: bool | None) -> str:
    return "cannot tell" if differs is None else "yes" if differs else "not detected"


def _parameters(found: TwoSweeps) -> str | None:
    if not found.parameters:
        return None
    rows = [_parameter(one) for one in found.parameters]
    headers = ("", "first", "second", "second − first", "p", "changed")
    return f"parameters of the law {found.law}\n{table(headers, rows, numeric=(4,))}"


def _parameter(one: ParameterChange) -> tuple[str, ...]:
    per = one.unit.removeprefix("s")
    first, second = one.first.estimate or 0.0, one.second.estimate or 0.0
    scale = units.time_scale(max(abs(first), abs(second)), per=per)
    return (
        one.name,
        units.number(first, None, scale),
        units.number(second, None, scale),
        units.estimate(one.difference, scale),
        units.probability(one.p),
        _verdict(one.differs),
    )


def _alone(found: TwoSweeps) -> str | None:
    lines = [
        sentence(f"only in {name}: {units.joined(cells)}")
        for name, cells in ((found.first, found.only_first), (found.second, found.only_second))
        if cells
    ]
    return "\n".join(lines) or None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
