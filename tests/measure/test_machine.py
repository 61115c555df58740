"""What a process finds around it, in made trees of /proc and /sys."""

import itertools
import os
import subprocess

import pytest
from breakeven.measure import machine as found
from breakeven.measure.control_group import memory_limit_bytes, quota_cores, throttled_s
from breakeven.measure.variables import LEFT_OUT, flags, variables


def write(root, **files):
    """``write(root, **{"proc/stat": text})``."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_an_empty_tree_says_nothing_and_breaks_nothing(tmp_path):
    machine = found.machine(root=tmp_path, environment={}, host="here")
    assert machine.host == "here"
    assert machine.boot is None
    assert machine.quota_cores is None
    assert machine.memory_limit_bytes is None
    assert machine.frequency_mhz is None
    assert machine.governor is None
    assert (machine.numa_nodes, machine.accelerators, machine.variables) == ((), (), ())


def test_a_full_tree(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {1, 3}, raising=False)
    cores = "sys/devices/system/cpu"
    write(
        tmp_path,
        **{
            "proc/sys/kernel/random/boot_id": "034f\n",
            "proc/self/cgroup": "0::/job\n",
            "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/job/memory.max": "max\n",
            "sys/fs/cgroup/memory.max": "4096\n",
            f"{cores}/cpu0/cpufreq/scaling_cur_freq": "9000000\n",
            f"{cores}/cpu1/cpufreq/scaling_cur_freq": "1200000\n",
            f"{cores}/cpu3/cpufreq/scaling_cur_freq": "3400000\n",
            f"{cores}/cpu1/cpufreq/scaling_governor": "schedutil\n",
            f"{cores}/cpu3/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/node/node0/cpulist": "0-1\n",
            "sys/devices/system/node/node1/cpulist": "2,4-7\n",
            "sys/devices/system/node/node2/cpulist": "3\n",
        },
    )
    machine = found.machine(root=tmp_path, environment={"OMP_NUM_THREADS": "2", "HOME": "/h"})
    assert machine.boot == "034f"
    assert machine.affinity == (1, 3)
    assert machine.quota_cores == 1.5
    assert machine.memory_limit_bytes == 4096
    assert machine.frequency_mhz == (1200.0, 3400.0)
    assert machine.governor == "powersave, schedutil"
    assert machine.numa_nodes == (0, 2)
    assert machine.variables == ("OMP_NUM_THREADS=2",)


def test_frequencies_where_only_cpuinfo_says_them(tmp_path):
    blocks = (f"processor\t: {core}\nmodel name\t: x\ncpu MHz\t\t: {mhz}\n" for core, mhz in ((0, 800), (1, 2100.5)))
    write(tmp_path, **{"proc/cpuinfo": "\n".join(blocks)})
    assert found.frequency_mhz((0, 1), tmp_path) == (800.0, 2100.5)
    assert found.frequency_mhz((1,), tmp_path) == (2100.5, 2100.5)
    assert found.frequency_mhz((7,), tmp_path) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (None, None, None)),
        (
            {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "9", "cpu/cpu.stat": "throttled_time 3000000000"},
            (None, None, 3.0),
        ),
        ({"memory/box/memory.limit_in_bytes": "9223372036854771712"}, (None, None, None)),
        ({"memory/box/memory.limit_in_bytes": "1024"}, (None, 1024, None)),
        ({"box/cpu.stat": "usage_usec 5\nthrottled_usec 2500000\n", "cpu.max": "50000 100000"}, (0.5, None, 2.5)),
    ],
)  # fmt: skip
def test_control_groups_of_both_versions(tmp_path, files, expected):
    write(tmp_path, **{"proc/self/cgroup": "3:memory:/box\n0::/box\n"})
    write(tmp_path, **{f"sys/fs/cgroup/{name}": text for name, text in files.items()})
    assert (quota_cores(tmp_path), memory_limit_bytes(tmp_path), throttled_s(tmp_path)) == expected


def test_variables_that_change_times_without_secrets():
    environment = {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_a=1 --xla_api_token=abc --xla_dump_to=https://me:pw@host/x",
        "NCCL_DEBUG": "INFO",
        "TPU_AUTH_TOKEN": "abc",
        "JAX_COORDINATOR_PASSWORD": "abc",
        "CUDA_PROXY": "http://me:pw@host:80",
        "OMP_SSH_KEY": "abc",
        "HF_TOKEN": "abc",
        "PATH": "/bin",
    }
    kept = variables(environment)
    assert "abc" not in "".join(kept)
    assert "pw" not in "".join(kept)
    assert kept == (
        f"CUDA_PROXY={LEFT_OUT}",
        f"JAX_COORDINATOR_PASSWORD={LEFT_OUT}",
        "JAX_PLATFORMS=cpu",
        "NCCL_DEBUG=INFO",
        f"OMP_SSH_KEY={LEFT_OUT}",
        f"TPU_AUTH_TOKEN={LEFT_OUT}",
        f"XLA_FLAGS=--xla_a=1 --xla_api_token={LEFT_OUT} --xla_dump_to={LEFT_OUT}",
    )


def test_flags_keep_everything_but_secrets():
    usual = "--xla_force_host_platform_device_count=8 --xla_cpu_multi_thread_eigen=false"
    assert flags(usual) == usual
    assert flags("--a=1 --my_secret=x --u=http://a:b@c --b") == f"--a=1 --my_secret={LEFT_OUT} --u={LEFT_OUT} --b"
    assert flags("--header=Authorization: Bearer abc") == LEFT_OUT
    assert flags("--dump=/tmp/µ/\udcff") == r"--dump=/tmp/µ/\xff"
    # A key is a secret, a monkey is not.
    assert flags("--key=x --monkey=y") == f"--key={LEFT_OUT} --monkey=y"


@pytest.mark.parametrize("tick", [1, 40, 1000])
def test_the_clocks_step_is_found(tick):
    # Readings 130 ns apart of a clock that only knows multiples of its tick.
    counter = itertools.count(step=130)
    step = found.clock_resolution_ns(lambda: next(counter) // tick * tick)
    assert step == {1: 130, 40: 40, 1000: 1000}[tick]


def test_a_clock_that_stands_still_has_the_resolution_that_the_system_promises():
    assert found.clock_resolution_ns(lambda: 7) > 0


def test_reading_the_clock_costs_what_its_readings_lie_apart():
    counter = itertools.count(step=70)
    # Of N + 1 steps between the first and last reading N + 1 are counted: exact but for rounding.
    assert found.clock_overhead_ns(lambda: next(counter)) == pytest.approx(70, rel=1e-12)


def test_this_machines_clock_is_fine_enough_to_time_calls():
    machine = found.machine()
    assert machine.clock_resolution_ns is not None
    assert machine.clock_overhead_ns is not None
    assert 0 < machine.clock_resolution_ns < 1e6
    assert 0 < machine.clock_overhead_ns < 1e6


SAID = (
    "NVIDIA H200, P0, 1980 MHz, 3201 MHz, 1980 MHz, 3201 MHz, 700.00 W, 41, 0x0000000000000000, "
    "550.1, 00000000:1B:00.0\n"
)


def test_accelerators_are_asked_for_on_gpus_only(tmp_path, monkeypatch):
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho '{SAID.strip()}'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert found.machine(platform="cpu").accelerators == ()
    (gpu,) = found.machine(platform="gpu").accelerators
    assert gpu.startswith("name NVIDIA H200, pstate P0, clocks.sm 1980 MHz")
    assert "power.limit 700.00 W, temperature.gpu 41" in gpu
    assert gpu.endswith("driver_version 550.1, pci.bus_id 00000000:1B:00.0")


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(), subprocess.TimeoutExpired("nvidia-smi", 10), subprocess.CalledProcessError(9, "nvidia-smi")],
)
def test_a_driver_that_does_not_answer_says_nothing(monkeypatch, error):
    def fail(*_args, **options):
        assert options["timeout"] == 10
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert found.machine(platform="gpu").accelerators == ()
