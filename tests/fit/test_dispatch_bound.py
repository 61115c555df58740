"""Two meanings of "dispatch bound", against truths with known answers."""

import numpy as np
import pytest
from breakeven.fit.dispatch_bound import dispatch_bound
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts


def fed_one_by_one(n, size):
    """Dispatch grows faster than compute shrinks; without its growth every count would help."""
    return 5e-6 + 100e-6 * n, 1e-6 * (n > 1), 100e-6 / n


def computing(n, size):
    return 5e-6, 2e-6 * (n - 1), 1e-3 / n


def waiting(n, size):
    """Communication alone makes more devices worse."""
    return 5e-6, 150e-6 * (n - 1), 100e-6 / n


def judge(make_table, truth, **options):
    return dispatch_bound(make_table(truth, path="strong", **options), "jit", 1000)


def holds(answer):
    return answer.share.holds, answer.prevents_gain.holds


def test_a_program_that_dispatches_most_of_the_time(make_table):
    answer = judge(make_table, fed_one_by_one)
    assert holds(answer) == ("yes", "yes")
    assert (answer.num_devices, answer.size) == (8, 1000)
    # By hand: on 8 devices 805 of 818.5 microseconds; T(1) = 205, T(2) = 256, and 118.5 on 8 with dispatch as on 1.
    assert answer.share.estimate == pytest.approx(805 / 818.5, rel=0.02)
    expected = min(np.log(256 / 205), -np.log(118.5 / 205))
    assert answer.prevents_gain.estimate == pytest.approx(expected, abs=0.05)
    assert "as measured the best count takes" in answer.prevents_gain.reason
    assert "with dispatch free" in answer.prevents_gain.reason


@pytest.mark.parametrize("truth", [computing, waiting])
def test_programs_that_something_else_holds_back(make_table, truth):
    assert holds(judge(make_table, truth)) == ("no", "no")


def test_dispatch_without_growth_prevents_nothing(make_table):
    """It is most of the time, but freeing its growth frees nothing, and no count helps either way."""
    answer = judge(make_table, lambda n, size: (900e-6, 20e-6 * (n > 1), 100e-6 / n + 10e-6 * (n > 1)))
    assert answer.share.holds == "yes"
    assert answer.prevents_gain.holds != "yes"


def test_false_alarms_at_the_borders_are_rare(make_table):
    borders = {
        "share": lambda n, size: (50e-6, 10e-6 * (n > 1), 50e-6 - 10e-6 * (n > 1)),
        # No count helps, and without the growth of dispatch all are equal.
        "prevents_gain": lambda n, size: (100e-6 * n, 0.0, 50e-6),
    }
    for name, truth in borders.items():
        said = [getattr(judge(make_table, truth, seed=s, cell_sd=0.03), name).holds for s in range(250)]
        # 5 % of 250 at most, and three standard errors.
        assert said.count("yes") <= 23


def test_the_second_meaning_needs_the_strong_path(make_table):
    answer = dispatch_bound(make_table(fed_one_by_one), "jit", 1000)
    assert answer.prevents_gain.holds == "undefined"
    assert "strong path" in answer.prevents_gain.reason
    assert answer.share.holds == "yes"


def test_the_reference_and_largest_count_are_followed(make_table):
    table = make_table(fed_one_by_one, path="strong")
    answer = dispatch_bound(table, "jit", 1000, reference=2, largest=4)
    assert answer.num_devices == 4
    assert "the time of 2 devices" in answer.prevents_gain.reason
    assert dispatch_bound(table, "jit", 7) is None


def test_a_null_that_runs_inline_only_bounds_dispatch(make_table):
    facts = {
        Cell(role=role, strategy="jit", num_devices=1, size=1000): ProgramFacts(inline=inline)
        for role, inline in {"workload": False, "null": True}.items()
    }
    bounded = judge(make_table, fed_one_by_one, facts=facts, cell_sd=0.005)
    known = judge(make_table, fed_one_by_one, cell_sd=0.005)
    assert "only bounded" in bounded.prevents_gain.reason
    assert bounded.prevents_gain.interval[0] < known.prevents_gain.interval[0]


def test_without_controls_there_is_a_reason(make_table):
    answer = judge(make_table, fed_one_by_one, roles=("workload",))
    assert holds(answer) == ("undefined", "undefined")
    assert "no null control" in answer.share.reason
    one = judge(make_table, fed_one_by_one, devices=(4,))
    assert (one.share.holds, one.prevents_gain.holds) == ("yes", "undefined")
    two = judge(make_table, fed_one_by_one, launches=2)
    assert holds(two) == ("undecided", "undecided")
