"""Breaks of whole tables: leaving a node, in-switch reduction, protocols; and what follows for predictions."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.fit.breaks import break_warnings, breaks, reject_single_laws, why_not_sought
from breakeven.fit.launches import LaunchTable
from breakeven.fit.lawfit import fit_laws
from breakeven.fit.objective import Costs
from breakeven.fit.report import answer
from breakeven.fit.segment_trend import SegmentTrend
from breakeven.fit.trend import Baseline
from breakeven.model.cell import Cell

FFT_MS = {
    # https://github.com/ASKabalan/jaxdecomp-benchmarks: best float32 times of a 3D FFT, four V100 share a node.
    256: (0.91, 3.03, 2.31, 1.70, 1.24, 0.99),
    512: (6.12, 22.06, 16.37, 11.23, 5.56, 3.87),
    1024: (46.87, 174.3, 127.0, 92.3, 42.0, 28.3),
}
FFT_COUNTS = (4, 8, 16, 32, 64, 128)
# https://github.com/stas00/ml-engineering, network/README.md: bus bandwidth of 8 GiB on 4 to 8 H200, GB/s.
SWITCHED = (363.3, 414.2, 435.6, 460.0, 473.1)
RING = (363.3, 364.4, 365.1, 365.7, 365.6)


def table(times: dict[Cell, object], *, path: str = "strong", replicated: bool = False, **fields) -> LaunchTable:
    cells = tuple(sorted(times, key=lambda cell: cell.sort_key))
    workload = [cell for cell in cells if cell.role == "workload"] or list(cells)
    plan = Plan(
        workload="made",
        path=path,
        objective="time",
        devices=tuple(sorted({cell.num_devices for cell in cells})),
        sizes=tuple(sorted({cell.size for cell in workload})),
        strategies=tuple(sorted({cell.strategy for cell in cells})),
        divides=False,
    )
    return LaunchTable(
        plan=plan,
        cells=cells,
        latency_s=np.array([np.atleast_1d(times[cell]) for cell in cells], dtype=float),
        replicated=replicated,
        foreign=not replicated,
        **fields,
    )


def programs(by_size: dict[int, object], counts, *, strategy="jit", role="workload") -> dict[Cell, object]:
    return {
        Cell(role=role, strategy=strategy, num_devices=n, size=size): t
        for size, times in by_size.items()
        for n, t in zip(counts, times, strict=True)
    }


def collectives(times, counts, payload, *, strategy="nccl") -> dict[Cell, float]:
    return {
        Cell(role="chain", strategy=strategy, num_devices=n, size=payload, k=1, payload_bytes=payload): t
        for n, t in zip(counts, times, strict=True)
    }


def bus(bandwidths, counts=range(4, 9), payload=2**33):
    return [2 * (n - 1) / n * payload / (b * 1e9) for n, b in zip(counts, bandwidths, strict=True)]


@pytest.fixture(scope="module")
def fft():
    return table(programs({s: np.array(t) * 1e-3 for s, t in FFT_MS.items()}, FFT_COUNTS))


def test_leaving_the_node_is_found_and_said_to_be_communication(fft):
    (found,) = breaks(fft, "jit")
    assert (found.axis, found.role, found.below, found.above) == ("count", "workload", 4, 8)
    measured = np.exp(np.mean([np.log(t[1] / t[0]) for t in FFT_MS.values()]))
    assert found.factor.estimate == pytest.approx(measured)
    assert found.factor.estimate == pytest.approx(3.5, abs=0.1)
    assert found.excess > found.factor.estimate, "work per device halves, so the law expects less time on 8"
    assert "communication-bound, indirect evidence" in found.reason
    assert found.p < 0.02


def test_with_a_control_the_evidence_is_not_called_indirect(fft):
    local = programs({s: np.array(t) * 1e-4 for s, t in FFT_MS.items()}, FFT_COUNTS, role="local")
    both = table(dict(zip(fft.cells, fft.latency_s, strict=True)) | local)
    (found,) = breaks(both, "jit")
    assert "indirect" not in found.reason


def test_no_law_predicts_over_a_break(fft):
    found = breaks(fft, "jit")
    fits = reject_single_laws(fit_laws(fft, "jit"), found)
    assert fits.kept == ()
    assert not any(report.adequate or report.kept for report in fits.reports)
    assert any("break between 4 and 8" in (report.reason or "") for report in fits.reports)
    costs = Costs.of(fft, "jit", fits, max_devices=256)
    for n in (5, 6, 7):
        between = costs.at(n, 512)
        assert between.kind == "refused"
        assert "the times break between 4 and 8 devices: measure this count" in between.source
    beyond = costs.at(256, 512)
    assert beyond.kind == "extrapolated"
    assert "next to the break between 4 and 8 devices" in beyond.source
    assert costs.at(8, 512).source == "measured"


def test_a_trend_needs_two_counts_beyond_the_last_break():
    baseline = Baseline(times_s={(n, 1): np.array([1.0 / n]) for n in (2, 4, 8)}, discrepancy=0.1)
    trend = SegmentTrend(baseline=baseline, borders=((4, 8),))
    assert trend.latency_s(16, 1) is None
    assert "one count lies beyond: measure more there" in (trend.refusal(16) or "")
    assert trend.refusal(3) is None
    np.testing.assert_allclose(trend.latency_s(3, 1), baseline.latency_s(3, 1))
    before = SegmentTrend(baseline=baseline, borders=((2, 4),))
    np.testing.assert_allclose(before.latency_s(16, 1), baseline.latency_s(16, 1))
    assert before.discrepancy == 0.1


def test_the_answer_holds_the_break_and_warns(fft):
    found = answer(fft, size=512)
    assert [one.axis for one in found.breaks] == ["count"]
    assert any("single-law model over the node border rejected" in warning for warning in found.warnings)
    assert found.breaks_not_sought is None
    assert found.break_even.first.estimate is not None
    assert 32 < found.break_even.first.estimate <= 64
    assert answer(fft, size=256).break_even.first.estimate is None


def test_in_switch_reduction_turns_on_at_five_devices():
    counts = range(4, 9)
    cells = collectives(bus(SWITCHED), counts, 2**33, strategy="as-is") | collectives(
        bus(RING), counts, 2**33, strategy="off"
    )
    both = table(cells)
    (found,) = breaks(both, "as-is")
    assert (found.axis, found.role, found.below, found.above) == ("count", "chain", 4, 5)
    assert found.changes == "in-switch reduction"
    assert found.factor.estimate == pytest.approx((1.6 / 414.2) / (1.5 / 363.3))
    assert "no law of the menu has a collective's time fall" in found.reason
    assert breaks(both, "off") == ()


def test_a_ring_without_borders_has_none():
    # 16, 32 and 64 V100 on p3dn, 8 bytes: https://gist.github.com/a92f4425abf831ac0799fabe9079263d and two others.
    assert breaks(table(collectives([163e-6, 319e-6, 630e-6], (16, 32, 64), 8)), "nccl") == ()


def test_protocols_are_found_along_the_payload():
    payloads = 2 ** np.arange(2, 21)
    rng = np.random.default_rng(3)
    times = {}
    for n, border in ((4, 2**13), (8, 2**15)):
        smooth = n * 1e-5 + payloads * 1e-10
        steps = np.where(payloads > border, 2.5, 1.0) * smooth * np.exp(rng.normal(0, 0.02, len(payloads)))
        for payload, t in zip(payloads.tolist(), steps, strict=True):
            times |= collectives([t], [n], payload)
    found = [b for b in breaks(table(times), "nccl") if b.axis == "payload"]
    assert [(b.places, b.below, b.above) for b in found] == [((4,), 2**13, 2**14), ((8,), 2**15, 2**16)]
    assert all(b.factor.estimate == pytest.approx(2.5, rel=0.1) for b in found)
    assert "along the payload" in break_warnings(found)[0]


def test_the_step_from_one_device_is_never_a_break():
    counts = (1, 2, 4, 8, 16, 32)
    times = [1e-5, *(1e-3 + 1e-2 / n for n in counts[1:])]
    noise = np.exp(np.random.default_rng(0).normal(0, 0.02, (6, 6)))
    cells = programs({1000: np.array(times)[:, None] * noise}, counts)
    assert breaks(table(cells, replicated=True), "jit") == ()


def test_launches_give_the_factor_an_interval_and_must_agree():
    counts = (2, 4, 8, 16, 32, 64)
    n = np.array(counts)
    jump = np.where(n > 8, 3.0, 1.0) * (1e-5 + 1e-3 / n)
    noise = np.exp(np.random.default_rng(0).normal(0, 0.03, (3, 6, 6)))
    cells = programs({s: (jump * s)[:, None] * e for s, e in zip((1, 2, 4), noise, strict=True)}, counts)
    (found,) = breaks(table(cells, replicated=True), "jit")
    lower, upper = found.factor.interval
    truth = jump[3] / jump[2]
    assert lower < truth < upper
    assert upper / lower < 1.2


@pytest.mark.parametrize(("counts", "role", "fewest"), [((1, 2, 4, 8), "workload", 5), ((4, 6, 8), "chain", 4)])
def test_too_few_counts_are_said_to_be_too_few(counts, role, fewest):
    if role == "workload":
        made = table(programs({10: [1.0] * len(counts)}, counts))
    else:
        made = table(collectives([1.0] * len(counts), counts, 8))
    strategy = made.plan.strategies[0]
    assert breaks(made, strategy) == ()
    assert f"needs {fewest} counts above one" in (why_not_sought(made, strategy) or "")


def test_without_a_break_nothing_changes(fft):
    fits = fit_laws(fft, "jit")
    assert reject_single_laws(fits, ()) is fits
    assert break_warnings(()) == ()


def test_rows_in_another_order_give_the_same_breaks(fft):
    order = np.random.default_rng(0).permutation(len(fft.cells))
    shuffled = replace(fft, cells=tuple(fft.cells[i] for i in order), latency_s=fft.latency_s[order])
    assert msgspec.json.encode(breaks(shuffled, "jit")) == msgspec.json.encode(breaks(fft, "jit"))
