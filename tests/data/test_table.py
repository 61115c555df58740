"""From the record to tidy tables and to one time per (cell, launch)."""

import msgspec
import numpy as np
import pytest
from breakeven.data import table
from breakeven.data.schema import SCHEMA_VERSION, Failure, Launch, Plan, Program, Sweep, Visit
from breakeven.data.simulated import simulated_lines, simulated_record, write_simulated
from breakeven.data.store import Record, RecordError, read
from breakeven.fit.launches import from_record
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts

PLAN = Plan(
    workload="w", path="strong", objective="time", devices=(1, 2), sizes=(10,), strategies=("jit",), visible_devices=2
)
CELLS = tuple(
    Cell(role=role, strategy="jit", num_devices=n, size=10) for role in ("workload", "local", "null") for n in (1, 2)
)


def record_of(times, *, plan=PLAN, drop=(), failures=(), uuid="s", queued=None):
    """A record by hand: ``times[launch][round][cell]`` are tuples of calls; ``drop`` names (launch, round, cell)."""
    lines = [Sweep(schema=SCHEMA_VERSION, sweep=uuid, created="", version="", plan=plan)]
    for g, rounds in enumerate(times):
        name = f"launch{g}"
        lines.append(Launch(sweep=uuid, launch=name, started="", cores=2 + g, visible_devices=2, platform="cpu"))
        lines += [Program(sweep=uuid, launch=name, program=i, cell=c) for i, c in enumerate(CELLS)]
        lines += [
            Visit(
                sweep=uuid,
                launch=name,
                program=i,
                round=r,
                position=i,
                time=0.0,
                warmups=1,
                latency_ns=(10**9, *calls),
                dispatch_ns=(1,) * (1 + len(calls)),
                queued_ns=queued,
            )
            for r, cells in enumerate(rounds)
            for i, calls in enumerate(cells)
            if (g, r, i) not in drop
        ]
    return Record.from_lines([*lines, *failures], source="by hand")


def times(launches=3, rounds=2) -> list:
    """Calls whose visit median is 1000 g + 100 r + 10 i + 5 nanoseconds."""
    return [
        [[(m - 3, m, m + 400) for m in [1000 * g + 100 * r + 10 * i + 5 for i in range(6)]] for r in range(rounds)]
        for g in range(launches)
    ]


def test_median_within_a_visit_and_mean_over_rounds():
    result = from_record(record_of(times()))
    assert result.cells == CELLS
    assert result.replicated
    expected = [[(1000 * g + 50 + 10 * i + 5) * 1e-9 for g in range(3)] for i in range(6)]
    np.testing.assert_allclose(result.latency_s, expected, rtol=1e-12)
    assert [block.shape for block in result.rounds_s] == [(6, 2)] * 3
    np.testing.assert_allclose(result.rounds_s[1][2], [1025e-9, 1125e-9], rtol=1e-12)
    assert (result.cores, result.visible_devices, result.platform) == (2, 2, "cpu")
    assert result.queued_s is None


def test_the_median_of_an_even_number_of_calls():
    record = record_of([[[(4, 1, 9, 2)] * 6]])
    assert table.visits(record)["latency_s"].tolist() == pytest.approx([3e-9] * 6)


def test_an_incomplete_round_is_not_used():
    result = from_record(record_of(times(), drop={(1, 1, 5)}))
    np.testing.assert_allclose(result.latency_s[0], [55e-9, 1005e-9, 2055e-9], rtol=1e-12)
    assert result.rounds_s[1].shape == (6, 1)
    assert result.excluded_launches == 0


def test_a_launch_without_a_complete_round_is_left_out():
    result = from_record(record_of(times(), drop={(1, 0, 0), (1, 1, 5)}))
    assert result.num_launches == 2
    assert result.excluded_launches == 1
    np.testing.assert_allclose(result.latency_s[0], [55e-9, 2055e-9], rtol=1e-12)


def test_a_launch_killed_while_compiling_does_not_count():
    record = record_of(times(2))
    extra = Launch(sweep="s", launch="killed", started="")
    program = Program(sweep="s", launch="killed", program=0, cell=CELLS[0])
    visit = Visit(sweep="s", launch="killed", program=0, round=0, position=0, time=0.0, warmups=0, latency_ns=(1,))
    lines = [*record.sweeps, *record.launches, extra, *record.programs, program, *record.visits, visit]
    result = from_record(Record.from_lines(lines))
    assert result.num_launches == 2
    assert result.excluded_launches == 1


def failure(launch, stage="visit", cell=CELLS[5]):
    return Failure(sweep="s", launch=launch, stage=stage, error="RuntimeError", message="no", cell=cell)


def test_a_barred_cell_is_left_out_of_all_launches():
    # Launch 0 measured it; launches 1 and 2 failed at it.
    dropped = {(g, r, 5) for g in (1, 2) for r in (0, 1)}
    result = from_record(record_of(times(), drop=dropped, failures=[failure("launch1"), failure("launch2")]))
    assert result.cells == CELLS[:5]
    assert result.num_launches == 3
    assert np.isfinite(result.latency_s).all()
    assert len(result.failures) == 2


def test_one_failure_does_not_bar():
    result = from_record(record_of(times(), drop={(1, 0, 5), (1, 1, 5)}, failures=[failure("launch1")]))
    assert result.cells == CELLS
    assert result.num_launches == 2


def test_a_refused_control_is_no_failure_of_a_cell():
    refusals = [failure("launch0", "control"), failure("launch1", "control")]
    result = from_record(record_of(times(), failures=refusals))
    assert result.cells == CELLS
    assert result.refused == "no"


def test_nothing_complete_is_said():
    dropped = {(g, r, 0) for g in range(3) for r in range(2)}
    with pytest.raises(RecordError, match="by hand: no launch has a complete round over all cells; measure again"):
        from_record(record_of(times(), drop=dropped))
    with pytest.raises(RecordError, match="no launch has a complete round"):
        from_record(record_of([]))


@pytest.mark.parametrize("value", [0, -5])
def test_times_must_be_positive(value):
    spoilt = times(1, 1)
    spoilt[0][0][2] = (value, value, 7)
    with pytest.raises(
        RecordError,
        match=r"1 of 6 visits hold times that are zero or negative \(first: local.jit on 1 device, size 10\)",
    ):
        from_record(record_of(spoilt))


def test_visits_of_warm_ups_alone_do_not_count():
    cold = times(2)
    cold[0][0][3] = ()
    record = record_of(cold)
    assert len(table.visits(record)) == 23
    assert from_record(record).rounds_s[0].shape == (6, 1)


def test_queued_times():
    result = from_record(record_of(times(2), queued=77))
    np.testing.assert_allclose(result.queued_s, np.full((6, 2), 77e-9))


def test_samples_keep_every_call_and_flag_warm_ups():
    record = record_of(times(1, 1))
    samples = table.samples(record)
    assert len(samples) == 24
    assert samples["warmup"].sum() == 6
    assert samples.loc[samples["warmup"], "latency_s"].eq(1.0).all()
    assert samples["call"].tolist() == [0, 1, 2, 3] * 6
    assert samples["dispatch_s"].eq(1e-9).all()
    one = samples[(samples["role"] == "null") & (samples["num_devices"] == 2) & ~samples["warmup"]]
    assert one["latency_s"].tolist() == pytest.approx([52e-9, 55e-9, 455e-9])


def test_samples_of_an_empty_sweep():
    assert table.samples(record_of([])).empty


def join(*records):
    lines = [line for r in records for line in (*r.sweeps, *r.launches, *r.programs, *r.visits)]
    return Record.from_lines(lines, source="joined")


def test_sweeps_of_one_plan_are_pooled():
    other = record_of(times(2), uuid="t", plan=msgspec.structs.replace(PLAN, seed=5, launches=2))
    result = from_record(join(record_of(times(3)), other))
    assert result.num_launches == 5
    np.testing.assert_allclose(result.latency_s[0], np.array([55, 1055, 2055, 55, 1055]) * 1e-9, rtol=1e-12)


@pytest.mark.parametrize(
    ("field", "value"),
    [("workload", "x"), ("path", "weak"), ("visible_devices", 4), ("devices", (1, 2, 4)), ("sizes", (5, 10))],
)
def test_sweeps_that_differ_are_not_pooled(field, value):
    other = record_of(times(1), uuid="t", plan=msgspec.structs.replace(PLAN, **{field: value}))
    with pytest.raises(RecordError, match=f"joined: holds sweeps that differ in {field} .*cannot be pooled"):
        from_record(join(record_of(times(1)), other))


def test_reading_off_a_launch_table():
    result = from_record(record_of(times()))
    np.testing.assert_allclose(result.time("local", "jit", 2, 10), result.latency_s[3])
    assert result.time("local", "jit", 4, 10) is None
    assert result.row(CELLS[4]) is not None
    assert result.devices() == (1, 2)
    assert result.devices("chain") == ()
    assert result.sizes() == (10,)
    assert result.strategies == ("jit",)
    part = result.take(np.array([2, 0]))
    np.testing.assert_array_equal(part.latency_s, result.latency_s[:, [2, 0]])
    np.testing.assert_array_equal(part.time("null", "jit", 1, 10), result.latency_s[4, [2, 0]])
    assert part.rounds_s[0] is result.rounds_s[2]


def test_the_weak_path_places_cells_per_device():
    plan = msgspec.structs.replace(PLAN, path="weak", sizes=(10, 20))
    cells = [Cell(role="workload", strategy="jit", num_devices=n, size=n * s) for n in (1, 2) for s in (10, 20)]
    result = from_record(simulated_record(plan, cells, np.full((4, 3, 2, 2), 1e-5)))
    assert result.sizes() == (10, 20)
    assert [result.axis_size(c) for c in sorted(cells, key=lambda c: c.size)] == [10, 20, 10, 20]


def test_simulated_samples_come_back(tmp_path):
    rng = np.random.default_rng(5)
    samples = np.exp(rng.normal(-9, 0.3, size=(6, 4, 3, 5)))
    facts = {CELLS[0]: ProgramFacts(flops=7.0)}
    path = write_simulated(tmp_path / "s.jsonl", PLAN, CELLS, samples, facts=facts, cores=2, source="seed 5")
    record = read(path)
    assert record.sweeps[0].synthetic
    assert record.sweeps[0].source == "seed 5"
    result = from_record(record)
    assert result.synthetic
    assert not result.foreign
    assert result.cores == 2
    assert result.facts[CELLS[0]] == ProgramFacts(flops=7.0)
    expected = np.median(samples, axis=3).mean(axis=2)
    np.testing.assert_allclose(result.latency_s, expected, atol=1e-9)  # whole nanoseconds are stored
    assert simulated_record(PLAN, CELLS, samples, facts=facts, cores=2, source="seed 5").visits == record.visits
    with pytest.raises(RecordError, match="exists already"):
        write_simulated(path, PLAN, CELLS, samples)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.full((5, 1, 1, 1), 1e-5), r"must have shape \(6 cells, launches, rounds, calls\), got \(5, 1, 1, 1\)"),
        (np.full((6, 1, 1), 1e-5), "must have shape"),
        (np.full((6, 1, 1, 65), 1e-5), "65 calls a visit; at most 64"),
        (np.full((6, 1, 1, 1), 1e-12), "at least one nanosecond"),
        (np.full((6, 1, 1, 1), np.nan), "must be finite"),
    ],
)
def test_samples_that_make_no_record(samples, message):
    with pytest.raises(ValueError, match=message):
        simulated_lines(PLAN, CELLS, samples)
