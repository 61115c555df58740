"""Hold-outs, errors on them, and what they decide."""

import re

import numpy as np
import pytest
from breakeven.fit.adequacy import (
    MOST_SIZES,
    NOT_JUDGED,
    Errors,
    baseline_errors,
    compare_losses,
    hold_outs,
    judge,
    launch_noise,
    law_errors,
)
from breakeven.model.cell import Cell
from breakeven.model.law import Law, design
from scipy import stats

SIZES = (1000, 2000, 4000)


def sweep(counts, sizes=SIZES, roles=("workload", "null")):
    return tuple(
        Cell(role=role, strategy="jit", num_devices=n, size=s) for role in roles for s in sizes for n in counts
    )


def places(cells):
    return tuple((c.num_devices, c.size) for c in cells)


def workload(cells):
    return np.array([c.role == "workload" for c in cells])


def errors(size=None, count=None, seen=(0.0,)):
    """Errors by kind, one cell each, given as relative errors."""
    by_kind = {
        k: {i: float(np.log1p(e))} for i, (k, e) in enumerate((("size", size), ("count", count))) if e is not None
    }
    return Errors(by_kind=by_kind, seen=np.array(seen))


def test_one_size_cannot_be_left_out():
    cells = sweep((1, 2, 4), sizes=(1000,))
    assert hold_outs(cells, places(cells), workload(cells)) == ()


def test_each_size_leaves_in_turn_with_all_its_programs_but_chains():
    chain = Cell(role="chain", strategy="jit", num_devices=2, size=4000, k=1, payload_bytes=4)
    cells = (*sweep((1, 2, 4)), chain)
    laid_out = hold_outs(cells, places(cells), workload(cells))
    assert [one.kind for one in laid_out] == ["size"] * 3
    for one, size in zip(laid_out, SIZES, strict=True):
        assert [cells[i] for i in np.flatnonzero(one.held)] == [c for c in cells if c.size == size and c.k is None]
        assert [cells[i].role for i in np.flatnonzero(one.judged)] == ["workload"] * 3


@pytest.mark.parametrize(("counts", "run"), [((1, 2, 3, 4, 6), False), ((1, 2, 3, 4, 6, 8), True)])
def test_the_largest_count_is_left_out_where_five_remain(counts, run):
    cells = sweep(counts)
    found = [one for one in hold_outs(cells, places(cells), workload(cells)) if one.kind == "count"]
    assert len(found) == run
    for one in found:
        assert {cells[i].num_devices for i in np.flatnonzero(one.held)} == {8}
        assert one.judged.sum() == len(SIZES)


def law_errors_of(cells, law, time):
    """Errors of a law whose held-out fits are exact ordinary least squares."""
    mean_s = np.array([time(c) for c in cells])
    columns = design(law, cells, {}, cores=None)
    laid_out = hold_outs(cells, places(cells), workload(cells))
    without = [np.linalg.lstsq(columns.matrix[~o.held], mean_s[~o.held], rcond=None)[0] for o in laid_out]
    full = np.linalg.lstsq(columns.matrix, mean_s, rcond=None)[0]
    return law_errors(law, columns, full, np.array(without), laid_out, cells, mean_s, {}, None)


def test_a_true_law_has_no_error_anywhere():
    def time(cell):
        compute = 3e-6 + 1e-9 * cell.size / cell.num_devices if cell.role == "workload" else 0.0
        return 1e-5 + 2e-6 * cell.num_devices + compute

    found = law_errors_of(sweep((1, 2, 3, 4, 6, 8)), Law("ring", "per-device"), time)
    assert found.median("size") == pytest.approx(0, abs=1e-9)
    assert found.median("count") == pytest.approx(0, abs=1e-9)
    assert found.misfit == pytest.approx(0, abs=1e-9)


def test_a_hold_out_that_leaves_the_law_undetermined_is_not_run():
    # Without the one size left out nothing says how compute depends on the size: weak cells of one size per device.
    cells = tuple(
        Cell(role="workload", strategy="jit", num_devices=n, size=s * n) for s in (1000, 2000) for n in (2, 4)
    )
    at = tuple((c.num_devices, c.size_per_device) for c in cells)
    laid_out = hold_outs(cells, at, workload(cells))
    columns = design(Law("ring", "per-device"), cells, {}, cores=None)
    without = np.zeros((len(laid_out), len(columns.names)))
    found = law_errors(Law("ring", "per-device"), columns, without[0], without, laid_out, cells, np.ones(4), {}, None)
    assert found.by_kind == {}
    assert judge(found, Errors(), margin=0.1).reason == NOT_JUDGED


def test_free_collective_times_say_nothing_of_another_count():
    cells = tuple(Cell(role="chain", strategy="jit", num_devices=n, size=8, k=1, payload_bytes=8) for n in range(2, 9))
    everything = np.ones(len(cells), dtype=bool)
    laid_out = hold_outs(cells, places(cells), everything)
    columns = design(Law("free", "per-device"), cells, {}, cores=None)
    without = np.ones((1, len(columns.names)))
    found = law_errors(Law("free", "per-device"), columns, without[0], without, laid_out, cells, np.ones(7), {}, None)
    assert found.median("count") is None


def baseline_errors_of(cells, mean_s):
    laid_out = hold_outs(cells, places(cells), workload(cells))
    return baseline_errors(laid_out, places(cells), workload(cells), mean_s)


def test_the_baseline_follows_a_power_law_of_size_and_not_its_end():
    cells = sweep((2, 4), roles=("workload",))
    mean_s = np.array([c.size**0.5 * 1e-6 for c in cells])
    found = baseline_errors_of(cells, mean_s)
    assert found.median("size") == pytest.approx(0, abs=1e-12)
    assert found.discrepancy == pytest.approx(0, abs=1e-12)


def test_without_a_hold_out_the_baseline_is_not_judged():
    cells = sweep((2, 4), sizes=(1000,))
    assert baseline_errors_of(cells, np.ones(len(cells))).discrepancy is None


def test_the_baseline_goes_on_to_the_largest_count_at_one_size():
    cells = sweep((1, 2, 3, 4, 6, 8), sizes=(1000,), roles=("workload",))
    found = baseline_errors_of(cells, np.array([float(c.num_devices) for c in cells]))
    # From 6 to 8 devices at slope 1, damped over the 0.415 doublings between.
    x = np.log2(8 / 6)
    expected = 6 * 2 ** (0.85 * (1 - 0.85**x) / 0.15) / 8 - 1
    assert found.median("count") == pytest.approx(abs(expected))
    assert found.median("size") is None


def test_an_adequate_law_no_worse_than_the_baseline_is_kept():
    found = judge(errors(size=0.03, count=0.08), errors(size=0.05, count=0.08), margin=0.1)
    assert (found.judged, found.adequate, found.kept, found.reason) == (True, True, True, None)
    assert found.baseline_held_out == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("law", "baseline", "adequate", "message"),
    [
        ({"size": 0.03, "count": 0.12}, {}, False, r"errs by 12\.0 % on held-out cells; the margin is 10 %"),
        ({"size": 0.03, "seen": (0.2, 0.2)}, {}, False, r"misses the cells it was fitted to by 22\.1 %"),
        ({"size": 0.06}, {"size": 0.04}, True, r"errs by 6\.0 % where a size is held out, the baseline by 4\.0 %"),
        ({"size": 0.01, "count": 0.06}, {"size": 0.5, "count": 0.05}, True, "where a count is held out"),
    ],
)
def test_what_is_not_kept_says_why(law, baseline, adequate, message):
    found = judge(errors(**law), errors(**baseline), margin=0.1)
    assert (found.adequate, found.kept) == (adequate, False)
    assert re.search(message, found.reason)


def test_the_baseline_is_compared_on_the_cells_that_the_law_answered():
    law = Errors(by_kind={"size": {1: 0.05}})
    rival = Errors(by_kind={"size": {1: 0.06, 2: 0.01, 3: 0.01}})
    assert judge(law, rival, margin=0.1).kept


def test_the_discrepancy_is_a_standard_deviation_of_logarithmic_errors():
    rng = np.random.default_rng(0)
    drawn = 0.07 * rng.standard_normal(4001)
    found = Errors(by_kind={"size": dict(enumerate(drawn))}).discrepancy
    # The median absolute deviation of 4001 normals has a relative error of 1.8 %.
    assert found == pytest.approx(0.07, rel=0.08)


def test_a_law_errs_elsewhere_at_least_by_what_it_errs_on_cells_it_saw():
    assert Errors(by_kind={"size": {0: 0.01}}, seen=np.full(5, -0.05)).discrepancy == pytest.approx(1.483 * 0.05)
    assert Errors(seen=np.full(5, 0.05)).discrepancy is None


def test_losses_are_compared_by_a_paired_t_on_the_cells_that_both_predict():
    rng = np.random.default_rng(0)
    best = {i: np.abs(rng.normal(0.02, 0.005, 6)) for i in range(4)}
    worse = {i: best[i] + np.abs(rng.normal(0.03, 0.005, 6)) for i in range(3)}
    same = {i: best[i] + 1e-3 * np.array([1, -1, 1, -1, 1, -1]) for i in range(4)}
    found = compare_losses({"a": best, "b": worse, "c": same, "none": {}}, confidence=0.95)
    assert set(found) == {"b"}
    # Holm over the two that are not the best doubles the smaller p.
    a, b, c = (np.mean([one[i] for i in range(3)], axis=0) for one in (best, worse, same))
    least = min((a, c), key=np.mean)
    p = 2 * stats.ttest_rel(b, least, alternative="greater").pvalue
    assert p < 0.05
    said = "below 0.001" if p < 0.001 else f"{p:.3f}"
    assert found["b"].endswith(f"p = {said})")


def test_one_law_alone_or_no_common_cell_is_worse_than_none():
    losses = {0: np.ones(6)}
    assert compare_losses({"a": losses}, confidence=0.95) == {}
    assert compare_losses({"a": losses, "b": {1: np.ones(6)}}, confidence=0.95) == {}


def test_equal_losses_are_not_worse():
    losses = {0: np.linspace(0.01, 0.02, 6)}
    assert compare_losses({"a": losses, "b": dict(losses)}, confidence=0.95) == {}


def test_what_the_launches_scatter_is_no_discrepancy():
    by_kind = {"size": {0: 0.03, 1: -0.03}}
    assert Errors(by_kind=by_kind, noise=0.02).discrepancy == pytest.approx((0.04449**2 - 0.02**2) ** 0.5)
    assert Errors(by_kind=by_kind, noise=0.1).discrepancy == 0


def test_the_noise_is_the_standard_error_of_a_cells_error():
    rng = np.random.default_rng(0)
    measured = np.exp(rng.normal(0, 0.05, (4000, 6)) + rng.normal(0, 1, (4000, 1)))
    # The median of a chi-squared with five degrees of freedom is 4.351.
    expected = 0.05 * np.sqrt(stats.chi2.median(5) / 5 / 6)
    assert launch_noise(np.ones_like(measured), measured) == pytest.approx(expected, rel=0.02)
    assert launch_noise(np.ones((4, 1)), np.ones((4, 1))) == 0


def test_of_many_sizes_some_are_left_out_in_turn_and_the_ends_among_them():
    cells = [Cell(role="workload", strategy="jit", num_devices=n, size=s) for n in (1, 2) for s in range(1, 101)]
    places = [(cell.num_devices, cell.size) for cell in cells]
    found = hold_outs(cells, places, np.ones(len(cells), bool))
    left_out = {places[i][1] for one in found for i in np.flatnonzero(one.judged).tolist()}
    assert len(found) == len(left_out) == MOST_SIZES
    assert {1, 100} <= left_out
