"""Two sweeps, or two strategies of one: what changed, found without pooling."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.fit.comparing.sides import Side
from breakeven.fit.comparing.two_sweeps import NothingInCommon, compare
from breakeven.fit.launches import LaunchTable
from breakeven.model import simulate
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts
from scipy import stats

SAME = simulate.REGIMES["latency"]
SLOWER = {**SAME, "alpha": 1.3 * SAME["alpha"]}


def sweep(parameters=SAME, *, seed=0, launches=6, **layout):
    truth = simulate.truth(parameters, **layout)
    samples = simulate.sample(truth.times_s, launches=launches, rounds=3, calls=5, seed=seed)
    plan = Plan(
        workload="simulated",
        path=truth.path,
        objective="time",
        devices=truth.devices,
        sizes=truth.sizes,
        strategies=("jit",),
    )
    return LaunchTable(
        plan=plan,
        cells=truth.cells,
        latency_s=np.median(samples, axis=3).mean(axis=2),
        facts=truth.facts,
        visible_devices=8,
        platform="cpu",
    )


def side(table, label="old", strategy="jit", **setup):
    return Side(label=label, table=table, strategy=strategy, setup=setup)


@pytest.fixture(scope="module")
def changed():
    return compare(side(sweep(seed=1)), side(sweep(SLOWER, seed=2), "new"), paired=False)


def test_the_term_that_changed_is_named_with_its_size(changed):
    assert changed.outcome == "decided"
    parameters = {one.name: one for one in changed.parameters}
    assert [name for name, one in parameters.items() if one.differs] == ["alpha"]
    low, high = parameters["alpha"].difference.interval
    assert low < 0.3 * SAME["alpha"] < high
    assert {one.cause for one in changed.causes if one.differs} == {"communication"}
    # 14 steps of 6 us more on 8 devices.
    most = next(one for one in changed.causes if one.cause == "communication" and one.num_devices == 8)
    assert most.difference.estimate == pytest.approx(14 * 0.3 * SAME["alpha"], rel=0.25)


def test_a_ratio_is_welch_on_the_log_scale(changed):
    old, new = sweep(seed=1), sweep(SLOWER, seed=2)
    for cell in changed.cells:
        a, b = (np.log(t.time("workload", "jit", cell.num_devices, cell.size)) for t in (old, new))
        oracle = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
        assert cell.ratio.estimate == pytest.approx(np.exp(b.mean() - a.mean()))
        np.testing.assert_allclose(cell.ratio.interval, np.exp([oracle.low, oracle.high]))
        if cell.num_devices == 8 and cell.size == 4096:
            assert cell.change == "slower"


def test_the_same_program_twice_is_rarely_called_changed():
    wrong = 0
    for seed in range(6):
        found = compare(
            side(sweep(seed=2 * seed, probes=False)), side(sweep(seed=2 * seed + 1, probes=False)), paired=False
        )
        wrong += any(cell.change in ("slower", "faster") for cell in found.cells)
        wrong += any(one.differs for one in found.parameters)
    # Twelve families at 5 %: more than three false ones have a probability of 0.2 %.
    assert wrong <= 3


def test_the_other_way_round_is_the_inverse(changed):
    back = compare(side(sweep(SLOWER, seed=2), "new"), side(sweep(seed=1)), paired=False)
    for one, other in zip(changed.cells, back.cells, strict=True):
        assert one.ratio.estimate == pytest.approx(1 / other.ratio.estimate)
        assert one.p == pytest.approx(other.p)


def test_a_small_change_known_well_is_the_same():
    table = sweep(seed=3)
    quiet = replace(table, latency_s=table.latency_s.mean(axis=1, keepdims=True) * np.linspace(0.999, 1.001, 6))
    more = replace(quiet, latency_s=quiet.latency_s * 1.02)
    found = compare(side(quiet), side(more), paired=False)
    assert all(cell.p < 0.05 and cell.change == "same" for cell in found.cells)


def strategies(ratio, *, facts=None, cells=(1, 2, 4, 8), seed=0):
    """One sweep with two strategies; launches differ by half, the strategies by a factor."""
    rng = np.random.default_rng(seed)
    slow = np.exp(rng.normal(0, 0.5, 6))
    times = {}
    for n in cells:
        base = 1e-3 * n * slow * np.exp(rng.normal(0, 0.01, 6))
        times[Cell(role="workload", strategy="jit", num_devices=n, size=64)] = base
        times[Cell(role="workload", strategy="pmap", num_devices=n, size=64)] = (
            base * ratio * np.exp(rng.normal(0, 0.01, 6))
        )
    ordered = tuple(sorted(times, key=lambda cell: cell.sort_key))
    plan = Plan(
        workload="made", path="strong", objective="time", devices=cells, sizes=(64,), strategies=("jit", "pmap")
    )
    return LaunchTable(plan=plan, cells=ordered, latency_s=np.array([times[c] for c in ordered]), facts=facts or {})


def test_strategies_are_paired_by_launch():
    table = strategies(1.1)
    one, other = side(table, "jit", "jit"), side(table, "pmap", "pmap")
    paired = compare(one, other, paired=True)
    assert all(cell.change == "slower" for cell in paired.cells)
    low, high = paired.line.slope.interval
    assert low < 1.1 < high
    assert paired.line.p_slope < 0.05
    # Launches that differ by half hide ten percent from a test that does not pair them.
    assert all(cell.change == "undecided" for cell in compare(one, other, paired=False).cells)


def test_unlike_programs_are_not_comparable_and_the_difference_is_said(make_all_reduce):
    cells = [Cell(role="workload", strategy=s, num_devices=n, size=64) for s in ("jit", "pmap") for n in (2, 4, 8)]
    reduced = ProgramFacts(flops=100.0, collectives=(make_all_reduce(4096, count=2),))
    alone = ProgramFacts(flops=100.0)
    table = strategies(1.1, facts={c: reduced if c.strategy == "jit" else alone for c in cells})
    found = compare(side(table, "jit", "jit"), side(table, "pmap", "pmap"), paired=True)
    assert found.outcome == "not comparable"
    assert found.not_comparable == (
        "on 2, 4, 8 devices: jit has 2 all-reduce of 8,192 B in all, pmap has no collective",
    )
    like = strategies(1.1, facts=dict.fromkeys(cells, reduced))
    assert compare(side(like, "jit", "jit"), side(like, "pmap", "pmap"), paired=True).not_comparable == ()


def test_other_work_is_not_comparable_either():
    cells = [Cell(role="workload", strategy=s, num_devices=8, size=64) for s in ("jit", "pmap")]
    facts = {c: ProgramFacts(flops=100.0 if c.strategy == "jit" else 250.0) for c in cells}
    table = strategies(1.1, facts=facts)
    found = compare(side(table, "jit", "jit"), side(table, "pmap", "pmap"), paired=True)
    assert found.not_comparable == ("on 8 devices: the work of one device is 100 in jit and 250 in pmap",)


def test_machines_plans_and_cells_that_differ_are_named():
    old = sweep(devices=(1, 2, 4))
    new = replace(sweep(devices=(1, 2, 8)), visible_devices=16, platform="gpu")
    found = compare(side(old, jax="0.8.0"), side(new, "new", jax="0.10.2"), paired=False)
    assert found.setup == (
        "platform: cpu against gpu",
        "visible devices: 8 against 16",
        "jax: 0.8.0 against 0.10.2",
    )
    assert found.only_first[0] == "4 devices at size 4096"
    assert found.only_second[0] == "8 devices at size 4096"
    assert {cell.num_devices for cell in found.cells} == {1, 2}


def test_two_launches_decide_nothing():
    found = compare(side(sweep(seed=1, launches=2)), side(sweep(SLOWER, seed=2, launches=2)), paired=False)
    assert all(cell.p is None and cell.ratio.interval is None for cell in found.cells)
    assert all(one.differs is None for one in (*found.causes, *found.parameters))


def test_sides_without_a_common_cell_or_path_say_what_to_do():
    with pytest.raises(NothingInCommon, match=r"share no device count and size.*devices 1, 2 at.*Measure the same"):
        compare(side(sweep(devices=(1, 2))), side(sweep(devices=(4, 8)), "new"), paired=False)
    with pytest.raises(NothingInCommon, match="old is a strong sweep and new a weak one"):
        compare(side(sweep()), side(sweep(path="weak"), "new"), paired=False)


def with_sentinel(table, seconds, *, seed=0):
    """Launches in which the sentinel took so long, give or take 1 %."""
    rng = np.random.default_rng(seed)
    visits = [
        np.array([np.arange(5.0), seconds * np.exp(rng.normal(0, 0.01, 5))]) for _ in range(table.latency_s.shape[1])
    ]
    return replace(table, sentinel_s=tuple(visits))


def test_a_faster_machine_is_no_faster_program():
    """The second sweep ran at 1.5 times the speed, all of it: the sentinel says so."""
    old, again = with_sentinel(sweep(seed=1), 3e-4), sweep(seed=2)
    new = replace(again, latency_s=again.latency_s / 1.5)
    blind = compare(side(old), side(new, "new"), paired=False)
    assert (blind.machine, blind.outcome) == (None, "decided")
    assert {cell.change for cell in blind.cells} == {"faster"}
    assert blind.line.kind == "proportional"
    found = compare(side(old), side(with_sentinel(new, 2e-4, seed=1), "new"), paired=False)
    assert found.machine.matters
    low, high = found.machine.ratio.interval
    assert low < 2 / 3 < high
    assert {cell.change for cell in found.cells} == {"undecided"}
    assert not any(one.differs for one in (*found.causes, *found.parameters))
    assert found.line.kind == "undecided"
    assert (found.outcome, found.reason) == (
        "undecided",
        "no cell is decided: the machine itself may not have been as fast in both",
    )
    # What was measured stands as it was.
    assert [cell.ratio for cell in found.cells] == [cell.ratio for cell in blind.cells]


def test_a_slower_program_is_found_on_a_faster_machine():
    old, again = with_sentinel(sweep(seed=1), 3e-4), sweep({**SAME, "alpha": 3 * SAME["alpha"]}, seed=2)
    new = with_sentinel(replace(again, latency_s=again.latency_s / 1.1), 3e-4 / 1.1, seed=1)
    found = compare(side(old), side(new, "new"), paired=False)
    assert found.machine.matters
    changes = {(cell.num_devices, cell.size): cell.change for cell in found.cells}
    assert changes[8, 4096] == "slower"
    assert "faster" not in changes.values()


def test_a_machine_of_one_speed_changes_nothing():
    old, new = with_sentinel(sweep(seed=1), 3e-4), with_sentinel(sweep(SLOWER, seed=2), 3e-4, seed=1)
    found = compare(side(old), side(new, "new"), paired=False)
    assert not found.machine.matters
    blind = compare(side(replace(old, sentinel_s=())), side(replace(new, sentinel_s=()), "new"), paired=False)
    assert (found.cells, found.causes, found.parameters) == (blind.cells, blind.causes, blind.parameters)


def test_two_launches_tell_no_faster_machine_from_a_faster_program():
    """Nothing has an interval; the line over cells, which needs no launches, is not believed either."""
    old, again = with_sentinel(sweep(seed=1, launches=2), 3e-4), sweep(seed=2, launches=2)
    new = replace(again, latency_s=again.latency_s / 1.5)
    assert compare(side(old), side(new, "new"), paired=False).outcome == "decided"
    found = compare(side(old), side(with_sentinel(new, 2e-4), "new"), paired=False)
    assert (found.machine.p, found.machine.matters, found.machine.ratio.interval) == (None, True, None)
    assert (found.line.kind, found.outcome) == ("undecided", "undecided")


def test_a_change_of_the_other_sign_at_one_speed_is_none():
    """Dispatch, and all else, 1.2 times slower on a machine 1.5 times faster: measured, all fell."""
    old, again = with_sentinel(sweep(seed=1), 3e-4), sweep(seed=2)
    new = with_sentinel(replace(again, latency_s=again.latency_s * 1.2 / 1.5), 2e-4, seed=1)
    found = compare(side(old), side(new, "new"), paired=False)
    assert not any(one.differs for one in (*found.causes, *found.parameters))
    assert {cell.change for cell in found.cells} == {"undecided"}
    assert found.line.kind == "undecided"


def test_another_machine_or_version_is_what_is_compared():
    old, again = with_sentinel(sweep(seed=1), 3e-4), sweep(seed=2)
    new = with_sentinel(replace(again, latency_s=again.latency_s / 1.5), 2e-4, seed=1)
    found = compare(side(old, cpu="one"), side(new, "new", cpu="another"), paired=False)
    assert found.machine is None
    assert {cell.change for cell in found.cells} == {"faster"}


@pytest.mark.parametrize("constant", ["first", "second", "both"])
def test_launches_that_agree_to_the_last_digit_decide_nothing(constant):
    noisy = sweep(seed=1, probes=False)
    still = replace(noisy, latency_s=np.repeat(1.1 * noisy.latency_s[:, :1], 6, axis=1))
    first, second = (still if constant in (name, "both") else noisy for name in ("first", "second"))
    found = compare(side(first), side(second, "new"), paired=False)
    assert {cell.ratio.reason for cell in found.cells} == {"replicates are identical"}
    assert all(cell.change == "undecided" and cell.p is None for cell in found.cells)
