"""What every sweep is asked, and whether the answer holds the truth: one function a question, in the tuples below.

A question takes a ``Sweep`` and yields a ``Check`` for each answer. Kinds: *interior*, an interval of a continuous
quantity; *set*, a set of counts or sizes, or an interval that is cut at a bound or made of several statements;
*error*, a test, which holds unless it says what is false; *choice*, shown without a goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from breakeven.fit.answer import Estimate
from breakeven.fit.attribution import parts
from breakeven.fit.breakeven import break_even
from breakeven.fit.communication import communication_bound
from breakeven.fit.growth import growth, growth_ends
from breakeven.fit.optimum import optimum
from breakeven.fit.predictions import predictions
from breakeven.fit.verdict import verdict
from breakeven.fit.weak import weak_efficiency

from .borders import MEANINGS, border
from .checks import Check, error, interval, members, pieces, ratio
from .laws import laws
from .scenarios import Scenario
from .stopping import stopping
from .structure import structure
from .sweeps import Sweep
from .truths import distances, true_tie

CAUSES = ("dispatch", "communication", "compute")
Question = Callable[[Sweep], Iterator[Check]]

WIDTHS = {
    "share of the time": "of the time",
    "share of the growth": "of the growth",
    "seconds": "of the truth; growth: of T(1)",
    "speedup at the middle size": "upper end over lower end",
    "counts": "counts in the set; regret: of the least cost",
    "break-even size": "upper end over lower end",
    "meanings of communication bound": "in the meaning's own unit",
    "parameters": "of the truth; none where that is 0",
    "predictions": "upper end over lower end",
    "weak efficiency": "upper end over lower end",
    "stopping": "launches at the stop",
    "breaks": "",
}


def share_of_time(sweep: Sweep) -> Iterator[Check]:
    """Each cause's share of the time on the largest count, and its seconds."""
    last = sweep.true.devices[-1]
    factor = sweep.scenario.mean_over_median
    for cause, part in parts(sweep.part((sweep.largest,)), sweep.strategy, last, sweep.largest).items():
        seconds = sweep.causes[last][cause]
        yield interval("share of the time", cause, part.share, seconds / sweep.totals[last])
        yield interval("seconds", cause, part.latency_s, seconds * factor, unit=seconds)


def share_of_growth(sweep: Sweep) -> Iterator[Check]:
    """Growth from one device to the largest count in seconds, and each cause's share of it."""
    first, last = sweep.true.devices[0], sweep.true.devices[-1]
    found = growth(sweep.part((sweep.largest,)), sweep.strategy, first, last, sweep.largest)
    grown = sweep.totals[last] - sweep.totals[first]
    factor = sweep.scenario.mean_over_median
    yield interval("seconds", "growth", found.latency_s, grown * factor, unit=sweep.totals[first])
    for cause in CAUSES:
        share = (sweep.causes[last][cause] - sweep.causes[first][cause]) / grown
        yield interval("share of the growth", cause, found.shares.get(cause, Estimate()), share)


def speedups(sweep: Sweep) -> Iterator[Check]:
    """Time and speedup at two measured counts."""
    found = {p.num_devices: p for p in predictions(sweep.part((sweep.middle,)), sweep.strategy, None)}
    group = "speedup at the middle size"
    for n in (sweep.true.devices[1], sweep.true.devices[-1]):
        truth = sweep.costs[1] / sweep.costs[n]
        yield ratio(group, f"{n} devices", found[n].speedup, truth)
    last = sweep.true.devices[-1]
    yield ratio(group, f"time on {last}", found[last].latency_s, sweep.true.latency_s(last, sweep.middle))


def counts(sweep: Sweep) -> Iterator[Check]:
    """The best count, the first and the last that helps, at the middle size; what the chosen one costs too much."""
    table, size = sweep.part((sweep.middle,)), sweep.middle
    costs = {n: sweep.costs[n] for n in sweep.true.devices}
    best = optimum(table, sweep.strategy, None, axis_size=size)
    yield members("optimum", best.set, min(costs, key=costs.__getitem__))
    if best.estimate is not None:
        regret = costs[best.estimate] / min(costs.values()) - 1
        yield interval("counts", "regret", best.regret[best.estimate], regret, kind="set")
    helps = break_even(table, sweep.strategy, None, axis_size=size)
    winners = [n for n in sweep.true.devices if costs[n] < costs[1]]
    yield members("first that helps", helps.first.set, winners[0] if winners else None)
    yield members("last that helps", helps.last.set, winners[-1] if winners else None)


def break_even_sizes(sweep: Sweep) -> Iterator[Check]:
    """Sizes at which 2 and 8 devices cost the same as one; a root outside the measured sizes is not asked for."""
    for found in break_even(sweep.table, sweep.strategy, None, axis_size=sweep.middle).sizes:
        root = sweep.tie(found.num_devices)
        if found.num_devices in (2, 8) and sweep.true.sizes[0] <= root <= sweep.true.sizes[-1]:
            yield pieces(f"{found.num_devices} devices", found, root)


def meanings(sweep: Sweep) -> Iterator[Check]:
    """The numbers of the four meanings, and whether any of them says what is false."""
    table = sweep.part((sweep.largest,))
    found = communication_bound(table, sweep.strategy, size=sweep.largest)
    nulls = {"share": 0.5}
    ends = growth_ends(table, sweep.strategy, sweep.largest)
    distance = distances(sweep.causes, ends)
    said: dict[bool, list[str]] = {True: [], False: []}
    for name, words in MEANINGS.items():
        one = getattr(found, name)
        if one.holds == "undefined":
            continue
        kind = "interior" if name in ("share", "exceeds_compute") else "set"
        number = Estimate(estimate=one.estimate, interval=one.interval)
        truth = distance[name] + nulls.get(name, 0.0)
        yield interval("meanings of communication bound", words, number, truth, kind=kind)
        said[distance[name] > 0].append(one.holds)
    if said[False]:
        yield error("meanings: a false yes", said=set(said[False]) != {"undecided"}, wrong="yes" in said[False])
    if said[True]:
        yield error("meanings: a false no", said=set(said[True]) != {"undecided"}, wrong="no" in said[True])


def verdicts(sweep: Sweep) -> Iterator[Check]:
    """The verdict names the largest cause: of the time, or on the weak path of the growth."""
    said = verdict(sweep.part((sweep.largest,)), sweep.strategy).verdict
    first, last = sweep.true.devices[0], sweep.true.devices[-1]
    weak = sweep.true.path == "weak"
    parts = {c: s - (sweep.causes[first][c] if weak else 0.0) for c, s in sweep.causes[last].items()}
    largest = max(parts, key=parts.__getitem__)
    yield error("verdict: wrong", said=said != "undecided", wrong=said not in ("undecided", largest))


def weak(sweep: Sweep) -> Iterator[Check]:
    """Weak efficiency on the largest count, and the size per device at which it reaches 90 %."""
    last = sweep.true.devices[-1]
    mine = [e for e in weak_efficiency(sweep.table, sweep.strategy) if e.num_devices == last]
    for e in mine:
        if e.size_per_device in (sweep.middle, sweep.largest):
            where = "middle size" if e.size_per_device == sweep.middle else "largest size"
            truth = sweep.true.latency_s(1, e.size_per_device) / sweep.true.latency_s(last, e.size_per_device)
            yield ratio("weak efficiency", where, e.efficiency, truth)
    reached = true_tie(sweep.true, 1, last, ratio=1 / 0.9)
    if sweep.true.sizes[0] <= reached <= sweep.true.sizes[-1]:
        yield ratio("weak efficiency", "size for 90 %", mine[0].size_for_90_percent, reached, kind="set")


LAW_FREE: tuple[Question, ...] = (
    share_of_time,
    share_of_growth,
    speedups,
    counts,
    break_even_sizes,
    meanings,
    verdicts,
)
"""Asked of every sweep whose scenario is not for one question only; a new question is one line here."""


def ask(sweep: Sweep) -> Iterator[Check]:
    """Ask a sweep all that its scenario is for."""
    for question in _questions(sweep.scenario):
        yield from question(sweep)


def _questions(one: Scenario) -> tuple[Question, ...]:
    for only, wanted in ((border, one.border), (stopping, one.until), (structure, one.breaks)):
        if wanted:
            return (only,)
    return (*LAW_FREE, *((weak,) if one.path == "weak" else ()), *((laws,) if one.laws else ()))
