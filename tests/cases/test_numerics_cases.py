"""What breaks other tools: rank, bounds, units, copies, zeros, and series that are not steady."""

import json
import math

import msgspec
import pytest
from breakeven.cli.app import app
from breakeven.data.catalog import open_record
from breakeven.data.schema import Plan
from breakeven.data.simulated import simulated_record
from breakeven.data.store import RecordError
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer
from breakeven.model.simulate import sample, truth
from typer.testing import CliRunner

RING_US = (10, 13.76, 16.88, 20.8, 25.2, 29.5, 33.7)


@pytest.fixture
def asked(tmp_path):
    """The answer to lines of a CSV file."""

    def run(*lines, columns=None, name="runs.csv", **question):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return answer(from_record(open_record(str(path), columns=columns)), **question)

    return run


def numbers(found):
    """Every number of an answer."""
    if isinstance(found, dict):
        for value in found.values():
            yield from numbers(value)
    elif isinstance(found, list | tuple):
        for value in found:
            yield from numbers(value)
    elif isinstance(found, float):
        yield found


def rows(unit):
    return [f"{n},128,{t * unit!r}" for n, t in enumerate(RING_US, start=2)]


def plain(found):
    """An answer as JSON has it, without the name of its file."""
    return {key: value for key, value in msgspec.to_builtins(found).items() if key != "workload"}


def test_seconds_and_microseconds_give_the_same_answer(asked):
    in_s = asked("devices,message_bytes,latency_s", *rows(1e-6))
    in_us = asked("devices,message_bytes,us", *rows(1), columns="latency_s=us/1e6")
    assert plain(in_us) == plain(in_s)


def test_the_order_of_rows_changes_nothing(asked):
    forth = asked("devices,message_bytes,latency_s", *rows(1e-6))
    back = asked("devices,message_bytes,latency_s", *reversed(rows(1e-6)))
    assert plain(back) == plain(forth)


def test_a_unit_of_size_scales_its_cost_and_nothing_else(asked):
    """Parameters 1e12 apart: the columns are scaled before they are solved."""
    times = {1: 0.110, 2: 0.062, 4: 0.038, 8: 0.0275, 16: 0.0235}
    small, large = (
        asked("devices,size,latency_s", *(f"{n},{size},{t}" for n, t in times.items())) for size in (16, 16 * 10**12)
    )
    assert small.parameters["gamma"].identified
    assert large.parameters["gamma"].estimate == pytest.approx(small.parameters["gamma"].estimate / 1e12)
    assert large.parameters["gamma"].interval == pytest.approx([x / 1e12 for x in small.parameters["gamma"].interval])
    for name in ("dispatch", "c0 + entry"):
        if name in small.parameters:
            a, b = small.parameters[name], large.parameters[name]
            assert (b.estimate, b.upper_limit) == pytest.approx((a.estimate, a.upper_limit))


def test_two_points_and_two_parameters_have_estimates_only(asked):
    found = asked("devices,message_bytes,us", "2,128,10", "4,128,16", columns="latency_s=us/1e6")
    alpha = found.parameters["alpha"]
    assert alpha.estimate == pytest.approx(1.5e-6)
    assert (alpha.interval, alpha.upper_limit) == (None, None)
    assert "as many parameters as points" in alpha.reason
    assert all(map(math.isfinite, numbers(msgspec.to_builtins(found))))


def test_a_parameter_at_its_bound_has_a_one_sided_limit(asked):
    """Times that hardly change with the ring: the fit without a bound is negative."""
    found = asked(
        "devices,message_bytes,us",
        *(f"{n},8,{t}" for n, t in zip((2, 3, 4, 5, 6, 8), (20.3, 20.0, 20.4, 19.9, 20.1, 20.1), strict=True)),
        columns="latency_s=us/1e6",
    )
    alpha = found.parameters["alpha"]
    assert alpha.estimate == 0
    assert alpha.interval is None
    assert 0 < alpha.upper_limit < 0.1e-6
    assert all(map(math.isfinite, numbers(msgspec.to_builtins(found))))


def test_the_text_names_the_parameter_at_its_bound(tmp_path):
    path = tmp_path / "flat.csv"
    path.write_text("devices,message_bytes,us\n2,8,20.3\n3,8,20.0\n4,8,20.4\n5,8,19.9\n6,8,20.1\n8,8,20.1\n")
    done = CliRunner().invoke(app, ["fit", str(path), "--columns", "latency_s=us/1e6"])
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith("alpha "))
    assert "at most" in line
    assert "one-sided 97.5 %" in line
    assert "nan" not in done.stdout.lower()


def simulated(*, controls, seed=0):
    """Six launches of a ring whose parameters are known."""
    true = truth(
        {"c0": 20e-6, "dispatch": 10e-6, "alpha": 5e-6, "gamma": 2e-9, "beta": 1e-11},
        devices=(1, 2, 4, 8),
        sizes=(4096, 16384),
        controls=controls,
        probes=False,
    )
    drawn = sample(true.times_s, launches=6, rounds=4, calls=3, seed=seed, cell_launch_sd=0.005, call_sd=0.02)
    plan = Plan(
        workload="ring", path="strong", objective="time", devices=true.devices, sizes=true.sizes, strategies=("jit",)
    )
    return answer(from_record(simulated_record(plan, true.cells, drawn, facts=true.facts)))


def test_dispatch_and_ring_latency_grow_alike_and_are_not_told_apart():
    found = simulated(controls=False)
    for name in ("dispatch", "alpha"):
        parameter = found.parameters[name]
        assert not parameter.identified
        assert parameter.estimate is None
        assert "dispatch" in parameter.reason
        assert "alpha" in parameter.reason
    # Least squares of a rank-deficient design returns coefficients of 1e13 elsewhere.
    assert all(abs(p.estimate) < 1 for p in found.parameters.values() if p.estimate is not None)


def test_controls_without_a_collective_tell_them_apart():
    found = simulated(controls=True)
    for name, true in (("dispatch", 10e-6), ("alpha", 5e-6)):
        parameter = found.parameters[name]
        assert parameter.identified
        assert parameter.estimate == pytest.approx(true, rel=0.2)


def diagnosed(path, *arguments):
    """The checks of ``breakeven diagnose``, by name."""
    done = CliRunner().invoke(app, ["diagnose", str(path), "--json", *arguments])
    assert done.exit_code in (0, 1), done.output
    return {check["name"]: check for check in json.loads(done.stdout)["diagnostics"]}


def test_a_series_that_still_falls_is_not_steady(data):
    checks = diagnosed(data / "c66_still_falling.csv", "--columns", "devices=1,latency_s=ms/1e3,replicate=iteration")
    steady = checks["steady series"]
    assert steady["passed"] is False
    assert steady["p"] < 0.01
    assert "not steady, extend warm-up" in steady["remedy"]


def test_differences_of_process_times_are_below_their_noise(data):
    columns = ("--columns", "devices=1,latency_s=ms/1e3,launch=process")
    noise = diagnosed(data / "c66_by_subtraction.csv", *columns)["times above noise"]
    assert noise["passed"] is False
    assert "signal below noise, no verdict" in noise["words"]


def test_identical_code_is_not_found_to_differ(data, tmp_path):
    """The first three processes of one program against its last three."""
    lines = (data / "c66_by_subtraction.csv").read_text().splitlines()
    header, values = lines[-7], lines[-6:]
    for name, part in (("a.csv", values[:3]), ("b.csv", values[3:])):
        (tmp_path / name).write_text("\n".join([header, *part]) + "\n")
    columns = ["--columns", "devices=1,latency_s=ms/1e3,launch=process"]
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--json", *columns])
    (cell,) = json.loads(done.stdout)["cells"]
    assert cell["change"] == "undecided"
    assert cell["p"] > 0.05
    assert cell["ratio"]["interval"][0] < 1 < cell["ratio"]["interval"][1]


RELEARN = "devices=ranks,size_per_device=neurons_per_rank,latency_s=seconds"


def test_replicates_that_are_copies_give_no_interval(ask):
    found = ask("c69_relearn.csv", f"{RELEARN},replicate=run", where='region="Connectivity update"')
    assert found.devices == (32, 64, 128, 256, 512)
    for prediction in found.predictions:
        if prediction.kind == "measured":
            assert prediction.latency_s.estimate > 0
            assert prediction.latency_s.interval is None


def test_launches_that_agree_to_the_last_digit_are_no_precision(asked):
    found = asked(
        "devices,latency_s,launch", *(f"{n},{t},{run}" for run in "abc" for n, t in ((1, 0.5), (2, 0.3), (4, 0.2)))
    )
    for prediction in found.predictions:
        if prediction.kind == "measured":
            assert prediction.latency_s.interval is None
            assert prediction.latency_s.reason == "replicates are identical"
    assert found.optimal_devices.outcome == "undecided"


def test_a_region_of_zero_seconds_has_no_logarithm(ask):
    with pytest.raises(RecordError, match=r"relearn.csv, line \d+: latency_s is 0; a time must be above 0.*comment"):
        ask("c69_relearn.csv", f"{RELEARN},replicate=run", where='region="Update #synaptic elements + del synapses"')


def test_several_regions_in_one_file_are_not_mixed(ask):
    with pytest.raises(RecordError, match=r"rows that differ in region would be mixed.*--where"):
        ask("c69_relearn.csv", f"{RELEARN},replicate=run")


def test_comments_and_empty_lines_keep_the_numbers_of_lines(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("# a comment\n\ndevices,latency_s\n1,0.5\n\n# 2,0.3 failed\n2,fast\n")
    with pytest.raises(RecordError, match=r"runs.csv, line 7, column 'latency_s': 'fast' is no number"):
        open_record(str(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2", r"line 3: 1 values, but the header names 2 columns"),
        ("2,nan", r"line 3, column 'latency_s': 'nan' is no finite number"),
        ("2,-0.3", r"line 3: latency_s is -0.3; a time must be above 0"),
        ("2.5,0.3", r"line 3: devices is 2.5, which is not a whole number"),
        ("2,", r"line 3, column 'latency_s': blank, but latency_s is needed in every row"),
        ("0,0.3", r"line 3: devices is 0; it must lie between 1"),
    ],
)
def test_a_malformed_row_is_named_by_its_line(tmp_path, line, message):
    path = tmp_path / "runs.csv"
    path.write_text(f"devices,latency_s\n1,0.5\n{line}\n")
    with pytest.raises(RecordError, match=message):
        open_record(str(path))
