"""Time by cause: parts add up, interpolation is exact for power laws, and what was not measured is no number."""

import numpy as np
import pytest
from breakeven.model.cell import Cell
from breakeven.model.decomposition import CAUSES, NotPredictable, at, by_cause, interpolate
from breakeven.model.law import Law, design
from breakeven.model.program import ProgramFacts
from breakeven.model.simulate import truth
from hypothesis import given
from hypothesis import strategies as st

SWEEP = truth("latency")


@pytest.mark.parametrize("all_reduce", ["ring", "log", "linear", "free"])
@pytest.mark.parametrize("compute", ["per-device", "cores-limited", "constant", "by-local-size"])
def test_causes_add_up_to_the_time(all_reduce, compute):
    found = design(Law(all_reduce, compute), SWEEP.cells, SWEEP.facts, cores=2)
    values = np.random.default_rng(1).uniform(0, 1e-6, (5, len(found.names)))
    parts = by_cause(found, values)
    assert tuple(parts) == CAUSES
    assert parts["compute"].shape == (5, len(SWEEP.cells))
    np.testing.assert_allclose(sum(parts.values()), values @ found.matrix.T, rtol=1e-12)


@pytest.mark.parametrize("compute", ["per-device", "by-local-size"])
def test_a_measured_cell_is_predicted_as_the_design_has_it(compute):
    law = Law("free", compute)
    found = design(law, SWEEP.cells, SWEEP.facts, cores=None)
    values = np.random.default_rng(2).uniform(0, 1e-6, len(found.names))
    parts = by_cause(found, values)
    for index, cell in enumerate(SWEEP.cells):
        there = at(law, found.names, values, cell, SWEEP.facts[cell], cores=None)
        for cause in CAUSES:
            assert there[cause] == pytest.approx(parts[cause][index], rel=1e-12)


def test_free_compute_times_are_interpolated_as_power_laws():
    names = ("compute[100]", "compute[1000]", "compute[10000]")
    values = np.array([[1e-6, 1e-5, 1e-4], [1e-6, 1e-4, 1e-2]])
    cell = Cell(role="local", strategy="jit", num_devices=1, size=300)
    law = Law("free", "by-local-size")
    names = ("c0", "dispatch", *names)
    values = np.hstack([np.zeros((2, 2)), values])
    found = at(law, names, values, cell, ProgramFacts(), cores=None)["compute"]
    np.testing.assert_allclose(found, [3e-6, 9e-6], rtol=1e-12)
    outside = Cell(role="local", strategy="jit", num_devices=1, size=10**5)
    np.testing.assert_allclose(at(law, names, values, outside, ProgramFacts(), cores=None)["compute"], [1e-3, 1.0])


def test_free_collective_times_are_interpolated_at_their_own_count_only():
    law = Law("free", "per-device")
    names = ("c0_probe", "entry", "dispatch", "collective[2, 100]", "collective[2, 10000]", "collective[4, 1000]")
    values = np.array([0, 0, 0, 1e-6, 1e-4, 7.0])
    chain = Cell(role="chain", strategy="jit", num_devices=2, size=1, k=3, payload_bytes=1000)
    assert at(law, names, values, chain, None, cores=None)["communication"] == pytest.approx(3e-5)
    other = Cell(role="chain", strategy="jit", num_devices=8, size=1, k=3, payload_bytes=1000)
    with pytest.raises(NotPredictable, match=r"collective\[8, 1000\] of .* too few like it were to interpolate"):
        at(law, names, values, other, None, cores=None)


def test_what_no_cell_depends_on_cannot_be_predicted():
    only_one = {c: f for c, f in SWEEP.facts.items() if c.num_devices == 1}
    law = Law("ring", "per-device")
    found = design(law, tuple(only_one), only_one, cores=None)
    target = next(c for c in SWEEP.cells if c.role == "workload" and c.num_devices == 8)
    with pytest.raises(NotPredictable, match=r"entry of workload/jit on 8 devices.* was not measured in any cell"):
        at(law, found.names, np.ones(len(found.names)), target, SWEEP.facts[target], cores=None)


def test_a_law_that_is_not_defined_there_says_so():
    cell = Cell(role="workload", strategy="jit", num_devices=1, size=8)
    with pytest.raises(NotPredictable, match="size 8: its work is unknown"):
        at(Law("ring", "per-device"), ("c0",), np.ones(1), cell, ProgramFacts(), cores=None)


@given(st.floats(0.1, 3), st.floats(-2, 2), st.floats(1, 1000))
def test_interpolation_is_exact_for_a_power(scale, power, place):
    places = np.array([2.0, 8.0, 128.0])
    found = interpolate(places, scale * places**power, place)
    np.testing.assert_allclose(found, scale * place**power, rtol=1e-9)


def test_interpolation_falls_back_to_a_line_where_a_time_is_not_positive():
    np.testing.assert_allclose(interpolate(np.array([1.0, 3.0]), np.array([[0.0, 4.0], [-1.0, 1.0]]), 2.0), [2.0, 0.0])
