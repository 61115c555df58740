"""Repeats of data from elsewhere: the first one left out where it is a warm-up everywhere, others far off named."""

import numpy as np
import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.fit.guards import times_of_other_work
from breakeven.fit.launches import from_record
from breakeven.fit.planning.spread import NoSpread, spread
from breakeven.fit.repeats import far_off
from breakeven.fit.report import answer

# Synthetic: seconds of the first five steps of one job a count, the first with its compile.
STEPS = {1: (8.9, 2.01, 2.02, 2.00, 2.01), 2: (14.6, 1.11, 1.12, 1.10, 1.11), 4: (31.3, 0.66, 0.65, 0.66, 0.65)}


@pytest.fixture
def table_of(tmp_path):
    """A table of the steps of each count, every launch with the same ones."""

    def made(steps, *, launches=()):
        path = tmp_path / "steps.csv"
        rows = ["devices,job,step,seconds"]
        for job in launches or ("a",):
            rows += [f"{n},{job},{i},{t}" for n, times in steps.items() for i, t in enumerate(times)]
        path.write_text("\n".join(rows) + "\n")
        columns = {"latency_s": "seconds", "replicate": "step"}
        columns |= {"launch": "job"} if launches else {"note": "job"}
        return from_record(read_csv(path, columns=columns, scaling="strong"))

    return made


def names(table):
    return {one.name: one for one in times_of_other_work(table, "as-written")}


@pytest.mark.parametrize("launches", [(), ("a", "b", "c")])
def test_a_compile_in_every_first_repeat_is_left_out(table_of, launches):
    table = table_of(STEPS, launches=launches)
    means = [np.mean(times[1:]) for times in STEPS.values()]
    np.testing.assert_allclose(table.latency_s[:, 0], means, rtol=1e-9)
    found = names(table)
    assert set(found) == {"first-repeats"}
    assert "takes 4.43 to 47.8 times the median of the later ones" in found["first-repeats"].text
    assert ("every cell in every launch" in found["first-repeats"].text) == bool(launches)
    assert not found["first-repeats"].doubts_verdict


@pytest.mark.parametrize(
    "steps",
    [
        # One count's first repeat is as the others: then it is no warm-up, but chance.
        STEPS | {1: (2.01, 2.02, 2.00, 2.01, 2.02)},
        # Two later repeats do not show that they agree.
        {n: times[:3] for n, times in STEPS.items()},
        # The later ones do not agree: the run has not settled.
        {n: (8 * t[1], 4 * t[1], 2 * t[1], t[1], t[1]) for n, t in STEPS.items()},
        # Slower than the rest, but not by so much that it is no time of the same work.
        {n: (1.3 * t[1], *t[1:]) for n, t in STEPS.items()},
        # A single series cannot tell a warm-up from chance.
        {1: STEPS[1]},
    ],
)
def test_all_repeats_stay_where_the_first_need_not_be_a_warm_up(table_of, steps):
    table = table_of(steps)
    assert table.first_left_out is None
    np.testing.assert_allclose(table.latency_s[:, 0], [np.mean(times) for times in steps.values()], rtol=1e-9)


def test_a_stall_that_shifts_the_mean_is_doubted(table_of):
    found = names(table_of({256: (3.41, 3.40, 3.42, 41.7, 3.41), 512: (1.93, 1.92, 1.94, 1.93, 1.92)}))
    assert set(found) == {"odd-repeats"}
    assert found["odd-repeats"].doubts_verdict
    text = found["odd-repeats"].text
    assert "on 256 devices, size 1: repeat 4 takes 12.2 times the median" in text
    # (4 * 3.41 + 41.7) / 5 over 3.41.
    assert "raises its time by 225 %" in text


def test_a_step_that_nobody_waited_for_is_doubted(table_of):
    text = names(table_of({1: (2.0, 0.01, 2.0, 2.0), 2: (1.0, 1.0, 1.0, 1.0)}))["odd-repeats"].text
    assert "repeat 2 takes 0.005 of the median: it was not waited for" in text
    assert "lowers its time by 24.9 %" in text


def test_inside_a_launch_repeats_are_compared_with_their_launch(table_of):
    steps = {1: (2.0, 2.0, 9.0, 2.0), 4: (0.6, 0.6, 0.6, 0.6)}
    text = names(table_of(steps, launches=("a", "b", "c")))["odd-repeats"].text
    assert "in launch a repeat 3 takes 4.5 times the median" in text
    # 3.75 over 2 in every launch.
    assert "raises its time by 87.5 %" in text


def test_a_stall_in_one_of_many_launches_is_no_doubt(tmp_path):
    path = tmp_path / "launches.csv"
    rows = [
        f"{n},{g},{i},{4 if (n, g, i) == (1, 7, 2) else 1 + g / 1e3}"
        for n in (1, 2)
        for g in range(20)
        for i in range(8)
    ]
    path.write_text("devices,launch,replicate,latency_s\n" + "\n".join(rows) + "\n")
    assert names(from_record(read_csv(path, scaling="strong"))) == {}


def test_a_rare_stall_of_many_is_no_doubt(table_of):
    steady = (1.0, 1.01, 0.99) * 30
    assert names(table_of({1: (*steady, 4.0), 2: steady})) == {}


@pytest.mark.parametrize("shape", ["normal", "exponential"])
def test_sound_repeats_are_hardly_ever_doubted(shape):
    rng = np.random.default_rng(0)
    made = {
        "normal": lambda: np.exp(0.2 * rng.normal(size=10)),
        "exponential": lambda: 1 + rng.exponential(size=10) / 4,
    }
    # 1000 series; a warm-up that is none takes both slowest first, one in 45, far clear of the others.
    assert sum(far_off(made[shape]()) is not None for _ in range(1000)) <= 3


def test_several_first_repeats_clear_above_the_rest_are_a_warm_up():
    found = far_off(np.array([2.41, 1.62, 1.00, 1.02, 0.99, 1.01, 1.03, 1.00]))
    assert found is not None
    assert found.which.tolist() == [True, True] + 6 * [False]
    assert found.words.startswith("repeats 1 and 2 take 2.37 times the median at the furthest")
    # The same times in another order are no warm-up.
    assert far_off(np.array([1.00, 2.41, 1.02, 1.62, 0.99, 1.01, 1.03, 1.00])) is None


def test_collectives_lose_their_cold_start_too(tmp_path):
    path = tmp_path / "ring.csv"
    rows = [f"{n},1024,{i},{t}" for n, t0 in ((2, 19.0), (4, 31.0), (8, 55.0)) for i, t in enumerate((5e3, t0, t0, t0))]
    path.write_text("devices,message_bytes,replicate,us\n" + "\n".join(rows) + "\n")
    table = from_record(read_csv(path, columns={"latency_s": "us/1e6"}))
    np.testing.assert_allclose(table.latency_s[:, 0], [19e-6, 31e-6, 55e-6], rtol=1e-9)


# Launches that are named, but do not hold every cell.


@pytest.fixture
def launches_of(tmp_path):
    def made(rows):
        path = tmp_path / "jobs.csv"
        path.write_text("devices,job,seconds\n" + "".join(f"{n},{job},{t}\n" for n, job, t in rows))
        return from_record(read_csv(path, columns={"latency_s": "seconds", "launch": "job"}, scaling="strong"))

    return made


def test_jobs_of_one_count_each_are_said_to_be(launches_of):
    table = launches_of([(n, 100 * n + i, 10.0 / n + 0.1 * i) for n in (1, 8) for i in range(3)])
    assert not table.replicated
    assert table.partial_launches is not None
    assert "none of the 6 launches named holds every cell" in table.partial_launches
    assert "(launch 100 lacks workload/as-written on 8 devices, size 1)" in table.partial_launches
    assert "number them 1, 2, 3 ... anew for every count" in table.partial_launches
    assert f"no intervals of times: {table.partial_launches}" in answer(table).warnings
    with pytest.raises(NoSpread, match="none of the 6 launches named holds every cell"):
        spread(table)
    # What it advises gives intervals.
    again = launches_of([(n, i, 10.0 / n + 0.1 * i) for n in (1, 8) for i in range(3)])
    assert again.replicated
    assert again.partial_launches is None


def test_launches_that_lost_a_cell_are_named(launches_of):
    rows = [(n, job, 4.0 / n) for job in range(1, 6) for n in (1, 2, 8) if n < 8 or job < 3]
    words = launches_of(rows).partial_launches
    assert words.startswith("2 of the 5 launches named hold every cell")
    assert "(launch 3 lacks workload/as-written on 8 devices, size 1)" in words
    assert "measure the cells that are missing" in words


def test_no_launch_named_is_another_reason(table_of):
    assert table_of(STEPS).partial_launches is None
