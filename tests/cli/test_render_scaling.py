"""The lines on other scaling laws and on telling laws apart."""

import msgspec
import pytest
from breakeven.cli.render_scaling import scaling, separation
from breakeven.fit.answer import Estimate, ScalingNumbers, Separation

NUMBERS = ScalingNumbers(
    law="ring, per-device",
    size=2**26,
    contention=Estimate(estimate=0.0061, interval=(0.0058, 0.0065)),
    coherency=Estimate(estimate=0.0, interval=(0.0, 1e-4), reason="at its bound 0: one-sided limit"),
    serial_fraction=Estimate(reason="the time grows"),
    isoefficiency=Estimate(reason="the time grows"),
)
APART = Separation(
    laws=("log, per-device", "ring, per-device"), num_devices=16, size=2**26, difference=0.093, noise=0.04
)


def test_numbers_and_reasons(strong_answer):
    text = scaling(msgspec.structs.replace(strong_answer, scaling_numbers=NUMBERS))
    assert text.splitlines()[0] == "scaling numbers of the law ring, per-device, 64 MiB in all"
    assert "sigma (USL, contention)   0.0061 [0.0058, 0.0065]" in text
    assert "0.00010], at its bound 0: one-sided limit" in text
    assert "serial fraction (Amdahl) and isoefficiency exponent: none, the time grows" in text


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "to tell the laws apart measure 16 devices, 64 MiB: 'ring, per-device' says 9.3 % more than"),
        ({"num_devices": 2}, "to tell the laws apart measure 2 devices again, 64 MiB:"),
        ({"reason": "up to 8 devices they differ by less"}, "are not told apart: up to 8 devices they differ by less"),
        ({"noise": None}, "9.3 % more than 'log, per-device'"),
    ],
)
def test_the_run_that_tells_laws_apart(strong_answer, changes, line):
    found = msgspec.structs.replace(APART, **changes)
    text = separation(msgspec.structs.replace(strong_answer, separating_devices=found))
    assert line in " ".join(text.split())
    assert ("where launches differ by 4 %" in " ".join(text.split())) == (found.noise is not None)


def test_nothing_is_said_of_nothing(strong_answer):
    assert scaling(strong_answer) is None
    assert separation(strong_answer) is None
