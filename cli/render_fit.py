"""The text of ``fit``: the parameters of the law, and which laws may predict."""

from __future__ import annotations

from collections.abc import Mapping

from ..fit.answer import Answer, LawReport, Parameter
from . import units
from .render_common import heading
from .render_identifiability import every_tie
from .render_scaling import scaling, separation
from .text import page, sentence, table

_MEANING = {
    "c0": "paid once a call",
    "c0_probe": "paid once a call by a probe program",
    "entry": "paid once when there is more than one device",
    "dispatch": "per device fed by one process",
    "floor": "floor of the compute time",
    "gamma": "per unit of work on one device",
    "alpha0": "per collective",
    "alpha": "per step of a collective",
    "beta": "per byte on a link",
}


def fit(answer: Answer) -> str:
    """Return parameters and laws, ready to print."""
    return page(
        heading(answer), _parameters(answer), every_tie(answer), _laws(answer), separation(answer), scaling(answer)
    )


def _parameters(answer: Answer) -> str:
    if not answer.parameters:
        return "parameters: none fitted"
    identified = {name: value for name, value in answer.parameters.items() if value.identified}
    missing: dict[str, list[str]] = {}
    for name, value in answer.parameters.items():
        if not value.identified:
            missing.setdefault(units.parameter(value, answer.confidence), []).append(name)
    tested = any(value.p_zero is not None for value in identified.values())
    rows = [
        (name, units.parameter(value, answer.confidence), *_p_zero(value, tested), _meaning(answer, name))
        for name, value in identified.items()
    ]
    lines = _parameters_heading(answer)
    if rows:
        lines.append(
            table(("name", "estimate", *(["p of 0"] if tested else []), ""), rows, numeric=(2,) if tested else ())
        )
    if answer.num_launches is None:
        lines.extend(_without_interval(identified))
    lines.extend(sentence(f"{units.joined(names)}: {why}", indent=2) for why, names in missing.items())
    return "\n".join(lines)


def _without_interval(identified: Mapping[str, Parameter]) -> list[str]:
    """Why numbers of single runs stand alone."""
    names: dict[str, list[str]] = {}
    for name, value in identified.items():
        if value.interval is None and value.upper_limit is None and value.reason:
            names.setdefault(value.reason, []).append(name)
    return [sentence(f"{units.joined(found)}: no interval: {why}", indent=2) for why, found in names.items()]


def _parameters_heading(answer: Answer) -> list[str]:
    """Whose parameters they are, and whether that law describes the data."""
    law = next((one for one in answer.laws if one.name == answer.parameters_of), None)
    if law is None:
        return ["parameters"]
    lines = [f"parameters of the law {law.name}"]
    if law.judged and not law.adequate:
        why = f"no law describes these times; this one is the closest and {law.reason}"
        of_launches = "Intervals say how well launches agree, not how well the law holds"
        lines.append(
            sentence(f"{why}. {of_launches if answer.num_launches else 'Intervals are as if it held'}", indent=2)
        )
    return lines


def _p_zero(value: Parameter, shown: bool) -> tuple[str, ...]:
    """p from 999 draws: none is smaller than one in a thousand."""
    if not shown:
        return ()
    least = value.p_zero is not None and value.p_zero <= 0.001
    return ("≤0.001" if least else units.probability(value.p_zero),)


def _meaning(answer: Answer, name: str) -> str:
    if name == "dispatch" and answer.shared_resource:
        return "host cost per simulated device"
    return _MEANING.get(name, "")


def _laws(answer: Answer) -> str:
    if not answer.laws:
        return "laws: none fitted"
    rows = [
        (
            law.name,
            _error(law.misfit),
            _error(law.held_out_size),
            _error(law.held_out_count),
            _error(law.baseline_held_out),
            _decision(law),
        )
        for law in answer.laws
        if law.misfit is not None
    ]
    headers = ("law", "misfit", "size left out", "count left out", "trend's error", "")
    lines = ["laws: median relative error, on the data and on cells left out"]
    if rows:
        lines.append(table(headers, rows, numeric=(1, 2, 3, 4)))
    classes = dict.fromkeys(frozenset((law.name, *law.indistinguishable_from)) for law in answer.laws)
    lines.extend(
        sentence(f"not told apart by these counts: {'; '.join(sorted(names))}", indent=2)
        for names in classes
        if len(names) > 1
    )
    reasons: dict[str, list[str]] = {}
    for law in answer.laws:
        if law.reason and not law.kept:
            reasons.setdefault(law.reason, []).append(law.name)
    lines.extend(sentence(f"{'; '.join(names)}: {reason}", indent=2) for reason, names in reasons.items())
    if not any(law.kept for law in answer.laws):
        why = "a law must err less than the margin, and no more than the trend"
        lines.append(sentence(f"no law predicts here; the trend (a damped power law) does: {why}", indent=2))
    return "\n".join(lines)


def _error(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _decision(law: LawReport) -> str:
    if law.kept:
        return "kept" if law.judged else "kept inside the measured cells only (not judged)"
    if not law.judged:
        return "not judged"
    return "adequate, not kept" if law.adequate else "not adequate"
