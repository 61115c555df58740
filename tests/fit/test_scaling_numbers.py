"""Sigma, kappa, serial share and isoefficiency from the law, against the truth that made the data."""

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.fit.launches import LaunchTable
from breakeven.fit.lawfit import fit_laws
from breakeven.fit.scaling_numbers import scaling_numbers
from breakeven.fit.separation import separating_devices
from breakeven.model import simulate
from breakeven.model.cell import Cell
from breakeven.model.law import Law
from scipy.optimize import brentq, curve_fit

COUNTS = (1, 2, 3, 4, 6, 8)
QUIET = {"launch_sd": 0, "cell_launch_sd": 0, "round_sd": 0, "visit_sd": 0, "call_sd": 0, "tail": 0}
NO_ENTRY = {**simulate.REGIMES["dispatch"], "entry": 0.0, "alpha0": 0.0}
SERIAL = {**simulate.REGIMES["compute"], "entry": 0.0, "alpha0": 0.0, "dispatch": 0.0, "alpha": 0.0, "beta": 0.0}


def sweep(parameters, *, law=None, seed=0, noise=None, launches=6, **layout):
    truth = simulate.truth(parameters, law=law, **({"devices": COUNTS} | layout))
    samples = simulate.sample(truth.times_s, launches=launches, rounds=4, calls=7, seed=seed, **(noise or {}))
    plan = Plan(
        workload="simulated",
        path=truth.path,
        objective="time",
        devices=truth.devices,
        sizes=truth.sizes,
        strategies=("jit",),
    )
    table = LaunchTable(
        plan=plan,
        cells=truth.cells,
        latency_s=np.median(samples, axis=3).mean(axis=2),
        facts=truth.facts,
        visible_devices=8,
        platform="cpu",
    )
    return table, truth


def numbers(table, size=65536):
    return scaling_numbers(table, "jit", fit_laws(table, "jit"), axis_size=size)


def test_sigma_and_kappa_are_those_of_the_curve_through_the_truth():
    table, truth = sweep(NO_ENTRY, noise=QUIET)
    n = np.arange(1, 65)
    times = np.array([truth.latency_s(k, 65536) for k in n.tolist()])

    def scalability(n, rate, sigma, kappa):
        return rate * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))

    (_, sigma, kappa), _ = curve_fit(scalability, n, 1 / times, p0=(1 / times[0], 0.01, 0.001), xtol=1e-14, ftol=1e-14)
    found = numbers(table)
    assert found.law == "ring, per-device"
    assert found.contention.estimate == pytest.approx(sigma, rel=1e-4)
    assert found.coherency.estimate == pytest.approx(kappa, rel=1e-4)
    # Time that grows with the count is none of Amdahl's terms.
    assert found.serial_fraction.estimate is None
    assert "with each device" in found.serial_fraction.reason


def test_intervals_hold_the_truth():
    quiet = numbers(sweep(NO_ENTRY, noise=QUIET)[0])
    inside = 0
    for seed in range(5):
        found = numbers(sweep(NO_ENTRY, seed=seed)[0])
        for one, true in ((found.contention, quiet.contention), (found.coherency, quiet.coherency)):
            # A law with an entry may err on the side of caution: it then gives none.
            inside += one.interval is None or one.interval[0] <= true.estimate <= one.interval[1]
    # Ten 95 % intervals: fewer than seven hits have a probability of 0.1 %.
    assert inside >= 7


def test_at_the_bound_the_limit_is_one_sided_and_the_numbers_can_be_written():
    table, _ = sweep({**SERIAL, "c0": 0.0, "floor": 0.0}, seed=3, controls=False, probes=False)
    found = numbers(table)
    contention = found.contention
    assert contention.interval is not None
    assert contention.interval[0] == 0 <= contention.estimate < contention.interval[1]
    assert "one-sided" in contention.reason
    assert json.loads(msgspec.json.encode(found))["contention"]["interval"] == list(contention.interval)


def test_the_serial_fraction_is_what_many_devices_leave():
    table, truth = sweep(SERIAL, noise=QUIET)
    found = numbers(table)
    assert found.serial_fraction.estimate == pytest.approx(
        truth.latency_s(10**6, 65536) / truth.latency_s(1, 65536), rel=1e-2
    )
    assert found.serial_fraction.estimate == found.contention.estimate
    assert found.coherency.estimate == pytest.approx(0, abs=1e-9)


def test_what_is_paid_once_leaves_no_sigma():
    found = numbers(sweep(simulate.REGIMES["latency"])[0])
    for one in (found.contention, found.coherency, found.serial_fraction):
        assert one.estimate is None
        assert "costs" in one.reason
        assert "once" in one.reason


def test_bytes_that_cost_more_than_sharing_saves_leave_none():
    parameters = {**NO_ENTRY, "beta": 100 * simulate.REGIMES["bandwidth"]["beta"]}
    found = numbers(sweep(parameters, noise=QUIET)[0])
    assert "negative" in found.contention.reason


def test_a_logarithm_is_no_term_of_these_laws():
    parameters = {**NO_ENTRY, "alpha": 50e-6}
    table, _ = sweep(parameters, law=Law("log", "per-device"), noise=QUIET)
    found = numbers(table)
    assert found.law == "log, per-device"
    assert "not of the form" in found.contention.reason


@pytest.mark.parametrize("law", [Law("ring", "per-device"), Law("log", "per-device")])
def test_the_exponent_is_the_slope_between_the_sizes_of_half_efficiency(law):
    table, truth = sweep({**simulate.REGIMES["dispatch"], "beta": 0.0}, law=law, noise=QUIET)

    def needed(n):
        def short(size):
            return truth.latency_s(1, round(size)) / (n * truth.latency_s(n, round(size))) - 0.5

        return brentq(short, 100, 1e9, rtol=1e-9)

    found = numbers(table)
    # Between the places looked at a straight line stands for the curve.
    assert found.isoefficiency.estimate == pytest.approx(np.log2(needed(8) / needed(4)), rel=0.02)


def test_overhead_that_grows_with_the_work_is_never_half_efficient():
    found = numbers(sweep(simulate.REGIMES["bandwidth"], noise=QUIET)[0])
    assert found.isoefficiency.estimate is None
    assert "8 devices reach an efficiency of 50 % at no size" in found.isoefficiency.reason


def test_one_size_does_not_say_how_work_grows():
    found = numbers(sweep(NO_ENTRY, sizes=(4096,))[0], size=4096)
    assert "one size was measured" in found.isoefficiency.reason


def test_without_a_law_there_are_no_numbers():
    table, _ = sweep(NO_ENTRY)
    rough = np.exp(0.6 * np.random.default_rng(0).standard_normal((len(table.cells), 1)))
    found = numbers(replace(table, latency_s=table.latency_s * rough))
    reasons = {one.reason for one in (found.contention, found.serial_fraction, found.isoefficiency)}
    assert reasons == {"no law fits these data well enough to stand for them"}


def test_laws_that_differ_are_told_apart_where_they_differ_most():
    table, _ = sweep(simulate.REGIMES["bandwidth"])
    fits = fit_laws(table, "jit")
    assert len(fits.kept) > 1
    found = separating_devices(table, "jit", fits)
    assert found.num_devices not in COUNTS
    predictions = {law.name: law.latency_s(found.num_devices, found.size) for law in fits.kept}
    known = {name: np.log(t).mean() for name, t in predictions.items() if t is not None}
    assert found.difference == pytest.approx(np.exp(max(known.values()) - min(known.values())) - 1)
    assert set(found.laws) == {min(known, key=known.get), max(known, key=known.get)}
    # Nowhere else do they differ more: other counts and sizes, by brute force.
    for n in (5, 7, 10, 12, 16):
        for size in (4096, 65536):
            logs = [np.log(t).mean() for law in fits.kept if (t := law.latency_s(n, size)) is not None]
            assert max(logs) - min(logs) <= np.log1p(found.difference) * 1.02


def test_devices_that_share_cores_are_not_sent_beyond_what_was_measured():
    table, _ = sweep(simulate.REGIMES["bandwidth"])
    shared = replace(table, cores=2)
    found = separating_devices(shared, "jit", fit_laws(shared, "jit"))
    assert found is None or found.num_devices <= 8


def test_one_law_needs_no_telling_apart():
    table, _ = sweep(simulate.REGIMES["bandwidth"])
    fits = fit_laws(table, "jit")
    assert separating_devices(table, "jit", replace(fits, kept=fits.kept[:1])) is None
    assert separating_devices(table, "jit", replace(fits, kept=())) is None


def test_laws_closer_than_the_noise_say_so():
    table, _ = sweep(simulate.REGIMES["dispatch"], noise={"launch_sd": 0.3})
    fits = fit_laws(table, "jit")
    found = separating_devices(table, "jit", fits)
    assert found.difference < found.noise
    assert "differ by less than launches do" in found.reason


def test_laws_that_say_the_same_differ_by_nothing():
    # On one size and three counts a ring and any law of three constants are one.
    plan = Plan(workload="w", path="strong", objective="time", devices=(1, 2), sizes=(1,), strategies=("jit",))
    cells = tuple(Cell(role="workload", strategy="jit", num_devices=n, size=1) for n in (1, 2))
    table = LaunchTable(plan=plan, cells=cells, latency_s=np.array([[1.0], [0.6]]), replicated=False)
    found = separating_devices(table, "jit", fit_laws(table, "jit"))
    assert found.difference == 0
    assert found.reason.endswith("they say the same")


def test_amdahls_times_have_a_coherency_of_0_not_of_rounding():
    cells = [Cell(role="workload", strategy="jit", num_devices=n, size=1) for n in (1, 2, 4, 8, 16)]
    plan = Plan(
        workload="formula", path="strong", objective="time", devices=(1, 2, 4, 8, 16), sizes=(1,), strategies=("jit",)
    )
    table = LaunchTable(
        plan=plan,
        cells=tuple(cells),
        latency_s=np.array([[10 + 90 / cell.num_devices] for cell in cells]),
        replicated=False,
        foreign=True,
    )
    found = numbers(table, size=1)
    assert found.coherency.estimate == 0
    assert found.contention.estimate == pytest.approx(0.1)
    assert found.serial_fraction.estimate == pytest.approx(0.1)
