"""The menu against algorithms carried out step by step."""

import numpy as np
import pytest
from breakeven.model import menu
from breakeven.model.program import Collective
from hypothesis import given
from hypothesis import strategies as st


def collective(kind="all-reduce", count: int | None = 1, operand_bytes=(100,), group_size=None):
    return Collective(
        kind=kind,
        count=count,
        operands=len(operand_bytes),
        message_bytes=sum(operand_bytes),
        operand_bytes=operand_bytes,
        group_size=group_size,
    )


@pytest.mark.parametrize("n", [2, 4, 8, 32])
def test_log_is_recursive_halving_and_doubling(n):
    # Carry it out: exchange half of what is left with a partner, until one n-th is left; then the way back.
    sizes, left = [], 1.0
    while left > 1 / n:
        left /= 2
        sizes.append(left)
    sizes += sizes[::-1]
    assert menu.all_reduce_steps("log", n) == len(sizes)
    np.testing.assert_allclose(menu.all_reduce_bytes("log", n, 1.0), sum(sizes), rtol=1e-12)


@given(st.integers(2, 10_000))
def test_log_rounds_up_between_powers_of_two(n):
    rounds = int(menu.all_reduce_steps("log", n)) // 2
    assert 2 ** (rounds - 1) < n <= 2**rounds


@pytest.mark.parametrize("algorithm", ["ring", "log", "linear"])
def test_one_device_is_free_and_two_are_alike_in_bytes(algorithm):
    assert menu.all_reduce_steps(algorithm, 1) == 0
    assert menu.all_reduce_bytes(algorithm, 1, 1e6) == 0
    # On two devices each sends its whole buffer once, whatever the algorithm.
    assert menu.all_reduce_bytes(algorithm, 2, 1e6) == 1e6


def test_linear_sends_whole_buffers_one_after_another():
    assert menu.all_reduce_steps("linear", 8) == 7
    assert menu.all_reduce_bytes("linear", 8, 100) == 700


@pytest.mark.parametrize(
    ("kind", "steps", "moved"),
    [
        ("all-gather", 3, 75),
        ("reduce-scatter", 3, 75),
        ("all-to-all", 3, 75),
        ("collective-permute", 1, 100),
        ("collective-broadcast", 3, 100),
    ],
)
def test_other_kinds_on_four_devices(kind, steps, moved):
    assert menu.other_cost(kind, 4, 100) == (steps, moved)
    assert menu.other_cost(kind, 1, 100) == (0, 0)


def test_every_operand_of_a_tuple_all_reduce_is_an_all_reduce():
    tuple_reduce = (collective(count=3, operand_bytes=(8, 80, 800)),)
    singles = tuple(collective(count=3, operand_bytes=(size,)) for size in (8, 80, 800))
    assert menu.load(tuple_reduce, 8, "ring") == menu.load(singles, 8, "ring")
    assert menu.load(tuple_reduce, 8, "ring").collectives == 9


def test_operands_of_an_all_to_all_are_pieces_of_one_exchange():
    total = menu.load((collective("all-to-all", operand_bytes=(25,) * 4),), 4, "ring")
    assert (total.collectives, total.steps, total.bytes) == (1, 3, 75)


def test_a_group_counts_not_the_mesh():
    assert menu.load((collective(group_size=2),), 8, "ring") == menu.load((collective(),), 2, "ring")


def test_groups_of_one_and_one_device_cost_nothing():
    free = menu.Load(0, 0, 0)
    assert menu.load((collective(group_size=1),), 8, "log") == free
    assert menu.load((collective(),), 1, "log") == free


def test_an_unknown_trip_count_is_no_number():
    with pytest.raises(ValueError, match="unknown trip count"):
        menu.load((collective(count=None),), 2, "ring")


def test_unknown_names_are_errors():
    with pytest.raises(ValueError, match="algorithm must be ring, log or linear, got 'free'"):
        menu.all_reduce_steps("free", 2)
    with pytest.raises(ValueError, match="algorithm must be ring, log or linear, got 'tree'"):
        menu.all_reduce_bytes("tree", 2, 1)
    with pytest.raises(ValueError, match="'ragged' has no cost formula"):
        menu.other_cost("ragged", 2, 1)
