"""Which devices and links are slower than the others, told apart by what they have in common.

A slow device is slow with every partner, a slow link only between two. Effects are added one by one, each the one that
explains most of what is left, so that a slow link does not pass for two slow devices.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from .answer import Estimate
from .intervals import MIN_LAUNCHES, TOO_FEW, p_above, t_estimate

MARGIN = 0.25
"""A device or link is named only when its messages take this much longer than the others'."""
LEAST_DEVICES = 4
"""Of three devices, a slow device and a fast link between the other two are the same thing."""
SAME_THING = "with fewer than four devices a slow device and a fast link look the same"
VARIED = "more than a few differ: the links have kinds that the matrices show, and none is slow among its like"
NOISE = "messages that cost nothing or less: the noise is larger than the time of a message"
GAPS = "no messages of this size were measured in every launch"
RANK_CUT = 1e-9
"""Directions of the known columns that are smaller than this, of the largest, are rounding."""


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A device (one entry in ``devices``) or a link (two) whose messages of one size take longer than the others'.

    ``ratio``: its time over that of the others; ``p``: one-sided, adjusted for all devices, links and sizes.
    """

    devices: tuple[int, ...]
    payload_bytes: int
    ratio: Estimate
    p: float


def slow(
    pairs: np.ndarray,
    payloads: Sequence[int],
    hop_s: np.ndarray,
    *,
    crossings: np.ndarray | None = None,
    confidence: float = 0.95,
) -> tuple[tuple[Slow, ...], tuple[str | None, ...]]:
    """Name what is slow.

    Parameters
    ----------
    pairs : ndarray of int, shape (P, 2)
    payloads : L sizes, bytes
    hop_s : ndarray, shape (L, P, G), seconds
        Time of one message; NaN where a pair was not measured.
    crossings : ndarray, shape (P, B), optional
        What is known to differ: 1 where a link leaves the process, the node. Links are compared with their like.
    confidence : float
        1 - confidence is the chance that anything is named where all are alike.

    Returns
    -------
    tuple of Slow, and for each of the L sizes the reason why nothing could be judged there, or None

    Notes
    -----
    Time of a message = common + crossings + sum of the effects of what is slow, by least squares in each launch.
    An effect is kept when it lies above 0 (t over launches, Bonferroni over all devices, links and sizes) and its mean
    is at least ``MARGIN`` of what the link would take without it. Where more than half as many as there are devices
    would be named, none is: slow is what differs from most.
    """
    if pairs.max(initial=0) + 1 < LEAST_DEVICES:
        return (), (SAME_THING,) * len(payloads)
    if hop_s.shape[-1] < MIN_LAUNCHES:
        return (), (TOO_FEW,) * len(payloads)
    found: list[Slow] = []
    reasons: list[str | None] = []
    for payload, seconds in zip(payloads, hop_s, strict=True):
        there = np.isfinite(seconds).all(axis=1)
        common = np.column_stack([np.ones(there.sum()), *([] if crossings is None else [crossings[there]])])
        named = _named(pairs[there], seconds[there], common, len(payloads), confidence)
        if isinstance(named, str):
            reasons.append(named)
            continue
        reasons.append(None)
        found += [
            Slow(devices=devices, payload_bytes=payload, ratio=t_estimate(ratio, confidence), p=p)
            for devices, ratio, p in named
        ]
    return tuple(found), tuple(reasons)


Named = tuple[tuple[int, ...], np.ndarray, float]


def _named(
    pairs: np.ndarray, seconds: np.ndarray, common: np.ndarray, num_sizes: int, confidence: float
) -> list[Named] | str:
    """Devices or links with their ratios, shape (G,), and p; or why none can be named."""
    if not len(pairs):
        return GAPS
    if len(np.unique(pairs)) < LEAST_DEVICES:
        return SAME_THING
    level = seconds.mean(axis=0)
    if not (level > 0).all():
        return NOISE
    relative = seconds / level
    names, columns = _candidates(pairs)
    chosen: list[int] = []
    pvalues: list[float] = []
    while True:
        best = _most_explaining(relative.mean(axis=1), common, columns, chosen)
        if best is None:
            break
        ratio = _ratios(relative, common, columns[:, [*chosen, best]])
        if ratio is None:
            return NOISE
        p = p_above(ratio[-1], 1.0)
        adjusted = 1.0 if p is None else min(1.0, p * (columns.shape[1] * num_sizes - len(chosen)))
        if adjusted > 1 - confidence or ratio[-1].mean() < 1 + MARGIN:
            break
        if len(chosen) == (pairs.max() + 1) // 2:
            return VARIED
        chosen.append(best)
        pvalues.append(adjusted)
    if not chosen:
        return []
    ratios = _ratios(relative, common, columns[:, chosen])
    if ratios is None:
        return NOISE
    return [(names[j], ratio, p) for j, ratio, p in zip(chosen, ratios, pvalues, strict=True)]


def _candidates(pairs: np.ndarray) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Devices, then links, and a column of shape (P,) for each: 1 where it takes part."""
    devices = np.unique(pairs)
    names: list[tuple[int, ...]] = [(int(device),) for device in devices]
    names += [(int(first), int(second)) for first, second in pairs]
    takes_part = (pairs[:, :, None] == devices).any(axis=1)
    return names, np.column_stack([takes_part, np.eye(len(pairs))]).astype(float)


def _most_explaining(mean: np.ndarray, common: np.ndarray, columns: np.ndarray, chosen: list[int]) -> int | None:
    """Column, not yet chosen, whose positive effect takes most off the residual sum of squares beside what is known.

    Known columns may say the same (all links leave a process, none a node): their span has a basis by singular values.
    """
    basis, singular, _ = np.linalg.svd(np.column_stack([common, columns[:, chosen]]), full_matrices=False)
    basis = basis[:, singular > RANK_CUT * singular[0]]
    left = mean - basis @ (basis.T @ mean)
    beside = columns - basis @ (basis.T @ columns)
    length = (beside**2).sum(axis=0)
    effect = np.divide(beside.T @ left, length, out=np.zeros(len(length)), where=length > 1e-9)
    taken = np.where(effect > 0, effect**2 * length, 0.0)
    taken[chosen] = 0.0
    return int(np.argmax(taken)) if taken.max() > 0 else None


def _ratios(relative: np.ndarray, common: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """For each column, by launch: time of its messages over that without any slow one, shape (columns, G)."""
    design = np.column_stack([common, columns])
    fitted = np.linalg.lstsq(design, relative, rcond=None)[0]
    base = columns.T @ (common @ fitted[: common.shape[1]]) / columns.sum(axis=0)[:, None]
    return None if not (base > 0).all() else 1 + fitted[common.shape[1] :] / base
