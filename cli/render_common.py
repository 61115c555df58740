"""What the texts of all answers share: the heading, sizes in words, held-out errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..fit.answer import Answer, Crowd, Estimate, Meaning
from ..model.cell import devices
from . import units
from .text import sentence


def size_text(answer: Answer, size: float) -> str:
    """A size on the plan's axis in words: ``1,024 rows``, ``100 rows per device``."""
    return units.size_text(size, answer.unit, per_device=answer.path == "weak")


def heading(answer: Answer) -> str:
    """Which program, where, how often, and how the intervals come about.

    The first line says so where the devices are simulated on fewer cores.
    """
    lines = []
    if answer.shared_cores is not None:
        lines.append(shared_cores(answer.shared_cores, answer.visible_devices))
    where = units.joined(answer.devices)
    sizes = units.sizes_text(answer.sizes, answer.unit, per_device=answer.path == "weak")
    lines.append(f"{answer.workload} ({answer.strategy}) on {where} devices, {sizes}")
    lines.append(_replication(answer))
    return "\n".join(sentence(line) for line in lines)


def shared_cores(shared: Crowd, visible: int | None) -> str:
    """``your 8 devices share 2 cores ...``; where other nodes hold more of them, ``your 4 devices a node ...``."""
    cores = f"{shared.cores} core{'s' if shared.cores != 1 else ''}"
    if visible is not None and shared.devices < visible:
        return f"your {shared.devices} devices a node share {cores}: adding devices to a node adds no hardware"
    return f"your {shared.devices} devices share {cores}: adding devices here adds no hardware"


def _replication(answer: Answer) -> str:
    parts = []
    if answer.num_launches:
        parts.append(f"{answer.num_launches} launch{'es' if answer.num_launches != 1 else ''}")
    if answer.num_rounds:
        parts.append(f"{answer.num_rounds} rounds")
    if answer.platform:
        parts.append(answer.platform)
    parts.append(f"intervals {100 * answer.confidence:g} %, {answer.interval_method}")
    if answer.synthetic:
        parts.append("simulated, not measured")
    return ", ".join(parts)


def objective_text(answer: Answer) -> str:
    """Which question is answered: the objective and the reference count."""
    cost = "time per unit of work, T(n, n s) / n" if answer.objective == "throughput" else "time per call, T(n, S)"
    return f"objective: {answer.objective} ({cost}), against {devices(answer.reference_devices)}"


def size_header(answer: Answer) -> str:
    """Header of a column of sizes."""
    unit = "size" if answer.unit in units.BYTES else answer.unit
    return f"{unit} per device" if answer.path == "weak" else unit


def size_cell(answer: Answer, size: float) -> str:
    """A size under ``size_header``."""
    return units.size_text(size, answer.unit if answer.unit in units.BYTES else "", per_device=False).strip()


def grouped(lines: Iterable[tuple[int, str]]) -> list[str]:
    """``2 and 4 devices: text`` for texts that several counts share, in order."""
    counts: dict[str, list[int]] = {}
    for count, text in lines:
        if count not in counts.setdefault(text, []):
            counts[text].append(count)
    return [
        sentence(f"{units.joined(found)} device{'s' if found != [1] else ''}: {text}", indent=2)
        for text, found in counts.items()
    ]


def meaning_cells(meaning: Meaning, null_value: str) -> tuple[str, str, str, str, str]:
    """The cells of one meaning of "bound": estimate, null value, the two p-values, whether it holds."""
    value = Estimate(estimate=meaning.estimate, interval=meaning.interval)
    text = "-" if meaning.estimate is None else units.share_estimate(value)
    above, below = units.probability(meaning.p_above), units.probability(meaning.p_below)
    return text, null_value, above, below, meaning.holds


def meaning_reasons(meanings: Mapping[str, Meaning], *, said_before: str = "") -> list[str]:
    """How the number of each meaning came about, or why there is none; a reason shared by several is said once."""
    numbers: dict[str, list[str]] = {}
    for number, meaning in meanings.items():
        if reason := meaning.reason.removeprefix(said_before).removeprefix("; "):
            numbers.setdefault(reason, []).append(number)
    return [sentence(f"{' '.join(found)} {reason}", indent=2) for reason, found in numbers.items()]
