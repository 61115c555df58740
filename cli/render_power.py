"""The text of ``power``: the design to run, what it costs, and the table it was chosen from."""

from __future__ import annotations

from ..fit.planning.power import Design
from ..fit.planning.sizing import Power
from ..model.cell import devices
from . import units
from .render_identifiability import command_lines
from .text import page, sentence, table


def power(found: Power) -> str:
    """Return the whole answer, ready to print."""
    return page(_question(found), _chosen(found), _table(found))


def _question(found: Power) -> str:
    target = f"{100 * found.target:g} %"
    where = "" if found.at is None else f" on {devices(found.at)}"
    against = "" if found.reference is None else f" against {devices(found.reference)}"
    asked = {
        "difference": f"to tell a loss of {target}{where}{against} from none",
        "break-even": f"to know the break-even size{where}{against} to within {target} of it",
        "share": f"to know the {found.noise.of} to within {100 * found.target:g} points",
    }[found.goal]
    size = "" if found.size is None else f", size {found.size:,}"
    lines = [f"{asked}{size}", f"with probability {100 * found.wanted:g} %, at confidence {100 * found.confidence:g} %"]
    return "\n".join(sentence(line) for line in [*lines, *_noise(found)])


def _noise(found: Power) -> list[str]:
    noise = found.noise
    if noise.launch_sd is None:
        return []
    if noise.round_sd is None:
        parts = f"{_sd(noise.launch_sd, found)} between launches of one round"
    else:
        parts = f"{_sd(noise.launch_sd, found)} between launches, {_sd(noise.round_sd, found)} between rounds of one"
    lines = [f"noise of the {noise.of}: {parts}"]
    if noise.interval is not None and noise.mean_sd is not None:
        low, high = (_sd(end, found) for end in noise.interval)
        pilot = f"from a pilot of {noise.launches} launches"
        lines.append(f"{pilot}: a launch's mean varies by {_sd(noise.mean_sd, found)} [{low}, {high}]")
    return lines


def _sd(value: float, found: Power) -> str:
    unit = " points" if found.goal == "share" else " %"
    return f"{100 * value:.2g}{unit}"


def _chosen(found: Power) -> str:
    if found.chosen is None:
        return sentence(f"cannot tell: {found.reason}")
    lines = [f"recommended: {_design(found.chosen)}"]
    if found.launches_range is not None:
        low, high = ("more than a thousand" if end is None else str(end) for end in found.launches_range)
        text = f"launches needed if the noise lies at either end of its interval: {low} and {high}"
        lines.append(sentence(text, indent=2))
    if found.command is not None:
        lines.append(command_lines(found.command, indent=2))
    return "\n".join(lines)


def _design(design: Design) -> str:
    rounds = f"{design.rounds} round{'s' if design.rounds != 1 else ''}"
    cost = "" if design.seconds is None else f", about {units.duration(design.seconds)}"
    return f"{design.launches} launches of {rounds}: {units.frequency(design.power)}{cost}"


def _table(found: Power) -> str | None:
    if not found.table:
        return None
    rounds = sorted({design.rounds for design in found.table})
    by_launches: dict[int, dict[int, Design]] = {}
    for design in found.table:
        by_launches.setdefault(design.launches, {})[design.rounds] = design
    rows = [(str(launches), *(_cell(designs[r]) for r in rounds)) for launches, designs in sorted(by_launches.items())]
    headers = ("launches", *(f"{r} round{'s' if r != 1 else ''}" for r in rounds))
    title = "probability of success by launches and rounds a launch"
    if found.table[0].seconds is not None:
        title += ", and the time it takes"
    return f"{title}\n{table(headers, rows, numeric=tuple(range(len(headers))))}"


def _cell(design: Design) -> str:
    text = units.frequency(design.power)
    return text if design.seconds is None else f"{text}  {design.seconds:,.0f} s"
