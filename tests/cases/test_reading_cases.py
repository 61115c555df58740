"""Logs as people keep them, and what they leave unsaid (synthetic numbers in the shape of the cases named)."""

import pytest
from breakeven.cli.app import app
from breakeven.data.store import RecordError
from typer.testing import CliRunner


@pytest.fixture
def run(tmp_path):
    """Write a text into a file and run a command on it: exit code, stdout, stderr. A refusal is raised."""

    def command(name, text, *arguments):
        path = tmp_path / "log.csv"
        path.write_text(text, encoding="utf-8")
        done = CliRunner().invoke(app, [name, str(path), *arguments])
        if isinstance(done.exception, RecordError):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    return command


STEPS = "world_size,step_ms\n1,251.0\n2,262.4\n4,268.9\n8,281.3\n"


@pytest.mark.parametrize("name", ["predict", "explain", "fit"])
def test_a_step_time_without_a_batch_is_answered_with_what_was_assumed(run, name):
    """https://github.com/NVIDIA/OpenSeq2Seq/issues/191 and its like: whether the batch grew decides the answer."""
    columns = ("--columns", "devices=world_size,latency_s=step_ms/1e3")
    _, _, told = run(name, STEPS, *columns)
    assert "no column says how much work a call is: taken as the same total on every count" in told
    _, _, told = run(name, STEPS, *columns, "--scaling", "strong")
    assert "no column says" not in told


def test_the_same_steps_with_a_batch_that_grows_gain_sevenfold(run):
    columns = ("--columns", "devices=world_size,latency_s=step_ms/1e3", "--scaling", "weak")
    _, out, _ = run("predict", STEPS, *columns)
    assert "optimal devices" in out
    assert f"{8 * 251.0 / 281.3:.2f}" in out


def test_a_rate_of_images_that_falls_does_not_gain(run):
    """https://github.com/hclhkbu/dlbench/issues/32: two devices are slower, 0.82 times the images a second."""
    log = "gpus,batch_per_gpu,images_per_sec\n1,512,23840\n2,512,19580\n"
    sizes = "devices=gpus,size_per_device=batch_per_gpu"
    with pytest.raises(RecordError, match=r"here latency_s=batch_per_gpu\*gpus/images_per_sec"):
        run("predict", log, "--columns", f"{sizes},latency_s=1/images_per_sec")
    _, out, _ = run("predict", log, "--columns", f"{sizes},latency_s=batch_per_gpu*gpus/images_per_sec")
    assert "0.821" in out


def test_ranks_that_contradict_the_bus_bandwidth_are_turned_away(run):
    """https://github.com/NVIDIA/nccl-tests/issues/107: 16 ranks were asked for, 8 took part."""
    log = "nranks,size_b,time_us,algbw,busbw\n16,1048576,75.1,13.96,24.43\n16,268435456,3280.0,81.84,143.22\n"
    columns = "devices=nranks,message_bytes=size_b,latency_s=time_us/1e6"
    with pytest.raises(RecordError, match=r"gives 1\.875 \(all-reduce on 8 gives that\)"):
        run("fit", log, "--columns", columns)
