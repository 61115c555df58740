"""Power against statsmodels, components against its mixed model, and designs tried out by simulation."""

import warnings
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.data.simulated import simulated_record
from breakeven.fit.crossover import crossover
from breakeven.fit.intervals import p_differs
from breakeven.fit.launches import from_record
from breakeven.fit.planning.noise import CANNOT_SEPARATE, Noise, components
from breakeven.fit.planning.power import cheapest, detects, narrows, needed
from breakeven.fit.planning.power import power as power_of
from breakeven.fit.planning.sizing import SizingError, from_noise, from_pilot
from breakeven.model.cell import Cell
from breakeven.model.simulate import sample
from hypothesis import given
from hypothesis import strategies as st

SLOPE = -0.5


def pilot(
    *, launches=6, rounds=4, seed=0, launch_sd=0.02, visit_sd=0.02, sizes=(512, 1024, 2048), ratio=0.0, machine_sd=0.03
):
    """Workload only; the log ratio of 4 devices to 1 falls by 0.5 a unit of log size and is ``ratio`` at 1,024."""
    cells, times = [], []
    for size in sizes:
        for n in (1, 4):
            cells.append(Cell(role="workload", strategy="jit", num_devices=n, size=size))
            log_ratio = (ratio + SLOPE * np.log(size / 1024)) if n == 4 else 0.0
            times.append(1e-3 * np.exp(log_ratio))
    plan = Plan(
        workload="mine.py:build",
        path="strong",
        objective="time",
        devices=(1, 4),
        sizes=tuple(sizes),
        strategies=("jit",),
        visible_devices=4,
    )
    samples = sample(
        np.array(times),
        launches=launches,
        rounds=rounds,
        calls=1,
        seed=seed,
        launch_sd=machine_sd,
        cell_launch_sd=launch_sd,
        round_sd=machine_sd,
        visit_sd=visit_sd,
        call_sd=0.0,
        tail=0.0,
    )
    record = simulated_record(plan, cells, samples)
    return record, from_record(record)


@pytest.mark.parametrize("launches", [3, 4, 6, 10, 30, 200])
@pytest.mark.parametrize("effect", [0.0, 0.01, 0.05, 0.3])
def test_power_is_that_of_the_two_sided_t_test(launches, effect):
    from statsmodels.stats.power import TTestPower

    sd = 0.06
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the oracle, far out
        expected = TTestPower().power(effect / sd, launches, 0.05, alternative="two-sided")
    found = detects(effect, 0.05)(np.array([sd**2]), launches)[0]
    if np.isfinite(expected):
        assert found == pytest.approx(expected, abs=1e-9)
    assert 0.05 - 1e-12 <= found <= 1


def test_power_far_out_is_one():
    """Where scipy's noncentral distributions return NaN."""
    variances = np.geomspace(1e-12, 1e-3, 200)
    for launches in (3, 10, 1000):
        assert np.isfinite(found := detects(0.05, 0.05)(variances, launches)).all()
        assert found[0] == pytest.approx(1)


@pytest.mark.parametrize("launches", [3, 8, 30])
def test_assurance_of_a_half_width_by_simulation(launches):
    rng = np.random.default_rng(1)
    sd, wanted = 0.05, 0.04
    from scipy import stats

    values = sd * rng.standard_normal((20_000, launches))
    half = stats.t.ppf(0.975, launches - 1) * stats.sem(values, axis=1)
    # Three standard errors of a share of 20,000.
    assert narrows(wanted, 0.05)(np.array([sd**2]), launches)[0] == pytest.approx((half <= wanted).mean(), abs=0.011)
    assert narrows(0.0, 0.05)(np.array([sd**2]), launches)[0] == 0


def test_components_agree_with_the_mixed_model():
    """Balanced data with a positive launch variance: REML and the method of moments are the same numbers."""
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    values = 0.3 + 0.06 * rng.standard_normal((8, 1)) + 0.05 * rng.standard_normal((8, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the oracle is never sure that it converged
        fitted = sm.MixedLM(values.ravel(), np.ones(40), groups=np.repeat(np.arange(8), 5)).fit(reml=True)
    found = components(list(values))
    assert isinstance(found, Noise)
    assert found.round_var == pytest.approx(fitted.scale, rel=1e-3)
    assert found.launch_var == pytest.approx(fitted.cov_re.item(), rel=1e-3)


def test_components_are_unbiased_where_launches_differ_in_rounds():
    rng = np.random.default_rng(4)
    found = []
    for _ in range(600):
        values = [0.1 * rng.standard_normal() + 0.05 * rng.standard_normal(r) for r in (2, 3, 5, 8, 3, 2)]
        one = components(values)
        assert isinstance(one, Noise)
        # Before the cut at 0, which is what is unbiased.
        found.append((one.between - one.within) / one.rounds)
    assert np.mean(found) == pytest.approx(0.01, abs=3 * np.std(found) / np.sqrt(600))


@given(st.floats(1e-6, 1e6), st.integers(0, 10))
def test_components_scale_with_the_unit_and_forget_the_order(factor, seed):
    rng = np.random.default_rng(seed)
    values = [0.1 * rng.standard_normal() + 0.05 * rng.standard_normal(3) for _ in range(4)]
    first, second = components(values), components([factor * one[::-1] for one in values[::-1]])
    assert isinstance(first, Noise)
    assert isinstance(second, Noise)
    assert second.variance(3) == pytest.approx(factor**2 * first.variance(3))
    np.testing.assert_allclose(second.likely(2), factor**2 * first.likely(2))


@pytest.mark.parametrize(("launch_sd", "round_sd"), [(0.03, 0.05), (0.05, 0.01), (0.0, 0.1)])
@pytest.mark.parametrize("rounds", [1, 4, 16])
def test_interval_of_the_noise_covers(launch_sd, round_sd, rounds):
    """Also at the bound, where launches do not differ."""
    rng = np.random.default_rng(5)
    held = []
    for _ in range(400):
        values = [launch_sd * rng.standard_normal() + round_sd * rng.standard_normal(4) for _ in range(6)]
        noise = components(values)
        assert isinstance(noise, Noise)
        lower, upper = noise.interval(rounds, 0.95) or (np.nan, np.nan)
        held.append(lower <= launch_sd**2 + round_sd**2 / rounds <= upper)
    # Monte Carlo error 1.1 points: nominal less two of them.
    assert np.mean(held) > 0.928


def test_one_round_a_launch_leaves_one_number():
    noise = components([np.array([x]) for x in (0.1, 0.2, 0.4)])
    assert isinstance(noise, Noise)
    assert noise.round_var is None
    design = cheapest(noise, detects(0.05, 0.05), 0.8, None)
    assert design is None or design.rounds == 1
    from scipy import stats

    variance = np.var([0.1, 0.2, 0.4], ddof=1)
    expected = 2 * variance / stats.chi2.ppf([0.975, 0.025], 2)
    np.testing.assert_allclose(noise.interval(1, 0.95), expected)


@pytest.mark.parametrize(
    ("values", "reason"),
    [([], CANNOT_SEPARATE), ([[1.0, 2.0], [1.5, 2.5]], CANNOT_SEPARATE), ([[1.0], [1.0], [1.0]], "identical")],
)
def test_what_shows_no_noise(values, reason):
    assert reason in str(components([np.array(one) for one in values]))


def test_needed_is_the_smallest():
    assert needed(lambda g: g >= 17) == 17
    assert needed(lambda g: g >= 0) == 3
    assert needed(lambda g: False) is None


def test_design_is_the_cheapest_of_all_that_reach():
    noise, chance = Noise(launch_var=0.03**2, round_var=0.05**2), detects(np.log1p(0.05), 0.05)

    def seconds(launches, rounds):
        return launches * (10 + rounds)

    found = cheapest(noise, chance, 0.8, seconds)
    assert found is not None
    reaching = [seconds(g, r) for g in range(3, 60) for r in (1, 2, 4, 8, 16) if power_of(noise, chance, g, r) >= 0.8]
    assert found.seconds == min(reaching)


@pytest.mark.parametrize(("launch_sd", "round_sd"), [(0.03, 0.05), (0.05, 0.01), (0.01, 0.1)])
def test_stated_noise_is_told_as_often_as_promised(launch_sd, round_sd):
    """The product's own test of a log ratio, on normal launches with the recommended rounds."""
    found = from_noise(launch_sd, round_sd, goal="difference", target=0.05).chosen
    assert found is not None
    rng = np.random.default_rng(6)
    shape = 1500, found.launches
    values = np.log(1.05) + launch_sd * rng.standard_normal(shape)
    values += round_sd / np.sqrt(found.rounds) * rng.standard_normal(shape)
    rejected = np.mean([(p_differs(one) or 1.0) < 0.05 for one in values])
    assert rejected >= 0.78
    assert rejected == pytest.approx(found.power, abs=0.035)


def test_difference_planned_from_pilots_is_told_as_often_as_promised():
    """Over pilots of six launches: simulate each, plan, measure again with a loss of 5 %, and test."""
    told = []
    for seed in range(50):
        record, table = pilot(seed=seed, sizes=(1024,))
        found = from_pilot(record, table, goal="difference", target=0.05, at=4).chosen
        assert found is not None
        _, again = pilot(
            seed=1000 + seed, sizes=(1024,), launches=found.launches, rounds=found.rounds, ratio=np.log(1.05)
        )
        p = p_differs(np.log(again.time("workload", "jit", 4, 1024) / again.time("workload", "jit", 1, 1024)))
        told.append(p is not None and p < 0.05)
    # Of 50: 0.8 less two standard errors.
    assert np.mean(told) >= 0.69


def test_break_even_size_planned_from_pilots_is_as_narrow_as_promised():
    narrow = []
    for seed in range(40):
        found = from_pilot(*pilot(seed=seed), goal="break-even", target=0.10, at=4).chosen
        assert found is not None
        _, again = pilot(seed=1000 + seed, launches=found.launches, rounds=found.rounds)
        sizes = again.sizes("workload")
        curve = [np.log(again.time("workload", "jit", 4, s) / again.time("workload", "jit", 1, s)) for s in sizes]
        roots = crossover(np.array(sizes), np.array(curve), confidence=0.95).roots
        lower, upper = roots[0].interval if len(roots) == 1 and roots[0].interval else (None, None)
        estimate = roots[0].estimate if roots else None
        narrow.append(
            None not in (lower, upper, estimate) and lower >= 0.9 * estimate - 1 and upper <= 1.1 * estimate + 1
        )
    assert np.mean(narrow) >= 0.67


def test_the_command_measures_the_same_system():
    record, table = pilot()
    usual = from_pilot(record, table, goal="difference", target=0.05).command or ""
    assert "--processes" not in usual
    assert "--queue" not in usual
    plan = msgspec.structs.replace(table.plan, processes=2, queued_calls=0)
    found = from_pilot(record, replace(table, plan=plan), goal="difference", target=0.05)
    assert found.command == f"{usual} --processes 2 --queue 0"


def test_more_noise_needs_more_launches():
    quiet, loud = (from_noise(sd, sd, goal="share", target=0.05).chosen for sd in (0.02, 0.08))
    assert quiet is not None
    assert loud is not None
    assert quiet.launches * quiet.rounds < loud.launches * loud.rounds


def test_costs_come_from_the_pilot():
    record, table = pilot()
    found = from_pilot(record, table, goal="difference", target=0.05)
    # 2 s to start and 0.2 s for each of 6 programs; a round is the sum of its calls.
    a_round = np.mean([sum(block[:, r].sum() for block in table.rounds_s) / 6 for r in range(4)])
    for design in found.table:
        assert design.seconds == pytest.approx(design.launches * (3.2 + design.rounds * a_round), rel=1e-3)
    assert found.chosen is not None
    assert f"--launches {found.chosen.launches}" in (found.command or "")
    low, high = found.launches_range or (None, None)
    assert low is not None
    assert high is not None
    assert low <= found.chosen.launches <= high


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"launches": 2}, "fewer than 3 launches"),
        ({"launches": 1}, "fewer than 3 launches"),
        ({"launch_sd": 0.0, "visit_sd": 0.0, "machine_sd": 0.0}, "identical"),
    ],
)
def test_pilots_that_cannot_say(change, reason):
    found = from_pilot(*pilot(**change), goal="difference", target=0.05)
    assert found.chosen is None
    assert found.table == ()
    assert reason in (found.reason or "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sizes": (512,)}, "needs two sizes"),
        ({"ratio": 3.0}, "do not break even"),
        ({"sizes": (512, 1024), "ratio": -0.02, "launch_sd": 1e-3, "visit_sd": 1e-3}, "lie outside the measured"),
    ],
)
def test_break_even_sizes_that_cannot_be_planned(change, reason):
    found = from_pilot(*pilot(**change), goal="break-even", target=0.10)
    assert found.chosen is None
    assert reason in (found.reason or "")


def test_a_curve_that_may_bend_needs_sizes_not_launches():
    """Measured far apart, on a curve that bends: no number of launches helps."""
    _, table = pilot(sizes=(16, 1024 * 4, 1024 * 1024))
    latency = table.latency_s.copy()
    for i, cell in enumerate(table.cells):
        if cell.num_devices == 4:
            latency[i] *= np.exp({16: 0.0, 4096: 0.2, 1024 * 1024: 6.0}[cell.size])
    bent = replace(table, latency_s=latency)
    record, _ = pilot()
    found = from_pilot(record, bent, goal="break-even", target=0.02)
    assert found.chosen is None
    assert "may bend" in (found.reason or "") or "lie outside" in (found.reason or "")


def test_share_without_controls():
    found = from_pilot(*pilot(), goal="share", target=0.05)
    assert found.chosen is None
    assert "control" in (found.reason or "")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"at": 3}, "at 3 was not measured; measured: 1, 4"),
        ({"reference": 2}, "reference 2 was not measured"),
        ({"at": 1}, "would be compared with itself"),
        ({"size": 5}, "size 5 was not measured there; measured: 512, 1024, 2048"),
        ({"strategy": "pmap"}, "strategy 'pmap' was not measured; measured: jit"),
    ],
)
def test_questions_about_what_was_not_measured(question, message):
    with pytest.raises(SizingError, match=message):
        from_pilot(*pilot(), goal="difference", target=0.05, **question)


def test_noise_that_is_none():
    with pytest.raises(ValueError, match="must not be negative, and one of them must be positive"):
        from_noise(0.0, 0.0, goal="difference", target=0.05)
    with pytest.raises(ValueError, match="needs the slope"):
        from_noise(0.01, 0.0, goal="break-even", target=0.1)


def test_stated_slope_is_the_pilots_clearance():
    """A straight curve of slope 0.5: ten percent of the size are half of log 1.1 on the ratio."""
    noise = Noise(launch_var=0.02**2, round_var=0.03**2)
    found = from_noise(0.02, 0.03, goal="break-even", target=0.10, slope=SLOPE).chosen
    expected = cheapest(noise, narrows(0.5 * np.log(1.1), 0.05), 0.8, None)
    assert found is not None
    assert expected is not None
    assert (found.launches, found.rounds) == (expected.launches, expected.rounds)
