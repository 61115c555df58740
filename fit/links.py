"""Alpha and beta of every link, from messages that went to and fro between every two devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from ..data.schema import Launch
from ..data.store import Record, RecordError
from .answer import Crowd, Estimate, Parameter
from .crowding import crowd
from .intervals import log_t_estimate, t_estimate
from .launches import LaunchTable, from_record
from .parameters import not_below_zero
from .ring_orders import RingOrder, propose
from .slow_links import MARGIN, Slow, slow

NOT_MEASURED = "not measured in this sweep"
TOO_FEW_LINKS = "too few links were measured to tell the devices apart"
TOO_FEW_DEVICES = "two devices have one link: it does not part into theirs"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one message of one size, seconds, mean of both directions."""

    payload_bytes: int
    seconds: Estimate


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """Two devices, by their places, and the line alpha + beta V through the times of their messages."""

    devices: tuple[int, int]
    messages: tuple[Message, ...]
    alpha: Parameter
    beta: Parameter


class DeviceLaw(msgspec.Struct, frozen=True, kw_only=True):
    """A device's own part: alpha of a link is the mean of its two devices' alphas, and so is beta."""

    device: int
    alpha: Parameter
    beta: Parameter


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep of pairs says.

    Attributes
    ----------
    alpha_s, beta_s_per_byte : (n, n), symmetric; None on the diagonal and where the data do not determine it.
        Inverse bandwidth in seconds per byte
    links : the same with intervals, every pair once
    devices : the law by device, from the links that are not named as slow
    device_error : median relative error of that law over the messages it was fitted to; None where there is no law
    slow : devices and links named, each slower than the others by more than ``margin`` and significantly so
    slow_reasons : why nothing could be judged, one a payload; None where it could
    orders : the ring order proposed, one a payload
    nodes, processes : that the devices are spread over; links are compared with their like
    crowd : of the first node: its devices among those measured, and their cores; None where devices are not made of
        cores
    """

    source: str
    num_devices: int
    num_launches: int
    num_rounds: int
    platform: str | None
    visible_devices: int | None
    crowd: Crowd | None
    nodes: int
    processes: int
    synthetic: bool
    confidence: float
    payloads: tuple[int, ...]
    alpha_s: tuple[tuple[float | None, ...], ...]
    beta_s_per_byte: tuple[tuple[float | None, ...], ...]
    links: tuple[Link, ...]
    devices: tuple[DeviceLaw, ...]
    device_error: float | None
    margin: float
    slow: tuple[Slow, ...]
    slow_reasons: tuple[str | None, ...]
    orders: tuple[RingOrder, ...]


def links(record: Record, *, confidence: float = 0.95) -> Links:
    """Fit the links of a record.

    Parameters
    ----------
    record : of a sweep of pairs
    confidence : float

    Raises
    ------
    RecordError
        If the record holds no messages between pairs, or no launch has a complete round.

    Notes
    -----
    In each launch the slope of the time in the number of dependent messages is the time of one, free of dispatch; the
    line through these times over the payloads has intercept alpha and slope beta (Hockney 1994,
    doi:10.1016/S0167-8191(06)80021-9). Intervals are t over launches.
    """
    table = from_record(record, links=True)
    if not table.plan.pairs:
        raise RecordError(f"{record.source}: holds all-reduces in several orders, no messages between pairs.")
    count, payloads = table.plan.devices[-1], table.plan.sizes
    pairs = np.array([(i, j) for i in range(count) for j in range(i + 1, count)])
    hop_s = _messages_s(table, pairs)
    lines = _lines(np.array(payloads, dtype=float), hop_s)
    found = tuple(
        Link(
            devices=(i, j),
            messages=tuple(
                Message(payload_bytes=payload, seconds=_seconds(hop_s[at, p], confidence))
                for at, payload in enumerate(payloads)
            ),
            alpha=_parameter(lines[0, p], "s", confidence),
            beta=_parameter(lines[1, p], "s/B", confidence),
        )
        for p, (i, j) in enumerate(pairs.tolist())
    )
    launch = record.launches[0] if record.launches else None
    named, reasons = slow(pairs, payloads, hop_s, crossings=_crossings(pairs, launch), confidence=confidence)
    laws, error = _devices(count, pairs, lines, {one.devices for one in named}, np.array(payloads), confidence)
    square = [_square(count, pairs, values) for values in (hop_s.swapaxes(0, 1), lines.mean(axis=-1).T)]
    return Links(
        source=table.source,
        num_devices=count,
        num_launches=table.num_launches,
        num_rounds=sum(rounds.shape[1] for rounds in table.rounds_s),
        platform=table.platform,
        visible_devices=table.visible_devices,
        crowd=crowd(table, count),
        nodes=1 if launch is None else launch.nodes,
        processes=1 if launch is None else launch.processes,
        synthetic=table.synthetic,
        confidence=confidence,
        payloads=payloads,
        alpha_s=_matrix(count, {one.devices: one.alpha.estimate for one in found}),
        beta_s_per_byte=_matrix(count, {one.devices: one.beta.estimate for one in found}),
        links=found,
        devices=laws,
        device_error=error,
        margin=MARGIN,
        slow=named,
        slow_reasons=reasons,
        orders=propose(
            payloads, np.moveaxis(square[0], 2, 0), square[1][..., 0], square[1][..., 1], confidence=confidence
        ),
    )


def _messages_s(table: LaunchTable, pairs: np.ndarray) -> np.ndarray:
    """Time of one message, shape (L, P, G), seconds; NaN where it was not measured."""
    times = defaultdict(list)
    for cell in table.select("pair"):
        times[cell.pair, cell.payload_bytes].append((cell.k or 0, table.row(cell)))
    return np.array(
        [
            [slope_in_k(times[(i, j), payload], table.num_launches) for i, j in pairs.tolist()]
            for payload in table.plan.sizes
        ]
    )


def slope_in_k(times: Sequence[tuple[int, np.ndarray | None]], num_launches: int) -> np.ndarray:
    """Least-squares slope of times over numbers of dependent messages.

    Parameters
    ----------
    times : a number k and seconds of shape (G,), None where it was not measured
    num_launches : G

    Returns
    -------
    ndarray, shape (G,), seconds
        NaN where fewer than two numbers were measured.
    """
    known = [(k, row) for k, row in times if row is not None]
    if len({k for k, _ in known}) < 2:
        return np.full(num_launches, np.nan)
    lengths = np.array([k for k, _ in known], dtype=float)
    centred = lengths - lengths.mean()
    return centred @ np.array([row for _, row in known]) / (centred @ centred)


def _lines(payloads: np.ndarray, hop_s: np.ndarray) -> np.ndarray:
    """Intercept and slope over payloads, shape (2, P, G), of hop_s, shape (L, P, G)."""
    centred = payloads - payloads.mean()
    slope = np.einsum("l,lpg->pg", centred, hop_s) / (centred @ centred)
    return np.array([hop_s.mean(axis=0) - slope * payloads.mean(), slope])


def _seconds(values: np.ndarray, confidence: float) -> Estimate:
    """On the log scale where it has one: noise can push a slope to 0 or below."""
    if not np.isfinite(values).all():
        return Estimate(reason=NOT_MEASURED)
    return log_t_estimate(values, confidence) if (values > 0).all() else t_estimate(values, confidence)


def _parameter(values: np.ndarray, unit: str, confidence: float) -> Parameter:
    if not np.isfinite(values).all():
        return Parameter(estimate=None, interval=None, identified=False, unit=unit, reason=NOT_MEASURED)
    return not_below_zero(float(values.mean()), t_estimate(values, confidence), unit)


def _devices(
    count: int,
    pairs: np.ndarray,
    lines: np.ndarray,
    slow_links: set[tuple[int, ...]],
    payloads: np.ndarray,
    confidence: float,
) -> tuple[tuple[DeviceLaw, ...], float | None]:
    """Least squares of alpha_ij = (alpha_i + alpha_j) / 2, and of beta, in each launch; and the law's median error."""
    used = np.isfinite(lines).all(axis=(0, 2)) & np.array(
        [pair not in slow_links for pair in map(tuple, pairs.tolist())]
    )
    design = (pairs[used, :, None] == np.arange(count)).sum(axis=1) / 2
    if len(design) < count or np.linalg.matrix_rank(design) < count:
        reason = TOO_FEW_DEVICES if count == 2 else TOO_FEW_LINKS
        alpha, beta = (
            Parameter(estimate=None, interval=None, identified=False, unit=unit, reason=reason) for unit in ("s", "s/B")
        )
        return tuple(DeviceLaw(device=i, alpha=alpha, beta=beta) for i in range(count)), None
    fitted = np.array([np.linalg.lstsq(design, values[used], rcond=None)[0] for values in lines])
    laws = tuple(
        DeviceLaw(
            device=i,
            alpha=_parameter(fitted[0, i], "s", confidence),
            beta=_parameter(fitted[1, i], "s/B", confidence),
        )
        for i in range(count)
    )
    measured, law = (_times(values, payloads) for values in (lines[:, used], design @ fitted))
    return laws, float(np.median(np.abs(law / measured - 1)))


def _times(lines: np.ndarray, payloads: np.ndarray) -> np.ndarray:
    """Mean time of a message, shape (L, P), of lines of shape (2, P, G)."""
    alpha, beta = lines.mean(axis=-1)
    return alpha + beta * payloads[:, None]


def _crossings(pairs: np.ndarray, launch: Launch | None) -> np.ndarray | None:
    """Which links leave a process, and a node: shape (P, 1 or 2); None where there is only one process."""
    if launch is None or launch.processes == 1:
        return None
    columns = []
    for held in (launch.devices_per_process, launch.devices_per_node):
        if held:
            places = pairs // held
            columns.append(places[:, 0] != places[:, 1])
    # A column that says the same as the common time, or as one before, adds nothing.
    return np.column_stack(columns).astype(float) if columns else None


def _square(count: int, pairs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values of shape (P, ...) as a symmetric array of shape (n, n, ...), NaN on the diagonal."""
    square = np.full((count, count, *values.shape[1:]), np.nan)
    square[pairs[:, 0], pairs[:, 1]] = values
    square[pairs[:, 1], pairs[:, 0]] = values
    return square


def _matrix(count: int, values: dict[tuple[int, int], float | None]) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(values.get((min(i, j), max(i, j))) for j in range(count)) for i in range(count))
