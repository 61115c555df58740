"""The order proposed, whether it is called faster, and what it did when it was tried."""

from __future__ import annotations

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.data.simulated import simulated_record
from breakeven.fit.intervals import NOT_FINITE, NOT_POSITIVE
from breakeven.fit.links import links
from breakeven.fit.ring_orders import AS_IT_STANDS, NEGATIVE, NOT_FASTER, propose, worth_trying
from breakeven.fit.tried_order import tried
from breakeven.model.cell import Cell


def test_a_slow_link_is_avoided(links_record):
    found = links(links_record(5, links={(1, 2): 3.0}, noise=0.02))
    for order in found.orders:
        assert order.faster
        ring = order.proposed.order
        assert {1, 2} not in [{a, b} for a, b in zip(ring, (*ring[1:], ring[0]), strict=True)]
        assert order.ratio.estimate == pytest.approx(1 / 3, rel=0.05)
        assert order.message_bytes == 5 * order.payload_bytes
        # 2 (n - 1) steps at the pace of the slowest link, which is the slow one or one of the others.
        message = 20e-6 + order.payload_bytes / 10e9
        assert order.default.blocking_s == pytest.approx(8 * 3 * message, rel=0.1)
        assert order.proposed.blocking_s == pytest.approx(8 * message, rel=0.1)
        assert order.default.overlapped_s <= order.default.blocking_s
    assert worth_trying(found.orders) == found.orders[-1]


def test_a_slow_device_is_in_every_ring(links_record):
    found = links(links_record(6, devices={3: 3.0}, noise=0.02))
    assert [order.faster for order in found.orders] == [False, False]
    assert {order.reason for order in found.orders} <= {NOT_FASTER, AS_IT_STANDS}


def test_noise_proposes_nothing(links_record):
    """Orders are chosen after looking, and judged on the launches that did not choose."""
    alarms = [any(o.faster for o in links(links_record(6, noise=0.3, seed=seed)).orders) for seed in range(60)]
    # At most 5 % of records; 7 of 60 or more have probability 0.03 at exactly that rate.
    assert sum(alarms) <= 6


def test_messages_that_cost_nothing_propose_nothing():
    hop_s = np.full((1, 4, 4, 3), 1e-6)
    hop_s[0, 0, 1, 0] = hop_s[0, 1, 0, 0] = -1e-9
    (order,) = propose((4,), hop_s, np.zeros((4, 4)), np.zeros((4, 4)))
    assert (order.faster, order.proposed, order.reason) == (False, None, NEGATIVE)
    assert worth_trying((order,)) is None


def test_what_is_alike_stays_as_it_stands():
    rng = np.random.default_rng(0)
    hop_s = np.broadcast_to(rng.uniform(1e-6, 2e-6, 4), (1, 5, 5, 4))
    (order,) = propose((4,), hop_s, np.full((5, 5), 1e-6), np.zeros((5, 5)))
    assert order.proposed.order == (0, 1, 2, 3, 4)
    assert (order.faster, order.reason) == (False, AS_IT_STANDS)


def test_the_order_as_it_stands_is_never_called_faster():
    """Two of its links take turns at being slow: in each launch another order wins, in the mean this one does.

    Of any five launches one of the two links has a mean of 1.06 µs, of all six both have 0.95; 0 2 1 3 has 1.0.
    """
    odd = np.arange(6) % 2
    times = {(0, 1): 1.5 - 1.1 * odd, (2, 3): 0.4 + 1.1 * odd, (1, 2): 0.5, (0, 3): 0.5}
    times |= {(0, 2): np.array([1.0, 1.01, 0.99, 1.0, 1.01, 0.99]), (1, 3): 1.0}
    hop_s = np.zeros((1, 4, 4, 6))
    for (i, j), time in times.items():
        hop_s[0, i, j] = hop_s[0, j, i] = 1e-6 * time
    (order,) = propose((4,), hop_s, hop_s[0].mean(axis=-1), np.zeros((4, 4)))
    assert order.ratio.interval[1] < 0.7
    assert order.proposed == order.default
    assert (order.faster, order.reason) == (False, AS_IT_STANDS)


def test_what_is_worth_trying_says_why_it_is_not():
    """Of sizes of which one cannot tell, the other one's reason counts."""
    alike = np.full((4, 4, 3), 1e-6) * np.array([1.0, 1.1, 1.2])
    broken = alike.copy()
    broken[0, 1, 0] = broken[1, 0, 0] = -1e-9
    small, large = propose((4, 8), np.array([alike, broken]), np.full((4, 4), 1e-6), np.zeros((4, 4)))
    assert large.reason == NEGATIVE
    assert worth_trying((small, large)) == small
    assert small.reason == AS_IT_STANDS


@pytest.mark.parametrize(
    ("ratio", "launches", "outcome"),
    [
        (0.7, 6, "faster"),
        (1.4, 6, "slower"),
        (1.0, 6, "no difference detected"),
        (0.7, 2, "cannot tell"),
    ],
)
def test_an_order_that_was_tried(ratio, launches, outcome):
    rng = np.random.default_rng(3)
    found = tried(
        orders_record(
            {
                (strategy, size): factor * 100e-6 * np.exp(rng.normal(0, 0.02, launches))
                for strategy, factor in (("default-order", 1.0), ("proposed-order", ratio))
                for size in (16, 4096)
            }
        )
    )
    assert (found.order, found.num_launches) == ((0, 2, 1, 3), launches)
    assert [size.outcome for size in found.sizes] == [outcome, outcome]
    for size in found.sizes:
        assert size.default_s.estimate == pytest.approx(100e-6, rel=0.05)
        assert size.ratio.estimate == pytest.approx(ratio, rel=0.05)


@pytest.mark.parametrize("strategy", ["default-order", "proposed-order"])
def test_an_all_reduce_that_costs_nothing_has_no_ratio_and_says_why(strategy):
    """It was measured: more of them took less time."""
    costs = {(one, size): 100e-6 * LEVELS for one in ("default-order", "proposed-order") for size in (16, 4096)}
    costs["proposed-order", 4096] = 60e-6 * LEVELS**2
    costs[strategy, 16] = -1e-6 * LEVELS
    small, large = tried(orders_record(costs)).sizes
    assert (small.outcome, small.ratio.estimate, small.ratio.reason) == ("cannot tell", None, NOT_POSITIVE)
    assert large.outcome == "faster"


def test_an_all_reduce_that_was_not_measured_has_no_ratio_and_says_why():
    record = orders_record({("default-order", 16): 100e-6 * LEVELS, ("default-order", 4096): 100e-6 * LEVELS})
    for one in tried(record).sizes:
        assert (one.outcome, one.ratio.reason) == ("cannot tell", NOT_FINITE)
        assert one.default_s.estimate is not None


LEVELS = np.array([0.99, 1.0, 1.01, 1.0])


def orders_record(costs):
    """All-reduces of a strategy and size, whose cost each is given by launch, in chains of 2 and 8."""
    plan = Plan(
        workload="links",
        path="strong",
        objective="time",
        devices=(4,),
        sizes=(16, 4096),
        strategies=("default-order", "proposed-order"),
        orders=((0, 1, 2, 3), (0, 2, 1, 3)),
    )
    cells, times = [], []
    for (strategy, size), cost in costs.items():
        for k in (2, 8):
            at = {"num_devices": 4, "size": size, "payload_bytes": size}
            cells.append(Cell(role="chain", strategy=strategy, k=k, **at))
            times.append(30e-6 + k * cost)
    return simulated_record(plan, cells, np.array(times)[:, :, None, None])
