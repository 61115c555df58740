"""Links from records whose truth is known: alpha, beta, the law by device, and what is missing."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from breakeven.data.schema import Machine, Plan
from breakeven.data.simulated import simulated_record
from breakeven.data.store import RecordError
from breakeven.fit.answer import Crowd
from breakeven.fit.launches import from_record
from breakeven.fit.links import NOT_MEASURED, TOO_FEW_DEVICES, TOO_FEW_LINKS, links, slope_in_k
from breakeven.fit.parameters import BELOW_ALONE, PUSHED_BELOW
from breakeven.fit.ring_orders import GAPS as NOT_EVERY_PAIR
from breakeven.fit.slow_links import GAPS, VARIED
from breakeven.model.cell import Cell


def test_alpha_and_beta_of_every_pair(links_record):
    found = links(links_record(5, devices={3: 2.0}, noise=1e-4))
    for link in found.links:
        factor = 2.0 if 3 in link.devices else 1.0
        # Launches are off by 5 % as a whole, six of them by 2 % in the mean; links by 1e-4.
        assert link.alpha.estimate == pytest.approx(factor * 20e-6, rel=0.06)
        assert link.beta.estimate == pytest.approx(factor / 10e9, rel=0.06)
        assert link.messages[0].seconds.estimate == pytest.approx(factor * (20e-6 + 4 / 10e9), rel=0.06)
        i, j = link.devices
        assert found.alpha_s[i][j] == found.alpha_s[j][i] == link.alpha.estimate
        assert found.beta_s_per_byte[i][j] == found.beta_s_per_byte[j][i] == link.beta.estimate
    assert len(found.links) == 10
    assert all(found.alpha_s[i][i] is None for i in range(5))
    ratio = found.alpha_s[0][3] / found.alpha_s[0][1]
    assert ratio == pytest.approx(2.0, rel=1e-3)  # a launch's own level cancels


def test_intervals_hold_the_truth_as_often_as_they_say(links_record):
    held = []
    for seed in range(40):
        found = links(links_record(3, noise=0.05, seed=seed))
        held += [link.alpha.interval[0] <= 20e-6 <= link.alpha.interval[1] for link in found.links]
    # 120 intervals, three of a record share the launches' levels: 95 % less three standard errors of 40.
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40)


def test_law_by_device(links_record):
    """alpha of a link is the mean of its devices': twice the time of every link of one is 3 times its own part."""
    found = links(links_record(6, devices={2: 2.0}, noise=1e-4))
    alphas = [law.alpha.estimate for law in found.devices]
    assert alphas[2] == pytest.approx(3 * 20e-6, rel=0.06)
    assert np.delete(alphas, 2) == pytest.approx(20e-6, rel=0.06)
    assert found.devices[2].beta.estimate == pytest.approx(3 / 10e9, rel=0.06)
    assert found.device_error < 1e-3


def test_law_by_device_leaves_out_slow_links(links_record):
    found = links(links_record(6, links={(0, 1): 5.0}, noise=1e-3))
    assert [one.devices for one in found.slow] == [(0, 1), (0, 1)]
    assert [law.alpha.estimate for law in found.devices] == pytest.approx([20e-6] * 6, rel=0.06)
    assert found.device_error < 1e-2


def test_law_by_device_that_does_not_hold_shows_it(links_record):
    """A ring in which neighbours are fast and others are not: no part of any device explains that."""
    ring = {(i, j): 1.0 if j - i in (1, 5) else 2.0 for i in range(6) for j in range(i + 1, 6)}
    found = links(links_record(6, links=ring, noise=0.01))
    assert (found.slow, found.slow_reasons) == ((), (VARIED, VARIED))
    assert found.device_error > 0.15


def test_two_devices(links_record):
    found = links(links_record(2))
    assert found.links[0].alpha.estimate == pytest.approx(20e-6, rel=0.1)
    assert {law.alpha.reason for law in found.devices} == {TOO_FEW_DEVICES}
    assert all("fewer than four devices" in reason for reason in found.slow_reasons)
    assert all(order.reason == "two or three devices form one ring only" for order in found.orders)


def test_a_pair_that_was_not_measured(links_record):
    found = links(links_record(5, left_out=[(1, 3)]))
    (missing,) = (link for link in found.links if link.devices == (1, 3))
    assert (missing.alpha.estimate, missing.alpha.reason) == (None, NOT_MEASURED)
    assert missing.messages[0].seconds.estimate is None
    assert found.alpha_s[1][3] is None
    assert found.alpha_s[0][1] is not None
    assert all(law.alpha.identified for law in found.devices)
    assert all(order.proposed is None and "not every pair" in order.reason for order in found.orders)


def test_too_few_launches_give_no_interval(links_record):
    found = links(links_record(4, launches=2, devices={0: 4.0}))
    assert found.num_launches == 2
    assert all(link.alpha.interval is None and link.alpha.estimate is not None for link in found.links)
    assert found.slow == ()
    assert found.slow_reasons == ("fewer than three launches",) * 2


def test_a_size_that_was_not_measured(links_record):
    """Its cells failed in every launch: what the other size says stays, and so does why nothing is known of this."""
    found = links(without(1024, links_record(5, devices={2: 2.0}, payloads=(4, 1024, 1 << 20))))
    assert {(one.devices, one.payload_bytes) for one in found.slow} == {((2,), 4), ((2,), 1 << 20)}
    assert found.slow_reasons == (None, GAPS, None)
    assert [order.reason == NOT_EVERY_PAIR for order in found.orders] == [False, True, False]
    assert found.orders[0].default.blocking_s is None
    assert {law.alpha.reason for law in found.devices} == {TOO_FEW_LINKS}
    assert {link.beta.reason for link in found.links} == {NOT_MEASURED}


def without(payload, record):
    """The same record without the programs and visits of one size."""
    programs = tuple(one for one in record.programs if one.cell.payload_bytes != payload)
    left = {(one.launch, one.program) for one in programs}
    visits = tuple(one for one in record.visits if (one.launch, one.program) in left)
    assert 0 < len(visits) < len(record.visits)
    return replace(record, programs=programs, visits=visits)


def on_nodes(record, *, nodes, per_node, cores):
    """The same record, as if measured by one process a device, each bound to all cores of its node."""
    count = nodes * per_node
    machines = tuple(Machine(boot=f"node {rank // per_node}", affinity=tuple(range(cores))) for rank in range(count))
    spread = {"processes": count, "nodes": nodes, "devices_per_process": 1, "devices_per_node": per_node}
    launches = tuple(
        msgspec.structs.replace(launch, platform="cpu", cores=cores, machines=machines, **spread)
        for launch in record.launches
    )
    return replace(record, launches=launches)


def test_devices_are_compared_with_the_cores_of_their_own_node(links_record):
    found = links(on_nodes(links_record(8), nodes=4, per_node=2, cores=2))
    assert (found.nodes, found.crowd) == (4, Crowd(devices=2, cores=2))
    found = links(on_nodes(links_record(4), nodes=1, per_node=4, cores=2))
    assert found.crowd == Crowd(devices=4, cores=2)


def test_one_device_a_process_on_one_host(links_record):
    """Every link leaves a process and none a node: what all have in common explains no device's slowness twice."""
    found = links(on_nodes(links_record(4, devices={2: 2.0}, noise=0.01), nodes=1, per_node=4, cores=2))
    assert [(one.devices, one.payload_bytes) for one in found.slow] == [((2,), 4), ((2,), 1 << 20)]
    assert [one.ratio.estimate for one in found.slow] == pytest.approx([2.0, 2.0], rel=0.05)
    assert found.slow_reasons == (None, None)


@pytest.mark.parametrize(("launches", "reason"), [(3, PUSHED_BELOW), (2, f"{BELOW_ALONE}: fewer than three launches")])
def test_a_link_without_latency_is_pushed_below_zero(launches, reason):
    """Messages whose time has a negative intercept: no number and no 0, but the reason."""
    plan = Plan(
        workload="links",
        path="strong",
        objective="time",
        devices=(2,),
        sizes=(1000, 2000),
        strategies=("p",),
        pairs=True,
    )
    cells, times = [], []
    for payload, message in ((1000, 1e-6), (2000, 5e-6)):
        for k in (2, 8):
            cells.append(
                Cell(role="pair", strategy="p", num_devices=2, size=payload, k=k, payload_bytes=payload, pair=(0, 1))
            )
            times.append((1e-6 + k * message) * np.array([1.0, 1.01, 0.99])[:launches])
    record = simulated_record(plan, cells, np.array(times)[:, :, None, None])
    (link,) = links(record).links
    assert (link.alpha.estimate, link.alpha.identified, link.alpha.reason) == (None, False, reason)
    assert link.beta.estimate == pytest.approx(4e-9, rel=0.02)


def test_slope_needs_two_lengths():
    assert np.isnan(slope_in_k([(2, np.array([1.0, 2.0])), (8, None)], 2)).all()
    lines = [(2, np.array([5.0])), (4, np.array([9.0])), (8, np.array([17.0]))]
    assert slope_in_k(lines, 1) == pytest.approx([2.0])


def test_workloads_and_links_are_not_taken_for_each_other(links_record):
    record = links_record(4)
    with pytest.raises(RecordError, match=r"links\.jsonl: a record of links .*use: breakeven probe links\.jsonl"):
        from_record(record)
    plan = Plan(workload="w", path="strong", objective="time", devices=(1,), sizes=(4,), strategies=("jit",))
    cell = Cell(role="workload", strategy="jit", num_devices=1, size=4)
    with pytest.raises(RecordError, match="holds no links between devices; measure them with: breakeven probe --pairs"):
        links(simulated_record(plan, [cell], np.full((1, 3, 1, 1), 1e-3)))
