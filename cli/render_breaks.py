"""The texts on breaks in the curves and on overlap of communication and compute."""

from __future__ import annotations

from ..fit.answer import Answer, Break
from ..fit.breaks import MARGIN, SEGMENT_MARGIN
from ..model.cell import devices
from . import units
from .render_common import size_cell
from .text import sentence, table


def breaks(answer: Answer) -> str | None:
    """Where the times stop obeying one law; None where nothing was found."""
    if not answer.breaks:
        return None
    rows = [
        (
            "devices" if one.axis == "count" else one.axis,
            f"{_place(answer, one, one.below)} to {_place(answer, one, one.above)}",
            _where(answer, one),
            units.ratio_estimate(one.factor),
            f"{one.excess:.3g}",
            units.probability(one.p),
        )
        for one in answer.breaks
    ]
    title = (
        f"breaks: borders that no single law crosses, significant and off by more than {100 * MARGIN:g} % along "
        f"devices, {100 * SEGMENT_MARGIN:g} % along sizes"
    )
    lines = [
        sentence(title),
        table(("along", "between", "at", "time above / below", "against the law", "p"), rows),
    ]
    lines += [sentence(one.reason, indent=2) for one in answer.breaks if one.axis == "count"]
    return "\n".join(lines)


def overlap(answer: Answer) -> str | None:
    """How much of the communication is hidden behind compute; None where it was not measured."""
    known = [one for one in answer.overlap if one.hidden_s.estimate is not None]
    if not known:
        return None
    rows = [
        (
            str(one.num_devices),
            units.time_estimate(one.hidden_s),
            "-" if one.fraction.estimate is None else units.share_estimate(one.fraction),
        )
        for one in known
    ]
    lines = [
        sentence("overlap: communication done at the same time as other work (local + communication − workload)"),
        table(("devices", "hidden", "of what could be hidden"), rows, numeric=(0,)),
    ]
    lines += [sentence(one.reason, indent=2) for one in known]
    return "\n".join(lines)


def _place(answer: Answer, one: Break, value: int) -> str:
    if one.axis == "count":
        return str(value)
    return units.byte_count(value) if one.axis == "payload" else size_cell(answer, value)


def _where(answer: Answer, one: Break) -> str:
    if one.axis != "count":
        return devices(one.places[0])
    sizes = [units.byte_count(size) if one.role == "chain" else size_cell(answer, size) for size in one.places]
    return sizes[0] if len(sizes) == 1 else f"{len(sizes)} sizes"
