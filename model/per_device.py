"""A ring all-reduce whose devices differ: exact recursion over its 2(n - 1) steps, and its closed limits.

Device i sends V / n bytes to its neighbour in every step, at latency alpha_i and inverse bandwidth beta_i, once it
holds what its other neighbour sent in the step before. alpha_i and beta_i come from probes of pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def blocking_time(message_bytes: float, *, alpha: ArrayLike, beta: ArrayLike) -> float:
    """Time of an all-reduce whose sends block: a device starts a send when its last one has arrived.

    Parameters
    ----------
    message_bytes : V, bytes on each device
    alpha, beta : array_like, shape (n,), seconds and seconds per byte, in ring order

    Returns
    -------
    float, seconds
        Equal to ``blocking_limit``: the slowest device sets the pace.
    """
    alpha, transfer = _check(message_bytes, alpha, beta)
    cost = alpha + transfer
    done = np.zeros(len(cost))
    for _ in range(_num_steps(cost)):
        done = np.maximum(done, np.roll(done, 1)) + cost
    return float(done.max())


def overlapped_time(message_bytes: float, *, alpha: ArrayLike, beta: ArrayLike) -> float:
    """Time of an all-reduce whose sends overlap: a link is busy for beta V / n, and alpha passes in flight.

    Parameters and result as for ``blocking_time``; between ``overlapped_bound`` and 1.5 times it.
    """
    alpha, transfer = _check(message_bytes, alpha, beta)
    link_free = np.zeros(len(alpha))
    arrived = np.zeros(len(alpha))
    for _ in range(_num_steps(alpha)):
        start = np.maximum(link_free, arrived)
        link_free = start + transfer
        arrived = np.roll(start + alpha + transfer, 1)
    return float(arrived.max())


def blocking_limit(message_bytes: float, *, alpha: ArrayLike, beta: ArrayLike) -> float:
    """2(n - 1) max_i(alpha_i + beta_i V / n), seconds."""
    alpha, transfer = _check(message_bytes, alpha, beta)
    return float(_num_steps(alpha) * np.max(alpha + transfer))


def overlapped_bound(message_bytes: float, *, alpha: ArrayLike, beta: ArrayLike) -> float:
    """2(n - 1) max{max_i beta_i V / n, mean_i(alpha_i + beta_i V / n)}, seconds: a lower bound.

    A link carries 2(n - 1) chunks, and a chunk's longest way round the ring is no shorter than the mean one.
    """
    alpha, transfer = _check(message_bytes, alpha, beta)
    return float(_num_steps(alpha) * max(np.max(transfer), np.mean(alpha + transfer)))


def _check(message_bytes: float, alpha: ArrayLike, beta: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return latencies and the time one chunk of V / n occupies each link."""
    alpha, beta = np.asarray(alpha, dtype=float), np.asarray(beta, dtype=float)
    if alpha.ndim != 1 or alpha.shape != beta.shape or not len(alpha):
        raise ValueError(f"alpha and beta need one value a device, got shapes {alpha.shape} and {beta.shape}.")
    if min(alpha.min(), beta.min(), message_bytes) < 0:
        raise ValueError("alpha, beta and message_bytes must not be negative.")
    return alpha, beta * message_bytes / len(alpha)


def _num_steps(per_device: np.ndarray) -> int:
    return 2 * (len(per_device) - 1)
