"""The text of ``predict``: how many devices, from where on they help, and what each count would cost."""

from __future__ import annotations

from ..fit.answer import Answer, BreakEvenCount, BreakEvenSize, Optimum, Prediction
from ..model.cell import devices
from . import units
from .render_breaks import breaks
from .render_common import grouped, heading, objective_text, size_cell, size_header, size_text
from .render_explain import weak_efficiency
from .render_scaling import separation
from .text import page, sentence, table

_HELPS = {
    "above": "helps above",
    "below": "helps below",
    "window": "helps inside a window",
    "always": "helps at every measured size",
    "never": "helps at no measured size",
    "undecided": "undecided",
}
_OF_TIMES = ("impossible-rate", "odd-repeats", "not-waited-for", "first-repeats")


def predict(answer: Answer) -> str:
    """Return the whole prediction, ready to print."""
    return page(
        heading(answer),
        sentence(objective_text(answer)),
        _about_the_times(answer),
        optimum(answer),
        break_even(answer),
        _sizes(answer),
        _predictions(answer),
        separation(answer),
        breaks(answer),
        weak_efficiency(answer),
    )


def _about_the_times(answer: Answer) -> str | None:
    """What was left out of the times, and what makes them, and with them the best count, doubtful."""
    found = [one for one in answer.named_warnings if one.name in _OF_TIMES]
    return "\n".join(sentence(f"{'doubtful, ' * one.doubts_verdict}{one.name}: {one.text}") for one in found) or None


def optimum(answer: Answer) -> str:
    """The best count, the counts not excluded, and what each would cost more."""
    best = answer.optimal_devices
    lines = [sentence(f"optimal devices, {size_text(answer, best.size)}: {_best(best, shared=answer.shared_resource)}")]
    if best.regret or best.win_frequency:
        counts = sorted({*best.regret, *best.win_frequency})
        rows = [
            (
                str(count),
                units.frequency(best.win_frequency[count]) if count in best.win_frequency else "-",
                units.share_estimate(best.regret[count]) if count in best.regret else "-",
            )
            for count in counts
        ]
        lines.append(table(("devices", "wins", "costs more than best"), rows, numeric=(0, 1)))
    if best.within_tolerance is not None:
        lines.append(f"  smallest count within {100 * best.tolerance:g} % of the best: {best.within_tolerance}")
    lines.extend(_by_size(answer))
    return "\n".join(lines)


def break_even(answer: Answer) -> str:
    """Where adding devices starts and stops to help."""
    found = answer.break_even
    base = devices(answer.reference_devices)
    lines = [
        f"break-even against {base}, {size_text(answer, found.size)}",
        sentence(f"helps from: {_count(found.first)}", indent=2),
        sentence(f"helps up to: {_count(found.last)}", indent=2),
    ]
    return "\n".join(lines)


def _best(best: Optimum, *, shared: bool) -> str:
    if best.estimate is None:
        return units.cannot_tell(best.reason)
    text = str(best.estimate)
    if best.at_upper_end:
        # Of simulated devices that share cores nothing is said beyond the measured counts.
        text += " (the largest count asked about)" if shared else " (the largest asked about: more may be better still)"
    if len(best.set) > 1:
        text += f"; not excluded: {units.count_set(best.set)}"
    if best.outcome == "undecided":
        text += "; undecided"
    return f"{text}: {best.reason}" if best.reason else text


def _by_size(answer: Answer) -> list[str]:
    others = {
        size: best for size, best in sorted(answer.optimal_by_size.items()) if size != answer.optimal_devices.size
    }
    if not others:
        return []
    rows = [
        (
            size_cell(answer, size),
            "cannot tell" if best.estimate is None else str(best.estimate),
            units.count_set(best.set) if best.set else "-",
            "-" if best.within_tolerance is None else str(best.within_tolerance),
        )
        for size, best in others.items()
    ]
    tolerance = f"within {100 * answer.optimal_devices.tolerance:g} %"
    missing: dict[str, list[str]] = {}
    for size, best in others.items():
        if best.estimate is None and best.reason:
            missing.setdefault(best.reason, []).append(size_text(answer, size))
    return [
        "  at the other sizes",
        table((size_header(answer), "optimum", "not excluded", tolerance), rows, numeric=(0, 1, 3)),
        *(sentence(f"{units.joined(sizes)}: cannot tell: {why}", indent=2) for why, sizes in missing.items()),
    ]


def _count(found: BreakEvenCount) -> str:
    if found.outcome == "never":
        text = "never"
    elif found.estimate is None:
        return units.cannot_tell(found.reason)
    else:
        text = f"at least {found.estimate}" if found.at_least else str(found.estimate)
        text += " devices"
    if len(found.set) > 1:
        text += f", not excluded: {units.count_set(found.set)}"
    if found.outcome == "undecided":
        text += ", undecided"
    return f"{text}: {found.reason}" if found.reason else text


def _sizes(answer: Answer) -> str | None:
    sizes = answer.break_even.sizes
    if not sizes:
        return None
    rows = [(str(entry.num_devices), *_size_cells(answer, entry)) for entry in sizes]
    headers = ("devices", "break-even size", "", "not excluded")
    remarks = grouped((entry.num_devices, entry.reason) for entry in sizes if entry.roots and entry.reason)
    return "\n".join(["break-even size of each count", table(headers, rows, numeric=(0,)), *remarks])


def _size_cells(answer: Answer, entry: BreakEvenSize) -> tuple[str, str, str]:
    left = " and ".join(units.size_piece(piece, answer.unit) for piece in entry.pieces)
    if entry.outcome == "undecided" and not entry.roots:
        return units.cannot_tell(entry.reason), "", left
    roots = "; ".join(units.size_estimate(root, answer.unit) for root in entry.roots)
    return roots or "none", _HELPS[entry.helps], left


def _predictions(answer: Answer) -> str | None:
    shown = [entry for entry in answer.predictions if entry.kind != "refused"]
    sources = [
        (entry.num_devices, f"{entry.kind} by {entry.source}")
        if entry in shown
        else (entry.num_devices, units.cannot_tell(entry.source))
        for entry in answer.predictions
        if entry.kind != "measured"
    ]
    if not shown:
        return None
    sizes = [entry.size for entry in shown]
    firsts = [size != before for size, before in zip(sizes, [None, *sizes], strict=False)]
    rows = [_prediction(answer, entry, first) for entry, first in zip(shown, firsts, strict=True)]
    headers = (size_header(answer), "devices", "time per call", "speedup", "efficiency", "")
    lines = ["time by size and devices", table(headers, rows, numeric=(0, 1)), *grouped(sources)]
    return "\n".join(lines)


def _prediction(answer: Answer, entry: Prediction, first: bool) -> tuple[str, ...]:
    if entry.num_devices == answer.reference_devices and entry.speedup.estimate is not None:
        speedup, efficiency = "1", "100 %"
    else:
        # Collectives alone have neither: what they say of a count is its time.
        speedup = "-" if entry.speedup.estimate is None else units.ratio_estimate(entry.speedup)
        efficiency = "-" if entry.efficiency.estimate is None else units.share_estimate(entry.efficiency)
    return (
        size_cell(answer, entry.size) if first else "",
        str(entry.num_devices),
        units.time_estimate(entry.latency_s),
        speedup,
        efficiency,
        entry.kind.upper() if entry.kind == "extrapolated" else entry.kind,
    )
