"""From a wish on the command line to a plan."""

from __future__ import annotations

from breakeven.cli.planned import Wish, plan_of


def test_a_trace_is_made_only_when_asked_for():
    assert plan_of(Wish(workload="mean-all", platform="cpu", trace=True)).trace
    assert not plan_of(Wish(workload="mean-all", platform="cpu")).trace
