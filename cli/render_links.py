"""The text of ``probe``: the links as matrices, what is slow, the law by device, and the order of the ring."""

from __future__ import annotations

from collections.abc import Callable

from ..fit.answer import Parameter
from ..fit.links import Link, Links
from ..fit.ring_orders import RingCost, RingOrder
from ..fit.slow_links import Slow
from ..fit.tried_order import TriedOrder, TriedSize
from ..model.cell import devices
from . import units
from .text import page, sentence, table

MOST_COLUMNS = 12
"""Devices whose matrix fits on the page."""
MOST_LINES = 10
"""Links listed where the matrix does not fit, and slow ones named."""
UNKNOWN = "-"


def links(found: Links) -> str:
    """Return the whole answer, ready to print."""
    return page(_heading(found), _matrices(found), _slow(found), _device_laws(found), _orders(found.orders))


def _heading(found: Links) -> str:
    lines = _shared_cores(found)
    hosts = f" on {found.nodes} nodes" if found.nodes > 1 else ""
    spread = f", in {found.processes} processes{hosts}" if found.processes > 1 else ""
    sizes = units.joined(units.byte_count(payload) for payload in found.payloads)
    lines.append(f"links between {devices(found.num_devices)}{spread}: messages of {sizes}, mean of both directions")
    parts = [f"{found.num_launches} launch{'es' if found.num_launches != 1 else ''}", f"{found.num_rounds} rounds"]
    parts += [found.platform] if found.platform else []
    parts.append(f"intervals {100 * found.confidence:g} %, t over launches")
    parts += ["simulated, not measured"] if found.synthetic else []
    return "\n".join(sentence(line) for line in [*lines, ", ".join(parts)])


def _shared_cores(found: Links) -> list[str]:
    """One line where there are more devices on a node than cores for them."""
    crowd = found.crowd
    if crowd is None or crowd.devices <= crowd.cores:
        return []
    text = f"{crowd.devices} devices share {crowd.cores} core{'s' if crowd.cores != 1 else ''}"
    if found.nodes > 1:
        return [f"on each node {text}: links within a node are its memory"]
    return [f"your {text}: these links are the memory of one host"]


def _matrices(found: Links) -> str:
    if found.num_devices > MOST_COLUMNS:
        return _extremes(found)
    alpha = _matrix(found, "alpha of a message", lambda link: link.alpha, _micro, "µs")
    beta = _matrix(found, "1/beta", lambda link: link.beta, _rate, "GB/s")
    return page(alpha, beta)


def _matrix(
    found: Links, title: str, part: Callable[[Link], Parameter], text: Callable[[Parameter], str], unit: str
) -> str:
    known = {link.devices: text(part(link)) for link in found.links}
    places = range(found.num_devices)
    rows = [[str(i), *(known.get((min(i, j), max(i, j)), UNKNOWN) for j in places)] for i in places]
    headers = ("device", *(str(i) for i in places))
    return f"{title}, {unit}\n{table(headers, rows, numeric=range(len(headers)))}"


def _extremes(found: Links) -> str:
    """The slowest links at the largest payload that was measured, where the matrix is too large to print."""
    times = [[link.messages[at].seconds.estimate for link in found.links] for at in range(len(found.payloads))]
    largest = next((row for row in reversed(times) if any(time is not None for time in row)), times[-1])
    known = [(time, link) for time, link in zip(largest, found.links, strict=True) if time is not None]
    worst = [link for _, link in sorted(known, key=lambda one: -one[0])[:MOST_LINES]]
    rows = [
        (
            units.joined(link.devices),
            *(units.time_estimate(message.seconds) for message in link.messages),
            _micro(link.alpha),
            _rate(link.beta),
        )
        for link in worst
    ]
    sizes = (units.byte_count(payload) for payload in found.payloads)
    title = f"the {len(rows)} slowest of {len(found.links)} links (--json has the matrices)"
    return f"{title}\n{table(('devices', *sizes, 'alpha, µs', '1/beta, GB/s'), rows)}"


def _micro(value: Parameter) -> str:
    """Microseconds; an upper limit where the estimate is not above 0."""
    if value.estimate is None:
        return UNKNOWN
    if value.upper_limit is not None:
        return f"≤{units.plain(value.upper_limit * 1e6)}"
    return units.plain(value.estimate * 1e6)


def _rate(value: Parameter) -> str:
    """GB/s; a lower limit where the inverse bandwidth is not above 0."""
    if value.estimate is None:
        return UNKNOWN
    if value.upper_limit is not None:
        return f"≥{units.plain(1e-9 / value.upper_limit)}"
    return units.plain(1e-9 / value.estimate) if value.estimate > 0 else UNKNOWN


def _slow(found: Links) -> str:
    margin = f"{100 * found.margin:g} %"
    reasons = dict(zip(found.payloads, found.slow_reasons, strict=True))
    (first, *others) = dict.fromkeys(found.slow_reasons)
    if first is not None and not others:
        return sentence(f"slow devices and links: none named: {first}")
    like = ", links that leave a process or node compared with their like" if found.processes > 1 else ""
    rule = f"(slower by {margin} or more and significantly so{like})"
    lines = [sentence(f"slow devices and links{'' if found.slow else ': none named'} {rule}")]
    lines += [sentence(_named(one), indent=2) for one in found.slow[:MOST_LINES]]
    if (more := len(found.slow) - MOST_LINES) > 0:
        lines.append(f"  and {more} more (--json)")
    lines += [
        sentence(f"messages of {units.byte_count(payload)}: none named: {reason}", indent=2)
        for payload, reason in reasons.items()
        if reason is not None
    ]
    return "\n".join(lines)


def _named(one: Slow) -> str:
    what = f"device {one.devices[0]}" if len(one.devices) == 1 else "link {} - {}".format(*one.devices)
    size = units.byte_count(one.payload_bytes)
    return f"{what}: messages of {size} take {units.ratio_estimate(one.ratio)} times the others', p {_p(one.p)}"


def _p(value: float) -> str:
    return units.probability(value) + " (adjusted)"


def _device_laws(found: Links) -> str | None:
    if found.num_devices == 2:
        return None
    shown = found.devices[: MOST_COLUMNS + 4]
    rows = [
        (str(law.device), units.parameter(law.alpha, found.confidence), units.parameter(law.beta, found.confidence))
        for law in shown
    ]
    cut = "" if len(shown) == len(found.devices) else f", the first {len(shown)} of {len(found.devices)}"
    error = "" if found.device_error is None else f" (median error {100 * found.device_error:.2g} %)"
    left_out = ", without the slow links" if any(len(one.devices) == 2 for one in found.slow) else ""
    title = f"law by device: alpha and beta of a link are the means of its two devices'{error}{left_out}{cut}"
    return f"{sentence(title)}\n{table(('device', 'alpha', 'beta'), rows)}"


def _orders(orders: tuple[RingOrder, ...]) -> str:
    lines = ["order of the ring, all-reduces whose messages have the sizes measured"]
    for one in orders:
        opening = f"{units.byte_count(one.message_bytes)} in messages of {units.byte_count(one.payload_bytes)}"
        if one.proposed is None or one.default is None:
            lines.append(sentence(f"{opening}: cannot tell: {one.reason}", indent=2))
            continue
        ratio = units.ratio_estimate(one.ratio)
        if one.faster:
            text = f"propose {_sequence(one.proposed.order)}: {one.reason}, {ratio} of the time"
        elif one.proposed.order == one.default.order:
            text = one.reason
        else:
            text = f"any order: {one.reason} (best found {_sequence(one.proposed.order)}: slowest link {ratio})"
        lines.append(sentence(f"{opening}: {text}", indent=2))
        if one.default.blocking_s is not None:
            lines.append(sentence(_predicted(one.default, one.proposed, one.faster), indent=4))
    return "\n".join(lines)


def _predicted(default: RingCost, proposed: RingCost, faster: bool) -> str:
    text = f"a ring would take {_range(default)} as it stands"
    return f"{text}, {_range(proposed)} as proposed" if faster else text


def _range(cost: RingCost) -> str:
    return f"{units.duration(cost.overlapped_s)} (sends overlap) to {units.duration(cost.blocking_s)} (sends block)"


def _sequence(order: tuple[int, ...]) -> str:
    return " ".join(str(device) for device in order)


def tried_order(found: TriedOrder) -> str:
    """The text of an order that was tried."""
    where = "" if found.platform is None else f", {found.platform}"
    launches = f"{found.num_launches} launch{'es' if found.num_launches != 1 else ''}"
    title = f"order {_sequence(found.order)}, measured beside the order as it stands ({launches}{where})"
    rows = [_tried(one) for one in found.sizes]
    headers = ("all-reduce of", "as it stands", "proposed", "ratio", "outcome")
    return f"{sentence(title)}\n{table(headers, rows)}"


def _tried(one: TriedSize) -> tuple[str, str, str, str, str]:
    return (
        units.byte_count(one.message_bytes),
        units.time_estimate(one.default_s),
        units.time_estimate(one.proposed_s),
        units.ratio_estimate(one.ratio),
        one.outcome,
    )
