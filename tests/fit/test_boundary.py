"""p-values of "this parameter is 0": against a slow bootstrap with scipy's own fits, the t test, and at the bound."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.fit.boundary import with_p_zero, zero_pvalues
from breakeven.fit.launches import LaunchTable
from breakeven.fit.lawfit import fit_laws
from breakeven.fit.parameters import PUSHED_BELOW
from breakeven.model.simulate import REGIMES, truth
from scipy import optimize, stats

N = np.arange(2, 9)
RING = np.column_stack([np.ones(7), 2.0 * (N - 1), 10.0 / N, (N > 4).astype(float)])
"""Once a call, per step, work, and once above four devices."""


def launches_of(parameters, *, seed, count=6, launch_sd=0.06, cell_sd=0.03):
    rng = np.random.default_rng(seed)
    noise = launch_sd * rng.normal(size=count) + cell_sd * rng.normal(size=(len(RING), count))
    return (RING @ parameters)[:, None] * np.exp(noise)


def weights_of(parameters):
    return 1 / (RING @ parameters) ** 2


def slow_bootstrap(matrix, weights, times, column, *, draws, rng):
    """Simulates whole launches and fits them one by one with scipy."""
    root, count = np.sqrt(weights), times.shape[1]

    def statistic(launches):
        estimate = optimize.nnls(matrix * root[:, None], launches.mean(axis=1) * root)[0]
        if estimate[column] == 0:
            return 0.0
        free = estimate > 0
        one_by_one = np.linalg.lstsq(matrix[:, free] * root[:, None], launches * root[:, None], rcond=None)[0]
        own = one_by_one[np.flatnonzero(free).tolist().index(column)]
        return estimate[column] / stats.sem(own)

    others = np.delete(matrix, column, axis=1)
    null = others @ optimize.nnls(others * root[:, None], times.mean(axis=1) * root)[0]
    drawn = rng.multivariate_normal(null, np.cov(times), size=(draws, count), method="svd")
    observed = statistic(times)
    return (1 + sum(statistic(one.T) >= observed for one in drawn)) / (draws + 1)


@pytest.mark.parametrize("parameters", [(20.0, 0.1, 5.0, 1.0), (20.0, 0.1, 0.0, 0.0), (20.0, 0.0, 5.0, 0.3)])
@pytest.mark.parametrize("seed", [1, 3])
def test_a_slow_bootstrap_finds_the_same(parameters, seed):
    times, weights = launches_of(parameters, seed=seed), weights_of(parameters)
    fast = zero_pvalues(RING, weights, times, (1, 3), draws=4999)
    for column in (1, 3):
        slow = slow_bootstrap(RING, weights, times, column, draws=300, rng=np.random.default_rng(seed))
        # Four standard errors of both.
        error = 4 * np.sqrt(slow * (1 - slow) * (1 / 300 + 1 / 5000)) + 2 / 300
        assert fast[column] == pytest.approx(slow, abs=error)


def test_far_from_every_bound_it_is_the_t_test_over_launches():
    matrix = np.column_stack([np.ones(4), [0, 1, 2, 3]])
    slopes = np.array([0.4, 0.9, -0.1, 0.6, 0.2, 0.5])
    times = 100 + np.outer([0, 1, 2, 3], slopes)
    found = zero_pvalues(matrix, np.ones(4), times, (1,), draws=19_999)[1]
    expected = stats.ttest_1samp(slopes, 0, alternative="greater").pvalue
    assert found == pytest.approx(expected, abs=4 * np.sqrt(expected / 20_000))


@pytest.mark.parametrize("parameters", [(20.0, 0.0, 5.0, 2.0), (20.0, 0.0, 0.0, 0.0)])
def test_at_a_bound_it_errs_as_often_as_it_says(parameters):
    """The parameter is 0; the others are positive, or two of them are 0 too."""
    said = []
    for seed in range(400):
        times = launches_of(parameters, seed=seed)
        said.append(zero_pvalues(RING, weights_of(parameters), times, (1,), draws=199, seed=seed)[1] <= 0.05)
    # 400 trials at 5 %: three standard errors are 3.3 %.
    assert 0.017 <= np.mean(said) <= 0.083


def test_what_is_clearly_there_gets_the_smallest_p():
    found = zero_pvalues(RING, np.ones(7), launches_of((20.0, 5.0, 5.0, 0.0), seed=0), (0, 1), draws=999)
    assert found[1] == 0.001
    assert found[0] < 0.05


def test_where_the_fit_puts_it_at_the_bound_p_is_one():
    times = launches_of((20.0, 5.0, 5.0, 0.0), seed=0)
    assert zero_pvalues(-RING + 2 * RING[:, :1], np.ones(7), times, (1,))[1] == 1.0


@pytest.mark.parametrize("unit", [1e6, 1e-6])
def test_units_and_the_order_of_cells_do_not_matter(unit):
    times, rows = launches_of((20.0, 0.1, 5.0, 1.0), seed=4), np.random.default_rng(0).permutation(7)
    scale = np.array([1.0, 1e9, 1e-9, 1.0])
    ours = zero_pvalues(RING, np.ones(7), times, (0, 1, 2, 3))
    theirs = zero_pvalues(RING[rows] * scale, np.full(7, 1 / unit**2), times[rows] * unit, (0, 1, 2, 3))
    assert theirs == pytest.approx(ours, abs=0.001)


def test_launches_that_agree_say_nothing():
    times = np.repeat((RING @ [20.0, 1.0, 5.0, 1.0])[:, None], 6, axis=1)
    assert zero_pvalues(RING, np.ones(7), times, (0, 1)) == {0: None, 1: None}


def simulated(over, *, launches=6, seed=0):
    true = truth({**REGIMES["latency"], **over}, sizes=(4096, 65536))
    rng = np.random.default_rng(seed)
    noise = 0.06 * rng.normal(size=launches) + 0.03 * rng.normal(size=(len(true.cells), launches))
    plan = Plan(
        workload="simulated",
        path="strong",
        objective="time",
        devices=true.devices,
        sizes=true.sizes,
        strategies=(true.strategy,),
    )
    latency_s = true.times_s[:, None] * np.exp(noise)
    return LaunchTable(plan=plan, cells=true.cells, facts=true.facts, latency_s=latency_s)


def test_the_parameters_of_a_sweep():
    table = simulated({"alpha": 0.0, "beta": 0.0})
    fits = fit_laws(table, "jit")
    found = with_p_zero(table, "jit", fits)
    assert found.keys() == fits.parameters.keys()
    assert found["dispatch"].p_zero == 0.001
    assert found["alpha"].p_zero > 0.05
    pushed = [value for value in found.values() if value.reason == PUSHED_BELOW]
    assert all(value.p_zero == 1.0 for value in pushed)


def test_what_is_not_determined_is_not_tested():
    table = simulated({})
    workload = [i for i, cell in enumerate(table.cells) if cell.role == "workload"]
    alone = replace(table, cells=tuple(table.cells[i] for i in workload), latency_s=table.latency_s[workload])
    found = with_p_zero(alone, "jit", fit_laws(alone, "jit"))
    assert any(not value.identified for value in found.values())
    for name, value in found.items():
        tested = (value.identified or value.reason == PUSHED_BELOW) and " + " not in name
        assert (value.p_zero is not None) == tested


def test_two_launches_or_none_are_not_tested():
    for table in (simulated({}, launches=2), replace(simulated({}, launches=1), replicated=False)):
        found = with_p_zero(table, "jit", fit_laws(table, "jit"))
        assert found
        assert all(value.p_zero is None for value in found.values())
