"""The text of ``next``: the answer now, the sweep that would narrow it most, others, and the cells that matter."""

from __future__ import annotations

import textwrap

from ..fit.planning.proposal import CellWeight, NextPoint, Option
from . import units
from .text import WIDTH, page, pairs, sentence, table

MOST_CELLS = 16


def following(found: NextPoint) -> str:
    """Return the whole proposal, ready to print."""
    return page(_question(found), _proposal(found), _others(found), _cells(found), _assumptions(found))


def _question(found: NextPoint) -> str:
    launches = "" if found.num_launches is None else f", {found.num_launches} launches"
    return "\n".join(
        [
            sentence(f"{found.target}: {found.about} ({found.strategy}{launches})"),
            pairs([("now", _now(found)), *([("wanted", _wanted(found))] if found.best or not found.reached else [])]),
        ]
    )


def _now(found: NextPoint) -> str:
    value = found.current
    if value.estimate is None:
        return units.cannot_tell(value.reason)
    text = units.size_estimate(value, found.unit) if found.target == "break-even" else f"{value.estimate:.4g}"
    if found.target != "break-even" and value.interval is not None and None not in value.interval:
        text += f" [{value.interval[0]:.4g}, {value.interval[1]:.4g}]"
    if found.current_half_width is not None:
        return f"{text}, ±{_percent(found.current_half_width)}"
    return f"{text} ({value.reason or 'open at an end'})"


def _wanted(found: NextPoint) -> str:
    if found.wanted is None:
        return "that it is determined at all"
    what = " of the cost ratio, which decides" if found.target == "optimum" else ""
    return f"±{_percent(found.wanted)}{what}"


def _proposal(found: NextPoint) -> str:
    best = found.best
    if best is None:
        word = "nothing more is needed" if found.reached else "not resolvable"
        return sentence(f"{word}: {found.reason}")
    if found.reached:
        head = f"measure this: about {_expected(found, best)} is to be expected"
    else:
        head = f"not resolvable within {units.duration(found.budget_s)}: {found.reason}. The most that it buys:"
    lines = [sentence(head)]
    lines.append(_command(best.plan.command) if best.plan.command else sentence(_by_hand(found, best), indent=2))
    if best.plan.pooled:
        lines.append(sentence("then join both files, and their launches add up: breakeven merge", indent=2))
    lines.append(
        pairs(
            [
                ("expected", _expected(found, best)),
                ("takes", f"{units.duration(best.wall_s)} of wall time, start-up included"),
                ("costs", f"{best.device_s:.3g} device-seconds of calls, {best.plan.rounds} rounds a launch"),
            ]
        )
    )
    return "\n".join(lines)


def _command(text: str) -> str:
    """The command over several lines, as a shell reads them."""
    lines = textwrap.wrap(text, WIDTH - 6, break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(f"  {'  ' * (i > 0)}{line}" for i, line in enumerate(lines))


def _by_hand(found: NextPoint, best: Option) -> str:
    sizes = ", ".join(_size(found, size) for size in best.plan.sizes)
    counts = units.joined(best.plan.devices)
    return f"with your own tool: {best.plan.launches} independent runs on {counts} devices at sizes {sizes}"


def _others(found: NextPoint) -> str | None:
    if found.best is None:
        return None
    rows = [
        (
            ",".join(map(str, option.plan.devices)),
            _sizes(found, option),
            _roles(option),
            f"{option.plan.launches} x {option.plan.rounds}",
            _expected(found, option),
            units.duration(option.wall_s),
            f"{option.device_s:.3g}",
            "-" if option.reduction_per_device_s is None else f"{100 * option.reduction_per_device_s:.2g} %",
        )
        for option in (found.best, *found.others)
    ]
    headers = ("devices", "sizes", "roles", "launches x rounds", "expected", "wall", "device-s", "gain per device-s")
    return "\n".join(
        [
            "sweeps compared; gain: share of the present variance that is taken off",
            table(headers, rows, numeric=(5, 6, 7)),
        ]
    )


def _sizes(found: NextPoint, option: Option) -> str:
    sizes = option.plan.sizes
    if len(sizes) > 3:
        return f"{len(sizes)} from {_size(found, sizes[0])} to {_size(found, sizes[-1])}"
    return ", ".join(_size(found, size) for size in sizes)


def _roles(option: Option) -> str:
    if option.plan.pooled:
        return "the same plan"
    more = [word for word, there in (("controls", option.plan.controls), ("probes", option.plan.probes)) if there]
    return " + ".join(["workload", *more])


def _cells(found: NextPoint) -> str | None:
    if not found.cells:
        return None
    ranked = sorted(found.cells, key=lambda c: -max(c.ideal_share, c.variance_share))[:MOST_CELLS]
    shown = [c for c in ranked if max(c.ideal_share, c.variance_share) >= 0.005]
    rows = [
        (
            _role(cell),
            str(cell.num_devices),
            _size(found, cell.size),
            units.frequency(cell.variance_share),
            units.frequency(cell.device_s_share),
            units.frequency(cell.ideal_share),
        )
        for cell in shown
    ]
    headers = ("program", "devices", "size", "of the variance", "of the cost", "ideal share of calls")
    return "\n".join(
        [
            sentence("where the information lies; ideal: calls by cell that would cost least (c-optimal)"),
            table(headers, rows, numeric=(1, 2, 3, 4, 5)),
        ]
    )


def _role(cell: CellWeight) -> str:
    return cell.role if cell.k is None else f"chain of {cell.k}, {units.byte_count(cell.payload_bytes)}"


def _assumptions(found: NextPoint) -> str | None:
    return sentence(f"assumed: {'; '.join(found.assumptions)}") if found.assumptions and found.best else None


def _expected(found: NextPoint, option: Option) -> str:
    return f"±{_percent(option.half_width)}" if found.relative else f"±{option.half_width:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def _size(found: NextPoint, size: float) -> str:
    return units.size_text(size, found.unit if found.unit in units.BYTES else "", per_device=False).strip()
