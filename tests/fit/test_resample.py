"""Resampling by counts against resampling by rows."""

import numpy as np
import pytest
from breakeven.fit.resample import BLOCK, draw_counts, normal_equations, refit
from scipy.optimize import nnls


@pytest.fixture
def sweep():
    rng = np.random.default_rng(0)
    design = np.abs(rng.normal(size=(20, 4)))
    latency_s = (design @ [1e-5, 2e-6, 0.0, 4e-6])[:, None] * (1 + 0.1 * rng.normal(size=(20, 7)))
    return design, latency_s, 1 / latency_s.mean(axis=1) ** 2


def by_rows(design, latency_s, weights, counts):
    """Repeat a cluster's rows as often as it was drawn; leave out what it did not measure."""
    rows, times = [], []
    for cluster, count in enumerate(counts):
        measured = np.isfinite(latency_s[:, cluster])
        root = np.sqrt(weights[measured])
        rows += [design[measured] * root[:, None]] * int(count)
        times += [latency_s[measured, cluster] * root] * int(count)
    return nnls(np.concatenate(rows), np.concatenate(times))[0]


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_refits_are_those_of_the_resampled_rows(sweep, missing):
    design, latency_s, weights = sweep
    latency_s = np.where(np.random.default_rng(1).random(latency_s.shape) < missing, np.nan, latency_s)
    gram, rhs = normal_equations(design, latency_s, weights)
    assert gram.ndim == (3 if missing else 2)
    counts = draw_counts(7, 30, seed=2)
    expected = [by_rows(design, latency_s, weights, row) for row in counts]
    # Seconds: parameters are about 1e-6.
    np.testing.assert_allclose(refit(gram, rhs, counts), expected, rtol=1e-9, atol=1e-18)


def test_counts_are_multinomial():
    counts = draw_counts(6, 20_000, seed=3)
    assert (counts.sum(axis=1) == 6).all()
    # Four standard errors of a binomial mean and of its variance 6 (1/6) (5/6).
    assert np.abs(counts.mean(axis=0) - 1).max() < 4 * np.sqrt(5 / 6 / 20_000)
    assert np.abs(counts.var(axis=0) - 5 / 6).max() < 4 * 1.5 / np.sqrt(20_000)


def test_blocks_of_draws_are_drawn_alike():
    counts = draw_counts(100, 1000, seed=5)
    assert BLOCK < 100 * 1000
    assert (counts.sum(axis=1) == 100).all()
    # Five standard errors of a mean of 1000 binomials: the largest of a hundred clusters.
    assert np.abs(counts.mean(axis=0) - 1).max() < 5 * np.sqrt(0.99 / 1000)


def test_draws_are_repeatable():
    np.testing.assert_array_equal(draw_counts(5, 10, seed=1), draw_counts(5, 10, seed=1))
    assert (draw_counts(5, 10, seed=1) != draw_counts(5, 10, seed=2)).any()


def test_without_weights_all_cells_count_alike(sweep):
    design, latency_s, _ = sweep
    for given, expected in zip(
        normal_equations(design, latency_s), normal_equations(design, latency_s, np.ones(20)), strict=True
    ):
        np.testing.assert_array_equal(given, expected)
