"""What is slow is named, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from breakeven.fit.links import links
from breakeven.fit.slow_links import GAPS, MARGIN, NOISE, SAME_THING, slow


def named(found):
    return {one.devices for one in found.slow}


@pytest.mark.parametrize("count", [4, 8])
def test_nothing_is_named_where_all_are_alike(count, links_record):
    alarms = [bool(links(links_record(count, noise=0.3, seed=seed)).slow) for seed in range(60)]
    # At most 5 % of records: 7 of 60 or more have probability 0.03 at exactly that rate. Seen: none or one.
    assert sum(alarms) <= 6


@pytest.mark.parametrize("count", [4, 5, 8])
def test_a_slow_device_is_named_and_its_links_are_not(count, links_record):
    for seed in range(8):
        found = links(links_record(count, devices={2: 2.0}, noise=0.05, seed=seed))
        assert named(found) == {(2,)}
        assert {one.payload_bytes for one in found.slow} == {4, 1 << 20}
        for one in found.slow:
            assert one.ratio.estimate == pytest.approx(2.0, rel=0.1)
            assert one.p < 0.05


@pytest.mark.parametrize("count", [4, 5, 8])
def test_a_slow_link_is_named_and_its_devices_are_not(count, links_record):
    for seed in range(8):
        found = links(links_record(count, links={(0, 1): 2.0}, noise=0.05, seed=seed))
        assert named(found) == {(0, 1)}
        assert found.slow[0].ratio.estimate == pytest.approx(2.0, rel=0.2)


def test_a_slow_device_and_a_slow_link(links_record):
    found = links(links_record(8, devices={5: 1.6}, links={(0, 1): 3.0}, noise=0.03))
    assert named(found) == {(5,), (0, 1)}


def test_less_than_the_margin_is_not_worth_a_name(links_record):
    found = links(links_record(6, devices={2: 1 + MARGIN / 2}, noise=0.01))
    assert (named(found), found.slow_reasons) == (set(), (None, None))


def test_slow_only_for_large_messages():
    """A device whose bandwidth is low and latency is not: only its large messages are named."""
    pairs, rng = every_pair(6), np.random.default_rng(0)
    factors = np.where((pairs == 4).any(axis=1), 2.0, 1.0)
    noise = np.exp(rng.normal(0, 0.03, (2, len(pairs), 6)))
    hop_s = np.array([np.full(len(pairs), 20e-6), 100e-6 * factors])[:, :, None] * noise
    found, reasons = slow(pairs, (4, 1000), hop_s)
    assert reasons == (None, None)
    assert [(one.devices, one.payload_bytes) for one in found] == [((4,), 1000)]


def every_pair(count):
    return np.array([(i, j) for i in range(count) for j in range(i + 1, count)])


def test_links_between_nodes_are_compared_with_their_like():
    """Two nodes of four: links between them take three times as long, and one of them six times."""
    pairs, rng = every_pair(8), np.random.default_rng(1)
    between = (pairs[:, 0] // 4) != (pairs[:, 1] // 4)
    factors = np.where(between, 3.0, 1.0) * np.where((pairs == (1, 6)).all(axis=1), 2.0, 1.0)
    hop_s = 20e-6 * factors[:, None] * np.exp(rng.normal(0, 0.03, (len(pairs), 6)))
    found, _ = slow(pairs, (4,), hop_s[None], crossings=between[:, None].astype(float))
    assert [one.devices for one in found] == [(1, 6)]
    assert found[0].ratio.estimate == pytest.approx(2.0, rel=0.1)
    # A second column that says the same changes nothing.
    twice, _ = slow(pairs, (4,), hop_s[None], crossings=np.column_stack([between, between]).astype(float))
    assert [(one.devices, round(one.ratio.estimate, 9)) for one in twice] == [
        (one.devices, round(one.ratio.estimate, 9)) for one in found
    ]


@pytest.mark.parametrize(
    "crossings",
    [np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([0.0, 0.0])],
    ids=["processes", "nodes", "both", "neither"],
)
@pytest.mark.parametrize("slow_device", range(4))
def test_columns_that_tell_no_links_apart_change_nothing(slow_device, crossings):
    """One device a process on one host: every link leaves its process, none the node."""
    pairs, rng = every_pair(4), np.random.default_rng(slow_device)
    factors = np.where((pairs == slow_device).any(axis=1), 2.0, 1.0)
    hop_s = 20e-6 * factors[:, None] * np.exp(rng.normal(0, 0.01, (len(pairs), 6)))
    found, reasons = slow(pairs, (4,), hop_s[None], crossings=np.tile(crossings, (len(pairs), 1)))
    assert ([one.devices for one in found], reasons) == ([(slow_device,)], (None,))
    assert found[0].ratio.estimate == pytest.approx(2.0, rel=0.05)
    (alone,), _ = slow(pairs, (4,), hop_s[None])
    assert found[0].ratio.estimate == pytest.approx(alone.ratio.estimate, rel=1e-9)


def test_three_devices_cannot_be_told_apart():
    assert slow(every_pair(3), (4,), np.ones((1, 3, 6))) == ((), (SAME_THING,))


def test_messages_that_cost_nothing_are_not_judged():
    hop_s = np.random.default_rng(0).normal(-1e-6, 1e-7, (1, 6, 6))
    assert slow(every_pair(4), (4,), hop_s) == ((), (NOISE,))


def test_each_size_has_its_own_reason():
    """Nothing is thrown away that another size said; four devices of which one was not reached are three."""
    pairs, rng = every_pair(4), np.random.default_rng(0)
    factors = np.where((pairs == 1).any(axis=1), 2.0, 1.0)
    good = 20e-6 * factors[:, None] * np.exp(rng.normal(0, 0.01, (len(pairs), 6)))
    noise = rng.normal(-1e-6, 1e-7, good.shape)
    missing = np.full(good.shape, np.nan)
    three = np.where((pairs == 3).any(axis=1)[:, None], np.nan, good)
    found, reasons = slow(pairs, (4, 8, 16, 32), np.array([noise, good, missing, three]))
    assert [(one.devices, one.payload_bytes) for one in found] == [((1,), 8)]
    assert reasons == (NOISE, None, GAPS, SAME_THING)
