"""The line of two ways of running: constants, factors and cells that do not follow."""

import numpy as np
import pytest
import statsmodels.api as sm
from breakeven.fit.comparing.paired_line import paired_line

# Milliseconds of three transformers and a video model on a TPU v3-8, pmap and pjit:
# https://github.com/jax-ml/jax/issues/11364
PMAP = {(8, 16): 6.94, (8, 250): 15.55, (8, 1000): 37.01, (8, 1100): 42.9}
PJIT = {(8, 16): 10.10, (8, 250): 18.96, (8, 1000): 40.11, (8, 1100): 308.7}


def columns(times, scale=1e-3):
    return {place: np.array([scale * t]) for place, t in times.items()}


def launches(places, slope, intercept, *, seed=0, number=6, sd=0.01):
    rng = np.random.default_rng(seed)
    x = {p: 1e-3 * p[1] * np.exp(rng.normal(0, sd, number)) for p in places}
    return x, {p: (intercept + slope * t) * np.exp(rng.normal(0, sd, number)) for p, t in x.items()}


def test_a_constant_is_found_and_the_cell_that_does_not_follow_is_left_out():
    found = paired_line(columns(PMAP), columns(PJIT), paired=False)
    assert found.kind == "additive"
    assert "dispatch" in found.words
    assert found.slope.estimate == pytest.approx(1, abs=0.02)
    assert found.intercept_s.estimate == pytest.approx(3.2e-3, rel=0.05)
    assert found.offset_s.estimate == pytest.approx((3.16 + 3.41 + 3.10) / 3 * 1e-3)
    low, high = found.offset_s.interval
    assert 2.5e-3 < low < 3.16e-3
    assert 3.3e-3 < high < 4e-3
    (stray,) = found.strays
    assert (stray.num_devices, stray.size) == (8, 1100)
    assert stray.residual_s > 0.2
    assert found.num_cells == 3


def test_the_line_is_relative_least_squares_of_the_cells_that_follow():
    x, y = (np.array([t for p, t in times.items() if p[1] < 1100]) for times in (PMAP, PJIT))
    oracle = sm.WLS(y, sm.add_constant(x), weights=1 / y**2).fit()
    found = paired_line(columns(PMAP), columns(PJIT), paired=False)
    np.testing.assert_allclose([found.intercept_s.estimate * 1e3, found.slope.estimate], oracle.params)
    np.testing.assert_allclose(np.array(found.intercept_s.interval) * 1e3, oracle.conf_int()[0])
    np.testing.assert_allclose([found.p_intercept, found.p_slope], [oracle.pvalues[0], oracle.t_test("x1 = 1").pvalue])


def test_seconds_and_microseconds_and_the_order_of_cells_do_not_matter():
    one = paired_line(columns(PMAP), columns(PJIT), paired=False)
    back = dict(reversed(PMAP.items()))
    other = paired_line(columns(back, 1.0), columns(PJIT, 1.0), paired=False)
    assert (one.kind, one.slope.estimate) == (other.kind, pytest.approx(other.slope.estimate))
    assert one.p_intercept == pytest.approx(other.p_intercept)


PLACES = [(8, s) for s in (1, 2, 5, 10, 30, 100)]


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(
    ("slope", "intercept", "kind"),
    [(1.0, 2e-3, "additive"), (1.3, 0.0, "proportional"), (1.5, 3e-3, "both"), (1.0, 0.0, "undecided")],
)
def test_constant_and_factor_are_told_apart(paired, slope, intercept, kind):
    found = paired_line(*launches(PLACES, slope, intercept, sd=0.005), paired=paired)
    assert found.kind == kind
    assert found.strays == ()
    assert (found.offset_s is not None) == (kind == "additive")
    assert (found.factor is not None) == (kind == "proportional")
    if kind == "proportional":
        assert found.factor.estimate == pytest.approx(1.3, rel=0.01)


def test_nothing_detected_is_not_the_same():
    found = paired_line(*launches(PLACES, 1.0, 0.0), paired=True)
    assert found.words == "no difference detected"
    assert "6 launches" in found.method


@pytest.mark.parametrize(
    ("places", "slope", "words"),
    [
        (PLACES[:2], 1.0, "needs 3 cells that both have, there are 2"),
        ([(n, 10) for n in (1, 2, 4, 8)], 1.0, "a constant and a factor look alike"),
    ],
)
def test_too_little_gives_no_line(places, slope, words):
    found = paired_line(*launches(places, slope, 0.0, sd=0.001), paired=True)
    assert found.kind == "undecided"
    assert words in found.words
    assert found.slope.estimate is None


def test_cells_in_disorder_follow_no_line():
    x = {(8, s): np.array([float(s)]) for s in range(1, 9)}
    y = {(8, s): np.array([t]) for s, t in zip(range(1, 9), (1.0, 90.0, 3.0, 700.0, 5.0, 1e4, 2e5, 3e6), strict=True)}
    found = paired_line(x, y, paired=False)
    assert found.kind == "undecided"


def test_an_exact_line_leaves_nothing_to_test():
    x = {p: np.array([1e-3 * p[1]]) for p in PLACES}
    found = paired_line(x, x, paired=False)
    assert "last digit" in found.words
    assert found.slope.interval is None
    assert found.intercept_s.estimate == 0.0
