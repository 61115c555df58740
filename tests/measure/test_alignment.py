"""Counts that take whole processes and hosts, against a count of the parts that each mesh takes."""

import pytest
from breakeven.measure.devices import Devices
from breakeven.measure.planning import make_plan
from breakeven.measure.processes.alignment import Layout
from breakeven.measure.userfile import resolve
from breakeven.measure.workload import MeasureError
from hypothesis import given
from hypothesis import strategies as st

CPU = Devices(platform="cpu", count=1, kind="cpu")
GPU = Devices(platform="gpu", count=8, kind="H200")
TPU = Devices(platform="tpu", count=4, kind="TPU v4")


@given(per_process=st.integers(1, 6), processes_per_node=st.integers(1, 4), nodes=st.integers(1, 4), data=st.data())
def test_the_first_devices_leave_no_started_process_or_host_partly_used(per_process, processes_per_node, nodes, data):
    visible = per_process * processes_per_node * nodes
    count = data.draw(st.integers(1, visible))
    used = range(count)
    by_process = {device // per_process for device in used}
    by_node = {device // (per_process * processes_per_node) for device in used}

    def whole(parts, size):
        return len(parts) == 1 or count == len(parts) * size

    expected = whole(by_process, per_process) and whole(by_node, per_process * processes_per_node)
    layout = Layout(processes=processes_per_node * nodes, nodes=nodes)
    assert layout.fits(count, visible) == expected


def plan(**options):
    return make_plan(resolve("mean-all"), **{"available": CPU} | options)


@pytest.mark.parametrize(("devices", "largest"), [((1, 2), 2), (None, 8)])
def test_a_host_full_of_processes_without_devices_is_refused(devices, largest):
    with pytest.raises(
        MeasureError, match=f"1000 asked for, but the largest count is {largest}, and a process without"
    ):
        plan(devices=devices, processes=1000)


def test_processes_share_the_largest_count():
    found = plan(devices=(1, 2, 4, 8), processes=4)
    assert (found.processes, found.visible_devices, found.devices) == (4, 8, (1, 2, 4, 8))


def test_the_largest_count_is_rounded_up_so_that_all_have_the_same():
    found = plan(devices=(1, 2), processes=4)
    assert (found.visible_devices, found.devices) == (4, (1, 2))


def test_default_counts_are_those_that_are_possible_and_all_devices():
    assert plan(processes=3).devices == (1, 2, 9)
    assert plan(processes=2).devices == (1, 2, 4, 8)
    assert plan().devices == (1, 2, 4, 8)


def test_a_count_that_takes_a_part_is_refused_with_those_that_are_possible():
    with pytest.raises(MeasureError, match=r"6 of 8 devices in 2 processes .* Possible: 1, 2, 3, 4, 8\."):
        plan(devices=(1, 6, 8), processes=2)
    with pytest.raises(MeasureError, match=r"6 of 8 devices in 4 processes on 2 hosts .* Possible: 1, 2, 4, 8\."):
        plan(devices=(6, 8), processes=4, nodes=2)


def test_accelerators_are_shared_out_or_each_process_has_its_own():
    assert plan(available=GPU, devices=(1, 2, 8), processes=4).visible_devices == 8
    assert plan(available=GPU, devices=(1, 8, 32), processes=4, nodes=4, launched=True).visible_devices == 32
    with pytest.raises(MeasureError, match=r"3 cannot share 8 devices evenly"):
        plan(available=GPU, devices=(1, 2), processes=3)
    with pytest.raises(MeasureError, match=r"on tpu one process has all devices of a host; start one a host"):
        plan(available=TPU, devices=(1, 2), processes=2)
    with pytest.raises(MeasureError, match=r"processes must be at least 1"):
        plan(processes=0)
