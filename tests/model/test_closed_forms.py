"""The closed forms against a scan over counts of the time itself, written out term by term."""

import math

import numpy as np
import pytest
from breakeven.model.closed_forms import AdditiveRing
from breakeven.model.ring import all_reduce_time
from hypothesis import assume, example, given
from hypothesis import strategies as st

COUNTS = np.arange(1, 400)

ROUNDED_BELOW_ONE = {
    "compute_s": 0.0009498120884030351,
    "dispatch": 8.655693430786095e-06,
    "alpha": 1.280280362830081e-05,
}

microseconds = st.floats(0, 50e-6)
parameters = st.fixed_dictionaries(
    {
        "compute_s": st.floats(0, 5e-3),
        "message_bytes": st.integers(0, 10**6),
        "dispatch": microseconds,
        "alpha": microseconds,
        "beta": st.floats(0, 2e-9),
        "entry": st.floats(0, 2e-3),
        "alpha0": microseconds,
    }
)


def times(p, counts: np.ndarray = COUNTS):
    """T(n) with an irrelevant constant of 10 us."""
    ring = all_reduce_time(counts, p["message_bytes"], alpha=p["alpha"], beta=p["beta"])
    once = np.where(counts > 1, p["entry"] + p["alpha0"], 0)
    return 10e-6 + p["dispatch"] * counts + p["compute_s"] / counts + ring + once


@given(parameters)
def test_growth_is_the_difference_of_times(p):
    total = times(p)
    grown = [AdditiveRing.from_parameters(**p).growth_s(int(n)) for n in COUNTS]
    # Differences of times of up to 0.1 s: rounding of 1e-16 relative to them.
    np.testing.assert_allclose(grown, total - total[0], atol=1e-14)


# Without entry n- is exactly 1, and rounding must not put it below.
@example({**dict.fromkeys(("message_bytes", "beta", "entry", "alpha0"), 0), **ROUNDED_BELOW_ONE})
@given(parameters)
def test_helping_counts_are_those_a_scan_finds(p):
    total = times(p)
    gain = total[0] - total
    # Exact ties are decided by rounding.
    assume(np.all(np.abs(gain[1:]) > 1e-12))
    winners = COUNTS[gain > 0]
    found = AdditiveRing.from_parameters(**p).helping_counts
    if not len(winners):
        assert found is None or found[0] > COUNTS[-1]
    else:
        assert found is not None
        first, last = found
        assert first == winners[0]
        assert np.array_equal(winners, np.arange(first, min(last or math.inf, COUNTS[-1]) + 1))


@given(parameters)
def test_a_real_count_helps_iff_a_fine_scan_finds_one(p):
    form = AdditiveRing.from_parameters(**p)
    scale = max(form.gain, form.per_device, form.once)
    margin = math.sqrt(max(form.gain, 0)) - math.sqrt(form.per_device) - math.sqrt(form.once)
    # A window narrower than the scan's grid may be missed.
    assume(abs(margin) > 0.05 * math.sqrt(scale) and form.per_device > 1e-6 * scale)
    fine = times(p, 1 + np.geomspace(1e-5, 1e5, 4000))
    assert form.some_real_count_helps == bool(np.any(fine < times(p, np.array([1]))[0]))


@given(parameters)
def test_the_optimum_lies_at_the_geometric_mean_of_the_roots(p):
    form = AdditiveRing.from_parameters(**p)
    assume(form.helping_range is not None and form.per_device > 1e-9)
    assert form.helping_range is not None
    lower, upper = form.helping_range
    assert lower * upper == pytest.approx(form.optimum**2, rel=1e-9)
    for end in (lower, upper):
        # T'(n) is at most K + D there, so a root that is right to 1e-9 leaves 1e-9 of that times n.
        assert form.growth_s(end) == pytest.approx(0, abs=1e-8 * (form.gain + form.per_device) * upper)
    near = form.optimum * np.array([0.99, 1.0, 1.01])
    if near[0] > 1:
        assert np.argmin([form.growth_s(n) for n in near]) == 1


@pytest.mark.parametrize(("gain", "first"), [(2.5, 2), (2.0, None), (1.5, None), (9.0, 2)])
def test_without_entry_two_devices_help_iff_gain_is_twice_the_cost(gain, first):
    found = AdditiveRing(gain=gain, per_device=1.0).helping_counts
    assert (found and found[0]) == first
    if found:
        # Helping stops at K / D.
        assert found[1] == math.ceil(gain) - 1


def test_free_devices_help_for_ever_once_entry_is_paid():
    free = AdditiveRing(gain=3.0, per_device=0.0, once=1.0)
    assert free.optimum == math.inf
    assert free.helping_counts == (2, None)
    assert AdditiveRing(gain=1.0, per_device=0.0, once=1.0).helping_range is None


def test_a_gain_below_zero_never_helps():
    bandwidth_bound = AdditiveRing.from_parameters(
        compute_s=1e-3, message_bytes=10**6, dispatch=0.0, alpha=1e-6, beta=1e-9
    )
    assert bandwidth_bound.gain < 0
    assert bandwidth_bound.optimum == 1
    assert bandwidth_bound.helping_counts is None
