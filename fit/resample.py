"""Resampling of clusters (launches or rounds), with batched refits.

A resample is a vector of multinomial counts, one entry a cluster, not a list of sample indices: sums over a resample
are then matrix products of per-cluster sums.
"""

from __future__ import annotations

import numpy as np

BLOCK = 2**15
"""Draws counted together: arrays of this size stay in the cache, and off the system's allocator."""


def draw_counts(num_clusters: int, draws: int, *, seed: int | np.random.Generator) -> np.ndarray:
    """Draw how often each cluster enters each resample.

    Returns
    -------
    ndarray of float, shape (draws, num_clusters)
        Whole numbers, ready for matrix products. Rows sum to ``num_clusters``.
    """
    # Counting uniform draws takes a tenth of the time of ``Generator.multinomial``.
    drawn = np.random.default_rng(seed).integers(num_clusters, size=(draws, num_clusters), dtype=np.uint16)
    counts = np.empty((draws, num_clusters))
    block = max(1, BLOCK // num_clusters)
    for i in range(0, draws, block):
        part = drawn[i : i + block]
        flat = part + np.arange(0, part.size, num_clusters)[:, None]
        counts[i : i + block] = np.bincount(flat.ravel(), minlength=part.size).reshape(part.shape)
    return counts


def normal_equations(
    design: np.ndarray, latency_s: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sum the normal equations within each cluster.

    Parameters
    ----------
    design : ndarray, shape (C, P)
    latency_s : ndarray, shape (C, R), seconds
        One column a cluster. NaN: the cluster did not measure the cell.
    weights : ndarray, shape (C,), optional

    Returns
    -------
    gram : ndarray, shape (P, P), the same for each cluster, where every cluster measured every cell; else (P, P, R)
    rhs : ndarray, shape (P, R)
    """
    weighted = design if weights is None else design * weights[:, None]
    measured = np.isfinite(latency_s)
    rhs = weighted.T @ np.where(measured, latency_s, 0.0)
    if measured.all():
        return weighted.T @ design, rhs
    return np.einsum("cp,cq,cr->pqr", weighted, design, measured), rhs


def refit(gram: np.ndarray, rhs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Fit every resample with coefficients bounded at 0.

    Parameters
    ----------
    gram, rhs : as from ``normal_equations``
    counts : ndarray, shape (B, R), as from ``draw_counts``

    Returns
    -------
    ndarray, shape (B, P), in the units of the parameters
    """
    from .solver import solve_bounded  # imports jax

    if gram.ndim == 2:
        # Every resample holds as many clusters as there are, so a shared Gram matrix stays shared.
        return solve_bounded(gram * rhs.shape[1], counts @ rhs.T)
    return solve_bounded((counts @ gram.reshape(-1, gram.shape[-1]).T).reshape(-1, *gram.shape[:2]), counts @ rhs.T)
