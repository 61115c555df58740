"""What plans can tell apart: ranks counted by hand, exact arithmetic as an oracle, and the advice tried out."""

from fractions import Fraction

import numpy as np
import pytest
from breakeven.model.cell import Cell
from breakeven.model.law import Design, Law, design
from breakeven.model.program import Collective, ProgramFacts
from breakeven.model.rank import SEPARATORS, identify, same_predictions
from breakeven.model.simulate import truth
from hypothesis import given
from hypothesis import strategies as st

RING = Law("ring", "per-device")


def plan(counts, *, payloads=(4096,), roles=("workload",), sizes=(4000,)):
    """Cells of a strong sweep and their facts; a payload of its own strategy keeps the work the same."""
    facts = {}
    for payload in payloads:
        for n in counts:
            for size in sizes:
                for role in roles:
                    cell = Cell(role=role, strategy=f"payload-{payload}", num_devices=n, size=size)
                    collective = Collective(
                        kind="all-reduce",
                        count=1,
                        operands=1,
                        message_bytes=payload,
                        operand_bytes=(payload,),
                        group_size=n,
                    )
                    facts[cell] = ProgramFacts(
                        flops=100 * size / n if role != "null" else 0.0,
                        collectives=(collective,) if role == "workload" else (),
                    )
    return facts


def columns(facts, *, without=()):
    """A ring design, with c0 and floor counted as one and some parameters taken as known."""
    found = design(RING, tuple(facts), facts, cores=None)
    keep = [i for i, name in enumerate(found.names) if name not in ("floor", *without)]
    return Design(
        found.matrix[:, keep],
        tuple(found.names[i] for i in keep),
        tuple(found.units[i] for i in keep),
        tuple(found.causes[i] for i in keep),
    )


def exact_rank(matrix):
    """Gaussian elimination in exact fractions of the rounded entries."""
    rows = [[Fraction(float(x)).limit_denominator(10**9) for x in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] / rows[rank][column]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


SWEEP = (4096, 1024, 16384)
BOTH = ("workload", "local")


@pytest.mark.parametrize(
    ("counts", "more", "without", "rank", "parameters"),
    [
        ((1, 2, 4, 8), {}, ("alpha0",), 4, 6),
        ((1, 2, 4, 8), {"payloads": SWEEP}, ("alpha0",), 5, 6),
        ((1, 2, 4, 8), {"roles": BOTH}, ("alpha0",), 6, 6),
        ((1, 2, 4, 8), {"roles": BOTH}, (), 7, 7),
        ((1, 2, 4), {"roles": BOTH}, (), 5, 7),
        ((1, 2, 4), {"roles": BOTH, "payloads": SWEEP}, (), 6, 7),
        ((1, 2), {"roles": BOTH}, (), 3, 7),
        ((1, 2), {"roles": BOTH, "payloads": SWEEP}, (), 4, 7),
    ],
)
def test_ranks_of_the_usual_plans(counts, more, without, rank, parameters):
    found = columns(plan(counts, **more), without=without)
    told = identify(found)
    assert (told.rank, told.num_parameters) == (rank, parameters)
    assert exact_rank(found.matrix) == rank
    assert len(told.ties) == parameters - rank


def test_the_full_sweep_identifies_every_parameter():
    sweep = truth("bandwidth")
    told = identify(design(RING, sweep.cells, sweep.facts, cores=None))
    assert all(told.identified.values())
    assert told.ties == ()
    assert told.reason("alpha") is None


def test_one_workload_hides_alpha_in_dispatch():
    told = identify(columns(plan((1, 2, 4, 8)), without=("alpha0",)))
    assert told.identified == {
        "c0": False,
        "entry": True,
        "dispatch": False,
        "gamma": False,
        "alpha": False,
        "beta": False,
    }
    assert told.ties[0] == (
        "alpha cannot be told from c0 and dispatch, which make up the same column; "
        "a local control (the same work without communication) would separate them"
    )


def test_two_columns_that_are_one_are_named_together():
    told = identify(design(RING, tuple(facts := plan((1, 2, 4, 8))), facts, cores=None))
    assert told.reason("floor") == (
        "c0 and floor multiply the same column; "
        "a null control (the same arguments and outputs, no work) would separate them"
    )
    assert told.reason("unheard-of") == "no cell depends on unheard-of"


@pytest.mark.parametrize(
    ("start", "key", "extended"),
    [
        ({"counts": (1, 2, 4, 8)}, "local", {"roles": BOTH}),
        ({"counts": (1, 2, 4, 8), "roles": BOTH}, "null", {"roles": ("workload", "local", "null")}),
        ({"counts": (1, 2), "roles": BOTH}, "count above 1", {"counts": (1, 2, 4), "roles": BOTH}),
        ({"counts": (1, 2), "roles": BOTH}, "payload", {"payloads": SWEEP, "roles": BOTH}),
        ({"counts": (2, 4, 8), "roles": ("local", "null")}, "one device", {"counts": (1, 2, 4, 8)}),
        ({"counts": (1, 2), "roles": ("local", "null")}, "count", {"counts": (1, 2, 4)}),
        ({"counts": (1,), "roles": ("local", "null"), "sizes": (4000,)}, "work", {"sizes": (4000, 8000)}),
        ({"counts": (1, 2), "roles": ("workload",)}, "size", {"sizes": (4000, 8000)}),
    ],
)
def test_the_advice_helps(start, key, extended):
    def told(**arguments):
        facts = plan(**arguments)
        return identify(design(RING, tuple(facts), facts, cores=None))

    before, after = told(**start), told(**{**start, **extended})
    advised = [names for names, text in zip(before.tied, before.ties, strict=True) if SEPARATORS[key] in text]
    assert advised
    assert not set(advised) <= set(after.tied)
    assert after.rank > before.rank


def test_units_play_no_part():
    found = columns(plan((1, 2, 4, 8), roles=BOTH))
    scales = 10.0 ** np.arange(-9, 9, 18 / len(found.names))[: len(found.names)]
    rescaled = Design(found.matrix * scales, found.names, found.units, found.causes)
    assert identify(rescaled) == identify(found)


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=6))
def test_rank_and_identified_agree_with_exact_arithmetic(rows):
    matrix = np.array(rows, dtype=float)
    names = ("c0", "dispatch", "gamma", "alpha")
    told = identify(Design(matrix, names, ("s",) * 4, ("dispatch", "dispatch", "compute", "communication")))
    assert told.rank == (exact_rank(matrix) if matrix.any() else 0)
    for j, name in enumerate(names):
        # A parameter is identified iff its unit vector lies in the row space: adding it leaves the rank.
        added = np.vstack([matrix, np.eye(4)[j]])
        assert told.identified[name] == (exact_rank(added) == told.rank)


def test_no_parameters_is_no_error():
    assert identify(Design(np.zeros((2, 0)), (), (), ())).rank == 0


@pytest.mark.parametrize(("law", "same"), [("linear", True), ("log", False)])
def test_ring_and_linear_coincide_where_bytes_do_not_matter(law, same):
    facts = plan((1, 2, 4, 8), roles=BOTH, payloads=(4096,))
    free_of_bytes = [
        Design(d.matrix[:, keep], (), (), ())
        for name in ("ring", law)
        for d in [design(Law(name, "per-device"), tuple(facts), facts, cores=None)]
        for keep in [[i for i, column in enumerate(d.names) if column != "beta"]]
    ]
    assert same_predictions(*free_of_bytes) is same


def test_ring_and_linear_differ_where_bytes_matter():
    facts = plan((1, 2, 4, 8), roles=BOTH, payloads=SWEEP)
    ring, linear = (design(Law(name, "per-device"), tuple(facts), facts, cores=None) for name in ("ring", "linear"))
    assert not same_predictions(ring, linear)


def test_a_law_that_says_less_is_not_the_same():
    more = columns(plan((1, 2, 4, 8), roles=BOTH))
    less = Design(more.matrix[:, 1:], more.names[1:], more.units[1:], more.causes[1:])
    assert same_predictions(more, more)
    assert not same_predictions(more, less)
    assert not same_predictions(less, more)


def test_constant_and_cores_limited_coincide_on_one_core():
    facts = plan((1, 2, 4))
    first, second = (design(Law("ring", c), tuple(facts), facts, cores=1) for c in ("constant", "cores-limited"))
    assert same_predictions(first, second)
