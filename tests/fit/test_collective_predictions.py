"""Collectives timed by themselves: what other counts would take, and when nothing is said."""

import numpy as np
import pytest
import statsmodels.api as sm
from breakeven.data.catalog import open_record
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer

US = {16: 163.0, 32: 319.0, 64: 630.0}


@pytest.fixture
def predicted(tmp_path):
    """Predictions for lines of (ranks, bytes, microseconds and perhaps a launch), by (count, payload)."""

    def run(rows, *, max_devices=None):
        path = tmp_path / "collectives.csv"
        header = "devices,message_bytes,us" + (",launch" if len(rows[0]) == 4 else "")
        path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
        found = answer(from_record(open_record(str(path), columns="latency_s=us/1e6")), max_devices=max_devices)
        return {(p.num_devices, p.size): p for p in found.predictions}

    return run


def test_the_interval_is_that_of_least_squares_on_the_log_scale(predicted):
    found = predicted([(n, 8, t) for n, t in US.items()], max_devices=128)[128, 8].latency_s
    steps = sm.add_constant(2.0 * (np.array(list(US)) - 1))
    told = sm.OLS(np.array(list(US.values())), steps).fit().get_prediction([[1, 2.0 * 127]])
    assert found.estimate * 1e6 == pytest.approx(told.predicted_mean[0], rel=1e-6)
    half = told.conf_int()[0, 1] - told.predicted_mean[0]
    # The delta method turns a half width into a factor; they differ by its square.
    assert np.log(found.interval[1] / found.estimate) == pytest.approx(half / told.predicted_mean[0], rel=1e-6)


def test_counts_are_the_measured_ones_and_their_doublings(predicted):
    rows = [(n, 8, t) for n, t in US.items()]
    assert sorted(n for n, _ in predicted(rows)) == [16, 32, 64]
    assert sorted(n for n, _ in predicted(rows, max_devices=300)) == [16, 32, 64, 128, 256, 300]
    assert sorted(n for n, _ in predicted(rows, max_devices=32)) == [16, 32]


def test_launches_give_t_intervals(predicted):
    rng = np.random.default_rng(0)
    rows = [
        (n, 8, round(5 + 2 * 2 * (n - 1) * float(np.exp(rng.normal(0, 0.01))), 3), launch)
        for launch in "abcd"
        for n in (2, 3, 4, 6, 8, 12)
    ]
    found = predicted(rows, max_devices=24)
    at = found[24, 8]
    assert at.kind == "extrapolated"
    assert at.latency_s.interval[0] < (5 + 4 * 23) * 1e-6 < at.latency_s.interval[1]
    assert found[12, 8].kind == "measured"
    assert found[12, 8].latency_s.interval is not None


def test_payloads_share_one_law(predicted):
    def seconds(n, payload):
        return 8e-6 + 2 * (n - 1) * 1.5e-6 + 2 * (n - 1) / n * payload / 20e9

    payloads = (1024, 2**20, 2**27)
    rows = [(n, payload, round(seconds(n, payload) * 1e6, 3)) for n in (2, 4, 8, 16) for payload in payloads]
    found = predicted(rows, max_devices=64)
    for payload in payloads:
        assert found[64, payload].latency_s.estimate == pytest.approx(seconds(64, payload), rel=0.01)
        bandwidth = found[64, payload].throughput.estimate
        assert bandwidth == pytest.approx(payload / found[64, payload].latency_s.estimate)


def test_laws_without_intervals_that_disagree_say_nothing(predicted):
    at = predicted([(2, 1024, 20), (4, 1024, 40)], max_devices=16)[16, 1024]
    assert (at.kind, at.latency_s.estimate, at.throughput.estimate) == ("refused", None, None)
    assert at.source.endswith("fit these times alike and differ here; measure another count")


def test_times_that_no_formula_follows_are_not_extrapolated(predicted):
    at = predicted([(2, 8, 10), (4, 8, 50), (8, 8, 12), (16, 8, 70)], max_devices=32)[32, 8]
    assert (at.kind, at.latency_s.estimate) == ("refused", None)
    assert "no law that fits these times has a number for this count" in at.source


def test_collectives_have_no_speedup(predicted):
    at = predicted([(n, 8, t) for n, t in US.items()])[32, 8]
    assert at.speedup.estimate is None
    assert "only collectives were measured" in at.speedup.reason
