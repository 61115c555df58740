"""Lines on traces: what a profiler saw on the devices, beside the communication without a law."""

from __future__ import annotations

from itertools import groupby

from ..fit.answer import Answer, Traced
from . import units
from .render_common import grouped, size_text
from .text import sentence, table


def traced(answer: Answer) -> str | None:
    """What the devices did during a call, and whether that bears out workload - local; None without a trace."""
    by_size = groupby(answer.traced, key=lambda one: one.size)
    return "\n".join(_at_size(answer, size, list(found)) for size, found in by_size) or None


def _at_size(answer: Answer, size: int, found: list[Traced]) -> str:
    calls = units.joined(sorted({one.calls for one in found}))
    title = (
        f"a second witness: where the time goes on the devices, {size_text(answer, size)}; {calls} calls under JAX's "
        "profiler in one launch, not replicated: no interval over launches, in brackets the middle half of these calls"
    )
    rows = [
        (
            str(one.num_devices),
            _collectives(one),
            _time(one.waiting_s),
            _time(one.exchange_s),
            "-" if one.law_free_s.estimate is None else units.time_estimate(one.law_free_s),
            _percent(one.busy_share),
        )
        for one in found
    ]
    header = ("devices", "collectives", "waiting", "exchange", "workload − local", "busy")
    remarks = [(one.num_devices, _remark(one)) for one in found]
    slowed = [(one.num_devices, _slowdown(one.slowdown)) for one in found if one.slowdown is not None]
    return "\n".join([sentence(title), table(header, rows, numeric=(0, 5)), *grouped(remarks), *grouped(slowed)])


def _collectives(one: Traced) -> str:
    if one.collective_s is None or one.quartiles_within_launch_s is None:
        return "-"
    low, high = map(units.duration, one.quartiles_within_launch_s)
    return f"{units.duration(one.collective_s)} ({low} to {high})"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else units.duration(seconds)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _remark(one: Traced) -> str:
    match one.agree:
        case "yes":
            return f"the trace agrees with workload − local{_within(one.factor)}: {one.reason}"
        case "no":
            return f"the trace DISAGREES with workload − local: {one.reason}"
        case "undecided":
            return f"whether the trace agrees with workload − local: {units.cannot_tell(one.reason)}"
    return one.reason


def _within(factor: float | None) -> str:
    return "" if factor is None or factor == 1 else f" within a factor of {factor:.2g}"


def _slowdown(slowdown: float) -> str:
    if slowdown > 0:
        return f"tracing made the calls {100 * slowdown:.0f} % longer than those just before"
    return "tracing made the calls no longer than those just before"
