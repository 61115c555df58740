"""What the workload's communication costs, by three routes that share no program.

*chain*: the slope in k of k dependent collectives, times the collectives in the workload. *replay*: the workload's own
collectives without compute, less the time of a program that does nothing. *difference*: workload - local.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..model.cell import Cell
from ..model.menu import executions
from ..model.program import ProgramFacts
from .answer import CollectiveCost, Estimate
from .intervals import holm, log_t_estimate, p_differs, t_estimate
from .launches import LaunchTable

NAMES = {"chain": "chain", "replay": "replay", "difference": "workload − local"}
AGAINST_DIFFERENCE = "workload − local also holds waiting for the slowest device, and misses what overlaps with compute"
AMONG_PROBES = "the replay runs each collective once, the chain repeats one kind and payload"


@dataclass(frozen=True, kw_only=True)
class Route:
    """Seconds of communication per launch, shape (G,); None where the route says nothing. ``note``: why, or how.

    ``cost``: it cannot be negative; a difference of two programs may.
    """

    seconds: np.ndarray | None = None
    note: str | None = None
    cost: bool = True

    def estimate(self, confidence: float) -> Estimate:
        """Mean and interval over launches, with the note."""
        if self.seconds is None:
            return Estimate(reason=self.note)
        answer = t_estimate(self.seconds, confidence)
        if self.cost and answer.interval is not None and (answer.interval[1] or 0.0) < 0:
            return Estimate(reason="; ".join(filter(None, (self.note, "the data push it below 0"))))
        return Estimate(
            estimate=answer.estimate,
            interval=answer.interval,
            reason="; ".join(filter(None, (self.note, answer.reason))) or None,
        )


@dataclass(frozen=True, kw_only=True)
class ChainFit:
    """Straight lines in k by launch, one per payload: ``slopes`` and ``intercepts``, each shape (payloads, G)."""

    payloads: np.ndarray
    slopes: np.ndarray
    intercepts: np.ndarray
    kinds: frozenset[str]

    def intercept_near(self, message_bytes: int) -> np.ndarray:
        """Of the chain whose payload is closest, shape (G,): a program that holds larger buffers starts later."""
        return self.intercepts[np.argmin(np.abs(np.log(self.payloads / max(message_bytes, 1))))]


def collective_costs(
    table: LaunchTable, strategy: str, axis_size: int, *, largest: int | None = None, confidence: float = 0.95
) -> tuple[CollectiveCost, ...]:
    """Set the three routes side by side at every measured count above one.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    axis_size : int
        Entry of the plan's size axis.
    largest : int, optional
        Largest count of interest.

    Returns
    -------
    tuple of CollectiveCost
        Seconds a call. ``agree`` is False where a paired difference between two routes is significant after Holm,
        True where none is ("no difference detected"), None where fewer than two routes could be compared.
    """
    plan = table.plan
    answers = []
    for n in table.devices("workload", strategy):
        total = table.time("workload", strategy, n, plan.global_size(n, axis_size))
        if n > 1 and total is not None and (largest is None or n <= largest):
            answers.append(_compare(table, strategy, n, axis_size, confidence))
    return tuple(answers)


def chain_route(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> Route:
    """Slope in k by launch, times the number of collectives in the workload, at their payloads."""
    inventory = _inventory(table, strategy, num_devices, axis_size)
    if isinstance(inventory, str):
        return Route(note=inventory)
    fit = fit_chain(table, strategy, num_devices)
    if fit is None:
        return Route(note="no chain of collectives was measured at two values of k")
    if unprobed := {kind for kind, *_ in inventory} - fit.kinds:
        return Route(note=f"the chain did not probe {', '.join(sorted(unprobed))}")
    total, notes = np.zeros(table.num_launches), set()
    for kind, count, group, message_bytes in inventory:
        if group != num_devices:
            return Route(note=f"the workload's {kind} spans {group} devices, the chain {num_devices}")
        cost, note = _at_payload(fit, message_bytes)
        if cost is None:
            return Route(note=note)
        total = total + count * cost
        notes |= {note} - {None}
    return Route(seconds=total, note="; ".join(sorted(notes)) or None)


def replay_route(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> Route:
    """Replay less its own dispatch: the chain's intercept where measured, else the null program."""
    size = table.plan.global_size(num_devices, axis_size)
    replay = table.time("replay", strategy, num_devices, size)
    if replay is None:
        return Route(note="no replay was measured")
    fit = fit_chain(table, strategy, num_devices)
    if fit is not None:
        inventory = _inventory(table, strategy, num_devices, axis_size)
        largest = 0 if isinstance(inventory, str) else max(message_bytes for *_, message_bytes in inventory)
        return Route(seconds=replay - fit.intercept_near(largest), note="replay less the chain's intercept")
    null = table.time("null", strategy, num_devices, size)
    if null is None:
        return Route(note="the replay's own dispatch is unknown: neither chain nor null was measured")
    return Route(seconds=replay - null, note="replay less null")


def difference_route(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> Route:
    """Workload - local, paired by launch."""
    size = table.plan.global_size(num_devices, axis_size)
    total = table.time("workload", strategy, num_devices, size)
    local = table.time("local", strategy, num_devices, size)
    if total is None or local is None:
        return Route(note=table.refused or "no local control was measured")
    return Route(seconds=total - local, cost=False)


def fit_chain(table: LaunchTable, strategy: str, num_devices: int) -> ChainFit | None:
    """Fit time against k by launch for every payload with at least two values of k; None without any."""
    by_payload: dict[int, list[Cell]] = {}
    for cell in table.select("chain", strategy):
        if cell.num_devices == num_devices and cell.k and cell.payload_bytes:
            by_payload.setdefault(cell.payload_bytes, []).append(cell)
    fits, kinds = {}, set()
    for payload, cells in sorted(by_payload.items()):
        k = np.array([cell.k for cell in cells], dtype=float)
        times = np.array([table.row(cell) for cell in cells])
        if len(set(k)) < 2:
            continue
        # Ordinary least squares lets the longest chains decide the slope; relative weights would let the
        # shortest one, which is mostly dispatch.
        slope, intercept = np.linalg.lstsq(np.column_stack([k, np.ones_like(k)]), times, rcond=None)[0]
        fits[payload] = slope, intercept
        kinds |= {_kind(table, cell) for cell in cells}
    if not fits:
        return None
    return ChainFit(
        payloads=np.array(list(fits), dtype=float),
        slopes=np.array([slope for slope, _ in fits.values()]),
        intercepts=np.array([intercept for _, intercept in fits.values()]),
        kinds=frozenset(kinds),
    )


def workload_facts(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> ProgramFacts | None:
    """Facts of the workload's program at one cell; None where its collectives are not known."""
    size = table.plan.global_size(num_devices, axis_size)
    facts = table.facts.get(Cell(role="workload", strategy=strategy, num_devices=num_devices, size=size))
    return facts if facts is not None and facts.collectives_known else None


def _kind(table: LaunchTable, cell: Cell) -> str:
    facts = table.facts.get(cell)
    return facts.collectives[0].kind if facts and facts.collectives else "all-reduce"


def _inventory(
    table: LaunchTable, strategy: str, num_devices: int, axis_size: int
) -> list[tuple[str, int, int, int]] | str:
    """(kind, count, group, message bytes) of what the workload executes, or why it cannot be listed."""
    facts = workload_facts(table, strategy, num_devices, axis_size)
    if facts is None:
        return "the collectives of the compiled program are not known"
    try:
        return list(executions(facts.collectives, num_devices)) or "the compiled program has no collective"
    except ValueError as error:
        return str(error)


def _at_payload(fit: ChainFit, message_bytes: int) -> tuple[np.ndarray | None, str | None]:
    """Cost of one collective, shape (G,), and a note: linear in the bytes between probed payloads."""
    payloads, slopes = fit.payloads, fit.slopes
    if message_bytes in payloads:
        return slopes[list(payloads).index(message_bytes)], None
    probed = f"{payloads[0]:.0f}..{payloads[-1]:.0f} B"
    if len(payloads) < 2 or message_bytes > payloads[-1]:
        return None, f"a payload of {message_bytes} B lies outside the probed {probed}"
    upper = max(1, int(np.searchsorted(payloads, message_bytes)))
    weight = (message_bytes - payloads[upper - 1]) / (payloads[upper] - payloads[upper - 1])
    # Towards nothing the line ends in the latency of an empty message, which the two smallest probes fix.
    note = f"extrapolated to {message_bytes} B from {probed}" if message_bytes < payloads[0] else None
    return slopes[upper - 1] + weight * (slopes[upper] - slopes[upper - 1]), note


def _compare(table: LaunchTable, strategy: str, num_devices: int, axis_size: int, confidence: float) -> CollectiveCost:
    place = (table, strategy, num_devices, axis_size)
    routes = {"chain": chain_route(*place), "replay": replay_route(*place), "difference": difference_route(*place)}
    agree, reason = _agreement(routes, 1 - confidence)
    return CollectiveCost(
        num_devices=num_devices,
        size=axis_size,
        **{name: route.estimate(confidence) for name, route in routes.items()},
        agree=agree,
        reason=reason,
    )


def _agreement(routes: Mapping[str, Route], level: float) -> tuple[bool | None, str | None]:
    known = {name: route.seconds for name, route in routes.items() if route.seconds is not None}
    if len(known) < 2:
        return None, "fewer than two routes were measured"
    pairs = list(combinations(known, 2))
    adjusted = holm([p_differs(known[a] - known[b]) for a, b in pairs])
    differ = [pair for pair, p in zip(pairs, adjusted, strict=True) if p is not None and p < level]
    if differ:
        hints = dict.fromkeys(AGAINST_DIFFERENCE if "difference" in pair else AMONG_PROBES for pair in differ)
        return False, f"{', '.join(_in_words(*pair, known) for pair in differ)} ({'; '.join(hints)})"
    if all(p is None for p in adjusted):
        return None, t_estimate(known[pairs[0][0]] - known[pairs[0][1]]).reason
    return True, f"no difference detected between {', '.join(NAMES[name] for name in known)}"


def _in_words(first: str, second: str, known: Mapping[str, np.ndarray]) -> str:
    low, high = sorted((first, second), key=lambda name: known[name].mean())
    ratio = log_t_estimate(known[high] / known[low]).estimate if (known[low] > 0).all() else None
    # A factor says more than microseconds, but only where both costs are positive in every launch.
    by = f" by a factor of {ratio:.2g}" if ratio else ""
    return f"{NAMES[high]} exceeds {NAMES[low]}{by}"
