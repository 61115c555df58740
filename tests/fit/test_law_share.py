"""The law's share of communication beside the measured one: agreement, disagreement, and missing halves."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.fit.launches import LaunchTable
from breakeven.fit.law_share import law_share
from breakeven.fit.lawfit import fit_laws
from breakeven.model.simulate import truth
from scipy import stats


def simulated(*, seed=0, launches=6, cell_sd=0.01, bend=1.0, **options):
    """A sweep; ``bend`` multiplies the workload's time on 8 devices: what no law of the menu knows."""
    true = truth("latency", sizes=(4096, 65536), **options)
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.05, launches) + rng.normal(0, cell_sd, (len(true.cells), launches))
    plan = Plan(
        workload="simulated",
        path="strong",
        objective="time",
        devices=true.devices,
        sizes=true.sizes,
        strategies=(true.strategy,),
    )
    bent = [bend if cell.role == "workload" and cell.num_devices == 8 else 1.0 for cell in true.cells]
    latency_s = (true.times_s * bent)[:, None] * np.exp(noise)
    return true, LaunchTable(plan=plan, cells=true.cells, facts=true.facts, latency_s=latency_s)


def shares(table, num_devices=8, size=65536):
    return law_share(table, "jit", num_devices, size, fit_laws(table, "jit"))


def test_a_law_that_holds_agrees():
    true, table = simulated()
    found = shares(table)
    causes = true.causes_at(8, 65536)
    expected = causes["communication"] / sum(causes.values())
    assert found.by_law.estimate == pytest.approx(expected, abs=0.03)
    assert found.measured.estimate == pytest.approx(expected, abs=0.03)
    assert found.agree == "yes"
    assert found.reason == "the same within 5 % of the time"
    assert found.difference.estimate == pytest.approx(found.by_law.estimate - found.measured.estimate)


def test_the_measured_share_and_the_difference_are_paired_by_launch():
    _, table = simulated()
    found, fits = shares(table), fit_laws(table, "jit")
    local, workload = (table.time(role, "jit", 8, 65536) for role in ("local", "workload"))
    measured = 1 - local / workload
    assert found.measured.interval == pytest.approx(stats.t.interval(0.95, 5, measured.mean(), stats.sem(measured)))
    law = next(one for one in fits.laws if one.name == found.law)
    differences = law.causes(8, 65536)["communication"] / law.latency_s(8, 65536) - measured
    expected = stats.t.interval(0.95, 5, differences.mean(), stats.sem(differences))
    assert found.difference.interval == pytest.approx(expected)


def test_what_no_law_knows_is_a_disagreement():
    _, table = simulated(bend=2.0)
    found = shares(table)
    assert found.measured.estimate > found.by_law.estimate
    assert (found.agree, found.reason) == ("no", "the law and the data disagree")


def test_noise_leaves_it_undecided():
    _, table = simulated(cell_sd=0.2, launches=3)
    found = shares(table)
    assert found.agree == "undecided"
    assert "neither the same within 5 %" in found.reason


def test_a_true_law_is_rarely_contradicted():
    said = [shares(simulated(seed=seed, cell_sd=0.05)[1]).agree for seed in range(20)]
    # At 5 % more than four of 20 have a probability of 0.3 %.
    assert said.count("no") <= 4


def test_two_launches_give_numbers_and_no_answer():
    found = shares(simulated(launches=2)[1])
    assert (found.agree, found.reason) == ("undecided", "fewer than three launches")
    assert found.difference.estimate is not None
    assert found.difference.interval is None


def without(table, *roles):
    keep = [i for i, cell in enumerate(table.cells) if cell.role not in roles]
    return replace(table, cells=tuple(table.cells[i] for i in keep), latency_s=table.latency_s[keep])


def test_one_half_may_be_missing():
    _, table = simulated()
    found = shares(without(table, "local", "replay", "chain"))
    assert found.measured.estimate is None
    assert found.agree == "undecided"
    assert found.reason
    alone = shares(without(table, "local", "replay", "chain", "null"))
    assert alone.by_law.estimate is None
    assert "does not tell the causes apart" in alone.reason
    assert alone.difference.estimate is None


def test_where_nothing_was_measured_there_is_no_answer():
    _, table = simulated()
    assert shares(table, num_devices=3) is None
