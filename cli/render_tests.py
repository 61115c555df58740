"""The tests of ``explain``: dispatch bound, differences by round, no difference at all, the law against the data."""

from __future__ import annotations

from ..fit.answer import Answer, Estimate, PairedTests
from ..model.cell import devices
from . import units
from .render_common import grouped, meaning_cells, meaning_reasons, size_text
from .text import page, pairs, sentence, table

DISPATCH = {
    "share": ("(i)", "takes more than half", "50 %"),
    "prevents_gain": ("(ii)", "alone prevents every gain", "0 %"),
}


def tests(answer: Answer) -> str | None:
    """All of them; None where none could run."""
    return page(_dispatch_bound(answer), _law_share(answer), _no_difference(answer), _paired(answer)) or None


def _dispatch_bound(answer: Answer) -> str | None:
    bound = answer.dispatch_bound
    if bound is None:
        return None
    title = f"dispatch bound? two meanings at {devices(bound.num_devices)}, {size_text(answer, bound.size)}"
    meanings = {number: getattr(bound, name) for name, (number, _, _) in DISPATCH.items()}
    rows = [
        (f"{number} {text}", *meaning_cells(meanings[number], null_value))
        for number, text, null_value in DISPATCH.values()
    ]
    headers = ("dispatch ...", "estimate", "against", "p above", "p below", "holds")
    return "\n".join([title, table(headers, rows, numeric=(2, 3, 4)), *meaning_reasons(meanings)])


def _law_share(answer: Answer) -> str | None:
    share = answer.law_share
    if share is None or (share.by_law.estimate is None and share.measured.estimate is None):
        return None
    where = f"{devices(share.num_devices)}, {size_text(answer, share.size)}"
    law = "a law" if share.law is None else f"the law {share.law!r}"
    title = f"communication's share by {law} and without a law, on {where}"
    if share.difference.estimate is None:
        return "\n".join([sentence(title), sentence(units.cannot_tell(share.difference.reason), indent=2)])
    numbers = {"by the law": share.by_law, "measured": share.measured, "difference": share.difference}
    said = {"yes": "agree", "no": "DISAGREE", "undecided": "undecided"}[share.agree]
    lines = pairs((name, units.share_estimate(value)) for name, value in numbers.items())
    return "\n".join([sentence(title), lines, sentence(f"{said}: {share.reason}", indent=2)])


def _no_difference(answer: Answer) -> str | None:
    found = answer.no_difference
    if not found:
        return None
    said = [one.equivalent for one in found]
    overall = "no" if "no" in said else "undecided" if "undecided" in said else "yes"
    title = f"adding devices makes no difference within {100 * found[0].margin:g} %: {overall}"
    method = "  two one-sided tests, p after Holm over the counts"
    rows = [
        (str(one.num_devices), units.ratio_estimate(one.ratio), units.probability(one.p), one.equivalent)
        for one in found
    ]
    headers = ("devices", f"cost against {devices(answer.reference_devices)}", "p", "no difference")
    remarks = [(one.num_devices, units.cannot_tell(one.reason)) for one in found if one.reason]
    return "\n".join([title, table(headers, rows, numeric=(0, 2)), method, *grouped(remarks)])


def _paired(answer: Answer) -> str | None:
    if not answer.paired:
        return None
    where = f"{devices(answer.largest_devices)}, {size_text(answer, answer.size)}"
    rows = [
        (
            tests.name,
            f"{tests.positive} of {tests.rounds}",
            _number(tests, tests.t),
            _number(tests, tests.hodges_lehmann),
            units.probability(tests.sign_p),
            {True: "agree", False: "DISAGREE", None: ""}[tests.agree],
        )
        for tests in answer.paired
    ]
    headers = ("", "rounds above", "t test", "Hodges-Lehmann", "sign test p", "")
    reasons: dict[str, list[str]] = {}
    for tests in answer.paired:
        if tests.reason:
            reasons.setdefault(tests.reason, []).append(tests.name)
    lines = [sentence(f"{units.joined(names)}: {reason}", indent=2) for reason, names in reasons.items()]
    title = f"paired by round, the launch as replicate, on {where} (above 0; speedup above 1)"
    return "\n".join([sentence(title), table(headers, rows, numeric=(1, 4)), *lines])


def _number(tests: PairedTests, value: Estimate) -> str:
    if value.estimate is None:
        return "-"
    return units.time_estimate(value) if tests.unit == "s" else units.ratio_estimate(value)
