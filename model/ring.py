"""Cost of ring collectives under the alpha-beta model: uncontended, full-duplex links, free reduction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def all_reduce_time(num_devices: ArrayLike, message_bytes: ArrayLike, *, alpha: float, beta: float) -> np.ndarray:
    r"""Predict the time of one ring all-reduce.

    Parameters
    ----------
    num_devices : array_like of int, shape (...)
        Ring length n >= 1. One device costs 0.
    message_bytes : array_like, shape (...), bytes
        Buffer V on each device, not the sum over devices.
    alpha, beta : float, seconds and seconds per byte
        Latency of one step; inverse bandwidth of one link.

    Returns
    -------
    ndarray, shape (...), seconds

    Raises
    ------
    ValueError
        If any ``num_devices`` is below 1.

    Notes
    -----
    A reduce-scatter then an all-gather, n - 1 steps each of V / n bytes [1]_:

    .. math:: T(n, V) = 2 (n - 1) (\alpha + \beta V / n)

    References
    ----------
    .. [1] P. Patarasuk and X. Yuan, J. Parallel Distrib. Comput. 69(2), 117-124, 2009,
       doi:10.1016/j.jpdc.2008.09.002.
    """
    return 2 * _one_way_time(num_devices, message_bytes, alpha, beta)


def all_gather_time(num_devices: ArrayLike, message_bytes: ArrayLike, *, alpha: float, beta: float) -> np.ndarray:
    """Predict the time of one ring all-gather, seconds, shape (...): n - 1 steps of V / n bytes.

    ``message_bytes`` V is the *gathered* result, the total over the devices (as in nccl-tests); the other
    parameters are those of ``all_reduce_time``.
    """
    return _one_way_time(num_devices, message_bytes, alpha, beta)


def reduce_scatter_time(num_devices: ArrayLike, message_bytes: ArrayLike, *, alpha: float, beta: float) -> np.ndarray:
    """Predict the time of one ring reduce-scatter, seconds, shape (...): n - 1 steps of V / n bytes.

    ``message_bytes`` V is the input *before* scattering (as in nccl-tests); the other parameters are those of
    ``all_reduce_time``.
    """
    return _one_way_time(num_devices, message_bytes, alpha, beta)


def algbw(message_bytes: ArrayLike, latency_s: ArrayLike) -> np.ndarray:
    """Algorithm bandwidth V / T of nccl-tests, bytes per second, shape (...)."""
    return np.asarray(message_bytes) / np.asarray(latency_s)


def busbw(
    num_devices: ArrayLike, message_bytes: ArrayLike, latency_s: ArrayLike, *, kind: str = "all-reduce"
) -> np.ndarray:
    """Bus bandwidth of nccl-tests, bytes per second, shape (...): what one link carries, whatever n is.

    algbw times 2(n - 1)/n for an all-reduce, (n - 1)/n for an all-gather, reduce-scatter or all-to-all; of one
    device it is 0, since nothing travels.

    Raises
    ------
    ValueError
        If ``kind`` is none of these, or any ``num_devices`` is below 1.
    """
    passes = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}
    if kind not in passes:
        raise ValueError(f"kind must be one of {', '.join(passes)}, got {kind!r}.")
    n = check_num_devices(num_devices)
    return passes[kind] * (n - 1) / n * algbw(message_bytes, latency_s)


def check_num_devices(num_devices: ArrayLike) -> np.ndarray:
    """Return counts as an array; raise ValueError if any is below 1."""
    n = np.asarray(num_devices)
    if np.any(n < 1):
        raise ValueError(f"num_devices must be at least 1, got {n.min()}.")
    return n


def _one_way_time(num_devices: ArrayLike, message_bytes: ArrayLike, alpha: float, beta: float) -> np.ndarray:
    n = check_num_devices(num_devices)
    return (n - 1) * (alpha + beta * np.asarray(message_bytes) / n)
