"""The ring order that the links propose, and whether it is faster than the order as it stands at all."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from ..model.per_device import blocking_limit, overlapped_bound
from ..model.ring_order import fastest_order, links_of
from .answer import Estimate
from .intervals import holm, log_t_estimate, p_below

LEAST_FOR_A_CHOICE = 4
ONE_RING = "two or three devices form one ring only"
AS_IT_STANDS = "the order as it stands is the fastest found"
NOT_FASTER = "no order is significantly faster"
GAPS = "not every pair of devices was measured"
NEGATIVE = "a message costs nothing or less in some launch: the noise is larger than its time"


class RingCost(msgspec.Struct, frozen=True, kw_only=True):
    """An all-reduce in one order by the links' alpha and beta, seconds: sends that overlap at best, or that block.

    None where alpha and beta are not known: a size was not measured.
    """

    order: tuple[int, ...]
    overlapped_s: float | None
    blocking_s: float | None


class RingOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the links say about the order of the ring, for an all-reduce whose messages have one measured size.

    ``ratio``: slowest link of the best order over that of the order as it stands. Each launch's is for the order that
    the *other* launches propose, so that noise gains nothing.
    """

    payload_bytes: int
    message_bytes: int
    faster: bool
    default: RingCost | None = None
    proposed: RingCost | None = None
    ratio: Estimate
    reason: str


def propose(
    payloads: Sequence[int],
    hop_s: np.ndarray,
    alpha_s: np.ndarray,
    beta_s_per_byte: np.ndarray,
    *,
    confidence: float = 0.95,
) -> tuple[RingOrder, ...]:
    """Find the fastest ring order at each payload, and test whether it is faster than the order as it stands.

    Parameters
    ----------
    payloads : L sizes, bytes
    hop_s : ndarray, shape (L, n, n, G), seconds
        Time of one message; NaN where it was not measured.
    alpha_s, beta_s_per_byte : ndarray, shape (n, n)
        Means over launches.
    confidence : float
        Holm over the payloads.
    """
    found = [_proposal(hops) for hops in hop_s]
    adjusted = holm([None if isinstance(one, str) else p_below(np.log(one[1])) for one in found])
    num_devices = hop_s.shape[1]
    costs = (np.maximum(alpha_s, 0.0), np.maximum(beta_s_per_byte, 0.0))
    orders = []
    for payload, one, p in zip(payloads, found, adjusted, strict=True):
        size = num_devices * payload
        if isinstance(one, str):
            unknown = Estimate(reason=one)
            orders.append(RingOrder(payload_bytes=payload, message_bytes=size, faster=False, ratio=unknown, reason=one))
            continue
        order, ratios = one
        as_it_stands = order == tuple(range(num_devices))
        # The orders that p judges come from fewer launches each, and need not be this one.
        faster = not as_it_stands and p is not None and p <= 1 - confidence
        reason = AS_IT_STANDS if as_it_stands else NOT_FASTER
        orders.append(
            RingOrder(
                payload_bytes=payload,
                message_bytes=size,
                faster=faster,
                default=_cost(tuple(range(num_devices)), size, *costs),
                proposed=_cost(order, size, *costs),
                ratio=log_t_estimate(ratios, confidence),
                reason="its slowest link is significantly faster" if faster else reason,
            )
        )
    return tuple(orders)


def _proposal(hops: np.ndarray) -> tuple[tuple[int, ...], np.ndarray] | str:
    """Order by all launches and the ratios, shape (G,), each by the other launches' order; or why there is none."""
    count, launches = len(hops), hops.shape[-1]
    beside = hops[~np.eye(count, dtype=bool)]
    if count < LEAST_FOR_A_CHOICE:
        return ONE_RING
    if not np.isfinite(beside).all():
        return GAPS
    if not (beside > 0).all():
        return NEGATIVE
    order = fastest_order(hops.mean(axis=-1))
    if launches < 2:
        return order, np.array([_ratio(hops[..., 0], order)])
    others = [fastest_order(np.delete(hops, g, axis=-1).mean(axis=-1)) for g in range(launches)]
    return order, np.array([_ratio(hops[..., g], others[g]) for g in range(launches)])


def _ratio(hops: np.ndarray, order: tuple[int, ...]) -> float:
    return float(links_of(hops, order).max() / links_of(hops, range(len(hops))).max())


def _cost(order: tuple[int, ...], message_bytes: int, alpha_s: np.ndarray, beta_s_per_byte: np.ndarray) -> RingCost:
    alpha, beta = links_of(alpha_s, order), links_of(beta_s_per_byte, order)
    if not np.isfinite([alpha, beta]).all():
        return RingCost(order=order, overlapped_s=None, blocking_s=None)
    return RingCost(
        order=order,
        overlapped_s=overlapped_bound(message_bytes, alpha=alpha, beta=beta),
        blocking_s=blocking_limit(message_bytes, alpha=alpha, beta=beta),
    )


def worth_trying(orders: Sequence[RingOrder]) -> RingOrder | None:
    """The one to try: of the largest size at which it is significantly faster, else of the largest size with any."""
    known = [one for one in orders if one.proposed is not None]
    return max(known, key=lambda one: (one.faster, one.payload_bytes), default=None)
