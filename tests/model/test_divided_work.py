"""Work that every device repeats: programs whose share is known, and those that hide theirs."""

import re

import pytest
from breakeven.model.cell import Cell
from breakeven.model.divided_work import repeated_work
from breakeven.model.program import Collective, ProgramFacts


def cell(n, size=1024):
    return Cell(role="workload", strategy="jit", num_devices=n, size=size)


def programs(repeated, counts=(1, 2, 4), size=1024, **more):
    """Of 1e6 operations, ``repeated`` stand in every device's program."""
    return {cell(n, size): ProgramFacts(flops=repeated + (1e6 - repeated) / n, **more) for n in counts}


@pytest.mark.parametrize(
    ("repeated", "words"),
    [(1e6, r"^all of the work on 1 device is done again by each of 4 "), (3e5, r"^30 % of the work ")],
)
def test_the_share_that_is_not_divided_is_told(repeated, words):
    found = repeated_work(programs(repeated))
    assert found is not None
    assert found.share == pytest.approx(repeated / 1e6)
    assert (found.cell, found.fewest) == (cell(4), 1)
    assert re.search(words, str(found))


def test_little_is_not_worth_a_word_and_the_best_divided_size_counts():
    assert repeated_work(programs(5e4)) is None
    # A few hundred operations that do not shrink are all of a small program's, and nothing of a large one's.
    assert repeated_work(programs(1e6, size=8) | programs(1e4, size=8192)) is None


def test_the_operations_of_the_reduction_are_not_the_work():
    reduced = Collective(
        kind="all-reduce", count=1, operands=1, message_bytes=400_000, operand_bytes=(400_000,), group_size=None
    )
    given = {cell(1): ProgramFacts(flops=1e6), cell(4): ProgramFacts(flops=2.5e5 + 1e5, collectives=(reduced,))}
    assert repeated_work(given) is None


@pytest.mark.parametrize("hidden", [{"unknown_trip_counts": True}, {"custom_calls": ("solve",)}, {"padded_share": 0.2}])
def test_what_is_not_all_known_is_not_judged(hidden):
    assert repeated_work(programs(1e6, **hidden)) is None
    assert repeated_work({cell(1): None, cell(4): ProgramFacts(flops=1e6)}) is None
    assert repeated_work(programs(1e6, counts=(4,))) is None
