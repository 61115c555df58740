"""The line of ``explain`` that says what each further device adds."""

from __future__ import annotations

from ..fit.answer import Answer
from . import units
from .render_common import size_text
from .text import sentence


def slope(answer: Answer) -> str | None:
    """Slope and intercept over the device count; None where the time follows no straight line upwards."""
    line = answer.slope
    if line is None or not line.straight or (line.per_device_s.estimate or 0.0) <= 0:
        return None
    counts = f"{units.joined(line.devices)} devices, {size_text(answer, line.size)}"
    text = (
        f"each further device adds {units.time_estimate(line.per_device_s)} to {units.time_estimate(line.intercept_s)}"
        f" (straight line over {counts}; misses them by {100 * line.misfit:.1f} %)"
    )
    return sentence(f"{text}: {line.remark}" if line.remark else text)
