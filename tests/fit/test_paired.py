"""Differences paired by round: the numbers, the unit of replication, and what is said when tests disagree."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.fit.objective import Costs
from breakeven.fit.paired import paired_tests
from scipy import stats

BY_NAME = ("communication", "compute", "speedup")


def causes(n, size):
    return 10e-6, 30e-6 * (n > 1), 400e-6 / n


def in_rounds(table, *, rounds=10, round_sd=0.02, seed=0):
    """Rounds around the launch means of a table."""
    rng = np.random.default_rng(seed)
    blocks = [
        column[:, None] * np.exp(rng.normal(0, round_sd, rounds) + rng.normal(0, round_sd, (len(column), rounds)))
        for column in table.latency_s.T
    ]
    means = np.column_stack([np.nanmean(block, axis=1) for block in blocks])
    return replace(table, rounds_s=tuple(blocks), latency_s=means)


def found_in(table, *, size=1000, confidence=0.95, **options):
    costs = Costs.of(table, "jit", None, **options)
    return {one.name: one for one in paired_tests(table, costs, size, confidence=confidence)}


def row(table, role, num_devices):
    return next(i for i, cell in enumerate(table.cells) if (cell.role, cell.num_devices) == (role, num_devices))


def test_each_difference_by_three_tests(make_table):
    table = in_rounds(make_table(causes, path="strong"))
    found = found_in(table)
    assert tuple(found) == BY_NAME
    differences = np.array([b[row(table, "workload", 8)] - b[row(table, "local", 8)] for b in table.rounds_s])
    one = found["communication"]
    assert (one.unit, one.rounds, one.launches) == ("s", 60, 6)
    assert one.positive == (differences > 0).sum()
    expected = stats.t.interval(0.95, 5, differences.mean(), stats.sem(differences.mean(axis=1)))
    assert one.t.interval == pytest.approx(expected)
    medians = np.median(differences, axis=1)
    pairs = [(a + b) / 2 for i, a in enumerate(medians) for b in medians[i:]]
    assert one.hodges_lehmann.estimate == pytest.approx(np.median(pairs))
    # Of six launches the interval spans all pairs: 97 %.
    assert one.hodges_lehmann.interval == pytest.approx((min(pairs), max(pairs)))
    assert one.sign_p == pytest.approx(stats.binomtest(int((medians > 0).sum()), 6).pvalue)
    assert one.agree


def test_the_speedup_is_a_ratio_of_costs(make_table):
    strong = found_in(in_rounds(make_table(causes, path="strong")))["speedup"]
    assert strong.unit == "ratio"
    assert strong.t.estimate == pytest.approx(410 / 90, rel=0.05)
    assert strong.hodges_lehmann.estimate == pytest.approx(410 / 90, rel=0.05)
    assert strong.positive == strong.rounds
    # Per unit of work on the weak path: eight times the work in the same time.
    weak = found_in(in_rounds(make_table(lambda n, size: (10e-6, 0.0, 90e-6))))["speedup"]
    assert weak.t.estimate == pytest.approx(8, rel=0.05)


def test_a_reference_and_a_largest_count_are_followed(make_table):
    table = in_rounds(make_table(causes, path="strong"))
    found = found_in(table, reference=2, max_devices=4)["speedup"]
    assert found.t.estimate == pytest.approx((10 + 30 + 200) / (10 + 30 + 100), rel=0.05)
    assert tuple(found_in(table, max_devices=1)) == ("communication", "compute")


def test_launch_effects_do_not_pass_for_differences(make_table):
    """Control and workload are equal in truth; rounds would say otherwise in 40 % of cases."""
    said = {"t": 0, "hodges_lehmann": 0, "sign": 0}
    by_round = 0
    for seed in range(300):
        table = make_table(lambda n, size: (10e-6, 0.0, 90e-6), devices=(2,), seed=seed, cell_sd=0.03)
        table = in_rounds(table, seed=seed)
        one = found_in(table)["communication"]
        for name in ("t", "hodges_lehmann"):
            low, high = getattr(one, name).interval
            said[name] += not low <= 0 <= high
        said["sign"] += one.sign_p < 0.05
        by_round += stats.binomtest(one.positive, one.rounds).pvalue < 0.05
    # 5 % and three standard errors: 26 of 300.
    assert max(said.values()) <= 26
    assert by_round > 60


def test_tests_that_disagree_are_said_to(make_table):
    # Eight of nine launches lie above 0, which at 99 % is enough for t and ranks but not for signs.
    table = make_table(causes, path="strong", launches=9, cell_sd=0.0)
    table = in_rounds(table, round_sd=0.0, rounds=3)
    shifts = np.array([3.0, 4.0, 5.0, 6.0, 5.0, 4.0, 3.5, -1.0, 4.2]) * 1e-6
    blocks = []
    for block, shift in zip(table.rounds_s, shifts, strict=True):
        changed = block.copy()
        changed[row(table, "workload", 8)] = changed[row(table, "local", 8)] + shift
        blocks.append(changed)
    one = found_in(replace(table, rounds_s=tuple(blocks)), confidence=0.99)["communication"]
    assert one.agree is False
    assert one.reason == (
        "the tests disagree: the t test says above 0, the sign test says no difference from 0, "
        "Hodges-Lehmann says above 0"
    )


@pytest.mark.parametrize("launches", [1, 2, 5])
def test_few_launches_are_not_judged(make_table, launches):
    one = found_in(in_rounds(make_table(causes, path="strong", launches=launches)))["communication"]
    assert one.agree is None
    assert one.hodges_lehmann.estimate is not None
    assert one.hodges_lehmann.interval is None
    expected = "fewer than three launches" if launches < 3 else "signs and ranks need 6 launches for 95 %"
    assert one.reason == expected


def test_rounds_without_a_visit_are_left_out(make_table):
    table = in_rounds(make_table(causes, path="strong"))
    blocks = [block.copy() for block in table.rounds_s]
    blocks[0][row(table, "local", 8), :4] = np.nan
    found = found_in(replace(table, rounds_s=tuple(blocks)))
    assert (found["communication"].rounds, found["speedup"].rounds) == (56, 60)
    blocks[0][row(table, "local", 8)] = np.nan
    found = found_in(replace(table, rounds_s=tuple(blocks)))
    assert (found["communication"].rounds, found["communication"].launches) == (50, 5)


def test_without_controls_or_rounds_there_is_less_to_test(make_table):
    bare = in_rounds(make_table(causes, path="strong", roles=("workload",)))
    assert tuple(found_in(bare)) == ("speedup",)
    assert found_in(replace(bare, rounds_s=())) == {}
