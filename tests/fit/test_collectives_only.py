"""Collectives timed by themselves, as nccl-tests does: parameters, and a reason for everything else."""

from dataclasses import replace

import pytest
from breakeven.data.catalog import open_record
from breakeven.fit.launches import from_record
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
