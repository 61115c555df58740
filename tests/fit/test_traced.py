"""Traces made by hand, whose numbers are known, beside launches whose communication is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from breakeven.data.schema import Failure, Trace, TracedOp
from breakeven.fit.report import answer
from breakeven.fit.traced import traced_calls, why_not_traced
from breakeven.model.cell import Cell

MS = 1_000_000
"""Nanoseconds of a millisecond."""

CELL = Cell(role="workload", strategy="jit", num_devices=2, size=2000)


def op(device: int, durations: tuple[int, ...], waits: tuple[int, ...] = (), name: str = "all-reduce.1") -> TracedOp:
    """Times in milliseconds."""
    return TracedOp(
        name=name,
        kind="all-reduce",
        device=device,
        executions=1,
        duration_ns=tuple(d * MS for d in durations),
        wait_ns=tuple(w * MS for w in waits),
    )


def trace_of(*ops: TracedOp, **fields: Any) -> Trace:
    about = {"cell": CELL, "calls": 3, "devices": (0, 1), "busy_ns": (5 * MS, 7 * MS)}
    times = {"latency_ns": (12 * MS, 8 * MS, 40 * MS), "untraced_latency_ns": (10 * MS, 9 * MS, 8 * MS)}
    return Trace(sweep="s", launch="l", ops=ops, **about | times | fields)


@pytest.fixture
def table_with(make_table):
    """``table_with(seconds, *traces)``: a sweep whose communication on two devices is known, and traces of it."""

    def make(communication: float, *traces: Trace, **fields: Any):
        table = make_table(
            lambda n, _size: (1e-3, communication * (n > 1), 5e-3), devices=(1, 2), cell_sd=1e-3, launch_sd=1e-3
        )
        return replace(table, traces=traces, **fields)

    return make


def test_medians_over_calls_of_means_over_devices(table_with):
    # Calls: device 0 takes 4, 6, 2 and waits 1, 0, 0; device 1 takes 6, 6, 4 and waits 3, 2, 0.
    found = trace_of(op(0, (4, 6, 2), (1, 0, 0)), op(1, (6, 6, 4), (3, 2, 0)))
    (one,) = traced_calls(table_with(4e-3, found), "jit")
    assert (one.num_devices, one.size, one.calls) == (2, 1000, 3)
    assert one.collective_s == pytest.approx(5e-3)  # of 5, 6, 3
    assert one.longest_s == pytest.approx(6e-3)  # of 6, 6, 4
    assert one.waiting_s == pytest.approx(1e-3)  # of 2, 1, 0
    assert one.exchange_s == pytest.approx(3e-3)  # of 3, 5, 3
    assert one.quartiles_within_launch_s == pytest.approx((4e-3, 5.5e-3))
    assert one.busy_share == pytest.approx(6 / 12)
    assert one.slowdown == pytest.approx(12 / 9 - 1)


def test_several_collectives_add_up_on_each_device(table_with):
    ops = [op(d, (2, 2, 2), (1, 1, 1), name) for d in (0, 1) for name in ("all-reduce.1", "all-reduce.2")]
    (one,) = traced_calls(table_with(4e-3, trace_of(*ops)), "jit")
    assert one.collective_s == pytest.approx(4e-3)
    assert one.waiting_s == pytest.approx(2e-3)


@pytest.mark.parametrize(
    ("communication", "agree", "factor", "why"),
    [
        (4e-3, "yes", 1.0, "lies between the exchange alone and the exchange with all waiting"),
        (1.5e-3, "yes", 2.0, "2 times shorter than the exchange without waiting"),
        (10e-3, "yes", 2.0, "2 times what the collectives take with all waiting"),
        (0.3e-3, "no", 10.0, "10 times shorter"),
        (50e-3, "no", 10.0, "10 times what the collectives take"),
        (15e-3, "undecided", 3.0, "reaches beyond a factor of 3"),
    ],
)
def test_the_second_witness_agrees_where_both_are_of_one_order(table_with, communication, agree, factor, why):
    """The trace: 5 ms, of which 2 ms are waiting, so that 3 to 5 ms are the communication."""
    found = trace_of(*(op(d, (5, 5, 5), (2, 2, 2)) for d in (0, 1)))
    (one,) = traced_calls(table_with(communication, found), "jit")
    assert one.law_free_s.estimate == pytest.approx(communication, rel=0.05)
    assert one.agree == agree
    assert one.factor == pytest.approx(factor, rel=0.05)
    assert why in one.reason


def test_no_communication_disagrees_without_a_factor(table_with):
    found = trace_of(*(op(d, (500, 500, 500), (0, 0, 0)) for d in (0, 1)))
    (one,) = traced_calls(table_with(0.0, found), "jit")
    assert one.agree == "no"
    assert one.factor is None or one.factor > 100


def test_waiting_not_told_apart_leaves_less_than_it_open(table_with):
    untold = trace_of(op(0, (5, 5, 5)), op(1, (5, 5, 5), (2, 2, 2)), remark="waiting in all-reduce.1: unknown")
    (low,) = traced_calls(table_with(0.3e-3, untold), "jit")
    (high,) = traced_calls(table_with(50e-3, untold), "jit")
    assert (low.waiting_s, low.exchange_s) == (None, None)
    assert (low.agree, low.factor) == ("undecided", None)
    assert "17 times shorter than the collectives with all waiting, but" in low.reason
    assert "may be waiting for the most part" in low.reason
    (none,) = traced_calls(table_with(0.0, untold), "jit")
    assert none.agree == "undecided"
    assert "reaches beyond" not in none.reason
    assert high.agree == "no"
    assert high.reason.endswith("waiting in all-reduce.1: unknown")
    (near,) = traced_calls(table_with(2.5e-3, untold), "jit")
    assert near.agree == "yes"
    assert near.reason.startswith("workload − local is 2 times shorter than the collectives with all waiting")


def test_fewer_than_three_launches_decide_nothing(make_table):
    table = make_table(lambda n, _: (1e-3, 4e-3 * (n > 1), 5e-3), devices=(1, 2), launches=2)
    (one,) = traced_calls(replace(table, traces=(trace_of(op(0, (5, 5, 5), (2, 2, 2))),)), "jit")
    assert one.agree == "undecided"
    assert "fewer than three launches" in one.reason


def test_a_program_without_collectives_has_nothing_to_compare(table_with):
    one_device = Cell(role="workload", strategy="jit", num_devices=1, size=1000)
    alone = trace_of(cell=one_device, devices=(0,), busy_ns=(3 * MS,))
    (one,) = traced_calls(table_with(4e-3, alone), "jit")
    assert (one.collective_s, one.longest_s, one.agree) == (None, None, None)
    assert one.reason == "no collective ran"
    assert one.busy_share == pytest.approx(3 / 12)


@pytest.mark.parametrize(
    ("communication", "agree", "why"),
    [
        (4e-3, "undecided", "the trace shows no collective, and workload − local lies above 0"),
        (0.0, None, "the trace shows no collective"),
    ],
)
def test_a_trace_that_shows_no_collective_is_no_proof_that_none_ran(table_with, communication, agree, why):
    (one,) = traced_calls(table_with(communication, trace_of()), "jit")
    assert (one.agree, one.factor, one.reason) == (agree, None, why)


def test_the_last_trace_of_a_cell_and_only_of_the_strategy_and_counts_asked_for(table_with):
    first, last = (trace_of(op(0, (d, d, d), (0, 0, 0))) for d in (1, 7))
    other = trace_of(cell=Cell(role="workload", strategy="pmap", num_devices=2, size=2000))
    table = table_with(4e-3, first, other, last)
    (one,) = traced_calls(table, "jit")
    assert one.collective_s == pytest.approx(7e-3)
    assert traced_calls(table, "jit", largest=1) == ()


def failure(message: str, cell: Cell | None = None, stage: str = "trace") -> Failure:
    return Failure(sweep="s", launch="l", stage=stage, error="MeasureError", message=message, cell=cell)


def test_what_was_not_traced_is_a_warning_until_it_is(table_with):
    lost = (failure("no operations", CELL), failure("elsewhere", CELL, stage="visit"))
    missing = table_with(4e-3, failures=lost)
    assert why_not_traced(missing) == [f"not traced ({CELL}): no operations"]
    assert f"not traced ({CELL}): no operations" in answer(missing).warnings
    assert why_not_traced(table_with(4e-3, trace_of(), failures=lost)) == []
    assert why_not_traced(table_with(4e-3, failures=(failure("did not start"),))) == ["not traced: did not start"]
