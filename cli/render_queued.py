"""Lines on queued calls: their time beside that of one call at a time, and which form it has."""

from __future__ import annotations

from ..fit.answer import Answer, QueuedLaw
from . import units
from .render_common import size_text
from .text import sentence, table


def queued(answer: Answer) -> str | None:
    """What queueing saves and what then sets the pace; None where nothing was queued."""
    found = answer.queued
    if found is None:
        return None
    lines = [sentence(f"throughput: {found.calls} calls queued, then one wait, {size_text(answer, answer.size)}")]
    if found.cells:
        header = ("devices", "one at a time", "queued, per call", "host", "devices' part", "slower part")
        rows = [
            (
                str(one.num_devices),
                *map(units.time_estimate, (one.latency_s, one.queued_s)),
                *("-" if part.estimate is None else units.time_estimate(part) for part in (one.host_s, one.devices_s)),
                one.limited_by,
            )
            for one in found.cells
        ]
        lines.append(table(header, rows, numeric=(0,)))
    lines.append(sentence(_form(found), indent=2))
    return "\n".join(lines)


def _form(found: QueuedLaw) -> str:
    if found.host is None:
        return f"no law of queued calls: {found.reason}"
    where = f"over {found.num_cells} cells, host's part: {found.host}"
    match found.form:
        case "max":
            return f"queued calls obey max(host, devices): {found.reason} ({where})"
        case "sum":
            return f"queueing hides nothing, host and devices add up: {found.reason} ({where})"
        case "neither":
            return f"neither max(host, devices) nor their sum describes queued calls: {found.reason} ({where})"
    return f"max(host, devices) or their sum: undecided, {found.reason} ({where})"
