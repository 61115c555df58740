"""Weak efficiency and the per-device size at which it reaches 90 %."""

import numpy as np
import pytest
from breakeven.fit.intervals import TOO_FEW
from breakeven.fit.weak import weak_efficiency

SIZES = (1_000, 4_000, 16_000, 64_000)


def law(n: int, size: int) -> tuple[float, float, float]:
    """Efficiency (20 + s/1000) / (20 + 10 (n - 1) + s/1000), microseconds: 90 % at s = 1000 (90 (n - 1) - 20)."""
    return 20e-6 + 10e-6 * (n - 1), 0.0, 1e-9 * size


def make(make_table, truth=law, **options):
    return make_table(truth, **{"sizes": SIZES, "devices": (1, 2), "roles": ("workload",), "cell_sd": 0.005, **options})


def test_efficiency_is_the_ratio_of_times_by_launch(make_table):
    table = make(make_table)
    # At 99.9 %, so that four intervals hold four truths whatever the seed.
    found = weak_efficiency(table, "jit", confidence=0.999)
    assert [(w.num_devices, w.size_per_device) for w in found] == [(2, s) for s in SIZES]
    for w in found:
        s = w.size_per_device
        ratio = table.time("workload", "jit", 1, s) / table.time("workload", "jit", 2, 2 * s)
        assert w.efficiency.estimate == pytest.approx(np.exp(np.log(ratio).mean()))
        truth = sum(law(1, w.size_per_device)) / sum(law(2, w.size_per_device))
        assert w.efficiency.interval[0] < truth < w.efficiency.interval[1]


def test_the_size_for_90_percent_is_that_of_the_law(make_table):
    # 70,000 by the law; sizes to 256,000 hold it.
    found = weak_efficiency(make(make_table, sizes=(*SIZES, 256_000)), "jit")
    reached = found[0].size_for_90_percent
    assert reached.interval[0] < 70_000 < reached.interval[1]
    assert reached.estimate == pytest.approx(70_000, rel=0.25)
    assert all(w.size_for_90_percent == reached for w in found)


def test_the_size_for_90_percent_is_covered_as_often_as_the_interval_says(make_table):
    sizes = (*SIZES, 256_000)
    intervals = [
        weak_efficiency(make(make_table, sizes=sizes, seed=seed), "jit")[0].size_for_90_percent.interval
        for seed in range(150)
    ]
    # 150 at 95 %: fewer than 135 is below 1 % (binomial).
    assert sum((a or 0) <= 70_000 <= (b or np.inf) for a, b in intervals) >= 135


def test_not_reached_and_reached_everywhere_say_so(make_table):
    low = weak_efficiency(make(make_table, devices=(1, 8)), "jit")[0].size_for_90_percent
    assert low.estimate is None
    assert low.reason == "not reached up to 64000 per device"
    flat = weak_efficiency(make(make_table, lambda n, s: (20e-6, 0, 1e-9 * s)), "jit")[0].size_for_90_percent
    assert flat.estimate is None
    assert flat.reason == "reached at every size from 1000 per device on"


def test_one_size_tells_the_efficiency_alone(make_table):
    (only,) = weak_efficiency(make(make_table, sizes=(4_000,)), "jit")
    assert only.efficiency.interval is not None
    assert only.size_for_90_percent.estimate is None
    assert "one size" in only.size_for_90_percent.reason


def test_published_weak_scaling_without_replicates(make_table):
    """ResNet-152 on 1, 2, 4, 8 V100, fixed batch per device: 95 % at every count."""
    milliseconds = {1: 254.4, 2: 266.0, 4: 265.6, 8: 266.6}
    table = make(
        make_table,
        lambda n, s: (0, 0, milliseconds[n]),
        sizes=(64,),
        devices=(1, 2, 4, 8),
        launches=1,
        replicated=False,
        cell_sd=0,
        launch_sd=0,
    )
    for w in weak_efficiency(table, "jit"):
        assert w.efficiency.estimate == pytest.approx(0.955, abs=0.004)
        assert (w.efficiency.interval, w.efficiency.reason) == (None, TOO_FEW)


def test_a_strong_sweep_has_none(make_table):
    assert weak_efficiency(make(make_table, path="strong", sizes=(1000, 4000)), "jit") == ()


def test_only_counts_above_the_reference_and_up_to_the_largest_asked_for(make_table):
    table = make(make_table, devices=(1, 2, 4, 8))
    assert {w.num_devices for w in weak_efficiency(table, "jit", reference=2, max_devices=4)} == {4}
