"""Causes by subtraction: known truths come back, and what is missing is said."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from breakeven.fit.attribution import attribute, causes, counts_at, headline_size, parts, placed_twin
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts
from hypothesis import given, settings
from hypothesis import strategies as st


def truth(n, size):
    return 10e-6 * n, 20e-6 * (n - 1), 1e-9 * size


def cell(role, n, size=None, **more):
    return Cell(role=role, strategy="jit", num_devices=n, size=size or 1000 * n, **more)


def without(table, *dropped):
    keep = [i for i, one in enumerate(table.cells) if one not in dropped]
    return replace(table, cells=tuple(table.cells[i] for i in keep), latency_s=table.latency_s[keep])


def test_known_causes_come_back_exactly_without_noise(make_table):
    table = make_table(truth, cell_sd=0, launch_sd=0)
    for n in (1, 2, 4, 8):
        found = causes(table, "jit", n, 1000)
        for cause, seconds in zip(("dispatch", "communication", "compute"), truth(n, 1000), strict=True):
            np.testing.assert_allclose(found[cause], seconds, atol=1e-15)


def test_parts_cover_the_truth_and_add_up(make_table):
    table = make_table(truth, seed=3)
    answer = parts(table, "jit", 8, 1000)
    total = sum(truth(8, 1000))
    for cause, seconds in zip(("dispatch", "communication", "compute"), truth(8, 1000), strict=True):
        low, high = answer[cause].share.interval
        assert low < seconds / total < high
    assert sum(p.share.estimate for p in answer.values()) == pytest.approx(1)
    assert answer["communication"].source == "workload − local"
    assert answer["compute"].source == "local − null"


def test_shares_survive_launches_that_are_slower_as_a_whole(make_table):
    table = make_table(truth, launch_sd=0.5, cell_sd=0)
    answer = parts(table, "jit", 8, 1000)
    assert answer["communication"].latency_s.interval[1] / answer["communication"].latency_s.interval[0] > 1.5
    assert answer["communication"].share.estimate == pytest.approx(140 / 221)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.sampled_from([1e-6, 1e3, 1e6]))
def test_rows_launches_and_units_do_not_matter(make_table, seed, unit):
    table = make_table(truth, seed=seed)
    rng = np.random.default_rng(seed)
    rows, launches = rng.permutation(len(table.cells)), rng.permutation(6)
    other = replace(
        table, cells=tuple(table.cells[i] for i in rows), latency_s=unit * table.latency_s[np.ix_(rows, launches)]
    )
    ours, theirs = (parts(t, "jit", 8, 1000)["communication"] for t in (table, other))
    assert theirs.share.interval == pytest.approx(ours.share.interval, rel=1e-9)
    assert theirs.latency_s.estimate == pytest.approx(unit * ours.latency_s.estimate, rel=1e-9)


def test_share_intervals_cover(make_table):
    total = sum(truth(8, 1000))
    hits = np.zeros(3)
    for seed in range(400):
        answer = parts(make_table(truth, seed=seed, cell_sd=0.05), "jit", 8, 1000)
        for i, (cause, seconds) in enumerate(
            zip(("dispatch", "communication", "compute"), truth(8, 1000), strict=True)
        ):
            low, high = answer[cause].share.interval
            hits[i] += low <= seconds / total <= high
    assert (hits >= 0.92 * 400).all(), hits


def test_fewer_than_three_launches_give_numbers_without_intervals(make_table):
    answer = parts(make_table(truth, launches=2), "jit", 8, 1000)
    assert answer["communication"].share.estimate == pytest.approx(140 / 221, rel=0.2)
    assert answer["communication"].share.interval is None
    assert answer["communication"].share.reason == "fewer than three launches"


def test_without_null_only_communication_is_known(make_table):
    table = make_table(truth, roles=("workload", "local"))
    answer = parts(table, "jit", 8, 1000)
    assert answer["communication"].share.estimate > 0.5
    assert answer["dispatch"].latency_s.estimate is None
    assert answer["dispatch"].latency_s.reason == "no null control was measured"
    assert answer["compute"].latency_s.reason == "no null control was measured"
    assert causes(table, "jit", 8, 1000) is None


def test_a_refused_control_gives_its_reason(make_table):
    table = make_table(truth, roles=("workload", "null"), refused="x @ x.T gathers its operand")
    fits = SimpleNamespace(laws=(), reports=(), kept=())
    split = attribute(table, "jit", 8, 1000, fits=fits)
    assert split.determined is None
    assert split.undecided == "no local control: x @ x.T gathers its operand, and no physical law fits"
    np.testing.assert_array_equal(split.seconds["dispatch"], table.time("null", "jit", 8, 8000))


def test_replay_stands_in_for_the_local_control(make_table):
    extra = {cell("replay", 8): 10e-6 * 8 + 20e-6 * 7}
    table = make_table(truth, roles=("workload", "null"), extra=extra, cell_sd=0, launch_sd=0)
    answer = parts(table, "jit", 8, 1000)
    assert answer["communication"].source == "replay (replay less null)"
    assert answer["communication"].latency_s.estimate == pytest.approx(140e-6)
    assert answer["compute"].latency_s.estimate == pytest.approx(1e-6)


def test_chain_stands_in_for_both(make_table, make_all_reduce):
    extra = {cell("chain", 8, k=k, payload_bytes=4): 90e-6 + 140e-6 * k for k in (1, 4, 16)}
    facts = {cell("workload", 8): ProgramFacts(collectives=(make_all_reduce(4),))}
    table = make_table(truth, roles=("workload", "null"), extra=extra, facts=facts, cell_sd=0, launch_sd=0)
    answer = parts(table, "jit", 8, 1000)
    assert answer["communication"].source == "chain"
    assert answer["communication"].latency_s.estimate == pytest.approx(140e-6)


def law(name, communication):
    return SimpleNamespace(
        name=name,
        causes=lambda n, size: {"dispatch": np.full(6, 80e-6), "communication": np.full(6, communication)},
    )


def report(name, *, adequate, misfit):
    return SimpleNamespace(name=name, adequate=adequate, misfit=misfit)


def test_only_an_adequate_law_stands_in_and_its_misfit_is_named(make_table):
    table = make_table(truth, roles=("workload",))
    laws = (law("ring", 1.0), law("log", 140e-6), law("linear", 2.0))
    reports = (
        report("ring", adequate=False, misfit=0.01),
        report("log", adequate=True, misfit=0.04),
        report("linear", adequate=True, misfit=0.09),
    )
    answer = parts(table, "jit", 8, 1000, fits=SimpleNamespace(laws=laws, reports=reports))
    assert answer["communication"].source == "law 'log' (misfit 4 %)"
    assert answer["communication"].latency_s.estimate == pytest.approx(140e-6)
    assert sum(p.share.estimate for p in answer.values()) == pytest.approx(1)
    none = parts(table, "jit", 8, 1000, fits=SimpleNamespace(laws=laws, reports=reports[:1], kept=()))
    assert none["communication"].latency_s.estimate is None
    assert "no physical law fits" in none["communication"].latency_s.reason
    # Kept without being adequate: the law describes its cells, and nothing was left out to judge it by.
    unjudged = SimpleNamespace(laws=laws, reports=reports[:1], kept=laws[:1])
    reason = parts(table, "jit", 8, 1000, fits=unjudged)["communication"].latency_s.reason
    assert reason == "no local control was measured, and no physical law could be judged"


def test_a_program_that_cannot_communicate_is_still_measured_and_named(make_table):
    facts = {cell("workload", 8): ProgramFacts()}
    table = make_table(truth, facts=facts)
    answer = parts(table, "jit", 8, 1000)
    assert answer["communication"].source == "workload − local (an A/A check: the compiled program has no collective)"
    assert answer["communication"].share.estimate == pytest.approx(140 / 221, rel=0.1)


def test_without_a_control_such_a_program_has_no_communication(make_table):
    facts = {cell("workload", 8): ProgramFacts()}
    answer = parts(make_table(truth, roles=("workload", "null"), facts=facts), "jit", 8, 1000)
    assert answer["communication"].share.estimate == 0
    assert answer["communication"].source == "the compiled program cannot communicate"


def test_one_device_is_measured_like_the_others(make_table):
    facts = {cell("workload", 1): ProgramFacts()}
    answer = parts(make_table(truth, facts=facts), "jit", 1, 1000)
    low, high = answer["communication"].share.interval
    assert low < 0 < high
    assert "A/A check" in answer["communication"].source


def test_controls_belong_to_the_primary_strategy(make_table):
    other = Cell(role="workload", strategy="pmap", num_devices=8, size=8000)
    table = make_table(truth, extra={other: 300e-6}, strategies=("jit", "pmap"))
    answer = parts(table, "pmap", 8, 1000)
    assert "the local control was measured for jit only" in answer["communication"].share.reason


def test_an_unplaced_strategy_adds_input_transfer(make_table):
    other = Cell(role="workload", strategy="jit-unplaced", num_devices=8, size=8000)
    table = make_table(truth, extra={other: 221e-6 + 90e-6}, strategies=("jit", "jit-unplaced"), cell_sd=0)
    answer = parts(table, "jit-unplaced", 8, 1000)
    assert answer["input-transfer"].share.estimate == pytest.approx(90 / 311)
    assert answer["communication"].share.estimate == pytest.approx(140 / 311)
    assert placed_twin(table, "jit-unplaced") == "jit"
    assert placed_twin(table, "jit") is None
    lonely = parts(without(table, cell("workload", 8)), "jit-unplaced", 8, 1000)
    assert lonely["input-transfer"].share.reason == "jit was not measured there"


def test_any_cell_may_be_missing(make_table):
    table = make_table(truth, extra={cell("replay", 8): 200e-6})
    for gone in table.cells:
        for n in (1, 2, 4, 8):
            answer = parts(without(table, gone), "jit", n, 1000)
            assert set(answer) in ({"dispatch", "communication", "compute"}, set())
            assert all(p.share.estimate is not None or p.share.reason for p in answer.values())
    assert parts(without(table, cell("workload", 8)), "jit", 8, 1000) == {}


def test_headline_is_the_largest_measured_size_unless_another_is_asked_for(make_table):
    table = make_table(truth, sizes=(100, 1000))
    assert headline_size(table, "jit") == 1000
    assert headline_size(table, "jit", 100) == 100
    assert headline_size(table, "jit", 7) is None
    assert headline_size(table, "pmap") is None
    assert counts_at(table, "jit", 1000, largest=5) == (1, 2, 4)
