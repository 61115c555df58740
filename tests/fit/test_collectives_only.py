"""Collectives timed by themselves, as nccl-tests does: parameters, and a reason for everything else."""

from dataclasses import replace

import pytest
from breakeven.data.catalog import open_record
from breakeven.fit.intervals import EXACT_FIT
from breakeven.fit.launches import from_record
from breakeven.fit.question import QuestionError
from breakeven.fit.report import answer

ONE_CHANNEL_RING_US = (10, 13.76, 16.88, 20.8, 25.2, 29.5, 33.7)
"""A one-channel ring of 128 B on 2..8 GPUs of one node, https://github.com/NVIDIA/nccl-tests/issues/123."""


@pytest.fixture
def ring_table(tmp_path):
    path = tmp_path / "ring.csv"
    rows = [f"{n},128,{t}" for n, t in enumerate(ONE_CHANNEL_RING_US, start=2)]
    path.write_text("\n".join(["devices,message_bytes,us", *rows]) + "\n")
    return from_record(open_record(str(path), columns="latency_s=us/1e6"))


@pytest.fixture
def ring(ring_table):
    return answer(ring_table)


def test_a_small_all_reduce_grows_by_two_microseconds_a_step(ring):
    alpha = ring.parameters["alpha"]
    assert alpha.estimate == pytest.approx(1.980e-6, rel=1e-3)
    # 1.980 (0.047) us by least squares over the seven means; t with 5 degrees of freedom is 2.571.
    assert alpha.interval == pytest.approx((1.859e-6, 2.101e-6), rel=5e-3)
    base = next(p for name, p in ring.parameters.items() if "alpha0" in name and p.identified)
    assert base.estimate == pytest.approx(5.56e-6, rel=2e-3)


def test_a_ring_fits_and_a_logarithm_does_not(ring):
    laws = {law.name.split(",")[0]: law for law in ring.laws if law.misfit is not None}
    assert laws["ring"].adequate
    assert not laws["log"].adequate


def test_what_was_left_out_as_impossible_is_named(ring_table, ring):
    assert ring.named_warnings == ()
    found = answer(replace(ring_table, impossible=("1 of 8 times is too short",)))
    assert [(one.name, one.text, one.doubts_verdict) for one in found.named_warnings] == [
        ("impossible-rate", "1 of 8 times is too short", True)
    ]
    assert found.named_warnings[0].text in found.warnings
    assert found.doubts == ()


def test_what_needs_a_program_is_not_answered(ring):
    assert ring.verdict == "undecided"
    assert "only collectives" in ring.verdict_reason
    assert ring.optimal_devices.estimate is None
    assert ring.communication_bound.share.holds == "undefined"
    assert ring.interval_method == "residuals, replication unknown"


@pytest.fixture
def two_ways(tmp_path):
    """1 GiB on 2 to 16 nodes: a ring of 20.5 ps/B, and a sum in the switch (synthetic)."""
    ring = {2: 22.0, 3: 29.3, 4: 33.0, 6: 36.7, 8: 38.5, 12: 40.3, 16: 41.2}
    switch = {2: 36.0, 3: 31.9, 4: 29.9, 6: 18.6, 8: 18.6, 12: 18.6, 16: 18.6}
    path = tmp_path / "ways.csv"
    rows = [
        f"{n},{2**30},{ms},{way},1" for way, one in (("ring", ring), ("sharp", switch)) for n, ms in sorted(one.items())
    ]
    rows.append(f"2,{2**20},0.1,sharp,1")
    path.write_text("\n".join(["devices,message_bytes,ms,strategy,round", *rows]) + "\n")
    return from_record(open_record(str(path), columns="latency_s=ms/1e3"))


def test_the_strategy_asked_for_is_answered(two_ways):
    ring, sharp = (answer(two_ways, strategy=way) for way in ("ring", "sharp"))
    assert (ring.strategy, ring.sizes) == ("ring", (2**30,))
    assert (sharp.strategy, sharp.sizes) == ("sharp", (2**20, 2**30))
    assert ring.parameters["beta"].estimate == pytest.approx(20.5e-12, rel=0.01)
    assert not any(report.adequate for report in sharp.laws)
    assert answer(two_ways).strategy == "ring"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"strategy": "tree"}, "strategy 'tree' was not measured; measured: ring, sharp"),
        ({"size": 999}, "size 999 was not measured; measured: 1073741824"),
        ({"reference": 5}, "reference 5 was not measured; measured: 2, 3, 4, 6, 8, 12, 16"),
        ({"reference": 4, "max_devices": 3}, "max_devices 3 lies below the reference count 4"),
        ({"objective": "throughput"}, "only collectives were measured.*only a program does work"),
    ],
)
def test_what_was_not_measured_is_not_answered(two_ways, asked, message):
    with pytest.raises(QuestionError, match=message):
        answer(two_ways, **asked)


def test_the_payload_and_the_reference_asked_for_are_those_of_the_answer(two_ways):
    found = answer(two_ways, strategy="sharp", size=2**20, reference=4, max_devices=8)
    assert (found.size, found.reference_devices, found.largest_devices) == (2**20, 4, 8)
    assert (found.growth_range.from_devices, found.growth_range.to_devices) == (4, 8)


def test_the_law_whose_parameters_are_given_is_named(ring):
    assert ring.parameters_of == "ring, per-device"


def made(tmp_path, *rows):
    path = tmp_path / "made.csv"
    path.write_text("\n".join(["devices,message_bytes,ms", *rows]) + "\n")
    return answer(from_record(open_record(str(path), columns="latency_s=ms/1e3")))


def test_no_law_of_one_link_is_kept_where_the_time_falls_by_more_than_the_margin(tmp_path):
    found = made(tmp_path, "8,536870912,25.0", "16,536870912,21.4", "32,536870912,19.9")
    reports = {report.name: report for report in found.laws if report.misfit is not None}
    chosen = reports[found.parameters_of]
    assert (chosen.judged, chosen.adequate, chosen.kept) == (True, False, False)
    assert chosen.reason == "cannot fall as the times do from 8 to 32 devices"
    # One free time for each count can.
    assert [name for name, report in reports.items() if report.kept] == ["free, per-device"]
    assert any("1.3 times as long on 8 devices as on 32" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    "rows",
    [
        ("8,536870912,25.0", "16,536870912,24.0", "32,536870912,22.5"),
        ("8,536870912,25.0", "16,536870912,26.0", "32,536870912,20.4"),
        ("8,536870912,25.0", "32,536870912,20.0"),
    ],
    ids=["within the margin", "not from count to count", "two counts"],
)
def test_noise_is_no_fall(tmp_path, rows):
    found = made(tmp_path, *rows)
    assert not any("times as long" in warning for warning in found.warnings)
    assert not any(report.reason and "cannot fall" in report.reason for report in found.laws)


def test_small_messages_that_fall_do_not_reject_a_law_of_large_ones(tmp_path):
    rows = [f"{n},{2**30},{2 * (n - 1) / n * 20}" for n in (2, 4, 8)]
    found = made(tmp_path, *rows, "2,8,0.0240", "4,8,0.0200", "8,8,0.0170")
    assert any("8 B take 1.4 times as long on 2 devices as on 8" in warning for warning in found.warnings)
    assert not any(report.reason and "cannot fall" in report.reason for report in found.laws)


def test_numbers_of_a_formula_have_no_interval(tmp_path):
    found = made(tmp_path, *(f"{n},64,{(6 + 4 * (n - 1)) / 1e3}" for n in range(2, 9)))
    alpha = found.parameters["alpha"]
    assert alpha.estimate == pytest.approx(2e-6, rel=1e-9)
    assert (alpha.interval, alpha.reason) == (None, EXACT_FIT)
