"""Diagnostics: the same numbers as scipy and statsmodels, silence on sound sweeps, faults found in spoilt ones."""

import re
import subprocess
import sys

import numpy as np
import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.schema import Plan
from breakeven.data.simulated import simulated_record
from breakeven.fit.checks.diagnostics import diagnose, table_diagnostics
from breakeven.fit.checks.influence import influence
from breakeven.fit.checks.population import one_population_p, two_means
from breakeven.fit.checks.residuals import Residuals
from breakeven.fit.checks.signal_noise import below_noise, breusch_pagan
from breakeven.fit.checks.steadiness import autocorrelation, trend_p
from breakeven.fit.checks.visits import _trend
from breakeven.fit.launches import LaunchTable, from_record
from breakeven.fit.lawfit import fit_laws
from breakeven.model.simulate import sample, truth
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.diagnostic import het_breuschpagan
from statsmodels.stats.outliers_influence import OLSInfluence

TRUTH = truth("latency", devices=(1, 2, 4, 8), sizes=(4096, 65536))
PLAN = Plan(
    workload="made",
    path="strong",
    objective="time",
    devices=TRUTH.devices,
    sizes=TRUTH.sizes,
    strategies=("jit",),
    visible_devices=8,
)


def record_of(change=None, *, seed=0, launches=8, rounds=8):
    """A simulated sweep, its samples changed by ``change(samples, rng)`` where given."""
    samples = sample(TRUTH.times_s, launches=launches, rounds=rounds, calls=5, seed=seed)
    if change is not None:
        samples = change(samples, np.random.default_rng(seed + 1000))
    return simulated_record(PLAN, TRUTH.cells, samples, facts=TRUTH.facts)


def failed(record):
    return {one.name: one for one in diagnose(record, from_record(record)).diagnostics if one.passed is False}


def test_trend_is_the_test_of_kendall():
    series = np.random.default_rng(0).normal(size=30).cumsum()
    # scipy's asymptotic p-value has no continuity correction: one in S, of 435 pairs.
    expected = stats.kendalltau(np.arange(30), series, method="asymptotic").pvalue
    assert trend_p([series]) == pytest.approx(expected, rel=0.2)
    assert trend_p([series, series]) < trend_p([series])
    assert trend_p([np.ones(10)]) == 1.0


def test_trend_errs_as_often_as_it_says():
    rng = np.random.default_rng(1)
    rejected = np.mean([trend_p(list(rng.normal(size=(6, 10)))) < 0.05 for _ in range(2000)])
    # 2000 draws: two standard errors are 1 %; the continuity correction keeps a little back.
    assert 0.03 < rejected < 0.06


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.7])
def test_autocorrelation_of_few_rounds_is_recovered(correlation):
    rng = np.random.default_rng(8)
    series = rng.normal(size=(400, 12)) * np.r_[1 / np.sqrt(1 - correlation**2), np.ones(11)]
    for r in range(1, 12):
        series[:, r] += correlation * series[:, r - 1]
    effects = tuple(series - series.mean(axis=1, keepdims=True))
    none = np.zeros((0, 400))
    found = autocorrelation(
        Residuals(
            cells=(), mean_s=none, levels=none, launches=none, launch_effects=none, rounds=(), round_effects=effects
        )
    )
    # A launch's coefficient has a standard deviation of about 0.4 here; the bias is corrected to first order.
    assert found.statistic == pytest.approx(correlation, abs=0.07)
    assert (found.passed is False) == (correlation > 0.3)


def test_spread_is_the_test_of_breusch_and_pagan():
    rng = np.random.default_rng(2)
    columns = rng.normal(size=(80, 2))
    residuals = rng.normal(size=80) * np.exp(0.3 * columns[:, 0])
    statistic, p, _ = breusch_pagan(residuals**2, columns)
    expected = het_breuschpagan(residuals, np.column_stack([np.ones(80), columns]))
    assert (statistic, p) == pytest.approx(expected[:2], rel=1e-9)


def test_influence_is_that_of_ordinary_least_squares():
    rng = np.random.default_rng(3)
    matrix = np.column_stack([np.ones(20), rng.random(20), rng.random(20)])
    times = matrix @ [1.0, 2.0, 3.0] * np.exp(0.05 * rng.normal(size=20))
    fitted = np.full(20, 2.0)  # equal weights: ordinary least squares
    ours, theirs = influence(matrix, times, fitted), OLSInfluence(OLS(times, matrix).fit())
    assert ours is not None
    np.testing.assert_allclose(ours.cook, theirs.cooks_distance[0], rtol=1e-8)
    np.testing.assert_allclose(ours.deleted_t, theirs.resid_studentized_external, rtol=1e-8)
    np.testing.assert_allclose(ours.leverage, theirs.hat_matrix_diag, rtol=1e-8)


def test_influence_drops_columns_that_are_the_same():
    rng = np.random.default_rng(4)
    matrix = np.column_stack([np.ones(12), rng.random(12)])
    times = rng.random(12) + 1
    once, twice = (influence(one, times, np.ones(12)) for one in (matrix, np.column_stack([matrix, matrix[:, 1]])))
    assert once is not None
    assert twice is not None
    np.testing.assert_allclose(once.cook, twice.cook, rtol=1e-8)


def test_no_influence_without_residuals():
    assert influence(np.eye(4), np.ones(4), np.ones(4)) is None


def test_two_means_is_the_best_split():
    values = np.random.default_rng(5).normal(size=15)
    ordered = np.sort(values)
    total = ((values - values.mean()) ** 2).sum()
    inside = min(sum(((p - p.mean()) ** 2).sum() for p in (ordered[:k], ordered[k:])) for k in range(3, 13))
    assert two_means(values).inside == pytest.approx(inside / total, rel=1e-9)


@pytest.mark.parametrize("count", [20, 60, 160])
@pytest.mark.parametrize("shape", ["uniform", "normal", "exponential", "laplace"])
def test_one_population_is_not_split(shape, count):
    rng = np.random.default_rng(6)
    p = np.array([one_population_p(two_means(getattr(rng, shape)(size=count)).inside, count) for _ in range(1000)])
    # 1000 draws at 1 %: mean 10, standard deviation 3.
    assert (p < 0.01).sum() <= 20


def test_two_populations_are_split():
    rng = np.random.default_rng(7)
    values = np.where(rng.random(100) < 0.4, np.log(30), np.log(80)) + 0.1 * rng.normal(size=100)
    split = two_means(values)
    assert one_population_p(split.inside, 100) < 1e-6
    assert np.log(30) < split.border < np.log(80)
    assert split.apart == pytest.approx(np.log(80 / 30), abs=0.1)


def test_sound_sweeps_raise_hardly_an_alarm():
    alarms = 0
    for seed in range(40):
        visits = np.median(sample(TRUTH.times_s, launches=8, rounds=10, calls=5, seed=seed), axis=3)
        table = LaunchTable(
            plan=PLAN, cells=TRUTH.cells, latency_s=visits.mean(axis=2), rounds_s=tuple(np.moveaxis(visits, 1, 0))
        )
        alarms += any(one.passed is False for one in table_diagnostics(table, "jit", None))
    # Ten families at 1 % are 4 of 40 at most; the effects that matter leave fewer (1 of 200 in longer runs).
    assert alarms <= 2


def test_a_sound_record_passes_all_that_can_be_run():
    assert failed(record_of()) == {}


def _cell(role, devices, size):
    return next(i for i, c in enumerate(TRUTH.cells) if (c.role, c.num_devices, c.size) == (role, devices, size))


def _two_modes(samples, rng):
    samples[_cell("workload", 1, 4096)] *= np.where(rng.random(samples.shape[1:3]) < 0.5, 1, 2.5)[..., None]
    return samples


def _uneven(samples, rng):
    spread = np.where([c.num_devices == 1 for c in TRUTH.cells], 0.15, 0.001)
    return samples * np.exp(spread[:, None] * rng.standard_normal(samples.shape[:2]))[..., None, None]


def _remembering(samples, rng):
    effects = rng.normal(size=samples.shape[1:3]) * 0.05
    for r in range(1, effects.shape[1]):
        effects[:, r] += 0.9 * effects[:, r - 1]
    return samples * np.exp(effects)[None, ..., None]


def _one_wrong(samples, _):
    samples[_cell("workload", 8, 65536)] *= 1.5
    return samples


def _slow_first_call(samples, _):
    samples[..., 0] *= 1.4
    return samples


def _slow_first_round(samples, _):
    samples[:, :, 0] *= 1.3
    return samples


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("drift over rounds", lambda s, _: s * np.exp(np.linspace(0, 0.15, s.shape[2]))[:, None]),
        ("drift over launches", lambda s, _: s * np.exp(np.linspace(0, 0.3, s.shape[1]))[:, None, None]),
        ("first round of a launch", _slow_first_round),
        ("autocorrelation of rounds", _remembering),
        ("one population", _two_modes),
        ("even relative spread", _uneven),
        ("no cell pulls the law", _one_wrong),
        ("first calls of a visit", _slow_first_call),
    ],
)
def test_a_fault_is_found_and_named(name, change):
    found = failed(record_of(change))
    assert name in found
    assert found[name].remedy


def test_the_cell_at_fault_is_named():
    assert "workload/jit on 1 device, size 4096" in failed(record_of(_two_modes))["one population"].where
    assert "workload/jit on 8 devices, size 65536" in failed(record_of(_one_wrong))["no cell pulls the law"].where


def test_a_small_difference_drowns_in_noise():
    record = record_of(lambda s, rng: s * np.exp(0.6 * rng.standard_normal(s.shape[:2]))[..., None, None])
    assert "signal below noise" in failed(record)["times above noise"].words


def test_copies_are_found():
    def copy(samples, _):
        samples[:, 3] = samples[:, 1]
        return samples

    found = failed(record_of(copy))["replicates differ"]
    assert found.where == "launches 2 and 4"


def test_constant_replicates_are_said_to_be():
    found = failed(record_of(lambda s, _: np.broadcast_to(s[:, :1, :1, :1], s.shape).copy()))
    assert set(found) <= {"replicates differ", "no cell pulls the law"}
    assert "identical to the last digit" in found["replicates differ"].words


def test_two_launches_are_too_few_for_most():
    record = record_of(launches=2)
    found = {one.name: one for one in diagnose(record, from_record(record)).diagnostics}
    assert found["first round of a launch"].passed is None
    assert found["times above noise"].words == "fewer than three launches"
    assert found["drift over launches"].passed is None


def test_the_checks_of_an_answer_import_nothing_slow():
    code = "import sys, breakeven.fit.report; print({'scipy.stats', 'statsmodels', 'pandas'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_an_answer_holds_every_check_once():
    table = from_record(record_of())
    fits = fit_laws(table, "jit")
    names = [one.name for one in table_diagnostics(table, "jit", fits)]
    assert len(names) == len(set(names)) == 11


@pytest.mark.parametrize("count", [1, 2, 3])
def test_only_the_cell_whose_launches_fall_in_two_is_blamed(tmp_path, count):
    rng = np.random.default_rng(9)
    path = tmp_path / "launches.csv"
    rows = [
        f"{n},{g},{(1.5 if n == 1 and g % 2 else 1) / n * np.exp(0.01 * rng.normal())}"
        for g in range(12)
        for n in (1, 2, 4)[:count]
    ]
    path.write_text("devices,launch,latency_s\n" + "\n".join(rows) + "\n")
    found = failed(read_csv(path, scaling="strong"))["one population"]
    assert found.where == "workload/as-written on 1 device, size 1"
    assert re.search(r"launches fall in two groups, the slower one (49|50|51) % above", found.words)


def test_launches_slow_as_a_whole_are_no_modes_of_a_cell(tmp_path):
    rng = np.random.default_rng(10)
    path = tmp_path / "launches.csv"
    rows = [f"{n},{g},{(1 + 0.5 * (g % 2)) / n * np.exp(0.01 * rng.normal())}" for g in range(12) for n in (1, 2)]
    path.write_text("devices,launch,latency_s\n" + "\n".join(rows) + "\n")
    assert "one population" not in failed(read_csv(path, scaling="strong"))


def test_one_launch_of_five_is_no_population():
    assert two_means(np.array([0.0, 0.001, 0.002, 0.003, 1.0])).inside > 0.1


# Benchmark runners: https://github.com/psf/pyperf/issues/144 and https://github.com/loopdive/js2/pull/995
FALLING = (12.88, 12.13, 11.62, 12.50, 11.95, 12.19, 11.16, 11.04, 11.01, 8.90)
BY_SUBTRACTION = (12.31, 5.43, 9.36, 5.65, 11.43, 6.21)


def _series(tmp_path, milliseconds, **columns):
    path = tmp_path / "series.csv"
    path.write_text("devices,ms,run\n" + "".join(f"1,{ms},{i}\n" for i, ms in enumerate(milliseconds)))
    return read_csv(path, columns={"latency_s": "ms/1e3", **columns})


def test_a_falling_series_is_not_steady(tmp_path):
    found = failed(_series(tmp_path, FALLING))
    assert found.keys() == {"steady series"}
    assert "not steady, extend warm-up" in found["steady series"].remedy


@pytest.mark.parametrize("columns", [{"launch": "run"}, {"replicate": "run"}])
def test_a_difference_of_two_times_lies_below_noise(tmp_path, columns):
    found = failed(_series(tmp_path, BY_SUBTRACTION, **columns))
    assert found.keys() == {"times above noise"}
    assert "signal below noise, no verdict" in found["times above noise"].words


def test_below_noise_is_the_prediction_interval():
    values = np.array(BY_SUBTRACTION)
    model = OLS(values, np.ones(6)).fit().get_prediction([[1.0]]).summary_frame(alpha=0.05)
    assert below_noise(values) == bool(model["obs_ci_lower"].iloc[0] <= 0)
    assert not below_noise(values + 5)
    assert not below_noise(np.array([1.0, 2.0]))


def test_a_compile_and_an_unwaited_call_are_named(tmp_path):
    # maxtext's step log: compile, a step that returned at once, then steady steps (seconds).
    words = failed(_series(tmp_path, (44900, 319, 5660, 5670, 5650, 5660)))["possible times"].words
    assert "repeat 1 takes 7.93 times the median" in words
    assert "repeat 2 takes 0.056 of the median: it was not waited for" in words


BIMODAL = (10.02, 15.11, 10.05, 15.02, 10.01, 10.04, 15.07, 14.98, 10.03, 15.05, 10.02, 15.10, 10.06, 15.03, 10.00)


def test_repeats_in_two_groups_are_found(tmp_path):
    found = failed(_series(tmp_path, BIMODAL * 2))
    assert found.keys() == {"one population"}
    assert "repeats fall in two groups, the slower one 50 % above" in found["one population"].words


def _steps(*parts):
    """Repeats at these levels, each (level, number), with a scatter of a percent."""
    scatter = (1.0, 1.01, 0.99, 1.0, 1.02)
    levels = [level for level, number in parts for _ in range(number)]
    return [level * scatter[i % 5] for i, level in enumerate(levels)]


@pytest.mark.parametrize(
    ("parts", "place", "change"), [(((1.3, 5), (1.0, 15)), 6, "-23 %"), (((5.0, 16), (6.7, 4)), 17, "35 %")]
)
def test_a_step_is_not_steady(tmp_path, parts, place, change):
    found = failed(_series(tmp_path, _steps(*parts)))["steady series"]
    assert found.words == f"from repeat {place} of 20 on they differ by {change} from those before (a step)"
    assert ("extend warm-up" in found.remedy) == (place == 6)


def test_a_step_too_small_to_matter_is_no_alarm(tmp_path):
    assert failed(_series(tmp_path, _steps((1.04, 10), (1.0, 10)))) == {}


def test_steadiness_errs_as_often_as_it_says():
    rng = np.random.default_rng(11)
    shapes = (lambda: np.exp(0.1 * rng.normal(size=20)), lambda: 1 + rng.exponential(size=20))
    # 1000 series at 1 %: mean 10 at most (two tests share the level), standard deviation 3.
    assert sum(_trend(shapes[i % 2]()).p < 0.01 for i in range(1000)) <= 19


def test_what_is_named_does_not_drown_the_rest_in_noise(tmp_path):
    found = failed(_series(tmp_path, (44.1, 39.7, 1.21, 1.20, 1.22, 1.20, 1.21, 1.21, 1.20, 1.22)))
    assert found.keys() == {"possible times"}
    assert found["possible times"].words.startswith("repeats 1 and 2 take 36.4 times the median")
    assert found["possible times"].remedy == "leave the first 2 repeats out"


def test_a_recompile_in_the_middle_is_named(tmp_path):
    steady = [510, 511, 512, 509]
    words = failed(_series(tmp_path, [30500, *steady, 28100, *steady, *steady]))["possible times"].words
    assert "repeat 1 takes 59.7 times the median: it holds a compile or warm-up" in words
    assert "repeat 6 takes 55 times the median: it holds a compile, a checkpoint or a stall" in words


def test_a_rare_stall_is_possible(tmp_path):
    assert failed(_series(tmp_path, _steps((1.0, 90), (4.0, 1), (1.0, 9)))) == {}


def test_a_first_repeat_left_out_is_said_and_not_asked_for_again(tmp_path):
    path = tmp_path / "steps.csv"
    rows = [f"{n},{i},{t / n}" for n in (1, 2) for i, t in enumerate((9, 1, 1.01, 0.99, 1.02))]
    path.write_text("devices,replicate,latency_s\n" + "\n".join(rows) + "\n")
    found = failed(read_csv(path, scaling="strong"))
    assert found.keys() == {"first repeats"}
    assert "left out: it takes 8.96 to 8.96 times the median" in found["first repeats"].words


def test_times_that_stand_still_while_the_work_grows_fail(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("devices,size,ms\n" + "".join(f"1,{10**k},{0.12 + 0.001 * k}\n" for k in range(3, 8)))
    found = failed(read_csv(path, columns={"latency_s": "ms/1e3"}, scaling="strong"))["waited for"]
    assert "by a factor of 1.03 while the work of a device grows by 1e+04" in found.words


def test_equal_repeats_are_copies(tmp_path):
    assert failed(_series(tmp_path, (5, 5, 5, 5))).keys() == {"replicates differ"}


def test_no_cell_decides_where_every_cell_is_needed(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("devices,latency_s\n1,1.0\n2,0.6\n")
    record = read_csv(path)
    found = {one.name: one for one in diagnose(record, from_record(record)).diagnostics}
    assert found["no cell decides the answer"].passed is None
    assert "is not determined" in found["no cell decides the answer"].words


def test_a_cell_that_decides_is_named(tmp_path):
    path = tmp_path / "turns.csv"
    rows = [(1, 1.0), (2, 0.52), (4, 0.28), (8, 0.16), (16, 0.10), (32, 0.5)]
    path.write_text("devices,latency_s\n" + "".join(f"{n},{t}\n" for n, t in rows))
    found = failed(read_csv(path))["no cell decides the answer"]
    assert found.where.startswith("workload/as-written on 32 devices")
    assert "the best count" in found.words


def test_residuals_by_group_add_up():
    record = record_of()
    found = diagnose(record, from_record(record))
    by_launch = [one for one in found.residuals if one.by == "launch"]
    assert len(by_launch) == 8
    assert sum(one.count for one in by_launch) == len(record.visits)
    assert sum(one.count * one.mean for one in by_launch) == pytest.approx(0, abs=1e-9)
    assert {one.group for one in found.residuals if one.by == "devices"} == {"1", "2", "4", "8"}
