"""Lines on what other scaling laws would say, and on the run that would tell the laws apart."""

from __future__ import annotations

from ..fit.answer import Answer, Estimate
from ..model.cell import devices
from . import units
from .render_common import size_text
from .text import sentence, table


def scaling(answer: Answer) -> str | None:
    """The constants of USL and Amdahl's law and the isoefficiency exponent, as the law has them."""
    found = answer.scaling_numbers
    if found is None:
        return None
    entries = (
        ("sigma (USL, contention)", found.contention),
        ("kappa (USL, coherency)", found.coherency),
        ("serial fraction (Amdahl)", found.serial_fraction),
        ("isoefficiency exponent", found.isoefficiency),
    )
    size = units.size_text(found.size, answer.unit, per_device=False)
    lines = [sentence(f"scaling numbers of the law {found.law}, {size} in all")]
    rows = [(name, _number(value)) for name, value in entries if value.estimate is not None]
    if rows:
        lines.append(table(("number", "estimate"), rows))
    missing: dict[str, list[str]] = {}
    for name, value in entries:
        if value.estimate is None:
            missing.setdefault(value.reason or "", []).append(name)
    lines.extend(sentence(f"{units.joined(names)}: none, {why}", indent=2) for why, names in missing.items())
    return "\n".join(lines)


def separation(answer: Answer) -> str | None:
    """The count and size that would tell the laws apart."""
    found = answer.separating_devices
    if found is None:
        return None
    fast, slow = found.laws
    by = f"{100 * found.difference:.2g} %"
    noise = "" if found.noise is None else f", where launches differ by {100 * found.noise:.2g} %"
    if found.reason is not None:
        most = f" (most: {by}{noise})" if found.difference else ""
        return sentence(f"the laws that may predict are not told apart: {found.reason}{most}")
    count = devices(found.num_devices)
    if found.num_devices in answer.devices:
        count += " again"
    return sentence(
        f"to tell the laws apart measure {count}, {size_text(answer, found.size)}: "
        f"{slow!r} says {by} more than {fast!r}{noise}"
    )


def _number(value: Estimate) -> str:
    text = units.ratio_estimate(value)
    return f"{text}, {value.reason}" if value.reason else text
