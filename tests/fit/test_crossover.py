"""Zeros of a curve over size against a dense grid of t tests, and coverage of a curve that bends."""

import numpy as np
import pytest
from breakeven.fit.crossover import bend, crossover
from breakeven.fit.intervals import TOO_FEW
from scipy import stats

SIZES = np.array([100, 400, 1600, 6400])


def straight(slope: float, root: float, *, noise: float, seed: int = 0, launches: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    curve = slope * np.log(SIZES / root)
    return curve[:, None] + noise * rng.standard_normal((len(SIZES), launches))


def inside(pieces, size: float) -> bool:
    return any((a is None or a <= size) and (b is None or size <= b) for a, b in pieces)


def test_two_sizes_give_the_sizes_that_a_t_test_does_not_reject():
    values = straight(-0.3, 900, noise=0.1)[1:3]
    found = crossover(SIZES[1:3], values, confidence=0.95)
    for size in np.geomspace(400, 1600, 301):
        share = np.log(size / 400) / np.log(4)
        p = stats.ttest_1samp((1 - share) * values[0] + share * values[1], 0).pvalue
        if abs(p - 0.05) > 0.002:  # the ends are interpolated on a grid
            assert inside(found.pieces, size) == (p > 0.05)


def test_a_straight_curve_has_one_root_near_the_truth():
    found = crossover(SIZES, straight(-0.3, 900, noise=0.005), confidence=0.95)
    (root,) = found.roots
    assert root.estimate == pytest.approx(900, rel=0.05)
    assert root.interval == found.pieces[0]
    assert root.interval[0] < root.estimate < root.interval[1]
    assert found.signs == (1, 1, -1, -1)


def test_a_window_gives_two_pieces():
    curve = np.array([0.3, -0.3, -0.3, 0.3])
    values = curve[:, None] + 0.001 * np.random.default_rng(0).standard_normal((4, 6))
    found = crossover(SIZES, values, confidence=0.95)
    assert len(found.roots) == len(found.pieces) == 2
    assert found.roots[0].estimate == pytest.approx(200, rel=0.02)
    assert found.roots[1].estimate == pytest.approx(3200, rel=0.02)


def test_a_set_that_reaches_the_last_size_is_open_there():
    found = crossover(SIZES, straight(-0.1, 6000, noise=0.1), confidence=0.95)
    assert found.pieces[-1][1] is None
    assert found.signs[-1] == 0


def test_a_curve_that_stays_away_from_zero_has_an_empty_set():
    found = crossover(SIZES, straight(-0.1, 1e6, noise=0.001), confidence=0.95)
    assert (found.roots, found.pieces, set(found.signs)) == ((), (), {1})


def test_the_root_of_launches_that_hardly_differ_lies_in_its_piece():
    values = straight(-0.3, 900, noise=1e-9)[[0, 3]]
    found = crossover(SIZES[[0, 3]], values, confidence=0.95)
    (root,) = found.roots
    assert root.interval[0] <= root.estimate <= root.interval[1]
    assert root.interval[1] / root.interval[0] < 1.001


def test_two_launches_give_the_root_alone():
    found = crossover(SIZES, straight(-0.3, 900, noise=0.01, launches=2), confidence=0.95)
    assert found.roots[0].estimate == pytest.approx(900, rel=0.1)
    assert found.roots[0].interval is None
    assert found.reason == found.roots[0].reason == TOO_FEW
    assert found.pieces == ((None, None),)


@pytest.mark.parametrize("root", [130, 300, 900, 2500])
def test_a_curve_that_bends_between_sizes_is_covered(root):
    """log((a + S/8) / (a + S)) + const bends by 0.1 between sizes: without room for the bend 81-94 % are covered."""

    def ratio(size):
        return np.log((200 + size / 8) / (20 + size))

    curve = ratio(SIZES) - ratio(root)
    rng = np.random.default_rng(1)
    held = sum(
        inside(crossover(SIZES, curve[:, None] + 0.03 * rng.standard_normal((4, 6)), confidence=0.95).pieces, root)
        for _ in range(200)
    )
    assert held >= 181  # below 1 % (binomial) at 95 %


def test_a_straight_curve_is_covered_as_often_as_it_says():
    draws = (straight(-0.3, 200, noise=0.05, seed=seed)[:2] for seed in range(300))
    held = sum(inside(crossover(SIZES[:2], values, confidence=0.9).pieces, 200) for values in draws)
    # Two sizes leave no room for a bend, so coverage is exact: 300 draws at 90 % lie in 255..284 (99 %).
    assert 255 <= held <= 284


@pytest.mark.parametrize("root", [2500, 3500, 5000])
@pytest.mark.parametrize("fixed", [3000, 10000])
def test_in_the_first_segment_the_curvature_may_go_on_to_grow(fixed, root):
    """Throughput on eight devices against one, the small sizes all overhead: it bends most at the small end."""

    def curve(size):
        return np.log((8 * fixed + 7 * root + size) / (fixed + size) / 8)

    x = np.log([1896, 7592, 30376, 121520, 486080])
    inside = np.linspace(x[0], x[1], 65)[1:-1]
    deviation = np.abs(curve(np.exp(inside)) - np.interp(inside, x, curve(np.exp(x))))
    assert np.all(deviation <= bend(inside, x, curve(np.exp(x))))
