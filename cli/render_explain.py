"""The text of ``explain``: what the time and its growth are made of, and what holds the program back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..fit.answer import CAUSES, Answer, CommunicationBound, Estimate, Growth, Meaning, Meanings, Part
from ..fit.weak import NOT_REACHED, REACHED
from ..model.cell import devices
from ..model.program import Collective
from . import units
from .render_breaks import breaks, overlap
from .render_common import grouped, heading, meaning_cells, meaning_reasons, size_cell, size_header, size_text
from .render_diagnose import failed_checks
from .render_identifiability import between_causes
from .render_queued import queued
from .render_slope import slope
from .render_tests import tests
from .render_traced import traced
from .text import page, pairs, sentence, table

MEANINGS = {
    "share": "takes more than half of the call",
    "exceeds_compute": "takes longer than computing",
    "growth": "outgrows what computing gains",
    "no_gain_even_with_free_dispatch": "alone prevents every gain",
}

NUMBERS = ("(i)", "(ii)", "(iii)", "(iv)")
NULL_VALUES = {"share": "50 %", "exceeds_compute": "0 %", "growth": "0 %", "no_gain_even_with_free_dispatch": "0 %"}


def explain(answer: Answer) -> str:
    """Return the whole explanation, ready to print."""
    return page(
        heading(answer),
        verdict(answer),
        between_causes(answer),
        collectives_text(answer.collectives, answer.largest_devices),
        _growth(answer),
        _step(answer),
        slope(answer),
        _causes(answer),
        _communication_bound(answer),
        tests(answer),
        _collective_cost(answer),
        traced(answer),
        _input_transfer(answer),
        breaks(answer),
        overlap(answer),
        queued(answer),
        weak_efficiency(answer),
        failed_checks(answer),
    )


def verdict(answer: Answer) -> str:
    """The sentence to read first, and what this design cannot tell it from."""
    lines = [f"verdict: {answer.verdict}"]
    if answer.verdict_reason:
        lines.append(sentence(answer.verdict_reason, indent=2))
    if answer.confounded_with:
        lines.append(sentence(f"cannot be told apart here: {'; '.join(answer.confounded_with)}", indent=2))
    # That forced devices share cores stands in the heading, and among what cannot be told apart.
    doubts = [one for one in answer.named_warnings if one.name in answer.doubts and one.name != "forced-devices"]
    lines += [sentence(f"doubtful, {one.name}: {one.text}", indent=2) for one in doubts]
    return "\n".join(lines)


def collective_text(collective: Collective) -> str:
    """``all-reduce of 4 B over 8 devices, 20 times a call (inside a loop body)``."""
    text = f"{collective.kind} of {units.byte_count(collective.message_bytes)}"
    if collective.operands > 1:
        text += f" in {collective.operands} arrays"
    text += f" over {collective.group_size} devices" if collective.group_size else " over an unknown group"
    if collective.count is None:
        return f"{text}, unknown times a call (in a loop or a branch)"
    # One instruction runs several times only where a loop repeats it.
    return text if collective.count == 1 else f"{text}, {collective.count} times a call (inside a loop body)"


def collectives_text(collectives: Sequence[Collective] | None, num_devices: int) -> str:
    """What the compiled program of the workload exchanges at one count."""
    where = f"collectives in the compiled program on {devices(num_devices)}"
    if collectives is None:
        return f"{where}: unknown (there is no compiled program)"
    if not collectives:
        return f"{where}: none"
    return "\n".join([f"{where}:", *(f"  {text}" for text in counted(map(collective_text, collectives)))])


def counted(texts: Iterable[str]) -> list[str]:
    """Texts in order, those that repeat once with their number: ``2 x text``."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return [text if count == 1 else f"{count} x {text}" for text, count in counts.items()]


def _growth(answer: Answer) -> str | None:
    growth = answer.growth_range
    return None if growth is None else _one_growth(answer, growth, "growth of one call")


def _step(answer: Answer) -> str | None:
    growth, told = answer.growth_step, answer.growth_range
    if growth is None or (told is not None and told.from_devices == growth.from_devices):
        return None
    return _one_growth(answer, growth, "growth of the first step, apart,")


def _one_growth(answer: Answer, growth: Growth, title: str) -> str:
    where = f"{title} from {growth.from_devices} to {devices(growth.to_devices)}, {size_text(answer, growth.size)}"
    total = f"{where}: {units.time_estimate(growth.latency_s)}"
    if growth.undecided is not None or not growth.shares:
        return "\n".join([sentence(total), sentence(f"its causes: {units.cannot_tell(growth.undecided)}", indent=2)])
    return "\n".join([sentence(total), pairs(_share_lines(growth))])


def _share_lines(growth: Growth) -> list[tuple[str, str]]:
    ordered = [cause for cause in CAUSES if cause in growth.shares]
    ordered += [cause for cause in growth.shares if cause not in CAUSES]
    return [(cause, units.share_estimate(growth.shares[cause])) for cause in ordered]


def _causes(answer: Answer) -> str | None:
    if not answer.causes:
        return None
    known = any(part.latency_s.estimate is not None for parts in answer.causes.values() for part in parts.values())
    rows = [
        (str(count) if index == 0 else "", cause, *_part(part))
        for count, parts in sorted(answer.causes.items())
        for index, (cause, part) in enumerate(parts.items())
    ]
    lines = [f"what one call is made of, {size_text(answer, answer.size)}"]
    if known:
        lines.append(table(("devices", "cause", "share", "time", "from"), rows, numeric=(0,)))
    remarks = (
        (count, f"{cause}: {remark}")
        for count, parts in sorted(answer.causes.items())
        for cause, part in parts.items()
        if (remark := _remark(part))
    )
    return "\n".join([*lines, *grouped(remarks)])


def _part(part: Part) -> tuple[str, str, str]:
    if part.latency_s.estimate is None:
        return "-", "-", "-"
    return units.share_estimate(part.share), units.time_estimate(part.latency_s), _split(part.source)[0]


def _remark(part: Part) -> str:
    """Why there is no number, or what stands in brackets behind its source."""
    return units.cannot_tell(part.latency_s.reason) if part.latency_s.estimate is None else _split(part.source)[1]


def _split(source: str) -> tuple[str, str]:
    """Where a number comes from, and the remark in brackets behind it."""
    route, _, remark = source.partition(" (")
    return route, remark.removesuffix(")")


def _communication_bound(answer: Answer) -> str:
    bound = answer.communication_bound
    where = f"{devices(bound.num_devices)}, {size_text(answer, bound.size)}"
    blocks = [f"communication bound? four meanings at {where}"]
    if bound.rejected_outright:
        blocks.append(sentence(f"rejected outright: {bound.rejected_outright}", indent=2))
    rows = [
        (f"{number} {text}", *meaning_cells(getattr(bound, name), NULL_VALUES[name]))
        for number, (name, text) in zip(NUMBERS, MEANINGS.items(), strict=True)
    ]
    headers = ("communication ...", "estimate", "against", "p above", "p below", "holds")
    blocks.append(table(headers, rows, numeric=(2, 3, 4)))
    blocks.extend(_reasons(bound))
    blocks.extend(_other_sizes(answer, bound))
    return "\n".join(blocks)


def _reasons(meanings: Meanings) -> list[str]:
    """How each number came about, or why there is none."""
    # What rules all of them out stands above the table.
    outright = getattr(meanings, "rejected_outright", None) or ""
    found = {number: getattr(meanings, name) for number, name in zip(NUMBERS, MEANINGS, strict=True)}
    return meaning_reasons(found, said_before=outright)


def _other_sizes(answer: Answer, bound: CommunicationBound) -> list[str]:
    others = {size: meanings for size, meanings in sorted(bound.by_size.items()) if size != bound.size}
    if not others:
        return []
    rows = [
        (size_cell(answer, size), *(_short(getattr(meanings, name)) for name in MEANINGS))
        for size, meanings in others.items()
    ]
    headers = (size_header(answer), "more than half", "longer than computing", "outgrows gain", "prevents gain")
    return ["  the other sizes, not adjusted for looking at several", table(headers, rows, numeric=(0,))]


def _short(meaning: Meaning) -> str:
    return meaning.holds if meaning.estimate is None else f"{meaning.holds} ({round(100 * meaning.estimate)} %)"


def _collective_cost(answer: Answer) -> str | None:
    if not answer.collective_cost or answer.collectives == ():
        return None
    rows = [
        (
            str(cost.num_devices),
            size_cell(answer, cost.size),
            _route(cost.chain),
            _route(cost.replay),
            _route(cost.difference),
            {True: "agree", False: "DISAGREE", None: ""}[cost.agree],
        )
        for cost in answer.collective_cost
    ]
    headers = ("devices", size_header(answer), "chain", "replay", "workload − local", "")
    title = "cost of the communication by three routes"
    missing = [
        (cost.num_devices, f"{name}: {units.cannot_tell(route.reason)}")
        for cost in answer.collective_cost
        for name, route in (("chain", cost.chain), ("replay", cost.replay), ("workload − local", cost.difference))
        if route.estimate is None
    ]
    if len(missing) == 3 * len(rows):
        return "\n".join([title, *grouped(missing)])
    remarks = [(cost.num_devices, cost.reason) for cost in answer.collective_cost if cost.reason and not cost.agree]
    return "\n".join([title, table(headers, rows, numeric=(0, 1)), *grouped([*missing, *remarks])])


def _route(cost: Estimate) -> str:
    return "-" if cost.estimate is None else units.time_estimate(cost)


def _input_transfer(answer: Answer) -> str | None:
    if not answer.input_transfer:
        return None
    rows = [
        (
            moved.strategy,
            str(moved.num_devices),
            size_cell(answer, moved.size),
            units.time_estimate(moved.latency_s),
            units.share_estimate(moved.share),
        )
        for moved in answer.input_transfer
    ]
    title = "input transfer: what leaving the inputs where the user put them adds to each call"
    headers = ("strategy", "devices", size_header(answer), "time", "share of the call")
    return f"{title}\n{table(headers, rows, numeric=(1, 2))}"


def weak_efficiency(answer: Answer) -> str | None:
    """Weak efficiency and throughput, for weak sweeps; None for strong ones."""
    if not answer.weak_efficiency:
        return None
    throughput = {(p.num_devices, p.size): p.throughput for p in answer.predictions}
    rows = []
    for entry in answer.weak_efficiency:
        rate = throughput.get((entry.num_devices, entry.size_per_device))
        rows.append(
            (
                str(entry.num_devices),
                size_cell(answer, entry.size_per_device),
                units.share_estimate(entry.efficiency),
                "-" if rate is None else units.rate_estimate(rate, answer.unit),
            )
        )
    headers = ("devices", size_header(answer), "weak efficiency", "throughput")
    reached = (
        (entry.num_devices, f"90 % efficient from {units.size_estimate(entry.size_for_90_percent, answer.unit)}")
        if entry.size_for_90_percent.estimate is not None
        else (entry.num_devices, f"90 % efficiency: {_not_a_size(entry.size_for_90_percent.reason)}")
        for entry in answer.weak_efficiency
    )
    title = f"weak scaling against {devices(answer.reference_devices)}"
    return "\n".join([title, table(headers, rows, numeric=(0, 1)), *grouped(reached)])


def _not_a_size(reason: str | None) -> str:
    """Why there is no size; that every size, or none, is efficient enough is an answer."""
    known = reason is not None and reason.startswith((REACHED, NOT_REACHED))
    return str(reason) if known else units.cannot_tell(reason)
