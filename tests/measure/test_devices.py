import os
import subprocess
import sys

import pytest
from breakeven.measure import devices
from breakeven.measure.workload import MeasureError


def test_forced_devices_are_added_to_the_users_flags():
    flags = devices.forced_flags("--xla_cpu_multi_thread_eigen=false --xla_dump_to=/x", 8)
    assert flags.split() == [
        "--xla_cpu_multi_thread_eigen=false",
        "--xla_dump_to=/x",
        "--xla_force_host_platform_device_count=8",
    ]


def test_the_users_own_device_count_gives_way():
    assert devices.forced_flags("--xla_force_host_platform_device_count=3", 2) == (
        "--xla_force_host_platform_device_count=2"
    )


def test_child_environment_of_a_cpu_host():
    environment = {"XLA_FLAGS": "--a=1", "JAX_NUM_CPU_DEVICES": "2", "HOME": "/h"}
    child = devices.child_environment("cpu", 4, environment)
    assert child["XLA_FLAGS"] == "--a=1 --xla_force_host_platform_device_count=4"
    assert child["JAX_PLATFORMS"] == "cpu"
    assert child["HOME"] == "/h"
    assert "JAX_NUM_CPU_DEVICES" not in child
    assert environment == {"XLA_FLAGS": "--a=1", "JAX_NUM_CPU_DEVICES": "2", "HOME": "/h"}


def test_child_environment_elsewhere_keeps_flags_and_lets_jax_find_the_device():
    child = devices.child_environment("gpu", 4, {"XLA_FLAGS": "--a=1", "JAX_PLATFORMS": "cpu"})
    assert child["XLA_FLAGS"] == "--a=1"
    assert "JAX_PLATFORMS" not in child
    assert devices.child_environment("gpu", 4, {"JAX_PLATFORMS": "cuda"})["JAX_PLATFORMS"] == "cuda"


def test_detect_asks_a_child_and_starts_no_backend_here(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=3")
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    code = (
        "import sys; from breakeven.measure import devices; d = devices.detect(); "
        "assert 'jax' not in sys.modules; print(d.platform, d.count, d.forced)"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["cpu", "3", "True"]


def test_detect_names_a_platform_that_is_not_there(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "tpu")
    with pytest.raises(MeasureError, match=r"JAX cannot start: .*tpu"):
        devices.detect()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


AFFINITY = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def test_cores_follow_the_affinity(tmp_path):
    assert devices.available_cores(tmp_path) == AFFINITY


@pytest.mark.parametrize(("limit", "cores"), [("max 100000", AFFINITY), ("100000 100000", 1), ("50000 100000", 1)])
def test_cores_follow_a_quota(tmp_path, limit, cores):
    write(tmp_path / "proc/self/cgroup", "0::/user.slice/job\n")
    write(tmp_path / "sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n")
    write(tmp_path / "sys/fs/cgroup/user.slice/cpu.max", limit + "\n")
    assert devices.available_cores(tmp_path) == cores


def test_cores_follow_a_quota_of_the_first_version(tmp_path):
    write(tmp_path / "proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n")
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "90000\n")
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert devices.available_cores(tmp_path) == 1


def test_a_measuring_process_starts_no_sweep(monkeypatch):
    monkeypatch.setenv("BREAKEVEN_MEASURING", "1")
    with pytest.raises(MeasureError, match='put that call under: if __name__ == "__main__":'):
        devices.refuse_nesting()
    assert devices.child_environment("cpu", 2, {})["BREAKEVEN_MEASURING"] == "1"
