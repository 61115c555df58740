"""Growth between two counts, and the rule for one device."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.fit.growth import NO_GROWTH, growth, growth_step, headline_growth, one_device_regime
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts


def truth(n, size):
    return 10e-6 * n, 20e-6 * (n - 1), 50e-6


def falling(n, size):
    return 10e-6, 5e-6 * (n - 1), 1e-3 / n


def one_device(inline):
    return {
        Cell(role=role, strategy="jit", num_devices=1, size=1000): ProgramFacts(inline=value)
        for role, value in inline.items()
    }


def test_shares_of_the_growth_hold_the_truth(make_table):
    answer = headline_growth(make_table(truth, seed=1), "jit", 1000)
    assert (answer.from_devices, answer.to_devices, answer.undecided) == (1, 8, None)
    # 7 steps of 10 and of 20 microseconds.
    for cause, share in {"dispatch": 1 / 3, "communication": 2 / 3, "compute": 0.0}.items():
        low, high = answer.shares[cause].interval
        assert low < share < high
    assert answer.latency_s.interval[0] < 210e-6 < answer.latency_s.interval[1]


def test_a_share_exceeds_one_where_another_cause_falls(make_table):
    def trade(n, size):
        return 10e-6, 40e-6 * n, 100e-6 / n

    answer = growth(make_table(trade, cell_sd=0, path="strong"), "jit", 1, 8, 1000)
    assert answer.shares["communication"].estimate == pytest.approx(280 / 192.5)
    assert answer.shares["compute"].estimate == pytest.approx(-87.5 / 192.5)


def test_a_falling_time_has_shares_too(make_table):
    answer = growth(make_table(falling, path="strong", cell_sd=0.01), "jit", 1, 8, 1000)
    assert answer.latency_s.interval[1] < 0
    assert answer.shares["compute"].estimate > 1
    assert answer.shares["communication"].estimate < 0


def test_shares_of_no_growth_are_undefined(make_table):
    answer = growth(make_table(lambda n, size: (10e-6, 0.0, 50e-6), seed=5), "jit", 1, 8, 1000)
    assert answer.shares == {}
    assert answer.undecided == NO_GROWTH
    assert answer.latency_s.interval is not None


def test_noise_is_seldom_shared_out(make_table):
    flat = [
        growth(make_table(lambda n, size: (10e-6, 0.0, 50e-6), seed=s, launches=6), "jit", 1, 8, 1000).undecided
        for s in range(200)
    ]
    # The test at 5 %: 190 of 200 in the mean, binomial sd 3.1.
    assert sum(reason == NO_GROWTH for reason in flat) >= 180


def test_share_intervals_cover(make_table):
    hits = 0
    for seed in range(400):
        low, high = growth(make_table(truth, seed=seed), "jit", 1, 8, 1000).shares["communication"].interval
        hits += low <= 2 / 3 <= high
    assert hits >= 0.92 * 400


@pytest.mark.parametrize("inline", [{"workload": False, "null": True}, {"workload": True, "local": False}])
def test_programs_in_different_regimes_on_one_device(make_table, inline):
    table = make_table(truth, facts=one_device(inline))
    step, headline = growth_step(table, "jit", 1000), headline_growth(table, "jit", 1000)
    assert "runs inline and the other programs do not" in step.undecided
    assert step.shares == {}
    assert step.latency_s.estimate > 0
    assert (headline.from_devices, headline.undecided) == (2, None)


def test_programs_in_the_same_regime_count_from_one_device(make_table):
    table = make_table(truth, facts=one_device({"workload": True, "local": True, "null": True}))
    assert one_device_regime(table, "jit", 1000) is None
    assert growth_step(table, "jit", 1000).undecided is None
    assert headline_growth(table, "jit", 1000).from_devices == 1


def test_launches_that_disagree_in_mode_on_one_device(make_table):
    table = make_table(truth, cell_sd=1e-6)
    times = table.latency_s.copy()
    row = table.cells.index(Cell(role="local", strategy="jit", num_devices=1, size=1000))
    times[row, [1, 4]] *= 1.8
    bimodal = replace(table, latency_s=times)
    assert "launches disagree in mode: local differs by a factor of 1.8" in one_device_regime(bimodal, "jit", 1000)
    assert headline_growth(bimodal, "jit", 1000).from_devices == 2


def test_a_launch_that_is_slower_as_a_whole_is_no_mode(make_table):
    table = make_table(truth)
    times = table.latency_s * np.array([1, 1, 3, 1, 1, 1])
    assert one_device_regime(replace(table, latency_s=times), "jit", 1000) is None


def test_modes_are_seldom_seen_in_noise(make_table):
    seen = [one_device_regime(make_table(truth, seed=s, cell_sd=0.05), "jit", 1000) for s in range(200)]
    assert sum(reason is not None for reason in seen) <= 4


def test_one_and_two_devices_in_different_regimes_leave_nothing_decided(make_table):
    table = make_table(truth, devices=(1, 2), facts=one_device({"workload": False, "null": True}))
    answer = headline_growth(table, "jit", 1000)
    assert (answer.from_devices, answer.to_devices) == (1, 2)
    assert "runs inline" in answer.undecided


def test_reference_and_largest_count(make_table):
    answer = headline_growth(make_table(truth), "jit", 1000, reference=2, largest=4)
    assert (answer.from_devices, answer.to_devices) == (2, 4)


def test_thin_data(make_table):
    one = make_table(truth, devices=(4,))
    assert headline_growth(one, "jit", 1000) is None
    assert growth_step(one, "jit", 1000) is None
    two = growth(make_table(truth, launches=2), "jit", 1, 8, 1000)
    assert two.shares["communication"].interval is None
    assert two.shares["communication"].reason == "fewer than three launches"
    bare = growth(make_table(truth, roles=("workload",)), "jit", 1, 8, 1000)
    assert bare.shares == {}
    assert "no local control was measured" in bare.undecided
    absent = growth(make_table(truth), "jit", 1, 16, 1000)
    assert absent.undecided == "jit was not measured on 16 devices at this size"
