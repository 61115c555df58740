"""The number of warm-ups, on made calls."""

import numpy as np
import pytest
from breakeven.measure.warmup import FEWEST, MOST, PROBED_CALLS, falls, first_steady, passes
from hypothesis import given
from hypothesis import strategies as st


def visits(rng, number, *, first=(), sd=0.05):
    """Calls around 100 µs; ``first``: factors of the first calls."""
    calls = 1e5 * np.exp(rng.normal(0, sd, (number, PROBED_CALLS)))
    calls[:, : len(first)] *= first
    return calls.tolist()


@pytest.mark.parametrize("slow", range(FEWEST, MOST))
@pytest.mark.parametrize("number", [24, 90])
def test_all_slow_calls_are_left_out_and_few_others(slow, number):
    rng = np.random.default_rng(slow)
    first = [2.0 - k / MOST for k in range(slow)]
    found = [first_steady(visits(rng, number, first=first)) for _ in range(60)]
    assert min(found) >= slow
    # The test errs in 5 % of the cases, and a second time in 5 % of these.
    assert np.mean([w > slow for w in found]) < 0.15


def test_steady_calls_need_no_more_than_the_fewest():
    rng = np.random.default_rng(0)
    found = [first_steady(visits(rng, 24, sd=0.15)) for _ in range(300)]
    # Nominal 5 %; three standard deviations of 300 tries are 3.8 %.
    assert np.mean([w > FEWEST for w in found]) < 0.09


def test_false_alarms_stay_near_the_level_down_to_two_visits():
    rng = np.random.default_rng(1)
    for number in (2, 6, 24, 90):
        rate = np.mean([falls(rng.lognormal(0, 0.15, (number, 10))) for _ in range(1000)])
        # Nominal 5 % and below, since the effect must matter too; three standard deviations are 2.1 %.
        assert rate < 0.071, number


def test_a_trend_too_small_to_matter_is_none():
    calls = np.tile(np.linspace(1.004, 1.0, PROBED_CALLS), (200, 1))
    assert not falls(calls)
    assert falls(1 + 20 * (calls - 1))


def test_calls_that_fall_to_the_end_are_cut_at_the_most():
    falling = np.tile(np.linspace(3, 1, PROBED_CALLS), (24, 1))
    assert first_steady(falling.tolist()) == MOST
    assert first_steady(falling[:, ::-1].tolist()) == FEWEST  # rising is no warm-up
    assert first_steady([]) == FEWEST


@given(st.integers(2, 30), st.floats(1e-3, 1e6), st.integers(0, 2**32 - 1))
def test_the_number_does_not_depend_on_the_unit_or_the_order_of_visits(number, unit, seed):
    rng = np.random.default_rng(seed)
    series = visits(rng, number, first=(2, 1.5, 1.1))
    other = [[unit * call for call in one] for one in reversed(series)]
    assert first_steady(other) == first_steady(series)


def test_ties_of_a_coarse_clock_do_not_alarm():
    rng = np.random.default_rng(2)
    series = np.round(rng.lognormal(0, 0.1, (24, PROBED_CALLS)), 1)
    assert first_steady(series.tolist()) <= FEWEST + 1


@pytest.mark.parametrize(
    ("typical_s", "seconds_left", "expected"),
    [
        ([1e-4] * 24, 10.0, 1),
        ([1e-4] * 2, 10.0, 12),
        ([1e-4] * 100, 10.0, 1),
        ([1e-2] * 2, 10.0, 4),  # 0.24 s a pass, a tenth of the time
        ([0.2], 10.0, 0),  # one pass would take 2.4 s
        ([0.2], -1.0, 0),
        ([0.1], None, 1),
        ([], 10.0, 0),
    ],
)
def test_passes_fit_into_a_tenth_of_the_time(typical_s, seconds_left, expected):
    assert passes(typical_s, seconds_left) == expected
