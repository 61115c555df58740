"""The command line under a launcher: MPICH's mpiexec from PyPI, which the development requirements install."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from breakeven.data.store import read
from breakeven.measure.sweep import complete_launches

MPIEXEC = Path(sysconfig.get_path("scripts")) / "mpiexec"
BREAKEVEN = [sys.executable, "-P", "-m", "breakeven.cli"]
SMALL = ["--platform", "cpu", "--no-controls", "--no-probes", "--no-sentinel", "--calls", "3", "--queue", "0"]


@pytest.fixture
def environment(tmp_path):
    """Hydra starts the ranks itself, whatever batch system runs the tests; a home folder to look into afterwards."""
    home = tmp_path / "home"
    home.mkdir()
    others = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PMI_", "XDG_"))}
    return others | {"HYDRA_LAUNCHER": "fork", "HOME": str(home)}


@pytest.fixture
def launched(environment, tmp_path):
    """``launched(ranks, arguments)``: mpiexec with that many ranks, in a folder of its own."""
    started = []

    def start(ranks, *arguments):
        process = subprocess.Popen(
            [MPIEXEC, "-n", str(ranks), *BREAKEVEN, *arguments],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate()


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_measure_together_and_the_first_alone_speaks(launched, tmp_path, ranks):
    devices = ",".join(str(n) for n in (1, 2, 4) if n <= ranks)
    process = launched(
        ranks,
        *("measure", "mean-all", "--devices", devices, "--sizes-per-device", "8", "--launches", "1", *SMALL),
        *("--budget", "2s", "--hide-hosts", "-o", "sweep.jsonl"),
    )
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.count("breakeven explain sweep.jsonl") == 1
    assert err.count("launch 1 of 1") == 1
    record = read(tmp_path / "sweep.jsonl")
    (launch,) = record.launches
    assert (launch.processes, launch.nodes, launch.visible_devices) == (ranks, 1, ranks)
    assert (launch.devices_per_process, launch.devices_per_node) == (1, ranks)
    hosts = {machine.host for machine in launch.machines}
    assert len(launch.machines) == ranks
    assert len(hosts) == 1
    assert hosts.pop().startswith("host-")
    largest = max(program.program for program in record.programs if program.cell.num_devices == ranks)
    assert {len(visit.ranks_ns) for visit in record.visits if visit.program == largest} == {ranks}
    assert complete_launches(record) == 1
    assert not record.failures
    # Nothing is kept at home, and nothing is left behind.
    assert list((tmp_path / "home").iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"home", "sweep.jsonl"}


def test_another_number_of_processes_is_refused(launched, tmp_path):
    process = launched(2, "measure", "mean-all", "--processes", "3", "--sizes-per-device", "8", *SMALL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--processes" in err
    assert "3, but MPICH started 2" in err
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_a_mistake_ends_all_ranks_and_is_said_once(launched, tmp_path):
    process = launched(2, "measure", "nothing-like-it", "--sizes-per-device", "8", *SMALL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.count("unknown workload 'nothing-like-it'") == 1
    assert "Traceback" not in err


def test_a_signal_leaves_a_record_with_which_the_same_command_goes_on(launched, tmp_path):
    path = tmp_path / "sweep.jsonl"
    command = ["measure", "mean-all", "--devices", "1,2", "--sizes-per-device", "8", "--launches", "2", *SMALL]
    command += ["--budget", "4s", "-o", "sweep.jsonl"]
    process = launched(2, *command)
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(signal.SIGUSR1)
    _, err = process.communicate(timeout=60)
    # mpiexec combines the exit codes of its ranks.
    assert process.returncode == 128 + signal.SIGUSR1
    assert err.count("interrupted: sweep.jsonl holds") == 1
    assert "Traceback" not in err
    before = read(path)
    assert not before.failures
    process = launched(2, *command)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    after = read(path)
    assert after.visits[: len(before.visits)] == before.visits
    assert complete_launches(after) == 2
