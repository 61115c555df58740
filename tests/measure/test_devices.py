import os
import subprocess
import sys

import pytest
from breakeven.measure import devices
from breakeven.measure.informant import Informant
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


def test_flags_from_a_file_are_those_that_xla_reads_of_it(tmp_path):
    """XLA itself is asked how many devices it was told to force, by the file and by what is made of it."""
    (tmp_path / "flags").write_text('--xla_dump_to="/a  b"\n--xla_force_host_platform_device_count=3\n# and\n--more')
    made = devices.child_environment("cpu", 2, {"XLA_FLAGS": f"{tmp_path}/flags"})["XLA_FLAGS"]
    assert made == '--xla_dump_to="/a  b" --xla_force_host_platform_device_count=2'
    clean = {key: value for key, value in os.environ.items() if key != "JAX_NUM_CPU_DEVICES"}
    for flags, count in ((f"{tmp_path}/flags", "3"), (made, "2")):
        command = [sys.executable, "-P", "-c", "import jax; print(jax.device_count())"]
        asked = subprocess.run(command, capture_output=True, text=True, check=True, env=clean | {"XLA_FLAGS": flags})
        assert asked.stdout.strip() == count


def test_flags_after_a_word_that_is_none_are_not_read():
    assert devices.forced_flags("--a=1 oops --b=2", 2) == "--a=1 --xla_force_host_platform_device_count=2"


def test_elsewhere_too_the_flags_stand_for_their_file(tmp_path):
    (tmp_path / "flags").write_text("--a=1\n--b=2\n# and\n--c=3\n")
    (tmp_path / "none").write_text("# nothing\n--c=3\n")
    assert devices.child_environment("gpu", 2, {"XLA_FLAGS": f"{tmp_path}/flags"})["XLA_FLAGS"] == "--a=1 --b=2"
    assert devices.child_environment("gpu", 2, {"XLA_FLAGS": f"{tmp_path}/none"})["XLA_FLAGS"] == ""


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_flags_in_a_file_that_is_not_there(tmp_path, platform):
    with pytest.raises(MeasureError, match=r"XLA_FLAGS=.*/none: XLA takes this for a file of flags.*give the flags"):
        devices.child_environment(platform, 2, {"XLA_FLAGS": f"{tmp_path}/none"})


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


def test_detect_runs_nothing_of_the_current_folder(tmp_path, monkeypatch):
    for name in ("jax", "numpy", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    assert devices.detect().platform == "cpu"


def test_a_platform_that_takes_too_long():
    message = r"JAX found no device within 0.01 s; set JAX_PLATFORMS"
    with Informant(devices.informing_environment()) as informant, pytest.raises(MeasureError, match=message):
        devices.devices_of(informant, timeout_s=0.01)


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
