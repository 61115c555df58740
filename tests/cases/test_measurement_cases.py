"""Numbers that are not what they claim: unlike programs, steps that nobody waited for, a compile in the mean."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from breakeven.cli.app import app
from breakeven.data.schema import Launch, Plan, Program, Sweep, Visit
from breakeven.data.store import Record
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer
from breakeven.measure.prepare import prepare
from breakeven.model.cell import Cell
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from typer.testing import CliRunner

LOG = "latency_s=seconds,devices=1,replicate=step,note=tflop_per_s"
STEP_FLOPS = 764.7e12
"""Of one device and step: rate times time of every line of the log."""


@pytest.fixture
def diagnosed(data):
    """The checks of ``breakeven diagnose FILE --json`` by name, end to end."""

    def run(name, columns):
        done = CliRunner().invoke(app, ["diagnose", str(data / name), "--json", "--columns", columns])
        assert done.exit_code == 0, done.output
        return {check["name"]: check for check in json.loads(done.stdout)["diagnostics"]}

    return run


# C06: a data-parallel step whose pmap version never averages its gradients, against jit over a sharded batch.


def loss(weights, rows):
    return jnp.mean((rows @ weights) ** 2)


def step(weights, rows):
    return weights - 0.1 * jax.grad(loss)(weights, rows)


def averaging_step(weights, rows):
    return weights - 0.1 * jax.lax.pmean(jax.grad(loss)(weights, rows), "batch")


def compiled_facts(name, count):
    """Facts of one of the three programs on the first devices, compiled by JAX here."""
    devices = jax.devices()[:count]
    weights, rows = np.ones(16, np.float32), np.ones((8 * count, 16), np.float32)
    if name == "pjit":
        mesh = Mesh(np.array(devices), ("batch",))
        whole = NamedSharding(mesh, P())
        built = jax.jit(step, out_shardings=whole), jax.device_put(weights, whole)
        args = (jax.device_put(rows, NamedSharding(mesh, P("batch"))),)
    else:
        body = averaging_step if name == "pmap-averaging" else step
        built = jax.pmap(body, axis_name="batch", devices=devices), jnp.stack([weights] * count)
        args = (jnp.reshape(rows, (count, 8, 16)),)
    facts = prepare((*built, args)).facts
    assert facts is not None
    return facts


def training(first, second, path):
    """Both strategies timed: the second takes half the time on every count, which would be an answer by itself."""
    counts, names = (2, 4), (first, second)
    plan = Plan(workload="training", path="weak", objective="time", devices=counts, sizes=(8,), strategies=names)
    lines: list = [Sweep(schema=2, sweep="s", created="", version="", plan=plan)]
    rng = np.random.default_rng(0)
    found = [(name, n, compiled_facts(name, n)) for name in names for n in counts]
    for launch in range(6):
        lines.append(Launch(sweep="s", launch=str(launch), started=""))
        for number, (name, n, facts) in enumerate(found):
            cell = Cell(role="workload", strategy=name, num_devices=n, size=8 * n)
            time_ns = int(1e6 * n / (1 + names.index(name)) * rng.normal(1, 0.01))
            said = {"sweep": "s", "launch": str(launch), "program": number}
            lines.append(Program(**said, cell=cell, facts=facts))
            lines.append(Visit(**said, round=0, position=number, time=0.0, warmups=0, latency_ns=(time_ns,)))
    path.write_bytes(b"".join(json_line + b"\n" for json_line in map(_encoded, lines)))
    return from_record(Record.from_lines(lines, source=str(path)))


def _encoded(line):
    import msgspec

    return msgspec.json.encode(line)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_programs_with_and_without_a_reduction_are_not_comparable(tmp_path: Path):
    path = tmp_path / "steps.jsonl"
    table = training("pjit", "pmap", path)
    done = CliRunner().invoke(app, ["compare", str(path), "--strategies", "pjit,pmap"])
    assert done.exit_code == 1
    first, second, *_ = done.stdout.splitlines()
    assert first == "not comparable: the compiled programs differ"
    assert "pjit has 1 all-reduce of 64 B in all, pmap has no collective" in second
    found = json.loads(CliRunner().invoke(app, ["compare", str(path), "--strategies", "pjit,pmap", "--json"]).stdout)
    assert found["outcome"] == "not comparable"
    warnings = {one.name: one.text for one in answer(table).named_warnings}
    assert "pjit and pmap are not comparable" in warnings["unlike-strategies"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_with_the_reduction_put_in_they_compare(tmp_path: Path):
    path = tmp_path / "steps.jsonl"
    table = training("pjit", "pmap-averaging", path)
    done = CliRunner().invoke(app, ["compare", str(path), "--strategies", "pjit,pmap-averaging", "--json"])
    found = json.loads(done.stdout)
    assert found["not_comparable"] == []
    assert {cell["change"] for cell in found["cells"]} == {"faster"}
    assert "unlike-strategies" not in {one.name for one in answer(table).named_warnings}


# C18: step 0 holds the compile, step 1 returned before the device had finished.


def test_an_impossible_step_is_named_and_left_out(diagnosed):
    checks = diagnosed("c18_step_log.csv", f"{LOG},flops={STEP_FLOPS:g}")
    rate = checks["possible rates"]
    assert not rate["passed"]
    assert "repeat 2 of 10 left out: 2,397 Tflop/s on one device, which can do 918 at most" in rate["words"]
    times = checks["possible times"]
    assert "repeat 1 takes 7.93 times the median: it holds a compile" in times["words"]
    assert "repeat 2 takes 0.056 of the median: it was not waited for" in times["words"]


def test_the_impossible_step_does_not_enter_the_time(table, data):
    seconds = [float(line.split(",")[2]) for line in (data / "c18_step_log.csv").read_text().splitlines()[3:]]
    assert len(seconds) == 10
    kept = table("c18_step_log.csv", f"{LOG},flops={STEP_FLOPS:g}")
    assert kept.latency_s[0, 0] == pytest.approx(np.mean([seconds[0], *seconds[2:]]))
    # Without the compile, which the first check asks to leave out, the steady step is left.
    steady = table("c18_step_log.csv", f"{LOG},flops={STEP_FLOPS:g}", where="tflop_per_s~13")
    assert np.median(steady.latency_s) == pytest.approx(5.66, abs=0.02)


def test_without_the_work_nobody_can_say_what_is_impossible(table, diagnosed):
    assert table("c18_step_log.csv", LOG).impossible == ()
    assert "possible rates" not in diagnosed("c18_step_log.csv", LOG)


# The same over several counts, as a log of each job would hold it (synthetic): the compile must not decide.


STEPS = "devices,step,seconds\n" + "".join(
    f"{n},{i},{time}\n"
    for n, times in {
        1: (8.9, 2.01, 2.02, 2.00, 2.01),
        2: (14.6, 1.11, 1.12, 1.10, 1.11),
        4: (31.3, 0.66, 0.65, 0.66, 0.65),
        8: (62.9, 0.43, 0.43, 0.44, 0.42),
    }.items()
    for i, time in enumerate(times)
)
STALLED = "devices,step,seconds\n" + "".join(
    f"{n},{i},{time}\n"
    for n, times in {256: (3.41, 3.40, 3.42, 41.7, 3.41, 3.40), 512: (1.93, 1.92, 1.94, 1.93, 1.92, 1.93)}.items()
    for i, time in enumerate(times)
)


@pytest.mark.parametrize("command", ["predict", "explain", "fit"])
@pytest.mark.parametrize(("text", "name"), [(STEPS, "first-repeats"), (STALLED, "odd-repeats")])
def test_every_command_that_answers_names_repeats_of_other_work(tmp_path, command, text, name):
    path = tmp_path / "steps.csv"
    path.write_text(text)
    asked = [command, str(path), "--columns", "latency_s=seconds,replicate=step", "--scaling", "strong"]
    done = CliRunner().invoke(app, asked)
    assert f"warning: {name}: " in done.stderr
    found = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    (warning,) = [one for one in found["named_warnings"] if one["name"] == name]
    assert warning["doubts_verdict"] == (name == "odd-repeats")
    assert f"{name}: {warning['text']}" in found["warnings"]
    if command == "predict":
        assert ("doubtful, odd-repeats" in done.stdout) == (name == "odd-repeats")


def test_a_compile_in_every_first_step_does_not_decide(tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text(STEPS)
    asked = ["predict", str(path), "--columns", "latency_s=seconds,replicate=step", "--scaling", "strong", "--json"]
    found = json.loads(CliRunner().invoke(app, asked).stdout)
    # With the compile 1 device looks best, at 3.39 s against 12.9 s.
    assert found["optimal_devices"]["estimate"] == 8
    assert [one["latency_s"]["estimate"] for one in found["predictions"]] == pytest.approx(
        [2.01, 1.11, 0.655, 0.43], rel=1e-6
    )


# C20: no wait, so that the time does not grow; and one compile in the mean.


def test_times_of_starting_the_work_are_named(ask):
    found = ask("c20_not_blocked.csv", "size=rows,latency_s=ms/1e3,flops=flops,note=blocked_ms", scaling="strong")
    (warning,) = [one for one in found.named_warnings if one.name == "not-waited-for"]
    assert warning.doubts_verdict
    assert "while the work of a device grows by 64" in warning.text
    assert "block_until_ready" in warning.text
    assert f"{warning.name}: {warning.text}" in found.warnings


def test_the_same_calls_waited_for_are_not_doubted(ask):
    found = ask("c20_not_blocked.csv", "size=rows,latency_s=blocked_ms/1e3,flops=flops,note=ms", scaling="strong")
    assert "not-waited-for" not in {one.name for one in found.named_warnings}


def test_one_compile_among_ten_calls_is_named(diagnosed):
    checks = diagnosed("c20_compile_inside.csv", "devices=1,latency_s=ms/1e3,replicate=call")
    assert not checks["possible times"]["passed"]
    assert "repeat 1 takes" in checks["possible times"]["words"]
    assert "leave the first repeat out" in checks["possible times"]["remedy"]


def test_a_program_that_nobody_waits_for_is_refused():
    from breakeven.measure.workload import MeasureError

    product = jax.jit(lambda x: x @ x @ x)

    def epoch(x):
        assert float(x[0, 0]) == 1
        product(x)
        return "done"

    with pytest.raises(MeasureError, match="returned no array and no number"):
        prepare((epoch, (jnp.ones((400, 400)),)))
