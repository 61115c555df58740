"""At the border between yes and no: how often each test rejects what is just true."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from breakeven.fit.answer import Meaning
from breakeven.fit.communication import communication_bound
from breakeven.fit.dispatch_bound import dispatch_bound
from breakeven.fit.launches import LaunchTable
from breakeven.fit.no_difference import no_difference
from breakeven.fit.objective import Costs
from breakeven.fit.paired import paired_tests
from breakeven.fit.verdict import verdict

from .checks import LEVEL, Check, error
from .sweeps import Sweep

MEANINGS = {
    "share": "share",
    "exceeds_compute": "exceeds compute",
    "growth": "growth",
    "no_gain_even_with_free_dispatch": "no gain",
}


def border(sweep: Sweep) -> Iterator[Check]:
    """At the border between yes and no: how often each test rejects what is just true."""
    what = sweep.scenario.border
    assert what is not None, "only asked of scenarios at a border"
    yield from BORDERS.get(what, _meaning)(sweep.part((sweep.largest,)), sweep, what)


def _meaning(table: LaunchTable, sweep: Sweep, what: str) -> Iterator[Check]:
    found = communication_bound(table, sweep.strategy, size=sweep.largest)
    yield from _both_ways(MEANINGS[what], getattr(found, what))


def _dispatch(table: LaunchTable, sweep: Sweep, what: str) -> Iterator[Check]:
    found = dispatch_bound(table, sweep.strategy, sweep.largest)
    if found is not None:
        one = found.share if what == "dispatch_share" else found.prevents_gain
        yield from _both_ways(f"dispatch: {'share' if what == 'dispatch_share' else 'prevents gain'}", one)


def _both_ways(name: str, found: Meaning) -> Iterator[Check]:
    for p, way in ((found.p_above, "yes"), (found.p_below, "no")):
        yield error(f"{name}: {way}", said=p is not None, wrong=p is not None and p < LEVEL)


def _verdict(table: LaunchTable, sweep: Sweep, _: str) -> Iterator[Check]:
    said = verdict(table, sweep.strategy).verdict
    yield error("verdict: decides a tie", said=said != "undecided", wrong=said != "undecided")


def _equivalence(table: LaunchTable, sweep: Sweep, _: str) -> Iterator[Check]:
    same = "equivalent to none" in communication_bound(table, sweep.strategy, size=sweep.largest).share.reason
    yield error("no communication: at the margin", said=same, wrong=same)


def _no_difference(table: LaunchTable, sweep: Sweep, _: str) -> Iterator[Check]:
    last = no_difference(Costs.of(table, sweep.strategy, None), sweep.largest)[-1]
    for way in ("yes", "no"):
        name = f"no difference: {way} at the margin"
        yield error(name, said=last.equivalent != "undecided", wrong=last.equivalent == way)


def _tie(table: LaunchTable, sweep: Sweep, _: str) -> Iterator[Check]:
    speedup = paired_tests(table, Costs.of(table, sweep.strategy, None), sweep.largest)[-1]
    sign = speedup.sign_p is not None and speedup.sign_p < LEVEL
    yield error("speedup 1: sign test", said=speedup.sign_p is not None, wrong=sign)
    for name, found in (("t", speedup.t), ("Hodges-Lehmann", speedup.hodges_lehmann)):
        low, high = found.interval or (None, None)
        wrong = (low is not None and low > 1) or (high is not None and high < 1)
        yield error(f"speedup 1: {name}", said=found.interval is not None, wrong=wrong)


BORDERS: dict[str, Callable[[LaunchTable, Sweep, str], Iterator[Check]]] = {
    "dispatch_share": _dispatch,
    "prevents_gain": _dispatch,
    "verdict": _verdict,
    "equivalence": _equivalence,
    "no_difference": _no_difference,
    "tie": _tie,
}
"""Tests with a border of their own; the others are meanings of communication bound."""
