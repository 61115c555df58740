"""The texts on breaks and overlap."""

from types import SimpleNamespace

from breakeven.cli.render_breaks import breaks, overlap
from breakeven.fit.answer import Break, Estimate, Overlap


def answer(**fields):
    return SimpleNamespace(**({"unit": "rows", "path": "strong", "breaks": (), "overlap": ()} | fields))


def found(**fields) -> Break:
    values = {
        "axis": "count",
        "role": "workload",
        "below": 4,
        "above": 8,
        "places": (256, 512),
        "factor": Estimate(estimate=3.5, interval=(3.3, 3.7)),
        "excess": 4.77,
        "changes": "latency",
        "p": 0.0075,
        "reason": "from 4 to 8 devices the time is 4.77 times what the law of the smaller counts gives",
    }
    return Break(**(values | fields))


def test_breaks_over_counts_and_payloads():
    payload = found(axis="payload", role="chain", below=8192, above=16384, places=(4,), p=0.0002, reason="not shown")
    text = breaks(answer(breaks=(found(), payload)))
    assert text is not None
    assert [line.split() for line in text.splitlines() if "to" in line.split()[:4]][:2] == [
        ["devices", "4", "to", "8", "2", "sizes", "3.5", "[3.3,", "3.7]", "4.77", "0.007"],
        ["payload", "8", "KiB", "to", "16", "KiB", "4", "devices", "3.5", "[3.3,", "3.7]", "4.77", "<0.001"],
    ]
    assert "off by more than 10 %" in text
    assert "not shown" not in text
    assert all(len(line) <= 100 and line == line.rstrip() for line in text.splitlines())


def test_overlap_is_shown_where_it_was_measured():
    known = Overlap(
        num_devices=8,
        size=512,
        hidden_s=Estimate(estimate=5e-5, interval=(4e-5, 6e-5)),
        fraction=Estimate(reason="unknown"),
        reason="on 8 devices part of the communication is hidden behind other work",
    )
    text = overlap(answer(overlap=(known,)))
    assert text is not None
    assert "8   50 µs [40, 60]" in text
    assert "on 8 devices part of the communication is hidden" in text


def test_nothing_is_said_where_nothing_was_found():
    assert breaks(answer()) is None
    assert overlap(answer()) is None
