"""Ring orders against every permutation there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from breakeven.model.ring_order import MOST_ENUMERATED, fastest_order, links_of
from hypothesis import given, settings
from hypothesis import strategies as st


def walk(hops, order):
    """Slowest link and sum, link by link."""
    links = [hops[a][b] for a, b in itertools.pairwise([*order, order[0]])]
    return max(links), sum(links)


@st.composite
def symmetric(draw, least=2, most=7):
    n = draw(st.integers(least, most))
    values = draw(st.lists(st.integers(1, 12), min_size=n * n, max_size=n * n))
    square = np.array(values, dtype=float).reshape(n, n)
    return np.triu(square, 1) + np.triu(square, 1).T


@given(symmetric())
@settings(max_examples=60)
def test_no_permutation_is_better(hops):
    # Whole numbers: sums are exact, and ties are common.
    best = min(walk(hops, order) for order in itertools.permutations(range(len(hops))))
    order = fastest_order(hops)
    assert walk(hops, order) == best
    assert order[0] == 0
    assert sorted(order) == list(range(len(hops)))


@given(symmetric(least=10, most=12))
@settings(max_examples=25)
def test_many_devices_are_never_worse_than_as_they_stand(hops):
    order = fastest_order(hops)
    assert sorted(order) == list(range(len(hops)))
    assert walk(hops, order) <= walk(hops, range(len(hops)))


@pytest.mark.parametrize("n", [6, MOST_ENUMERATED, 10, 16, 24])
def test_a_hidden_ring_is_found(n):
    """Links of one ring cost 1, all others 2 and more: only that ring has all links at 1."""
    hidden = np.random.default_rng(n).permutation(n)
    place = np.argsort(hidden)
    apart = np.abs(place[:, None] - place[None, :])
    hops = np.minimum(apart, n - apart).astype(float)
    assert walk(hops, fastest_order(hops)) == (1, n)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 12])
def test_where_nothing_differs_the_devices_stay(n):
    assert fastest_order(np.ones((n, n))) == tuple(range(n))


def test_links_of_several_orders():
    hops = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    assert links_of(hops, [[0, 1, 2], [0, 2, 1]]).tolist() == [[1, 3, 2], [2, 3, 1]]


@pytest.mark.parametrize(
    ("hops", "message"),
    [
        (np.ones((2, 3)), r"one row and column a device, got shape \(2, 3\)"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "must be symmetric"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "hold a time for every two devices"),
    ],
)
def test_what_is_no_table_of_links(hops, message):
    with pytest.raises(ValueError, match=message):
        fastest_order(hops)
