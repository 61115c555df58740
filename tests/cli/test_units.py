"""A number and its interval share one unit, rounded by the interval's width."""

from __future__ import annotations

import re

import pytest
from breakeven.cli import units
from breakeven.fit.answer import Estimate, Parameter
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("value", "lower", "upper", "text"),
    [
        (136.2e-6, 132e-6, 140.4e-6, "136 µs [132, 140]"),
        (12.44e-6, 11.9e-6, 13.0e-6, "12.4 µs [11.9, 13.0]"),
        (0.0, 0.0, 3.1e-6, "0.0 µs [0.0, 3.1]"),
        (999.96e-6, 990e-6, 1010e-6, "1.000 ms [0.990, 1.010]"),
        (4.41e-3, None, 4.5e-3, "4.41 ms (-∞, 4.50]"),
        (4.41e-3, 4.3e-3, None, "4.41 ms [4.30, ∞)"),
        (32e-6, 3e-6, 1.2e-3, "32 µs [3, 1,200]"),
        (2.0, 1.9, 2.1, "2.00 s [1.90, 2.10]"),
        (-3e-6, -9e-6, 3e-6, "-3 µs [-9, 3]"),
        (0.387e-3, -0.96e-3, 1.73e-3, "0.4 ms [-1.0, 1.7]"),
        (2.4e-6, 1e-6, 90e-6, "2.4 µs [1.0, 90.0]"),
        (0.0, 0.0, 0.0, "0 µs"),
        (5e-6, None, None, "5.00 µs (unbounded)"),
        (20e-6, 20e-6 - 1e-15, 20e-6 + 1e-15, "20.0000 µs [20.0000, 20.0000]"),
    ],
)
def test_time_with_interval(value, lower, upper, text):
    assert units.time_estimate(Estimate(estimate=value, interval=(lower, upper))) == text


def test_time_without_interval_has_three_digits():
    assert units.time_estimate(Estimate(estimate=662e-6)) == "662 µs"
    assert units.time_estimate(Estimate(estimate=4.41e-3)) == "4.41 ms"


def test_missing_number_is_never_printed():
    reason = "one size: no break-even size"
    assert units.time_estimate(Estimate(reason=reason)) == f"cannot tell: {reason}"
    assert units.share_estimate(Estimate()) == "cannot tell"
    # Half an answer (an interval without an estimate) is no number either.
    assert units.share_estimate(Estimate(interval=(0.0, 1.0), reason=reason)) == f"cannot tell: {reason}"


@pytest.mark.parametrize(
    ("value", "lower", "upper", "text"),
    [
        (0.68, 0.62, 0.74, "68 % [62, 74]"),
        (-0.002, -0.042, 0.037, "0 % [-4, 4]"),
        (0.4567, 0.4559, 0.4575, "45.67 % [45.59, 45.75]"),
    ],
)
def test_share(value, lower, upper, text):
    assert units.share_estimate(Estimate(estimate=value, interval=(lower, upper))) == text


def test_rates_and_sizes():
    assert units.rate_estimate(Estimate(estimate=6e6, interval=(5.8e6, 6.2e6)), "rows") == "6.0 M rows/s [5.8, 6.2]"
    assert units.rate_estimate(Estimate(estimate=181e9), "B") == "181 GB/s"
    assert units.size_estimate(Estimate(estimate=1416.0, interval=(1341.0, 1514.0)), "elements") == (
        "1,416 elements [1,341, 1,514]"
    )
    assert units.size_estimate(Estimate(estimate=1.5 * 2**20), "B") == "1.50 MiB"
    assert units.size_piece((2048.0, None), "bytes") == "[2, ∞) KiB"
    assert units.size_piece((None, 1500.0), "rows") == "(0, 1,500] rows"


def test_sizes_in_words():
    assert units.size_text(1024, "rows", per_device=False) == "1,024 rows"
    assert units.size_text(33.25, "rows", per_device=True) == "33.2 rows per device"
    assert units.size_text(64 * 2**20, "bytes", per_device=False) == "64 MiB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "unknown"), (90e-6, "90 µs"), (1.25e-3, "1.25 ms"), (59.97, "60 s"), (120, "2 min"), (125.4, "2 min 5 s")],
)
def test_duration(seconds, text):
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(None, "unknown"), (4, "4 B"), (1023, "1023 B"), (2**20, "1 MiB"), (1.5 * 2**30, "1.5 GiB")]
)
def test_byte_count(count, text):
    assert units.byte_count(count) == text


def test_p_values():
    assert [units.probability(p) for p in (None, 1e-9, 0.0312, 1.0)] == ["-", "<0.001", "0.031", "1.000"]


def test_sets_and_lists():
    assert units.count_set((2, 4, None)) == "{2, 4, never}"
    assert units.joined([1]) == "1"
    assert units.joined([1, 2, 8]) == "1, 2 and 8"


def test_inverse_bandwidth_is_also_a_rate():
    beta = Parameter(estimate=5.5e-12, interval=(5.3e-12, 5.7e-12), identified=True, unit="s/B")
    assert units.parameter(beta, 0.95) == "5.5 ps/B [5.3, 5.7]  (1/beta = 182 GB/s)"


def test_parameter_at_its_bound_has_an_upper_limit():
    entry = Parameter(estimate=0.0, interval=None, identified=True, unit="s", upper_limit=3.1e-6)
    assert units.parameter(entry, 0.9) == "at most 3.1 µs (one-sided 95 %)"


def test_parameter_that_is_not_identified_says_why():
    gamma = Parameter(estimate=None, interval=None, identified=False, unit="s/flop", reason="one size only")
    assert units.parameter(gamma, 0.95) == "not identified: one size only"


@given(centre=st.floats(1e-9, 1e3), left=st.floats(1e-3, 0.9), right=st.floats(1e-3, 0.9))
def test_printed_interval_is_the_interval(centre, left, right):
    """Read back, each printed end lies within a quarter of the half width of the true one."""
    lower, upper = centre * (1 - left), centre * (1 + right)
    text = units.time_estimate(Estimate(estimate=centre, interval=(lower, upper)))
    match = re.fullmatch(r"([\d.,]+) (\w+) \[([\d.,]+), ([\d.,]+)\]", text)
    assert match is not None
    factor = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}[match[2]]
    printed = [float(match[group].replace(",", "")) * factor for group in (1, 3, 4)]
    # One digit of a half width of at least 1.95 units rounds by up to half a unit.
    slack = 0.26 * (upper - lower) / 2 + 1e-12 * centre
    assert abs(printed[0] - centre) <= slack
    assert abs(printed[1] - lower) <= slack
    assert abs(printed[2] - upper) <= slack


def test_a_share_without_interval_shows_no_more_than_hundredths_of_a_percent():
    assert units.share_estimate(Estimate(estimate=-1.69e-7)) == "0.00 %"
    assert units.share_estimate(Estimate(estimate=0.0748)) == "7.48 %"


@pytest.mark.parametrize(("value", "text"), [(0.0142, "+1.4 %"), (-0.2, "-20.0 %"), (-4e-6, "0.0 %"), (4e-6, "0.0 %")])
def test_a_deviation_that_rounds_to_0_has_no_sign(value, text):
    assert units.signed_percent(value) == text


def test_a_share_that_rounds_to_nothing_has_no_sign():
    assert units.frequency(-0.004) == "0 %"
    assert units.frequency(0.266) == "27 %"
