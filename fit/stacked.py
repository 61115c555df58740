"""Many laws over the same cells, padded to one shape and solved together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BATCH = 128
"""Problems are handed to the solver in this number, and columns in multiples of ``WIDTH``: few shapes to compile."""
WIDTH = 8
REWEIGHTINGS = 2
TRUSTED = 2.0
"""Fitted times enter the weights up to this factor from the measured ones: a law may give a cell no time at all."""


def stack(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Pad L design matrices, shapes (C, P_l), with zero columns to one array, shape (L, C, P)."""
    width = max(m.shape[1] for m in matrices)
    width += -width % WIDTH
    return np.stack([np.pad(m, [(0, 0), (0, width - m.shape[1])]) for m in matrices])


def solve(matrices: np.ndarray, weights: np.ndarray, latency_s: np.ndarray) -> np.ndarray:
    """Fit B problems by weighted least squares with parameters bounded at 0.

    Parameters
    ----------
    matrices : ndarray, shape (B, C, P)
    weights : ndarray, shape (B, C); 0 leaves a cell out
    latency_s : ndarray, shape (B, C), seconds

    Returns
    -------
    ndarray, shape (B, P), SI units
    """
    weighted = np.swapaxes(matrices * weights[:, :, None], 1, 2)
    return solve_normal(weighted @ matrices, (weighted @ latency_s[:, :, None])[:, :, 0])


def solve_normal(gram: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The same from normal equations, shapes (B, P, P) and (B, P)."""
    from .solver import solve_bounded  # imports jax

    count, empty = len(rhs), -len(rhs) % BATCH
    gram, rhs = np.pad(gram, [(0, empty), (0, 0), (0, 0)]), np.pad(rhs, [(0, empty), (0, 0)])
    parts = [solve_bounded(gram[i : i + BATCH], rhs[i : i + BATCH]) for i in range(0, len(rhs), BATCH)]
    return np.concatenate(parts)[:count]


def error_weights(matrices: np.ndarray, mean_s: np.ndarray, *, replicated: bool) -> np.ndarray:
    """Weights of the cells under each law.

    Parameters
    ----------
    matrices : ndarray, shape (L, C, P)
    mean_s : ndarray, shape (C,), seconds
    replicated : whether launches were repeated

    Returns
    -------
    ndarray, shape (L, C)
        1/T² of the *fitted* times, after two reweightings: with measured times slow outliers would lose weight, a
        bias of 2 to 7 % at 10 to 20 % noise. Without replication nothing but the residuals tells whether errors are
        proportional to the time or constant, and each law takes what its residuals make more likely.
    """
    times = np.broadcast_to(mean_s, matrices.shape[:2])
    fitted = times
    for _ in range(REWEIGHTINGS):
        fitted = _trusted(_fit(matrices, 1 / fitted**2, times), times)
    weights = 1 / fitted**2
    if replicated:
        return weights
    constant = np.full_like(weights, 1 / np.mean(mean_s) ** 2)
    better = _log_likelihood(matrices, constant, times) > _log_likelihood(matrices, weights, times)
    return np.where(better[:, None], constant, weights)


def _fit(matrices: np.ndarray, weights: np.ndarray, times: np.ndarray) -> np.ndarray:
    return np.einsum("lcp,lp->lc", matrices, solve(matrices, weights, times))


def _trusted(fitted: np.ndarray, times: np.ndarray) -> np.ndarray:
    return np.clip(fitted, times / TRUSTED, times * TRUSTED)


def _log_likelihood(matrices: np.ndarray, weights: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Gaussian, standard deviation proportional to 1/√weight; shape (L,), up to a constant."""
    squares = weights * (times - _fit(matrices, weights, times)) ** 2
    spread = np.maximum(squares.mean(axis=1), np.finfo(float).tiny)
    return 0.5 * (np.log(weights).sum(axis=1) - times.shape[1] * np.log(spread))
