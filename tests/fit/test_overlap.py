"""Overlap: what control and replay take together beyond the workload."""

import numpy as np
import pytest
from breakeven.fit.overlap import overlaps
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts

NULL, COMPUTE, COMMUNICATION = 20e-6, 300e-6, 100e-6


def made(make_table, make_all_reduce, hidden, *, launches=6, roles=("workload", "local", "null"), probes=True, **noise):
    """A sweep on 2 and 4 devices whose communication is hidden in part."""
    extra, facts = {}, {}
    for n in (2, 4):
        for role in ("workload", "replay"):
            facts[Cell(role=role, strategy="jit", num_devices=n, size=1000)] = ProgramFacts(
                flops=1.0, collectives=(make_all_reduce(4000),), inline=False, num_arguments=1
            )
        if probes:
            extra[Cell(role="replay", strategy="jit", num_devices=n, size=1000)] = NULL + COMMUNICATION
    return make_table(
        lambda n, s: (NULL, COMMUNICATION - hidden, COMPUTE),
        devices=(2, 4),
        path="strong",
        launches=launches,
        roles=roles,
        extra=extra,
        facts=facts,
        **({"cell_sd": 0.005, "launch_sd": 0.02} | noise),
    )


@pytest.mark.parametrize("hidden", [50e-6, 90e-6])
def test_what_is_hidden_is_measured(make_table, make_all_reduce, hidden):
    found = overlaps(made(make_table, make_all_reduce, hidden), "jit", 1000, confidence=0.999)
    assert [one.num_devices for one in found] == [2, 4]
    for one in found:
        lower, upper = one.hidden_s.interval
        assert lower < hidden < upper
        lower, upper = one.fraction.interval
        assert lower < hidden / COMMUNICATION < upper, "communication is the shorter one"
        assert "laws that add them overstate the time by it" in one.reason


def test_without_overlap_none_is_claimed(make_table, make_all_reduce):
    for one in overlaps(made(make_table, make_all_reduce, 0.0), "jit", 1000):
        assert one.reason.endswith("none detected")


def test_waiting_is_not_negative_overlap(make_table, make_all_reduce):
    (first, _) = overlaps(made(make_table, make_all_reduce, -80e-6), "jit", 1000)
    assert first.hidden_s.estimate < 0
    assert "waiting for the slowest device" in first.reason


def test_the_fraction_is_not_cut_to_one(make_table, make_all_reduce):
    (first, _) = overlaps(made(make_table, make_all_reduce, 140e-6), "jit", 1000)
    assert first.fraction.estimate == pytest.approx(1.4, abs=0.1)
    assert "more is hidden than one of them takes" in first.reason


def test_the_interval_covers_the_fraction(make_table, make_all_reduce):
    covered = 0
    for seed in range(200):
        (first, _) = overlaps(made(make_table, make_all_reduce, 50e-6, seed=seed), "jit", 1000)
        lower, upper = first.fraction.interval
        covered += lower <= 0.5 <= upper
    # Below 180 with a probability of 0.1 % at a coverage of 95 %.
    assert covered >= 180


def test_without_null_the_fraction_says_so(make_table, make_all_reduce):
    table = made(make_table, make_all_reduce, 50e-6, roles=("workload", "local"))
    assert overlaps(table, "jit", 1000) == (), "the replay's own dispatch is unknown without null and chain"


def test_two_launches_decide_nothing(make_table, make_all_reduce):
    (first, _) = overlaps(made(make_table, make_all_reduce, 50e-6, launches=2), "jit", 1000)
    assert first.hidden_s.interval is None
    assert "not decided: fewer than three launches" in first.reason


def test_no_replay_no_overlap(make_table, make_all_reduce):
    assert overlaps(made(make_table, make_all_reduce, 50e-6, probes=False), "jit", 1000) == ()


def test_counts_beyond_the_largest_asked_for_are_left_out(make_table, make_all_reduce):
    table = made(make_table, make_all_reduce, 50e-6)
    assert [one.num_devices for one in overlaps(table, "jit", 1000, largest=2)] == [2]


def test_a_ratio_of_means_is_used_where_a_launch_has_no_communication(make_table, make_all_reduce):
    table = made(make_table, make_all_reduce, 0.0, cell_sd=0.2, launch_sd=0.0)
    for one in overlaps(table, "jit", 1000):
        assert one.fraction.estimate is None or np.isfinite(one.fraction.estimate)
