"""Bounded least squares against scipy's active-set solver, which works on rows and not on Gram matrices."""

import numpy as np
import pytest
from breakeven.fit import solver
from breakeven.fit.solver import SolverError, solve_bounded
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

# Gram matrices square the condition number; these problems have one of at most about 1e3.
RTOL = 1e-9


def problems(seed, count, rows, columns, sign=0.3):
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(count, rows, columns))
    truth = np.maximum(rng.normal(sign, 1.0, size=(count, columns)), 0.0)
    return design, np.einsum("bcp,bp->bc", design, truth) + rng.normal(size=(count, rows))


def normal(design, observed):
    return np.einsum("bcp,bcq->bpq", design, design), np.einsum("bcp,bc->bp", design, observed)


def by_scipy(design, observed):
    return np.array([nnls(a, y)[0] for a, y in zip(design, observed, strict=True)])


@pytest.mark.parametrize("columns", [1, 5, solver.UNROLLED, solver.UNROLLED + 1, 16])
def test_agrees_with_scipy_in_both_eliminations(columns):
    design, observed = problems(columns, 64, 40, columns)
    found = solve_bounded(*normal(design, observed))
    np.testing.assert_allclose(found, by_scipy(design, observed), rtol=RTOL, atol=1e-12)
    assert (found == 0).any() or columns == 1


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), sign=st.floats(-2, 2))
def test_agrees_with_scipy_whatever_the_data(seed, sign):
    design, observed = problems(seed, 8, 12, 4, sign)
    np.testing.assert_allclose(
        solve_bounded(*normal(design, observed)), by_scipy(design, observed), rtol=1e-7, atol=1e-9
    )


def test_a_shared_gram_matrix_is_the_same_as_one_each():
    design, observed = problems(1, 1, 30, 5)
    gram, _ = normal(design, observed)
    rhs = np.random.default_rng(2).normal(size=(700, 5))
    shared = solve_bounded(gram[0], rhs)
    # The same sums, compiled in another order.
    np.testing.assert_allclose(shared, solve_bounded(np.repeat(gram, 700, axis=0), rhs), rtol=1e-9, atol=1e-14)


def test_more_problems_than_a_block_keep_their_order():
    design, observed = problems(3, 2 * solver.BLOCK + 7, 8, 3)
    np.testing.assert_allclose(
        solve_bounded(*normal(design, observed)), by_scipy(design, observed), rtol=1e-7, atol=1e-10
    )


@pytest.mark.parametrize("columns", [4, 12])
def test_dependent_columns_fit_as_well_as_scipy_and_stay_finite(columns):
    design, observed = problems(4, 32, 30, columns)
    design[:, :, -1] = design[:, :, 0] + design[:, :, 1]
    design[:, :, -2] = 2 * design[:, :, 0]
    found = solve_bounded(*normal(design, observed))
    assert np.abs(found).max() < 1e3
    fitted = np.einsum("bcp,bp->bc", design, found)
    np.testing.assert_allclose(fitted, np.einsum("bcp,bp->bc", design, by_scipy(design, observed)), atol=1e-8)


def test_columns_of_zeros_get_zero_and_change_nothing():
    design, observed = problems(5, 16, 20, 4)
    gram, rhs = normal(design, observed)
    padded = solve_bounded(np.pad(gram, [(0, 0), (0, 4), (0, 4)]), np.pad(rhs, [(0, 0), (0, 4)]))
    np.testing.assert_allclose(padded[:, :4], solve_bounded(gram, rhs), rtol=1e-12)
    assert not padded[:, 4:].any()


def test_units_of_columns_do_not_matter():
    # alpha0 counts collectives and beta bytes: twelve orders of magnitude between columns.
    design, observed = problems(6, 16, 20, 4)
    units = np.array([1.0, 1e12, 1e-6, 1e3])
    found = solve_bounded(*normal(design * units, observed))
    np.testing.assert_allclose(found * units, solve_bounded(*normal(design, observed)), rtol=1e-9, atol=1e-15)


def test_a_time_that_is_not_finite_is_an_error_and_no_number():
    design, observed = problems(7, 3, 10, 4)
    observed[1, 0] = np.nan
    with pytest.raises(SolverError, match=r"1 of 3 bounded .* times and weights are finite"):
        solve_bounded(*normal(design, observed))


def test_problems_that_pivoting_cannot_end_fit_as_well_as_scipy(monkeypatch):
    """Powers of sizes that lie close together are dependent up to rounding: guesses then go round in circles."""
    left = []
    by_active_sets = solver._by_active_sets
    monkeypatch.setattr(solver, "_by_active_sets", lambda *problem: left.append(1) or by_active_sets(*problem))
    rng = np.random.default_rng(0)
    sizes = 8.0 * np.arange(1, 9) + 16.0 * rng.integers(0, 90, size=(512, 1))
    powers = sizes[:, :, None] ** np.array([0, 0.5, 1, 2, 3])
    above = np.where(np.arange(8) > rng.integers(2, 6, size=(512, 1)), sizes, 0.0)
    times = (1e-5 + 1e-6 * sizes) * np.exp(0.02 * rng.standard_normal(sizes.shape))
    design = np.concatenate([powers, above[:, :, None], np.zeros((512, 8, 2))], axis=2) / times[:, :, None]
    observed = np.ones((512, 8))
    found = solve_bounded(*normal(design, observed))
    assert left
    squares = ((np.einsum("bcp,bp->bc", design, found) - observed) ** 2).sum(axis=1)
    least = ((np.einsum("bcp,bp->bc", design, by_scipy(design, observed)) - observed) ** 2).sum(axis=1)
    np.testing.assert_allclose(squares, least, rtol=1e-4)
