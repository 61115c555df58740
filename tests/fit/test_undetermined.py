"""Numbers that a fit would return although the cells do not determine them: they are not given."""

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.fit.launches import LaunchTable
from breakeven.fit.lawfit import fit_laws
from breakeven.model import simulate

TRUE = {"c0": 20e-6, "dispatch": 10e-6, "alpha": 5e-6, "gamma": 2e-9, "beta": 1e-11}


def sweep(*, seed=0, **layout):
    """A simulated sweep of a ring on the strong path, six launches."""
    truth = simulate.truth(TRUE, sizes=(4096, 16384), **layout)
    samples = simulate.sample(
        truth.times_s, launches=6, rounds=4, calls=3, seed=seed, cell_launch_sd=0.005, call_sd=0.02
    )
    return LaunchTable(
        plan=Plan(
            workload="simulated",
            path="strong",
            objective="time",
            devices=truth.devices,
            sizes=truth.sizes,
            strategies=("jit",),
        ),
        cells=truth.cells,
        latency_s=np.median(samples, axis=3).mean(axis=2),
        facts=truth.facts,
        platform="cpu",
    )


@pytest.mark.parametrize("seed", range(4))
def test_an_algorithm_chosen_by_chance_identifies_no_dispatch(seed):
    """On counts that are powers of two a logarithm's steps differ from n and a ring's do not; both fit."""
    fits = fit_laws(sweep(seed=seed, controls=False, probes=False), "jit")
    for name in ("dispatch", "alpha"):
        assert not fits.parameters[name].identified
        assert "alpha cannot be told from c0 and dispatch" in fits.parameters[name].reason


def test_a_control_identifies_it_under_every_law():
    fits = fit_laws(sweep(controls=True, probes=False), "jit")
    assert fits.parameters["dispatch"].estimate == pytest.approx(10e-6, rel=0.05)


def test_two_counts_determine_none_between_them():
    fits = fit_laws(sweep(devices=(1, 4), controls=False, probes=False), "jit")
    law = next(law for law in fits.laws if law.name == "ring, per-device")
    assert law.latency_s(4, 16384) is not None
    assert law.latency_s(2, 16384) is None


def test_what_is_tied_in_every_cell_alike_does_not_hinder_a_prediction():
    fits = fit_laws(sweep(controls=False, probes=False), "jit")
    law = next(law for law in fits.laws if law.name == "ring, per-device")
    assert not fits.parameters["alpha"].identified
    true = simulate.truth(TRUE, sizes=(16384,)).latency_s(3, 16384)
    assert law.latency_s(3, 16384).mean() == pytest.approx(true, rel=0.05)
