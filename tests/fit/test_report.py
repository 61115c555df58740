"""What an answer warns of."""

import pytest
from breakeven.data.schema import Failure, Plan
from breakeven.data.simulated import simulated_record
from breakeven.fit.launches import from_record
from breakeven.fit.question import QuestionError
from breakeven.fit.report import answer
from breakeven.model import simulate
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts


def truth(n, size):
    return 10e-6 * n, 5e-6 * (n - 1), size / n * 1e-6


def facts(**said):
    return {Cell(role="workload", strategy="jit", num_devices=n, size=100): ProgramFacts(**said) for n in (1, 2, 4)}


def ask(make_table, **fields):
    return answer(make_table(truth, devices=(1, 2, 4), sizes=(100,), path="strong", **fields))


def test_a_program_on_fewer_devices_than_the_mesh_is_named(make_table):
    warnings = ask(make_table, facts=facts(devices_used=1)).warnings
    assert any("on 4 devices the compiled program uses 1" in text for text in warnings)
    assert not any("compiled program uses" in text for text in ask(make_table, facts=facts(devices_used=4)).warnings)


def test_a_lost_cell_is_named_with_its_reason(make_table):
    cell = Cell(role="workload", strategy="jit", num_devices=8, size=100)
    lost = Failure(sweep="s", launch="l", stage="visit", error="MeasureError", message="NaN " * 100, cell=cell)
    warnings = ask(make_table, failures=(lost,)).warnings
    (found,) = [text for text in warnings if text.startswith(f"failed while measuring: {cell} (MeasureError: NaN NaN")]
    assert found.endswith("...)")
    assert len(found) < 250


def test_counts_below_the_reference_are_said_to_be_left_out(make_table):
    table = make_table(truth, devices=(1, 2, 4), sizes=(100,), path="strong")
    assert "counts below the reference of 4 are left out: measured were 1, 2" in answer(table, reference=4).warnings
    assert not any("left out" in text for text in answer(table, reference=1).warnings)


def test_moved_arguments_are_named(make_table):
    assert any("placed before timing" in text for text in ask(make_table, facts=facts(inputs_in_place=False)).warnings)
    assert not any("placed before timing" in text for text in ask(make_table, facts=facts()).warnings)


def test_foreign_rows_without_runs_say_how_to_name_them(make_table):
    warnings = ask(make_table, foreign=True, replicated=False, launches=1).warnings
    assert any("--columns launch=NAME" in text for text in warnings)


def said_of_larger_counts(devices, max_devices):
    true = simulate.truth("latency", devices=devices, sizes=(1024, 4096, 16384), cores=max(devices))
    samples = simulate.sample(true.times_s, launches=6, rounds=2, calls=4, seed=3)
    plan = Plan(
        workload="simulated",
        path="strong",
        objective="time",
        devices=devices,
        sizes=true.sizes,
        strategies=("jit",),
        visible_devices=max(devices),
    )
    table = from_record(simulated_record(plan, true.cells, samples, facts=true.facts, cores=max(devices)))
    return any("judged on sizes alone" in text for text in answer(table, max_devices=max_devices).warnings)


def test_counts_beyond_those_measured_rest_on_a_law_that_no_count_judged():
    assert said_of_larger_counts((1, 2, 4), 8)
    assert not said_of_larger_counts((1, 2, 4), 4)
    assert not said_of_larger_counts((1, 2, 4, 8, 16, 32), 64)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"strategy": "pmap"}, "strategy 'pmap' was not measured; measured: jit"),
        ({"size": 7}, "size 7 was not measured; measured: 100"),
        ({"reference": 3}, "reference 3 was not measured; measured: 1, 2, 4"),
        ({"reference": 2, "max_devices": 1}, "max_devices 1 lies below the reference count 2"),
    ],
)
def test_what_was_not_measured_is_not_answered(make_table, asked, message):
    table = make_table(truth, devices=(1, 2, 4), sizes=(100,), path="strong")
    with pytest.raises(QuestionError, match=message):
        answer(table, **asked)
