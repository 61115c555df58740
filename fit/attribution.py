"""What a call's time is made of, without a law: differences of programs measured side by side.

communication = workload - local, compute = local - null, dispatch = null, paired by launch; they add up to the call.
Where a control is missing, the next best source is used and named; where none is left, the cause is not determined.
A strategy ``X-unplaced`` adds a fourth cause, *input transfer*: its time less that of ``X``, whose causes it shares.

On one device the differences are taken as measured too, although a program without a collective cannot communicate
there. Setting communication to 0 would remove its noise, but a control that differs from its workload by a constant
would then count as growth; as measured the constant cancels. The source names such a difference an A/A check.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .answer import CAUSES, Estimate, Part
from .collective_cost import Route, chain_route, replay_route, workload_facts
from .intervals import t_estimate
from .launches import LaunchTable

if TYPE_CHECKING:
    from .lawfit import LawFits

INPUT_TRANSFER = "input-transfer"
UNPLACED = "-unplaced"
CANNOT_COMMUNICATE = "the compiled program cannot communicate"
NO_COLLECTIVE_SAID = "the file says that the program has no collective"
NO_LAW = "no physical law fits"
NOT_JUDGED = "no physical law could be judged"
NO_SEPARATION = "the laws that fit cannot tell its causes apart"


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """Causes of one cell's time.

    Attributes
    ----------
    total : ndarray, shape (G,), seconds a call
    seconds : by cause, shape (G,); None where not determined
    sources : by cause, where the number comes from
    reasons : by cause, why there is no number
    law : name of the law that was needed, or None
    """

    total: np.ndarray
    seconds: dict[str, np.ndarray | None]
    sources: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    law: str | None = None

    @property
    def determined(self) -> dict[str, np.ndarray] | None:
        """Seconds by cause when all of them are known."""
        known = {cause: s for cause, s in self.seconds.items() if s is not None}
        return known if len(known) == len(self.seconds) else None

    @property
    def undecided(self) -> str | None:
        """Why not all causes are known."""
        return "; ".join(dict.fromkeys(self.reasons.values())) or None


def attribute(
    table: LaunchTable, strategy: str, num_devices: int, axis_size: int, *, fits: LawFits | None = None
) -> Attribution | None:
    """Split the time of one measured cell.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    num_devices : int
    axis_size : int
        Entry of the plan's size axis: S on the strong path, S / n on the weak one.
    fits : LawFits, optional
        Used only where neither local control nor probes were measured, and only a law judged adequate.

    Returns
    -------
    Attribution or None
        None where the workload was not measured there.
    """
    size = table.plan.global_size(num_devices, axis_size)
    total = table.time("workload", strategy, num_devices, size)
    if total is None:
        return None
    twin = placed_twin(table, strategy)
    if twin is None:
        return _split(table, strategy, num_devices, axis_size, total, fits)
    placed = attribute(table, twin, num_devices, axis_size, fits=fits)
    if placed is None:
        seconds: dict[str, np.ndarray | None] = dict.fromkeys((*CAUSES, INPUT_TRANSFER))
        return Attribution(total=total, seconds=seconds, reasons={INPUT_TRANSFER: f"{twin} was not measured there"})
    return Attribution(
        total=total,
        seconds={**placed.seconds, INPUT_TRANSFER: total - placed.total},
        sources={**placed.sources, INPUT_TRANSFER: f"{strategy} − {twin}"},
        reasons=placed.reasons,
        law=placed.law,
    )


def causes(
    table: LaunchTable, strategy: str, num_devices: int, axis_size: int, *, fits: LawFits | None = None
) -> dict[str, np.ndarray] | None:
    """Seconds by cause, each shape (G,); None unless all are determined (``attribute`` has the reason)."""
    split = attribute(table, strategy, num_devices, axis_size, fits=fits)
    return None if split is None else split.determined


def parts(
    table: LaunchTable,
    strategy: str,
    num_devices: int,
    axis_size: int,
    *,
    fits: LawFits | None = None,
    confidence: float = 0.95,
) -> dict[str, Part]:
    """Seconds and share of the call's time by cause, with intervals over launches; empty where not measured."""
    split = attribute(table, strategy, num_devices, axis_size, fits=fits)
    if split is None:
        return {}
    answer = {}
    for cause, seconds in split.seconds.items():
        if seconds is None:
            nothing = Estimate(reason=split.reasons.get(cause, split.undecided))
            answer[cause] = Part(latency_s=nothing, share=nothing, source="none")
        else:
            answer[cause] = Part(
                latency_s=t_estimate(seconds, confidence),
                share=t_estimate(seconds / split.total, confidence),
                source=split.sources[cause],
            )
    return answer


def placed_twin(table: LaunchTable, strategy: str) -> str | None:
    """The measured strategy that differs from this one only by placed inputs; None for all but ``X-unplaced``."""
    twin = strategy.removesuffix(UNPLACED)
    return twin if twin != strategy and twin in table.strategies else None


def headline_size(table: LaunchTable, strategy: str, size: int | None = None) -> int | None:
    """The size that the answer is about: the one asked for, else the largest measured; None if not measured."""
    sizes = table.sizes("workload", strategy)
    if size is None:
        return sizes[-1] if sizes else None
    return size if size in sizes else None


def counts_at(table: LaunchTable, strategy: str, axis_size: int, *, largest: int | None = None) -> tuple[int, ...]:
    """Counts at which the workload was measured at one size, up to ``largest``, ascending."""
    cells = table.select("workload", strategy)
    counts = {c.num_devices for c in cells if table.axis_size(c) == axis_size}
    return tuple(sorted(n for n in counts if largest is None or n <= largest))


def _split(
    table: LaunchTable, strategy: str, num_devices: int, axis_size: int, total: np.ndarray, fits: LawFits | None
) -> Attribution:
    size = table.plan.global_size(num_devices, axis_size)
    null = table.time("null", strategy, num_devices, size)
    route, source = _communication(table, strategy, num_devices, axis_size, total)
    if route.seconds is None:
        by_law = _by_law(num_devices, axis_size, total, null, fits)
        if by_law is not None:
            return by_law
        if fits is not None:
            route = Route(note=f"{(route.note or '').rstrip('.')}, and {_why_no_law(fits)}")
    seconds: dict[str, np.ndarray | None] = dict.fromkeys(CAUSES)
    sources: dict[str, str] = {}
    reasons: dict[str, str] = {}
    if null is None:
        reasons["dispatch"] = _missing(table, strategy, "null")
    else:
        seconds["dispatch"], sources["dispatch"] = null, "null"
    if route.seconds is None:
        reasons["communication"] = str(route.note)
    else:
        seconds["communication"], sources["communication"] = route.seconds, source
    if null is None or route.seconds is None:
        reasons["compute"] = reasons.get("communication", reasons.get("dispatch", ""))
    else:
        seconds["compute"] = total - route.seconds - null
        sources["compute"] = "local − null" if source.startswith("workload − local") else "what is left"
    return Attribution(total=total, seconds=seconds, sources=sources, reasons=reasons)


def _communication(
    table: LaunchTable, strategy: str, num_devices: int, axis_size: int, total: np.ndarray
) -> tuple[Route, str]:
    """The first source that says anything, and its name."""
    facts = workload_facts(table, strategy, num_devices, axis_size)
    local = table.time("local", strategy, num_devices, table.plan.global_size(num_devices, axis_size))
    if local is not None:
        silent = facts is not None and not facts.communicates
        source = "workload − local" + (" (an A/A check: the compiled program has no collective)" if silent else "")
        return Route(seconds=total - local), source
    if facts is not None and facts.can_rule_out_communication:
        return Route(seconds=np.zeros_like(total)), NO_COLLECTIVE_SAID if table.foreign else CANNOT_COMMUNICATE
    for name, find in (("replay", replay_route), ("chain", chain_route)):
        route = find(table, strategy, num_devices, axis_size)
        if route.seconds is not None:
            return route, f"replay ({route.note})" if name == "replay" else name
    return Route(note=_missing(table, strategy, "local")), "none"


def _missing(table: LaunchTable, strategy: str, role: str) -> str:
    if role == "local" and table.refused:
        return f"no local control: {table.refused}"
    owners = sorted({cell.strategy for cell in table.select(role)})
    if owners and strategy not in owners:
        return f"the {role} control was measured for {', '.join(owners)} only"
    return f"no {role} control was measured"


def _why_no_law(fits: LawFits) -> str:
    if any(report.adequate for report in fits.reports):
        return NO_SEPARATION
    # Without an adequate one those kept are the unjudged that describe the cells they were fitted to.
    return NOT_JUDGED if fits.kept else NO_LAW


def _by_law(
    num_devices: int,
    axis_size: int,
    total: np.ndarray,
    null: np.ndarray | None,
    fits: LawFits | None,
) -> Attribution | None:
    """Communication of the adequate law that fits best, with its misfit in the source; None without such a law."""
    if fits is None:
        return None
    adequate = {report.name: report.misfit for report in fits.reports if report.adequate}
    told = {law.name: law.causes(num_devices, axis_size) for law in fits.laws if law.name in adequate}
    separable = {name: terms for name, terms in told.items() if terms is not None}
    if not separable:
        return None
    name = min(separable, key=lambda name: adequate[name] or 0.0)
    terms, misfit = separable[name], adequate[name]
    source = f"law {name!r}" + ("" if misfit is None else f" (misfit {100 * misfit:.0f} %)")
    dispatch = terms["dispatch"] if null is None else null
    return Attribution(
        total=total,
        seconds={
            "dispatch": dispatch,
            "communication": terms["communication"],
            "compute": total - dispatch - terms["communication"],
        },
        sources={"dispatch": source if null is None else "null", "communication": source, "compute": "what is left"},
        law=name,
    )
