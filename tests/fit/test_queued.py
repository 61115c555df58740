"""Queued calls: the pipeline against a simulation of host and device, and which form a table shows."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.fit.queued import pipelined, queued_law
from hypothesis import given
from hypothesis import strategies as st

CALLS = 4
HOST, DEVICE = 60e-6, 200e-6
positive = st.floats(1e-7, 1e-2)


def simulated(host, device, calls):
    """Seconds per call: the host prepares one call after the other, the device runs each when both are ready."""
    prepared = free = 0.0
    for _ in range(calls):
        prepared += host
        free = max(free, prepared) + device
    return free / calls


@given(host=positive, device=positive, calls=st.integers(1, 16))
def test_a_pipeline_is_what_host_and_device_do_together(host, device, calls):
    assert pipelined(np.array(host), np.array(device), calls) == pytest.approx(simulated(host, device, calls))


@given(host=positive, device=positive)
def test_one_call_is_the_sum_and_many_are_the_maximum(host, device):
    assert pipelined(np.array(host), np.array(device), 1) == pytest.approx(host + device)
    assert pipelined(np.array(host), np.array(device), 10**6) == pytest.approx(max(host, device), rel=1e-5)


def made(make_table, per_call, *, host=lambda n: HOST * n / 2, devices=(1, 2, 4), null_queued=True, noise=0.01):
    """A sweep whose queued calls take ``per_call(host, device)`` seconds each."""
    rng = np.random.default_rng(3)
    table = make_table(
        lambda n, s: (host(n), 0.0, DEVICE * s / 1000),
        devices=devices,
        sizes=(1000, 2000),
        path="strong",
        launches=6,
        roles=("workload", "local", "null"),
        cell_sd=0.003,
        launch_sd=0.01,
    )
    queued = np.full(table.latency_s.shape, np.nan)
    for i, cell in enumerate(table.cells):
        if cell.role == "workload":
            queued[i] = per_call(host(cell.num_devices), DEVICE * cell.size / 1000)
        elif cell.role == "null" and null_queued:
            queued[i] = host(cell.num_devices)
    return replace(table, queued_s=queued * np.exp(noise * rng.standard_normal(queued.shape)))


def test_a_pipeline_is_recognised(make_table):
    law = queued_law(made(make_table, lambda h, d: simulated(h, d, CALLS)), "jit", 1000)
    assert (law.form, law.host, law.num_cells) == ("max", "null, queued", 6)
    assert law.misfit_max < 0.03 < law.misfit_sum
    for cell in law.cells:
        lower, upper = cell.ratio_to_max.interval
        assert lower < 1 < upper or cell.ratio_to_max.estimate == pytest.approx(1, abs=0.02)
        assert cell.limited_by == "devices"


def test_calls_that_do_not_overlap_are_recognised(make_table):
    law = queued_law(made(make_table, lambda h, d: h + d), "jit", 2000)
    assert law.form == "sum"
    assert law.misfit_sum < 0.03 < law.misfit_max


def test_the_slower_part_is_named(make_table):
    table = made(make_table, lambda h, d: simulated(h, d, CALLS), host=lambda n: DEVICE * n / 2, noise=0.003)
    limits = {cell.num_devices: cell.limited_by for cell in queued_law(table, "jit", 1000).cells}
    assert limits[1] == "devices"
    assert limits[4] == "host"


def test_what_neither_form_describes_is_said(make_table):
    law = queued_law(made(make_table, lambda h, d: 2 * (h + d)), "jit", 1000)
    assert law.form == "neither"
    assert "queued calls take longer than the closer form (sum) says" in law.reason


def test_without_a_part_of_the_host_the_forms_coincide(make_table):
    law = queued_law(made(make_table, lambda h, d: h + d, host=lambda n: 1e-8), "jit", 1000)
    assert (law.form, law.reason) == ("undecided", "both forms err alike over the launches")


def test_the_null_program_called_one_at_a_time_stands_in_for_the_queued_one(make_table):
    table = made(make_table, lambda h, d: simulated(h, d, CALLS), null_queued=False)
    law = queued_law(table, "jit", 1000)
    assert (law.form, law.host) == ("max", "null, one at a time")


def test_nothing_queued_has_no_law(make_table):
    table = made(make_table, lambda h, d: h + d)
    assert queued_law(replace(table, queued_s=None), "jit", 1000) is None
    assert queued_law(replace(table, queued_s=np.full(table.latency_s.shape, np.nan)), "jit", 1000) is None


def odd_nulls(table, *sizes):
    """The same with null programs that take longer than the workload and a queued null together."""
    rows = [i for i, cell in enumerate(table.cells) if cell.role == "null" and cell.size in sizes]
    latency = table.latency_s.copy()
    latency[rows] += 10 * (HOST + DEVICE)
    return replace(table, latency_s=latency)


def test_places_whose_parts_add_up_to_no_time_are_left_out(make_table):
    table = made(make_table, lambda h, d: simulated(h, d, CALLS))
    law = queued_law(odd_nulls(table, 2000), "jit", 1000)
    assert (law.form, law.num_cells, len(law.cells)) == ("max", 3, 3)
    assert 0 < law.misfit_max < 0.03 < law.misfit_sum
    none = queued_law(odd_nulls(table, 1000, 2000), "jit", 1000)
    assert (none.form, none.misfit_max, none.misfit_sum, none.num_cells) == ("undecided", None, None, 0)
    assert "no sum is positive" in none.reason
    assert len(none.cells) == 3


def test_without_a_null_program_the_reason_is_given(make_table):
    table = made(make_table, lambda h, d: h + d)
    keep = [i for i, cell in enumerate(table.cells) if cell.role != "null"]
    cut = replace(
        table,
        cells=tuple(table.cells[i] for i in keep),
        latency_s=table.latency_s[keep],
        queued_s=table.queued_s[keep],
        rounds_s=(),
    )
    law = queued_law(cut, "jit", 1000)
    assert law.form == "undecided"
    assert law.reason == "the null program was not measured, so the host's part of a call is not known"
