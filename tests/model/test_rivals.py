"""Scaling laws in print, against what defines them."""

import math

import numpy as np
import pytest
from breakeven.model.rivals import (
    amdahl_throughput,
    ernest_columns,
    gustafson_throughput,
    scalability_optimum,
    scalability_throughput,
    three_term_columns,
)

COUNTS = np.arange(1, 65)


def test_amdahl_is_the_time_of_a_serial_and_a_shared_part():
    seconds = [0.2 + 0.8 / n for n in COUNTS]
    np.testing.assert_allclose(amdahl_throughput(COUNTS, rate=1.0, serial=0.2), 1 / np.array(seconds))


def test_gustafson_is_the_work_done_in_a_fixed_time():
    work = [0.2 + sum([0.8] * n) for n in COUNTS]
    np.testing.assert_allclose(gustafson_throughput(COUNTS, rate=1.0, serial=0.2), work)


def test_scalability_without_coherency_is_amdahl():
    np.testing.assert_allclose(
        scalability_throughput(COUNTS, rate=3.0, contention=0.1, coherency=0.0),
        amdahl_throughput(COUNTS, rate=3.0, serial=0.1),
    )


@pytest.mark.parametrize(("contention", "coherency"), [(0.0, 0.001), (0.1, 0.01), (0.5, 1e-4)])
def test_the_optimum_is_where_a_fine_grid_has_its_peak(contention, coherency):
    grid = np.linspace(1, 200, 2_000_001)
    best = grid[np.argmax(scalability_throughput(grid, rate=1.0, contention=contention, coherency=coherency))]
    # The grid is 1e-4 apart.
    assert scalability_optimum(contention=contention, coherency=coherency) == pytest.approx(best, abs=2e-4)


def test_the_optimum_is_one_device_or_none_at_the_ends():
    assert scalability_optimum(contention=1.2, coherency=0.1) == 1.0
    assert scalability_optimum(contention=0.1, coherency=5.0) == 1.0
    assert scalability_optimum(contention=0.1, coherency=0.0) == math.inf


def test_columns_of_one_place():
    np.testing.assert_allclose(ernest_columns(4, 100), [1, 25, math.log(4), 4])
    np.testing.assert_allclose(three_term_columns(4), [1, 0.25, 4])


@pytest.mark.parametrize("formula", [lambda n: amdahl_throughput(n, rate=1, serial=0), three_term_columns])
def test_no_devices_are_refused(formula):
    with pytest.raises(ValueError, match="num_devices must be at least 1, got 0"):
        formula([0, 1])
