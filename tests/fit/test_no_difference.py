"""Equivalence of costs: statsmodels' two one-sided tests, error rates at the margin, Holm over the counts."""

import numpy as np
import pytest
from breakeven.fit.no_difference import no_difference
from breakeven.fit.objective import Costs
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired


def compare(table, *, size=1000, margin=0.05, **options):
    return no_difference(Costs.of(table, "jit", None, **options), size, margin=margin)


def flat(n, size):
    return 10e-6, 0.0, 90e-6


def test_p_values_are_those_of_statsmodels_after_holm(make_table):
    table = make_table(flat, path="strong", cell_sd=0.03)
    logs = [np.log(table.time("workload", "jit", n, 1000)) for n in (1, 2, 4, 8)]
    width = np.log(1.05)
    alone = [ttost_paired(logs[k], logs[0], -width, width)[0] for k in (1, 2, 3)]
    adjusted = multipletests(alone, method="holm")[1]
    found = compare(table)
    assert [one.num_devices for one in found] == [2, 4, 8]
    assert [one.p for one in found] == pytest.approx(adjusted)
    assert [one.ratio.estimate for one in found] == pytest.approx([np.exp((x - logs[0]).mean()) for x in logs[1:]])
    assert {one.margin for one in found} == {0.05}


def test_yes_no_and_undecided(make_table):
    def truth(n, size):
        return 10e-6, {1: 0.0, 2: 0.0, 4: 50e-6, 8: 5e-6}[n], 90e-6

    found = compare(make_table(truth, path="strong", cell_sd=0.003))
    assert [one.equivalent for one in found] == ["yes", "no", "undecided"]
    # A wider margin holds more, and noise hides everything.
    assert [one.equivalent for one in compare(make_table(truth, path="strong", cell_sd=0.003), margin=0.2)][2] == "yes"
    noisy = compare(make_table(flat, path="strong", cell_sd=0.3))
    assert {one.equivalent for one in noisy} == {"undecided"}


def test_the_margin_is_the_same_up_and_down(make_table):
    """Ratios of 1.05 and 1 / 1.05 lie on it: swapping the two counts must not change a p-value."""
    table = make_table(lambda n, size: (0.0, 0.0, 100e-6 * (1.03 if n > 1 else 1)), path="strong", devices=(1, 2))
    swapped = make_table(lambda n, size: (0.0, 0.0, 100e-6), path="strong", devices=(1, 2))
    object.__setattr__(swapped, "latency_s", table.latency_s[[1, 0, 3, 2, 5, 4]])
    assert [c.num_devices for c in table.cells] == [1, 2, 1, 2, 1, 2]
    assert compare(swapped)[0].p == pytest.approx(compare(table)[0].p)


def test_at_the_margin_both_answers_err_rarely(make_table):
    said = []
    for seed in range(600):
        table = make_table(
            lambda n, size: (0.0, 0.0, 100e-6 * (1.05 if n > 1 else 1)),
            path="strong",
            devices=(1, 2),
            seed=seed,
            cell_sd=0.01,
        )
        said.append(compare(table)[0].equivalent)
    # 5 % of 600 is 30, three standard errors 16; and not far below, or power is given away.
    for answer in ("yes", "no"):
        assert 14 <= said.count(answer) <= 46


def test_the_objective_decides_what_is_compared(make_table):
    # Eight times the work in the same time: the same time per call, not per unit.
    table = make_table(flat, cell_sd=0.003)
    assert {one.equivalent for one in compare(table)} == {"no"}
    assert {one.equivalent for one in compare(table, objective="time")} == {"yes"}


def test_a_reference_and_a_largest_count_are_followed(make_table):
    found = compare(make_table(flat, path="strong"), reference=2, max_devices=4)
    assert [one.num_devices for one in found] == [4]


def test_two_launches_decide_nothing(make_table):
    (one,) = compare(make_table(flat, path="strong", launches=2, devices=(1, 2)))
    assert (one.p, one.equivalent, one.reason) == (None, "undecided", "fewer than three launches")
    assert one.ratio.estimate == pytest.approx(1, abs=0.1)


def test_one_count_or_another_size_has_nothing_to_compare(make_table):
    assert compare(make_table(flat, path="strong", devices=(4,))) == ()
    assert compare(make_table(flat, path="strong"), size=7) == ()


def test_a_margin_must_be_positive(make_table):
    with pytest.raises(ValueError, match="margin must be positive, got"):
        compare(make_table(flat, path="strong"), margin=0)
