"""Cells that failed, and cells that were mended."""

import pytest
from breakeven.data.rounds import barred, mended, timed_visits, tried_again
from breakeven.data.schema import Failure, Launch, Plan, Program, Sweep, Visit
from breakeven.data.store import Record
from breakeven.model.cell import Cell


def cell(n):
    return Cell(role="workload", strategy="jit", num_devices=n, size=10)


def record(*launches):
    """Launches of one round each, given by the counts they measured; a negative count failed."""
    plan = Plan(workload="w", path="strong", objective="time", devices=(1, 2), sizes=(10,), strategies=("jit",))
    lines = [Sweep(schema=2, sweep="s", created="now", version="0", plan=plan)]
    for number, counts in enumerate(launches):
        where = {"sweep": "s", "launch": f"l{number}"}
        lines.append(Launch(**where, started="now"))
        for place, n in enumerate(counts):
            if n < 0:
                lines.append(Failure(**where, stage="build", error="E", message="m", cell=cell(-n)))
                continue
            at = {"program": place, "round": 0, "position": place, "time": 0.0, "warmups": 0}
            lines += [Program(**where, program=place, cell=cell(n)), Visit(**where, **at, latency_ns=(5,))]
    return Record.from_lines(lines)


def complete(found, again=None):
    return {v.visit.launch for v in timed_visits(found, again=again) if v.complete}


@pytest.mark.parametrize(
    ("launches", "counts_again", "whole"),
    [
        # Never tried again: all launches count, without it.
        ([(1, -2), (1, -2), (1,), (1,)], False, {"l0", "l1", "l2", "l3"}),
        # It works again, and as many launches lack it as hold it: none is given up for it.
        ([(1, -2), (1, -2), (1, 2), (1, 2)], False, {"l0", "l1", "l2", "l3"}),
        ([(1, -2), (1, -2), (1, 2), (1, 2), (1, 2)], True, {"l2", "l3", "l4"}),
        # One more failure, and it is out again, whatever was measured before.
        ([(1, -2), (1, -2), (1, 2), (1, 2), (1, 2), (1, -2)], False, {"l0", "l1", "l2", "l3", "l4", "l5"}),
        # Measured well before it failed: nobody tried it again.
        ([(1, 2), (1, 2), (1, 2), (1, -2), (1, -2)], False, {"l0", "l1", "l2", "l3", "l4"}),
    ],
)
def test_a_barred_cell_counts_again_when_more_launches_hold_it_than_lack_it(launches, counts_again, whole):
    found = record(*launches)
    assert barred(found) == {cell(2)}
    assert mended(found) == ({cell(2)} if counts_again else set())
    assert complete(found) == whole


def test_a_sweep_that_tries_again_owes_the_cell_from_its_first_launch_on():
    nothing_yet, one = record((1, -2), (1, -2)), record((1, -2), (1, -2), (1, 2))
    assert tried_again(nothing_yet) == {}
    assert complete(nothing_yet, again={cell(2)}) == set()
    assert tried_again(one) == {cell(2): (1, 2)}
    assert complete(one, again={cell(2)}) == {"l2"}
