"""Change points: where a law breaks, where it does not, and how often it is said to."""

import numpy as np
import pytest
from breakeven.fit.breaks import (
    COLLECTIVE_FORMS,
    PROGRAM_FORMS,
    collective_terms,
    program_terms,
)
from breakeven.fit.changepoint import LEAST_FREEDOM, Curve, Form, change_point
from scipy import optimize

COUNTS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])


def curves(*times, places=COUNTS, launches=1, spread=0.0, seed=0):
    noise = np.random.default_rng(seed).normal(0, spread, (len(times), len(places), launches))
    return [
        Curve(places=np.asarray(places, dtype=float), times_s=np.asarray(t, dtype=float)[:, None] * np.exp(e))
        for t, e in zip(times, noise, strict=True)
    ]


def jump(places, border, factor):
    return np.where(places > border, factor, 1.0)


@pytest.mark.parametrize(("border", "above"), [(4.0, 8.0), (8.0, 16.0)])
def test_a_jump_is_found_where_it_is_with_its_factor(border, above):
    smooth = [1e-5 + work / COUNTS for work in (1e-4, 1e-3, 1e-2)]
    found = change_point(
        curves(*(t * jump(COUNTS, border, 3.0) for t in smooth), spread=0.02),
        program_terms(None),
        (Form(name="work", term=1), *PROGRAM_FORMS),
        margin=0.1,
    )
    assert found is not None
    assert (found.below, found.above) == (border, above)
    # Three curves at 2 % noise; the law below the border is known from one or two counts of each.
    assert found.excess == pytest.approx(3.0, rel=0.15)
    assert found.p < 0.02


def test_an_in_switch_sum_is_told_from_a_ring():
    n = np.arange(4.0, 9.0)
    ring, switch = (n - 1) / n, 0.9 * (n + 1) / (2 * n)
    found = change_point(
        curves(np.where(n > 5, switch, ring), places=n, spread=0.003),
        collective_terms,
        COLLECTIVE_FORMS,
        margin=0.1,
        beside=curves(ring, places=n, spread=0.003, seed=1),
    )
    assert found is not None
    assert (found.below, found.above, found.form.name) == (5, 6, "in-switch reduction")
    # At 6: 0.9 * 7 / 12 over 5 / 6.
    assert found.excess == pytest.approx(0.9 * 7 / 12 / (5 / 6), rel=0.03)


def test_the_statistic_is_the_f_of_two_bounded_fits():
    """The same F by scipy's non-negative least squares, weighted by the fitted times."""
    from breakeven.fit.changepoint import _alternatives, _law, _statistics

    (curve,) = curves((1e-5 + 1e-3 / COUNTS) * jump(COUNTS, 8, 2.0), spread=0.05)
    terms = program_terms(None)
    law = _law(curve, terms)
    options = list(_alternatives([curve], terms, PROGRAM_FORMS, (1, 2)))
    values, _, freedom = _statistics([law], options)
    root = np.sqrt(law.weights)

    def fit(columns):
        scale = np.abs(root[:, None] * columns).max(axis=0)
        scale[scale == 0] = 1
        solution, norm = optimize.nnls(root[:, None] * columns / scale, root * curve.mean_s)
        return norm**2, int((solution > 1e-12).sum())

    without, plain = fit(law.columns)
    for option, f, left in zip(options, values[0], freedom[0], strict=True):
        squares, used = fit(option.columns[0])
        assert left == len(COUNTS) - used
        if left >= LEAST_FREEDOM:
            expected = (without - squares) / max(used - plain, 1) / (squares / left)
            assert f == pytest.approx(expected, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("margin", [0.1, 0.5])
def test_a_difference_below_the_margin_is_no_border(margin):
    steps = curves(*[(1e-5 + w / COUNTS) * jump(COUNTS, 8, 1.3) for w in (1e-3, 1e-2)], spread=0.003)
    found = change_point(steps, program_terms(None), PROGRAM_FORMS, margin=margin)
    assert (found is None) == (margin == 0.5)


def test_too_few_places_decide_nothing():
    n = np.array([4.0, 5.0, 6.0])
    assert change_point(curves([1.0, 3.0, 3.0], places=n), collective_terms, COLLECTIVE_FORMS, margin=0.1) is None
    assert change_point(curves([1.0, 3.0], places=n[:2]), collective_terms, COLLECTIVE_FORMS, margin=0.1) is None


def test_units_do_not_matter():
    steps = [(1e-5 + w / COUNTS) * jump(COUNTS, 4, 2.5) for w in (1e-3, 1e-2)]
    seconds = change_point(curves(*steps, spread=0.05), program_terms(None), PROGRAM_FORMS, margin=0.1)
    micros = change_point(
        curves(*(s * 1e6 for s in steps), spread=0.05), program_terms(None), PROGRAM_FORMS, margin=0.1
    )
    assert seconds is not None
    assert micros is not None
    assert (micros.below, micros.p) == (seconds.below, seconds.p)
    assert micros.excess == pytest.approx(seconds.excess, rel=1e-6)


@pytest.mark.parametrize(
    "smooth",
    [
        pytest.param(lambda n: 1e-3 / n + 1e-5 * n, id="U-shaped"),
        pytest.param(lambda n: 1e-4 / n + 2e-5 * np.ceil(np.log2(n)), id="log steps"),
        pytest.param(lambda n: 1e-5 + 1e-3 * n**-0.8 + 1e-5 * n**0.7, id="outside the terms"),
    ],
)
def test_smooth_curves_are_seldom_said_to_break(smooth):
    false = 0
    for seed in range(30):
        found = change_point(
            curves(*[smooth(COUNTS)] * 2, spread=0.05, seed=seed),
            program_terms(None),
            PROGRAM_FORMS,
            margin=0.1,
            seed=seed,
        )
        false += found is not None and found.p <= 0.05
    # At 5 % more than five of 30 come with a probability of 0.3 %.
    assert false <= 5
