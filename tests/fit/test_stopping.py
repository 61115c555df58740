"""Does an interval hold at the moment somebody stops, and is the moment the one asked for?"""

import numpy as np
import pytest
from breakeven.fit.answer import Estimate
from breakeven.fit.intervals import log_t_estimate, t_estimate
from breakeven.fit.planning.stopping import Precision, look, look_confidence
from scipy import stats

MOST = 40
SWEEPS = 20_000


def draw(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Launch estimates of mean 0 and standard deviation 1."""
    normal = rng.standard_normal((SWEEPS, MOST))
    if kind == "normal":
        return normal
    if kind == "heavy":
        return rng.standard_t(5, (SWEEPS, MOST)) / np.sqrt(5 / 3)
    disturbed = rng.random((SWEEPS, MOST)) < 0.1
    return (normal + 3 * disturbed - 0.3) / np.sqrt(1 + 9 * 0.09)


def look_at(values, precision, estimate=t_estimate):
    """A look at plain launch estimates, by Student t."""
    return look(estimate(values, look_confidence()), len(values), precision)


def at_the_stop(values: np.ndarray, wanted: float, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Launches at the first look whose t interval is narrow enough (else the last), and whether it holds 0."""
    looks = np.arange(6, MOST + 1)
    means = np.array([values[:, :g].mean(axis=1) for g in looks])
    halves = np.array([stats.sem(values[:, :g], axis=1) * stats.t.ppf(0.5 + confidence / 2, g - 1) for g in looks])
    narrow = halves <= wanted
    first = np.where(narrow.any(axis=0), narrow.argmax(axis=0), len(looks) - 1)
    each = np.arange(len(values))
    return looks[first], np.abs(means[first, each]) <= halves[first, each]


@pytest.mark.parametrize("kind", ["normal", "heavy", "disturbed"])
@pytest.mark.parametrize("wanted", [1.0, 0.65, 0.5, 0.4])
def test_the_interval_holds_at_the_stop(kind, wanted):
    values = draw(kind, np.random.default_rng(1))
    _, held = at_the_stop(values, wanted, look_confidence(0.95))
    # Four Monte Carlo standard errors below 95 %.
    assert held.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / SWEEPS)


def test_without_the_rule_it_would_not_hold_and_the_rule_costs_few_launches():
    values = draw("normal", np.random.default_rng(2))
    plain, held = at_the_stop(values, 0.5, 0.95)
    ours, _ = at_the_stop(values, 0.5, look_confidence(0.95))
    assert held.mean() < 0.935
    assert 1.1 < ours.mean() / plain.mean() < 1.4


def test_a_difference_that_is_not_there_is_found_as_seldom_as_promised():
    values = draw("normal", np.random.default_rng(3))
    looks = np.arange(6, MOST + 1)
    p = np.array([stats.ttest_1samp(values[:, :g], 0, axis=1).pvalue for g in looks]).min(axis=0)
    assert np.mean(p <= 1 - look_confidence(0.95, decision=True)) < 0.05
    assert np.mean(p <= 1 - look_confidence(0.95)) > 0.10


def test_the_one_function_is_the_rule_that_was_simulated():
    values = draw("normal", np.random.default_rng(4))[:200] + 10
    stops, _ = at_the_stop(values - 10, 0.65, look_confidence(0.95))
    for row, stop in zip(values, stops.tolist(), strict=True):
        found = next((g for g in range(2, MOST + 1) if look_at(row[:g], Precision(absolute=0.65)).stop), MOST)
        assert found == stop


def test_the_interval_is_the_one_of_a_raised_confidence():
    values = np.array([9.0, 10.0, 11.0, 10.5, 9.5, 10.2])
    seen = look_at(values, Precision(relative=0.5))
    assert seen.stop
    assert seen.reason is None
    assert seen.interval == t_estimate(values, 0.975).interval
    assert seen.confidence == 0.95
    assert seen.launches == 6


def test_the_farther_end_counts():
    found = Estimate(estimate=100.0, interval=(95.0, 112.0))
    assert Precision(relative=0.1).half_width(found) == pytest.approx(0.12)
    assert Precision(absolute=12).half_width(found) == pytest.approx(12)
    assert not look(found, 8, Precision(relative=0.1)).stop
    assert look(found, 8, Precision(relative=0.12)).stop


def test_a_ratio_is_looked_at_on_its_logarithm():
    values = np.array([0.5, 0.52, 0.48, 0.51, 0.49, 0.5])
    seen = look_at(values, Precision(relative=0.1), log_t_estimate)
    lower, upper = seen.interval
    assert lower * upper == pytest.approx(seen.estimate**2)


@pytest.mark.parametrize(
    ("found", "launches", "reason"),
    [
        (Estimate(estimate=10.0, interval=(9.0, 12.3)), 9, "±23 % after 9 launches, ±10 % asked"),
        (Estimate(estimate=10.0, interval=(9.9, 10.1)), 5, "5 launches: the first look is after 6"),
        (Estimate(estimate=10.0, interval=(9.9, None)), 9, "open at an end"),
        (Estimate(estimate=0.0, interval=(-1.0, 1.0)), 9, "a share of it means nothing"),
        (Estimate(reason="one size: no break-even size"), 9, "one size: no break-even size"),
    ],
)
def test_why_not_to_stop(found, launches, reason):
    seen = look(found, launches, Precision(relative=0.1))
    assert not seen.stop
    assert reason in seen.reason


def test_a_precision_is_one_positive_number():
    with pytest.raises(ValueError, match="exactly one"):
        Precision()
    with pytest.raises(ValueError, match="exactly one"):
        Precision(relative=0.1, absolute=3.0)
    with pytest.raises(ValueError, match=r"positive number, got -0\.1"):
        Precision(relative=-0.1)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        look_confidence(95)
