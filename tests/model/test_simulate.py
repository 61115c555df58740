"""The simulator: truths add up and follow the law written out by hand; samples have the spreads asked for."""

import numpy as np
import pytest
from breakeven.model.cell import Cell
from breakeven.model.law import Law, design
from breakeven.model.simulate import REGIMES, SLOW, sample, truth

QUIET = dict.fromkeys(("launch_sd", "cell_launch_sd", "round_sd", "visit_sd", "call_sd", "tail"), 0.0)
LEADER = {"compute": "compute", "dispatch": "dispatch", "latency": "communication", "bandwidth": "communication"}


@pytest.mark.parametrize("regime", REGIMES)
def test_the_regime_names_the_largest_cause(regime):
    parts = truth(regime).causes_at(8, 65536)
    assert max(parts, key=parts.__getitem__) == LEADER[regime]


def test_a_dispatch_bound_sweep_has_its_best_count_inside():
    best = {regime: min((1, 2, 4, 8), key=lambda n: truth(regime).latency_s(n, 65536)) for regime in REGIMES}
    assert best == {"compute": 8, "dispatch": 4, "latency": 4, "bandwidth": 8}


@pytest.mark.parametrize("regime", REGIMES)
def test_workload_minus_local_is_the_collective_written_out(regime):
    found = truth(regime)
    p = REGIMES[regime]
    time = dict(zip(found.cells, found.times_s, strict=True))
    for n in found.devices:
        for size in found.sizes:
            workload, local, null = (
                time[Cell(role=role, strategy="jit", num_devices=n, size=size)]
                for role in ("workload", "local", "null")
            )
            ring = (n > 1) * p["alpha0"] + 2 * (n - 1) * (p["alpha"] + p["beta"] * size / n)
            assert workload - local == pytest.approx(ring, abs=1e-15)
            assert local - null == pytest.approx(p["floor"] + p["gamma"] * 100 * size / n, abs=1e-15)
            assert null == pytest.approx(p["c0"] + (n > 1) * p["entry"] + n * p["dispatch"], abs=1e-15)


@pytest.mark.parametrize("path", ["strong", "weak"])
def test_causes_add_up_and_the_answer_elsewhere_agrees_with_the_cells(path):
    found = truth("bandwidth", path=path, law=Law("log", "cores-limited"), cores=2)
    np.testing.assert_allclose(sum(found.causes.values()), found.times_s, rtol=1e-12)
    for index, cell in enumerate(found.cells):
        if cell.role == "workload":
            axis_size = cell.size // cell.num_devices if path == "weak" else cell.size
            assert found.latency_s(cell.num_devices, axis_size) == pytest.approx(found.times_s[index], rel=1e-12)
    assert found.latency_s(6, 1000) > 0


def test_every_role_is_laid_out():
    cells = truth("compute", devices=(1, 2), sizes=(1000, 4000)).cells
    counts = {role: sum(c.role == role for c in cells) for role in ("workload", "local", "null", "replay", "chain")}
    assert counts == {"workload": 4, "local": 4, "null": 4, "replay": 2, "chain": 9}
    assert {c.payload_bytes for c in cells if c.role == "chain"} == {1000, 4000, 16000}
    bare = truth("compute", devices=(1, 2), sizes=(1000,), controls=False, probes=False).cells
    assert {c.role for c in bare} == {"workload"}


def test_a_workload_can_have_no_collective():
    found = truth("latency", bytes_per_element=0)
    assert not any(found.causes["communication"])
    assert {c.role for c in found.cells} == {"workload", "local", "null"}
    assert found.causes_at(8, 4096)["communication"] == 0


def test_parameters_come_back_from_the_exact_times():
    found = truth("latency")
    columns = design(found.law, found.cells, found.facts, cores=None)
    norms = np.linalg.norm(columns.matrix, axis=0)
    values = np.linalg.lstsq(columns.matrix / norms, found.times_s, rcond=None)[0] / norms
    # Scaled columns have a condition number near 10.
    np.testing.assert_allclose(values, [found.parameters[name] for name in columns.names], rtol=1e-9)


def test_samples_without_noise_are_the_truth():
    drawn = sample(np.array([1e-6, 1.0]), launches=2, rounds=3, calls=4, seed=0, **QUIET)
    assert drawn.shape == (2, 2, 3, 4)
    np.testing.assert_array_equal(drawn, np.broadcast_to(np.array([1e-6, 1.0])[:, None, None, None], drawn.shape))


def test_a_seed_is_a_sweep():
    times = truth("compute").times_s
    first, again, other = (sample(times, launches=2, rounds=2, calls=3, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("effect", "common", "free"),
    [
        ("launch_sd", (0, 2, 3), 1),
        ("cell_launch_sd", (2, 3), 1),
        ("round_sd", (0, 3), 2),
        ("visit_sd", (3,), 2),
        ("call_sd", (), 3),
    ],
)
def test_each_effect_has_its_spread_and_its_reach(effect, common, free):
    drawn = np.log(sample(np.ones(20), launches=50, rounds=20, calls=10, seed=3, **{**QUIET, effect: 0.1}))
    for axis in common:
        assert np.ptp(drawn, axis=axis).max() < 1e-12
    # At least 50 draws: a standard deviation is within 4 times 10 %.
    assert drawn.std() == pytest.approx(0.1, rel=0.4)
    assert np.ptp(drawn, axis=free).max() > 0.05


def test_spikes_are_rare_and_leave_the_median():
    drawn = sample(
        np.ones(10), launches=1, rounds=10, calls=1000, seed=1, launch_sd=0, cell_launch_sd=0, round_sd=0, visit_sd=0
    )
    # 100,000 calls, 1 % spikes of twice the body or more, which no lognormal body of 10 % reaches.
    assert np.mean(drawn > 1.7) == pytest.approx(0.01, abs=0.002)
    assert drawn.max() > 10
    assert np.median(drawn) == pytest.approx(1.0, abs=0.01)


def test_a_drift_rises_evenly_around_the_truth():
    drawn = sample(np.array([2.0]), launches=2, rounds=5, calls=1, seed=0, drift=0.21, **QUIET)[0, :, :, 0]
    np.testing.assert_allclose(drawn[:, -1] / drawn[:, 0], 1.21)
    np.testing.assert_allclose(drawn[:, 2], 2.0)
    np.testing.assert_allclose(np.diff(np.log(drawn)), np.log(1.21) / 4)
    alone = sample(np.array([2.0]), launches=2, rounds=1, calls=1, seed=0, drift=0.21, **QUIET)
    np.testing.assert_allclose(alone, 2.0)


def test_modes_reach_a_visit_or_a_launch_and_keep_the_mean():
    times = np.array([1.0, 3.0])
    visits = sample(times, launches=400, rounds=20, calls=2, seed=0, slow_visits=[0.3, 0.0], **QUIET)
    np.testing.assert_array_equal(visits[1], np.full((400, 20, 2), 3.0))
    assert np.ptp(visits, axis=3).max() == 0
    assert visits[0].max() / visits[0].min() == pytest.approx(SLOW)
    # 8,000 visits: four standard errors of their mean are 1 %.
    assert visits[0].mean() == pytest.approx(1.0, abs=0.01)
    launches = sample(times, launches=8000, rounds=2, calls=1, seed=0, slow_launches=0.3, **QUIET)
    assert np.ptp(launches, axis=2).max() == 0
    assert np.mean(launches[0] > launches[0].min()) == pytest.approx(0.3, abs=0.02)
    np.testing.assert_allclose(launches.mean(axis=(1, 2, 3)), times, rtol=0.01)


def test_a_collective_may_cost_what_no_law_says():
    found = truth("latency", devices=(1, 2, 4), sizes=(1000,), collective_s=lambda n, v: 1e-6 * n**1.4 + 1e-9 * v)
    plain = truth("latency", devices=(1, 2, 4), sizes=(1000,))
    for n in (2, 4, 8):
        causes, usual = found.causes_at(n, 1000), plain.causes_at(n, 1000)
        assert causes["communication"] == pytest.approx(1e-6 * n**1.4 + 1e-6)
        assert (causes["compute"], causes["dispatch"]) == (usual["compute"], usual["dispatch"])
    assert found.causes_at(1, 1000)["communication"] == 0
    chains = {c.k: t for c, t in zip(found.cells, found.causes["communication"], strict=True) if c.role == "chain"}
    assert chains[16] == pytest.approx(16 * chains[1])
    np.testing.assert_allclose(sum(found.causes.values()), found.times_s)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="regime must be one of compute, dispatch, latency, bandwidth, got 'idle'"):
        truth("idle")
    with pytest.raises(ValueError, match="unknown parameters delta; known are c0"):
        truth({"delta": 1.0})
    with pytest.raises(ValueError, match="path must be strong or weak, got 'flat'"):
        truth("compute", path="flat")
    with pytest.raises(ValueError, match="has free times"):
        truth("compute", law=Law("free", "per-device"))
    with pytest.raises(ValueError, match="times_s must be one positive time a cell"):
        sample(np.array([0.0]), launches=1, rounds=1, calls=1, seed=0)
    with pytest.raises(ValueError, match="must be at least 1, got 0, 1 and 1"):
        sample(np.ones(1), launches=0, rounds=1, calls=1, seed=0)
    with pytest.raises(ValueError, match="tail must be a probability, got 2"):
        sample(np.ones(1), launches=1, rounds=1, calls=1, seed=0, tail=2)
    with pytest.raises(ValueError, match="drift must be above -1, got -1"):
        sample(np.ones(1), launches=1, rounds=2, calls=1, seed=0, drift=-1)
    with pytest.raises(ValueError, match="slow_visits and slow_launches must be probabilities"):
        sample(np.ones(2), launches=1, rounds=1, calls=1, seed=0, slow_visits=[0.1, 1.1])
