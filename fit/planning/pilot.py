"""What a pilot sweep says about a question: the quantity round by round, and how far it may stray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...model.cell import devices
from ..attribution import attribute
from ..crossover import bend, crossover
from ..launches import LaunchTable
from ..objective import Costs
from .noise import Noise, components
from .power import Chance, detects, narrows


@dataclass(frozen=True, kw_only=True)
class Question:
    """One quantity of the pilot.

    Attributes
    ----------
    of : its name; noise : its components, None with a ``reason``
    chance : probability of success for a variance and a number of launches
    """

    of: str
    noise: Noise | None
    chance: Chance | None
    reason: str | None = None


def difference(table: LaunchTable, strategy: str, *, at: int, reference: int, size: int, target: float, level: float):
    """Tell a difference of ``target`` (0.05: a loss of 5 %) between two counts from none."""
    of = f"log ratio of the costs on {at} and {devices(reference)}"

    def ratio(rounds: LaunchTable) -> np.ndarray:
        return _log_ratio(rounds, strategy, at, reference, size)

    return _question(table, of, ratio, detects(np.log1p(target), level))


def break_even_size(table: LaunchTable, strategy: str, *, at: int, reference: int, target: float, level: float):
    """Know the size at which two counts cost the same to within ``target`` of it.

    Notes
    -----
    The confidence set holds the sizes at which the interval of the log ratio contains 0 (``crossover``). Its ends lie
    within the target when the half width there is at most the distance of the curve from 0, less the bend that the
    measured sizes leave open.
    """
    of = f"log ratio of the costs on {at} and {devices(reference)} at the break-even size"
    sizes = _common_sizes(table, strategy, at, reference)
    if len(sizes) < 2:
        return Question(of=of, noise=None, chance=None, reason="a break-even size needs two sizes on both counts")
    curve = np.array([_log_ratio(table, strategy, at, reference, size) for size in sizes])
    roots = [root.estimate for root in crossover(np.array(sizes), curve, confidence=1 - level).roots]
    known = [root for root in roots if root is not None]
    if not known:
        where = f"between {sizes[0]:,} and {sizes[-1]:,}"
        reason = f"{devices(at)} do not break even with {reference} {where}: measure other sizes"
        return Question(of=of, noise=None, chance=None, reason=reason)
    x, root = np.log(sizes), float(np.log(known[0]))
    edges = np.array([root + np.log1p(-target), root + np.log1p(target)])
    if edges[0] < x[0] or edges[1] > x[-1]:
        reason = (
            f"the break-even size is about {known[0]:,.0f}, and {100 * target:g} % around it lie outside the measured "
            f"sizes {sizes[0]:,} to {sizes[-1]:,}: measure beyond them"
        )
        return Question(of=of, noise=None, chance=None, reason=reason)
    mean = curve.mean(axis=1)
    left_open = bend(edges, x, mean)
    clear = float((np.abs(np.interp(edges, x, mean)) - left_open).min())
    if clear <= 0:
        reason = (
            f"between the measured sizes the curve may bend by more than {100 * target:g} % of the break-even size, "
            f"about {known[0]:,.0f}, whatever the number of launches: measure sizes nearer to it"
        )
        return Question(of=of, noise=None, chance=None, reason=reason)

    def at_root(rounds: LaunchTable) -> np.ndarray:
        ratios = np.array([_log_ratio(rounds, strategy, at, reference, size) for size in sizes])
        return np.array([np.interp(root, x, column) for column in ratios.T])

    return _question(table, of, at_root, narrows(clear, level))


def share(table: LaunchTable, strategy: str, *, cause: str, at: int, size: int, target: float, level: float):
    """Know a cause's share of the time to within ``target`` (0.05: five percentage points)."""
    of = f"share of {cause} in the time on {devices(at)}"
    split = attribute(table, strategy, at, size)
    causes = None if split is None else split.determined
    if split is None or causes is None:
        reason = (split.undecided if split else None) or f"{at} devices were not measured at this size"
        return Question(of=of, noise=None, chance=None, reason=reason)

    def shares(rounds: LaunchTable) -> np.ndarray:
        found = attribute(rounds, strategy, at, size)
        assert found is not None, "the same cells were attributed above"
        assert found.determined is not None, "the same cells were attributed above"
        return found.determined[cause] / found.total

    return _question(table, of, shares, narrows(target, level))


def _question(table: LaunchTable, of: str, quantity: Callable[[LaunchTable], np.ndarray], chance: Chance) -> Question:
    found = components(_by_round(table, quantity))
    if isinstance(found, str):
        return Question(of=of, noise=None, chance=None, reason=found)
    return Question(of=of, noise=found, chance=chance)


def _by_round(table: LaunchTable, quantity: Callable[[LaunchTable], np.ndarray]) -> Sequence[np.ndarray]:
    """The quantity of every round, launch by launch; rounds in which it was not measured are left out."""
    if not table.replicated:
        return []
    blocks = table.rounds_s or tuple(table.latency_s.T[:, :, None])
    values = quantity(replace(table, latency_s=np.concatenate(blocks, axis=1), rounds_s=(), queued_s=None))
    ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
    return [one[np.isfinite(one)] for one in np.split(values, ends)]


def _log_ratio(table: LaunchTable, strategy: str, at: int, reference: int, size: int) -> np.ndarray:
    """Log cost of a count over the reference's, one number a column."""
    costs = Costs.of(table, strategy, None, reference=reference)
    ours, theirs = costs.at(at, size), costs.at(reference, size)
    return ours.routes[0].log_cost - theirs.routes[0].log_cost


def _common_sizes(table: LaunchTable, strategy: str, at: int, reference: int) -> list[int]:
    """Sizes at which both counts were measured, ascending."""
    cells = table.select("workload", strategy)
    ours, theirs = ({table.axis_size(c) for c in cells if c.num_devices == n} for n in (at, reference))
    return sorted(ours & theirs)
