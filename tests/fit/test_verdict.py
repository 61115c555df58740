"""The verdict: the cause that leads, or undecided with the reason."""

from dataclasses import replace

import pytest
from breakeven.fit.verdict import verdict
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts


def made(**seconds):
    """Causes at n from their values on one device and their growth per further device."""

    def truth(n, size):
        return tuple(
            seconds.get(cause, 5e-6) + (n - 1) * seconds.get(f"{cause}_grows", 0.0)
            for cause in ("dispatch", "communication", "compute")
        )

    return truth


@pytest.mark.parametrize("cause", ["dispatch", "communication", "compute"])
def test_the_largest_part_of_the_time_at_fixed_size(make_table, cause):
    answer = verdict(make_table(made(**{cause: 50e-6}), path="strong", cell_sd=0.001), "jit")
    assert answer.verdict == cause
    assert f"{cause} is 83 % of the time on 8 devices" in answer.reason


@pytest.mark.parametrize("cause", ["dispatch", "communication", "compute"])
def test_the_largest_share_of_the_growth_at_fixed_size_per_device(make_table, cause):
    # Compute is the largest part of the time, and grows only where it is asked to.
    truth = made(compute=100e-6, **{f"{cause}_grows": 20e-6})
    answer = verdict(make_table(truth, cell_sd=0.01), "jit")
    assert answer.verdict == cause
    assert "of the growth from 1 to 8 devices" in answer.reason
    by_time = verdict(make_table(made(compute=500e-6, dispatch_grows=20e-6)), "jit", objective="time")
    assert by_time.verdict == "compute"


def test_equal_causes_are_undecided(make_table):
    said = [
        verdict(make_table(made(dispatch=50e-6, communication=50e-6), path="strong", seed=s), "jit").verdict
        for s in range(200)
    ]
    # A two-sided test at 5 %: 10 of 200 in the mean, binomial sd 3.1.
    assert said.count("undecided") >= 180
    table = make_table(made(dispatch=50e-6, communication=50e-6), path="strong", seed=0)
    assert "the lead is not significant" in verdict(table, "jit").reason


def test_a_time_that_does_not_grow_has_no_verdict(make_table):
    flat = verdict(make_table(made(compute=100e-6), seed=2), "jit")
    assert (flat.verdict, flat.confounded_with) == ("undecided", ())
    assert "the time does not grow significantly from 1 to 8 devices" in flat.reason
    falls = verdict(make_table(made(compute=100e-6, compute_grows=-10e-6)), "jit")
    assert "the time falls" in falls.reason


def test_input_transfer_competes_when_the_placed_twin_was_measured(make_table):
    extra = {
        Cell(role="workload", strategy="jit-unplaced", num_devices=n, size=1000 * n): 115e-6 + 50e-6 * n
        for n in (1, 2, 4, 8)
    }
    table = make_table(made(compute=100e-6, dispatch_grows=1e-6), extra=extra, strategies=("jit", "jit-unplaced"))
    assert verdict(table, "jit-unplaced").verdict == "input-transfer"
    assert verdict(table, "jit-unplaced", objective="time").verdict == "input-transfer"
    assert verdict(table, "jit", objective="time").verdict == "compute"


def test_what_communication_is_confounded_with(make_table):
    truth = made(communication_grows=50e-6)
    assert verdict(make_table(truth), "jit").confounded_with == ("waiting for the slowest device",)
    shared = verdict(make_table(truth, cores=2), "jit")
    assert shared.confounded_with == ("waiting for the slowest device", "devices taking turns on 2 cores")


@pytest.mark.parametrize(
    ("fields", "largest", "expected"),
    [
        ({"cores": 2}, None, True),
        ({"cores": 2}, 2, False),
        ({"cores": 8}, None, False),
        ({"cores": None}, None, False),
    ],
)
def test_shared_resource(make_table, fields, largest, expected):
    table = make_table(made(dispatch_grows=10e-6), **fields)
    assert verdict(table, "jit", largest=largest).shared_resource is expected
    assert not verdict(replace(table, platform="gpu"), "jit", largest=largest).shared_resource


def test_regimes_on_one_device_move_the_start_of_the_growth(make_table):
    facts = {
        Cell(role=role, strategy="jit", num_devices=1, size=1000): ProgramFacts(inline=role == "null")
        for role in ("workload", "local", "null")
    }
    answer = verdict(make_table(made(dispatch_grows=10e-6), facts=facts), "jit")
    assert answer.verdict == "dispatch"
    assert "from 2 to 8 devices" in answer.reason
    two = verdict(make_table(made(dispatch_grows=10e-6), devices=(1, 2), facts=facts), "jit")
    assert two.verdict == "undecided"
    assert "runs inline" in two.reason


def test_thin_data_are_undecided_with_the_reason(make_table):
    truth = made(dispatch_grows=10e-6)
    reasons = {
        "no local control was measured": make_table(truth, roles=("workload", "null")),
        "fewer than three launches: no growth can be shown": make_table(truth, launches=2),
        "growth needs two counts": make_table(truth, devices=(8,)),
    }
    for reason, table in reasons.items():
        answer = verdict(table, "jit")
        assert answer.verdict == "undecided"
        assert reason in answer.reason
    assert verdict(make_table(truth), "jit", size=7).reason == "jit was not measured at this size"
    few = verdict(make_table(truth, path="strong", launches=2), "jit")
    assert "no interval of the lead (fewer than three launches)" in few.reason


def test_order_and_units_do_not_matter(make_table):
    table = make_table(made(dispatch_grows=10e-6, communication_grows=8e-6), seed=4)
    turned = replace(table, cells=table.cells[::-1], latency_s=1e6 * table.latency_s[::-1, ::-1])
    assert verdict(turned, "jit") == verdict(table, "jit")
