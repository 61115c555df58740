"""The four meanings of "communication bound", against truths with known answers."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.fit.communication import communication_bound
from breakeven.fit.extremes import Between, Largest, Mean, Smallest, interval
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts
from hypothesis import given, settings
from hypothesis import strategies as st

MEANINGS = ("share", "exceeds_compute", "growth", "no_gain_even_with_free_dispatch")


def communicating(n, size):
    """Compute shrinks, communication grows faster: no count helps, without communication all would."""
    return 5e-6 + 1e-6 * n, 150e-6 * (n - 1), 100e-6 / n


def computing(n, size):
    return 5e-6, 2e-6 * (n - 1), 1e-3 / n


def stuck(n, size):
    """Compute that one device already spreads over all cores: no count helps, whatever is free."""
    return 5e-6 + 1e-6 * n, 20e-6 * (n - 1), 400e-6


def holds(answer):
    return tuple(getattr(answer, name).holds for name in MEANINGS)


def strong(make_table, truth, **options):
    return make_table(truth, path="strong", **options)


def test_a_program_that_communicates_most_of_the_time(make_table):
    answer = communication_bound(strong(make_table, communicating), "jit")
    assert holds(answer) == ("yes", "yes", "yes", "yes")
    assert (answer.num_devices, answer.size, answer.adjusted, answer.rejected_outright) == (8, 1000, True, None)
    # By hand at 8 devices: c = 1050, k = 12.5, d = 13, T(1) = 106, k(1) = 100 microseconds.
    total = 1050 + 12.5 + 13
    assert answer.share.estimate == pytest.approx(1050 / total, rel=0.05)
    assert answer.exceeds_compute.estimate == pytest.approx((1050 - 12.5) / total, rel=0.05)
    assert answer.growth.estimate == pytest.approx((1050 - 87.5) / 106, rel=0.1)
    # Best without dispatch's growth: 2 devices, 150 + 50 + 6; without communication too: 8 devices, 12.5 + 6.
    expected = min(np.log(206 / 106), -np.log(18.5 / 106))
    assert answer.no_gain_even_with_free_dispatch.estimate == pytest.approx(expected, abs=0.1)


def test_a_program_that_computes(make_table):
    answer = communication_bound(strong(make_table, computing), "jit")
    assert holds(answer) == ("no", "no", "no", "no")
    assert answer.share.interval[1] < 0.5
    assert answer.share.p_below < 0.001
    assert answer.share.p_above > 0.999


def test_compute_that_does_not_scale_is_not_held_back_by_communication(make_table):
    """Without communication no count would help either: equal, so the fourth meaning must not say yes."""
    said = [
        communication_bound(strong(make_table, stuck, seed=s), "jit").no_gain_even_with_free_dispatch.holds
        for s in range(200)
    ]
    # At most 5 % in truth: 10 of 200 in the mean, binomial sd 3.1.
    assert said.count("yes") <= 20


@pytest.mark.parametrize("name", ["share", "exceeds_compute", "growth"])
def test_false_alarms_at_the_border_are_rare(make_table, name):
    borders = {
        "share": lambda n, size: (10e-6, 50e-6 if n > 1 else 0.0, 40e-6),
        "exceeds_compute": lambda n, size: (10e-6, 50e-6 if n > 1 else 0.0, 50e-6),
        # Communication grows by 100, compute gains 100.
        "growth": lambda n, size: (10e-6, 100e-6 if n > 1 else 0.0, 50e-6 if n > 1 else 150e-6),
    }
    said = []
    for seed in range(400):
        table = strong(make_table, borders[name], devices=(1, 8), seed=seed, cell_sd=0.03)
        said.append(getattr(communication_bound(table, "jit"), name).holds)
    # Holm over four meanings, so each lies well below its 5 %.
    assert said.count("yes") <= 20
    assert said.count("no") <= 20


def test_share_intervals_cover(make_table):
    truth = 1050 / 1075.5
    hits = 0
    for seed in range(400):
        low, high = communication_bound(strong(make_table, communicating, seed=seed), "jit").share.interval
        hits += low <= truth <= high
    assert hits >= 0.92 * 400


def test_the_fourth_meaning_needs_the_strong_path(make_table):
    answer = communication_bound(make_table(communicating), "jit")
    assert answer.no_gain_even_with_free_dispatch.holds == "undefined"
    assert "strong path" in answer.no_gain_even_with_free_dispatch.reason
    assert answer.no_gain_even_with_free_dispatch.estimate is None


def test_other_sizes_are_unadjusted(make_table):
    def grows(n, size):
        return 5e-6, 20e-6 * (n - 1), size * 1e-7 / n

    answer = communication_bound(strong(make_table, grows, sizes=(100, 10_000, 1_000_000)), "jit")
    assert answer.size == 1_000_000
    assert answer.share.holds == "no"
    assert set(answer.by_size) == {100, 10_000}
    assert answer.by_size[100].share.holds == "yes"
    assert not answer.by_size[100].adjusted
    assert communication_bound(strong(make_table, grows, sizes=(100, 10_000)), "jit", size=100).share.holds == "yes"


def test_holm_counts_the_defined_meanings_only_at_the_headline(make_table):
    """A p-value between 1.25 and 5 %: decided alone, undecided among four."""

    def border(n, size):
        return 10e-6, 56e-6 if n > 1 else 0.0, 34e-6

    found = None
    for seed in range(100):
        table = strong(make_table, border, devices=(1, 8), sizes=(10, 1000), seed=seed, cell_sd=0.1)
        answer = communication_bound(table, "jit", size=10)
        others = [getattr(answer, name).p_above for name in MEANINGS[1:]]
        if 0.025 < answer.share.p_above < 0.05 and sum(p is not None and p > 0.05 for p in others) >= 1:
            found = answer
            break
    assert found is not None
    assert found.share.holds == "undecided"
    # The same numbers as one of the other sizes: unadjusted, so decided.
    assert communication_bound(table, "jit", size=1000).by_size[10].share.holds == "yes"


def test_a_program_that_cannot_communicate_is_rejected_outright(make_table):
    facts = {Cell(role="workload", strategy="jit", num_devices=8, size=8000): ProgramFacts()}
    answer = communication_bound(make_table(lambda n, size: (20e-6 * n, 0.0, 5e-6), facts=facts), "jit")
    assert holds(answer) == ("no", "no", "no", "no")
    assert "no collective" in answer.rejected_outright
    assert answer.share.estimate is not None
    assert answer.share.interval is not None
    assert "equivalent to none within 5 %" in answer.share.reason


@pytest.mark.parametrize(
    "facts", [ProgramFacts(inputs_in_place=False), ProgramFacts(callbacks=1), ProgramFacts(custom_calls=("x",))]
)
def test_what_may_communicate_is_not_rejected_outright(make_table, facts):
    cell = Cell(role="workload", strategy="jit", num_devices=8, size=1000)
    assert communication_bound(strong(make_table, stuck, facts={cell: facts}), "jit").rejected_outright is None


def inline(workload, null):
    return {
        Cell(role=role, strategy="jit", num_devices=1, size=1000): ProgramFacts(inline=value)
        for role, value in {"workload": workload, "null": null}.items()
    }


def test_growth_starts_above_one_device_where_regimes_differ(make_table):
    table = strong(make_table, communicating, facts=inline(workload=False, null=True))
    answer = communication_bound(table, "jit")
    assert "from 2 to 8 devices" in answer.growth.reason
    assert answer.growth.holds == "yes"
    two = communication_bound(strong(make_table, stuck, devices=(1, 2), facts=inline(False, True)), "jit")
    assert two.growth.holds == "undecided"
    assert two.growth.estimate is None
    assert "runs inline" in two.growth.reason


def test_bounded_dispatch_on_one_device_decides_only_what_it_cannot_change(make_table):
    facts = inline(workload=False, null=True)
    clear = communication_bound(strong(make_table, communicating, facts=facts), "jit")
    assert clear.no_gain_even_with_free_dispatch.holds == "yes"
    assert "only bounded" in clear.no_gain_even_with_free_dispatch.reason

    def small(n, size):
        """The step to two devices costs 30, and whether it was dispatch decides what is left."""
        return (5e-6 if n == 1 else 35e-6), 20e-6 if n > 1 else 0.0, 100e-6 if n == 1 else 90e-6

    known = communication_bound(strong(make_table, small, cell_sd=0.005), "jit")
    bounded = communication_bound(strong(make_table, small, cell_sd=0.005, facts=facts), "jit")
    assert known.no_gain_even_with_free_dispatch.holds == "yes"
    assert bounded.no_gain_even_with_free_dispatch.interval[1] > known.no_gain_even_with_free_dispatch.interval[1]


@pytest.mark.parametrize("roles", [("workload",), ("workload", "null"), ("workload", "local")])
def test_missing_controls_leave_meanings_undefined_with_a_reason(make_table, roles):
    answer = communication_bound(strong(make_table, communicating, roles=roles), "jit")
    assert answer.exceeds_compute.holds == "undefined"
    assert "no " in answer.exceeds_compute.reason
    assert answer.share.holds == ("yes" if "local" in roles else "undefined")


def test_two_launches_give_estimates_and_decide_nothing(make_table):
    answer = communication_bound(strong(make_table, communicating, launches=2), "jit")
    assert holds(answer) == ("undecided",) * 4
    assert answer.share.estimate > 0.9
    assert answer.share.interval is None
    assert answer.share.p_above is None
    assert "fewer than three launches" in answer.share.reason


def test_one_count_has_no_growth(make_table):
    answer = communication_bound(strong(make_table, communicating, devices=(4,)), "jit")
    assert answer.share.holds == "yes"
    assert answer.growth.holds == answer.no_gain_even_with_free_dispatch.holds == "undefined"
    assert "two counts" in answer.growth.reason


def test_any_cell_may_be_missing(make_table):
    table = strong(make_table, communicating, sizes=(100, 1000))
    for row in range(len(table.cells)):
        keep = [i for i in range(len(table.cells)) if i != row]
        thin = replace(table, cells=tuple(table.cells[i] for i in keep), latency_s=table.latency_s[keep])
        answer = communication_bound(thin, "jit")
        assert all(getattr(answer, name).reason for name in MEANINGS)


def test_what_was_not_measured_is_an_error(make_table):
    table = make_table(communicating)
    with pytest.raises(ValueError, match="'jit' was not measured at size 7; measured sizes: 1000"):
        communication_bound(table, "jit", size=7)
    with pytest.raises(ValueError, match="'pmap' was not measured; measured sizes: none"):
        communication_bound(table, "pmap")


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([1e-6, 1e6]))
def test_order_and_units_do_not_matter(make_table, seed, unit):
    table = strong(make_table, stuck, seed=seed)
    rng = np.random.default_rng(seed)
    rows, launches = rng.permutation(len(table.cells)), rng.permutation(6)
    other = replace(
        table, cells=tuple(table.cells[i] for i in rows), latency_s=unit * table.latency_s[np.ix_(rows, launches)]
    )
    ours, theirs = communication_bound(table, "jit"), communication_bound(other, "jit")
    assert holds(ours) == holds(theirs)
    for name in MEANINGS:
        assert getattr(theirs, name).estimate == pytest.approx(getattr(ours, name).estimate, rel=1e-6, abs=1e-9)
        assert getattr(theirs, name).p_above == pytest.approx(getattr(ours, name).p_above, rel=1e-6, abs=1e-9)


def test_the_smallest_of_equal_means_is_not_reported_as_negative():
    rng = np.random.default_rng(0)
    below, covered = 0, 0
    for _ in range(1000):
        smallest = Smallest(tuple(Mean(rng.normal(0, 1, 6)) for _ in range(3)))
        below += smallest.p_below() < 0.05
        low, high = interval(smallest, 0.95)
        covered += low <= 0 <= high
    assert below <= 65
    assert covered >= 930


def test_the_largest_mirrors_the_smallest():
    rng = np.random.default_rng(1)
    values = [rng.normal(0.3, 1, 6) for _ in range(3)]
    largest = Largest(tuple(Mean(v) for v in values))
    smallest = Smallest(tuple(Mean(-v) for v in values))
    assert largest.estimate == pytest.approx(-smallest.estimate)
    assert (largest.p_above(), largest.p_below()) == pytest.approx((smallest.p_below(), smallest.p_above()))
    low, high = interval(largest, 0.9)
    assert interval(smallest, 0.9) == pytest.approx((-high, -low))


def test_a_bounded_number_is_decided_only_when_both_bounds_are():
    rng = np.random.default_rng(2)
    low, high = Mean(rng.normal(-1, 0.1, 6)), Mean(rng.normal(1, 0.1, 6))
    both = Between(low, high)
    assert both.p_above() > 0.5
    assert both.p_below() > 0.5
    assert interval(both, 0.95)[0] < -1 < 1 < interval(both, 0.95)[1]
