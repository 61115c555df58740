"""The text on traces."""

from types import SimpleNamespace
from typing import Any

import pytest
from breakeven.cli.render_traced import traced
from breakeven.fit.answer import Estimate, Traced


def answer(*found: Traced) -> Any:
    return SimpleNamespace(unit="rows", path="weak", traced=found)


def found(**fields: Any) -> Traced:
    values = {
        "num_devices": 2,
        "size": 1000,
        "calls": 20,
        "collective_s": 5e-3,
        "quartiles_within_launch_s": (4e-3, 5.5e-3),
        "longest_s": 6e-3,
        "waiting_s": 1e-3,
        "exchange_s": 3e-3,
        "busy_share": 0.5,
        "slowdown": 1 / 3,
        "law_free_s": Estimate(estimate=4e-3, interval=(3.9e-3, 4.1e-3)),
        "factor": 1.0,
        "agree": "yes",
        "reason": "it lies between",
    }
    return Traced(**(values | fields))


ALONE = {
    **{"num_devices": 1, "collective_s": None, "quartiles_within_launch_s": None, "longest_s": None, "factor": None},
    **{"waiting_s": None, "exchange_s": None, "law_free_s": Estimate(reason="one device"), "agree": None},
    **{"slowdown": -0.1, "reason": "no collective ran"},
}


def test_waiting_apart_the_slowdown_and_that_nothing_was_replicated():
    text = traced(answer(found(**ALONE), found()))
    assert text is not None
    assert all(len(line) <= 100 and line == line.rstrip() for line in text.splitlines())
    flat = " ".join(text.split())
    assert "1,000 rows per device; 20 calls under JAX's profiler in one launch, not replicated" in flat
    assert "no interval over launches" in flat
    rows = [line.split("  ") for line in text.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert ["1", "-", "-", "-", "-", "50 %"] in cells
    assert ["2", "5 ms (4 ms to 5.5 ms)", "1 ms", "3 ms", "4.00 ms [3.90, 4.10]", "50 %"] in cells
    assert "1 device: no collective ran" in flat
    assert "2 devices: the trace agrees with workload − local: it lies between" in flat
    assert "2 devices: tracing made the calls 33 % longer than those just before" in flat
    assert "1 device: tracing made the calls no longer" in flat


@pytest.mark.parametrize(
    ("agree", "factor", "says"),
    [
        ("yes", 2.0, "agrees with workload − local within a factor of 2: it lies between"),
        ("no", 10.0, "DISAGREES with workload − local: it lies between"),
        ("undecided", 2.0, "whether the trace agrees with workload − local: cannot tell: it lies between"),
    ],
)
def test_agreement_in_words(agree, factor, says):
    text = traced(answer(found(agree=agree, factor=factor)))
    assert text is not None
    assert says in " ".join(text.split())


def test_nothing_is_said_without_a_trace():
    assert traced(answer()) is None
