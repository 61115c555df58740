"""The order in which devices should stand in a ring, from the time of one message between every two of them.

In a ring whose sends block, each of the 2(n - 1) steps waits for the slowest link: an order is good when its slowest
link is fast. Among orders that agree there, the one with the smaller sum wins: overlapped sends cost the mean link.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
from numpy.typing import ArrayLike

MOST_ENUMERATED = 9
"""Up to this many devices every order is looked at: (n - 1)! / 2 of them, 20,160 for nine."""


def links_of(hops: ArrayLike, order: ArrayLike) -> np.ndarray:
    """Time of one message on each link of a ring.

    Parameters
    ----------
    hops : array_like, shape (n, n), seconds
        Between every two devices; the diagonal is not read.
    order : array_like of int, shape (..., n)

    Returns
    -------
    ndarray, shape (..., n), seconds
        From each device of the order to the next, the last to the first.
    """
    order = np.asarray(order)
    return np.asarray(hops, dtype=float)[order, np.roll(order, -1, axis=-1)]


def fastest_order(hops: ArrayLike) -> tuple[int, ...]:
    """Find the ring order with the least (slowest link, sum of links).

    Parameters
    ----------
    hops : array_like, shape (n, n), seconds, symmetric
        Time of one message between every two devices; the diagonal is not read.

    Returns
    -------
    tuple of int, length n
        It begins with device 0. Of orders that cost the same the first in lexicographic order, so that where nothing
        differs the devices stay as they are.

    Raises
    ------
    ValueError
        If ``hops`` is not square and symmetric, or a time is missing.

    Notes
    -----
    Exact for up to ``MOST_ENUMERATED`` devices, by enumeration. Beyond, a local optimum: 2-opt (a stretch of the ring
    is turned round while that helps), from the order as it stands and from nearest neighbours.
    """
    hops = np.asarray(hops, dtype=float)
    if hops.ndim != 2 or hops.shape[0] != hops.shape[1]:
        raise ValueError(f"hops must be square, one row and column a device, got shape {hops.shape}.")
    beside = ~np.eye(len(hops), dtype=bool)
    if not np.isfinite(hops[beside]).all() or not np.array_equal(hops[beside], hops.T[beside]):
        raise ValueError("hops must be symmetric and hold a time for every two devices.")
    if len(hops) <= MOST_ENUMERATED:
        orders = _all_orders(len(hops))
        return tuple(orders[_best(links_of(hops, orders))].tolist())
    found = [_improved(hops, np.arange(len(hops))), _improved(hops, _nearest(hops))]
    return _canonical(found[_best(links_of(hops, np.array(found)))])


def _best(links: np.ndarray) -> int:
    """Row of the least slowest link, then of the least sum; links has shape (orders, n)."""
    slowest = links.max(axis=1)
    candidates = np.flatnonzero(slowest <= slowest.min())
    return int(candidates[np.argmin(links[candidates].sum(axis=1))])


@functools.cache
def _all_orders(num_devices: int) -> np.ndarray:
    """Every ring once, shape (orders, n): 0 first, and of a ring and its reverse only one."""
    rest = itertools.permutations(range(1, num_devices))
    return np.array([(0, *order) for order in rest if not order or order[0] <= order[-1]])


def _canonical(order: np.ndarray) -> tuple[int, ...]:
    """The same ring from device 0 on, in the direction whose second device is smaller."""
    turned = np.roll(order, -int(np.argmin(order)))
    if len(turned) > 2 and turned[1] > turned[-1]:
        turned = np.concatenate([turned[:1], turned[:0:-1]])
    return tuple(turned.tolist())


def _nearest(hops: np.ndarray) -> np.ndarray:
    """From device 0 always on to the nearest that is left."""
    order, left = [0], set(range(1, len(hops)))
    while left:
        order.append(min(left, key=lambda device: (hops[order[-1], device], device)))
        left.remove(order[-1])
    return np.array(order)


def _improved(hops: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Turn stretches round, the best end for each start, until no turn helps."""
    place = np.arange(len(order))
    changed = True
    while changed:
        changed = False
        for start in range(1, len(order) - 1):
            ends = place[start:, None]  # the first one leaves the order as it is
            turns = order[np.where((place >= start) & (place <= ends), start + ends - place, place)]
            best = _best(links_of(hops, turns))
            if best:
                order, changed = turns[best], True
    return order
