"""Rivals fitted to published series and to their own truth."""

import numpy as np
import pytest
from breakeven.fit.comparing.rivals import RIVALS, amdahl, ernest, ernest_by_size, gustafson, scalability, three_terms
from breakeven.model.rivals import amdahl_throughput, gustafson_throughput, scalability_throughput
from scipy.optimize import curve_fit

# Scripts an hour against users, and rays against processors: data of the R package usl (BSD-2-Clause),
# https://github.com/smoeding/usl
SPEC_SDM91 = {1: 64.9, 18: 995.9, 36: 1652.4, 72: 1853.2, 108: 1828.9, 144: 1775.0, 216: 1702.2}
RAY_TRACER = {1: 20, 4: 78, 8: 130, 12: 170, 16: 190, 20: 200, 24: 210, 28: 230, 32: 260, 48: 280, 64: 310}
# Microseconds of a global mean on forced host devices: medians of 300 calls each, measured for this project.
GLOBAL_MEAN = {1: 32.80, 2: 93.16, 3: 133.06, 4: 165.28, 5: 195.57, 6: 206.75, 7: 242.74, 8: 263.34}


def series(throughput, size=1):
    return {(n, size): np.array([1 / x]) for n, x in throughput.items()}


def made(formula, counts=(1, 2, 3, 4, 6, 8), launches=3, **values):
    x = formula(np.array(counts), **values)
    return {(n, 100): np.full(launches, 1 / value) for n, value in zip(counts, x, strict=True)}


def test_the_scalability_law_gives_back_the_published_constants():
    curve = scalability(series(SPEC_SDM91), False).curves[1]
    assert curve.of_mean["contention"] == pytest.approx(0.028, abs=0.0005)
    assert curve.of_mean["coherency"] == pytest.approx(1.05e-4, rel=0.01)
    assert curve.of_mean["rate"] == pytest.approx(90.5, rel=0.01)
    assert curve.optimum == 96
    assert curve.at_bound == ()


def test_it_is_the_least_squares_curve_of_the_throughput():
    n, x = (np.array(axis, dtype=float) for axis in zip(*SPEC_SDM91.items(), strict=True))
    found, _ = curve_fit(lambda n, a, b, c: a * n / (1 + b * (n - 1) + c * n * (n - 1)), n, x, p0=(60, 0.05, 1e-3))
    ours = scalability(series(SPEC_SDM91), False).curves[1].of_mean
    np.testing.assert_allclose([ours["rate"], ours["contention"], ours["coherency"]], found, rtol=1e-4)


def test_one_device_is_not_needed():
    without = {n: x for n, x in SPEC_SDM91.items() if n > 1}
    assert scalability(series(without), False).curves[1].optimum == 96


@pytest.mark.parametrize(("peak", "optimum"), [(1.2, 1), (2.9, 3), (4.0, 4), (8.2, 8), (96.6, 96), (96.95, 96)])
def test_the_optimum_is_the_better_whole_number_and_of_a_flat_peak_its_integer_part(peak, optimum):
    values = {"rate": 10.0, "contention": 0.03, "coherency": 0.97 / peak**2}
    counts = tuple(range(1, 200, 3))
    curve = scalability(made(scalability_throughput, counts=counts, **values), False).curves[100]
    assert curve.optimum == optimum
    every = scalability_throughput(np.arange(1, 200), **values)
    assert every[optimum - 1] >= every.max() / (1 + 1e-3)


def test_a_constant_at_its_bound_is_said_and_leaves_no_optimum():
    curve = scalability(series(RAY_TRACER), False).curves[1]
    assert curve.at_bound == ("coherency",)
    assert curve.of_mean["contention"] == pytest.approx(0.058, abs=0.001)
    assert curve.optimum == np.inf


def test_seconds_and_microseconds_are_the_same_data():
    one, other = (
        scalability({k: t * unit for k, t in series(SPEC_SDM91).items()}, False).curves[1].of_mean
        for unit in (1.0, 1e-6)
    )
    assert one["contention"] == pytest.approx(other["contention"], rel=1e-6)
    assert one["rate"] == pytest.approx(other["rate"] * 1e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("fit", "formula", "values"),
    [
        (amdahl, amdahl_throughput, {"rate": 50.0, "serial": 0.15}),
        (gustafson, gustafson_throughput, {"rate": 50.0, "serial": 0.15}),
        (scalability, scalability_throughput, {"rate": 50.0, "contention": 0.08, "coherency": 0.004}),
        (scalability, scalability_throughput, {"rate": 50.0, "contention": 1.4, "coherency": 0.02}),
    ],
)
def test_its_own_truth_is_given_back(fit, formula, values):
    found = fit(made(formula, **values), False)
    for name, value in values.items():
        np.testing.assert_allclose(found.curves[100].values[name], value, rtol=1e-5)
    np.testing.assert_allclose(found.latency_s(32, 100), 1 / formula(32, **values), rtol=1e-5)
    assert found.latency_s(4, 200) is None


def test_on_the_weak_path_the_work_grows_with_the_count():
    values = {"rate": 50.0, "serial": 0.15}
    times = {place: t * place[0] for place, t in made(amdahl_throughput, **values).items()}
    found = amdahl(times, True)
    np.testing.assert_allclose(found.curves[100].values["serial"], 0.15, rtol=1e-5)
    np.testing.assert_allclose(found.latency_s(16, 100), 16 / amdahl_throughput(16, **values), rtol=1e-5)


@pytest.mark.parametrize(("fit", "percent"), [(ernest, 1.4), (three_terms, 7.3), (scalability, 7.3)])
def test_held_out_counts_err_as_in_the_preliminary_study(fit, percent):
    seen = {(n, 8000): np.array([1e-6 * t]) for n, t in GLOBAL_MEAN.items() if n <= 4}
    fitted = fit(seen, False)
    errors = [abs(fitted.latency_s(n, 8000)[0] / (1e-6 * t) - 1) for n, t in GLOBAL_MEAN.items() if n > 4]
    # The study's USL was fitted with other weights.
    assert 100 * np.median(errors) == pytest.approx(percent, abs=0.5 if fit is scalability else 0.06)


def test_ernest_shares_its_coefficients_over_sizes():
    # Seconds of a regression on Spark, cores and millionths of the input: example of https://github.com/amplab/ernest
    # (Apache-2.0).
    times = {
        (32, 125000): 7.94516802,
        (4, 15625): 4.72029209,
        (4, 21382): 4.87661099,
        (12, 50164): 6.71376491,
        (12, 55921): 6.71519399,
        (12, 61678): 6.67397189,
        (16, 61678): 6.83566999,
    }
    fitted = ernest({place: np.array([t]) for place, t in times.items()}, False)
    assert np.all(fitted.values[None] >= 0)
    for place, t in times.items():
        assert fitted.latency_s(*place)[0] == pytest.approx(t, rel=0.03)
    assert fitted.latency_s(64, 10**6)[0] > 0


def test_ernest_by_size_needs_four_counts_and_two_sizes():
    one = {(n, 100): np.array([1.0 / n]) for n in (1, 2, 4, 8)}
    assert ernest_by_size(one, False) is None
    two = one | {(n, 200): np.array([2.0 / n]) for n in (1, 2)}
    found = ernest_by_size(two, False)
    assert found.latency_s(16, 100)[0] == pytest.approx(1 / 16, rel=1e-6)
    assert found.latency_s(16, 200) is None


def test_coefficients_of_any_sign_go_through_three_points():
    times = {(n, 1): np.array([3.0 - 1.5 / n + 0.25 * n]) for n in (1, 2, 4)}
    assert three_terms(times, False).latency_s(8, 1)[0] == pytest.approx(3.0 - 1.5 / 8 + 2.0)


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_every_rival_answers_launch_by_launch_or_not_at_all(rival):
    times = {(n, s): np.array([1.0, 1.1, 0.9]) * (s / n + 10 + n) for n in (1, 2, 4, 8) for s in (100, 200, 400)}
    fitted = rival.fit(times, False)
    assert fitted.name == rival.name
    assert fitted.latency_s(16, 400).shape == (3,)
    # One launch slower as a whole is predicted slower as a whole.
    np.testing.assert_allclose(fitted.latency_s(16, 400) / fitted.latency_s(16, 400)[0], [1, 1.1, 0.9], rtol=1e-4)


@pytest.mark.parametrize("rival", [r for r in RIVALS if r.name != "damped trend"], ids=lambda rival: rival.name)
def test_one_count_determines_no_rival(rival):
    assert rival.fit({(8, 100): np.ones(3)}, False) is None
