"""Sweeps of links: plans, cells, real launches on forced host devices, going on with a record."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import msgspec
import pytest
from breakeven.data.rounds import timed_visits
from breakeven.data.store import read
from breakeven.measure.devices import Devices
from breakeven.measure.inventory import LINK_LENGTHS, control_cells, link_cells, workload_cells
from breakeven.measure.link_plans import orders_plan, pairs_plan
from breakeven.measure.processes.alignment import Layout
from breakeven.measure.sweep import run
from breakeven.measure.workload import MeasureError

HOST = Devices(platform="cpu", count=1, kind="cpu")


def small(**options):
    return pairs_plan(HOST, **{"devices": 3, "launches": 2, "rounds": 2, "calls": 2, "warmups": 1} | options)


def test_cells_are_every_pair_payload_and_length():
    plan = small(devices=5, payloads=(4096, 4))
    cells = link_cells(plan)
    assert len(cells) == len(set(cells)) == 10 * 2 * 2
    assert {(c.pair, c.payload_bytes, c.k) for c in cells} == {
        (pair, payload, k) for pair in combinations(range(5), 2) for payload in (4, 4096) for k in LINK_LENGTHS
    }
    assert {(c.role, c.num_devices) for c in cells} == {("pair", 5)}
    assert workload_cells(plan) == control_cells(plan) == ()


def test_cells_of_orders():
    plan = orders_plan(small(devices=4), (0, 2, 1, 3))
    assert plan.orders == ((0, 1, 2, 3), (0, 2, 1, 3))
    assert {(c.role, c.strategy, c.payload_bytes, c.k, c.pair) for c in link_cells(plan)} == {
        ("chain", strategy, 4 * payload, k, None)
        for strategy in ("default-order", "proposed-order")
        for payload in (4, 1 << 20)
        for k in LINK_LENGTHS
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": 1}, "one device has no links: --devices must be at least 2, got 1"),
        ({"devices": 1000}, "--devices 1000: JAX finds at most 256 here"),
        ({"payloads": (4,)}, "at least two sizes, each once"),
        ({"payloads": (4, 4)}, "at least two sizes, each once"),
        ({"payloads": (4, 6)}, "positive multiples of 4 bytes, got 6"),
        ({"calls": 17}, "--calls must be from 1 to 16, got 17"),
    ],
)
def test_what_cannot_be_planned(options, message):
    with pytest.raises(MeasureError, match=message):
        small(**options)


def test_no_more_devices_than_there_are():
    with pytest.raises(MeasureError, match="--devices 4: JAX finds at most 2 here"):
        pairs_plan(Devices(platform="gpu", count=2, kind="H200"), devices=4)
    with pytest.raises(MeasureError, match="one device has no links"):
        pairs_plan(Devices(platform="gpu", count=1, kind="H200"))


@pytest.mark.parametrize(
    ("devices", "processes", "count", "visible"),
    [(None, 1, 8, 8), (None, 3, 3, 3), (4, 2, 4, 4), (2, 2, 2, 2), (2, 4, 2, 4)],
)
def test_devices_over_processes(devices, processes, count, visible):
    plan = pairs_plan(HOST, devices=devices, layout=Layout(processes=processes))
    assert (plan.devices, plan.visible_devices, plan.processes) == ((count,), visible, processes)


def test_a_part_of_a_process_is_refused():
    with pytest.raises(MeasureError, match="3 of 4 devices in 2 processes would take a part of one"):
        pairs_plan(HOST, devices=3, layout=Layout(processes=2))


def test_an_order_names_every_device():
    with pytest.raises(MeasureError, match=r"names each of the 3 devices once, got \(0, 1, 1\)"):
        orders_plan(small(), (0, 1, 1))


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Path:
    return run(small(), tmp_path_factory.mktemp("links") / "links.jsonl")


def test_real_launches(measured):
    record = read(measured)
    visits = timed_visits(record)
    assert not record.failures
    assert all(v.complete and v.latency_s > 0 for v in visits)
    assert {v.cell for v in visits} == set(link_cells(small()))
    # Every program is k messages of the payload between two devices.
    for program in record.programs:
        (one,) = {(c.kind, c.message_bytes) for c in program.facts.collectives}
        assert one == ("collective-permute", program.cell.payload_bytes)
        assert sum(c.count for c in program.facts.collectives) == program.cell.k


def test_another_launch_goes_on_in_the_same_record(measured, tmp_path):
    """A record cut short in its second launch is completed: the same cells, two whole launches."""
    lines = measured.read_bytes().splitlines(keepends=True)
    second = next(i for i, line in enumerate(lines) if i > 1 and b'"kind":"launch"' in line)
    cut = tmp_path / "links.jsonl"
    cut.write_bytes(b"".join(lines[: second + 2]))
    record = read(run(small(), cut))
    whole = {v.visit.launch for v in timed_visits(record) if v.complete}
    assert len(whole) == 2
    assert {v.cell for v in timed_visits(record)} == set(link_cells(small()))
    with pytest.raises(MeasureError, match=r"another plan; they differ in seed \(0 there, 1 now\)"):
        run(msgspec.structs.replace(small(), seed=1), cut)


def test_orders_are_measured_side_by_side(tmp_path):
    plan = orders_plan(small(devices=4, payloads=(4, 64)), (0, 2, 1, 3))
    record = read(run(plan, tmp_path / "orders.jsonl"))
    assert not record.failures
    by_launch = {(v.visit.launch, v.cell) for v in timed_visits(record) if v.complete}
    assert len(by_launch) == 2 * len(link_cells(plan))
