"""Sweeps that last: signals, a second writer, disks full or read-only, another machine."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from breakeven.data import store
from breakeven.data.rounds import timed_visits
from breakeven.measure import sweep
from breakeven.measure.workload import MeasureError

SWEEP = """
import resource, signal, sys, warnings, msgspec
from breakeven.data.schema import Plan
from breakeven.data.store import RecordError
from breakeven.measure import sweep
plan = msgspec.json.decode(sys.argv[1], type=Plan)
try:
    sweep.run(plan, sys.argv[2], on_progress=lambda p: print(p.what, p.round, flush=True))
except sweep.Interrupted as interruption:
    print(interruption, flush=True)
    sys.exit(128 + interruption.signal)
except RecordError as error:
    print(f"error: {error}", flush=True)
    sys.exit(2)
"""


def start(plan, path, first="", **options):
    """Measure in another process, which runs ``first`` when all is imported."""
    script = SWEEP.replace("plan =", f"{first}\nplan =", 1)
    return subprocess.Popen(
        [sys.executable, "-c", script, msgspec.json.encode(plan).decode(), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
        **options,
    )


def read_until(process, what):
    for line in process.stdout:
        if what in line:
            return line
    raise AssertionError(f"{what!r} was never said")


def complete(path):
    return sweep.complete_launches(store.read(path))


def processes_of(launch):
    """Processes that run and were started for a launch."""
    found = []
    for folder in os.scandir("/proc"):
        if folder.name.isdecimal():
            with contextlib.suppress(OSError), open(f"{folder.path}/cmdline", "rb") as file:
                if b"breakeven.measure.child" in file.read() and f"{launch}" in environment(folder.path):
                    found.append(int(folder.name))
    return found


def environment(folder):
    with open(f"{folder}/environ", "rb") as file:
        return file.read().decode(errors="replace")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_like_ctrl_c(user_file, plan_of, tmp_path, number):
    plan, path = plan_of(user_file(), rounds=60, launches=2), tmp_path / "sweep.jsonl"
    marked = os.environ | {"BREAKEVEN_TEST": str(tmp_path)}
    with start(plan, path, env=marked) as process:
        read_until(process, "measuring 1")
        assert processes_of(tmp_path)
        # A batch system sends it to all processes of a job: the child must leave the decision to its parent.
        for child in processes_of(tmp_path):
            os.kill(child, number)
        time.sleep(0.2)
        process.send_signal(number)
        said = read_until(process, "interrupted")
    assert said == f"interrupted: {path} holds 1 of 2 launches; the same command goes on.\n"
    assert process.returncode == 128 + number
    assert processes_of(tmp_path) == []
    assert [p.name for p in tmp_path.glob("*.jsonl*")] == ["sweep.jsonl"]
    assert store.read(path).failures == ()


def test_a_signal_that_is_ignored_stays_so(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(), rounds=20, launches=1), tmp_path / "sweep.jsonl"
    with start(plan, path, first="signal.signal(signal.SIGHUP, signal.SIG_IGN)") as process:
        read_until(process, "measuring 1")
        process.send_signal(signal.SIGHUP)
        process.stdout.read()
    assert process.returncode == 0
    assert complete(path) == 1


def test_a_caller_keeps_its_own_handlers(user_file, plan_of, tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        sweep.run(
            plan_of(user_file(), launches=1),
            tmp_path / "sweep.jsonl",
            on_progress=lambda p: os.kill(os.getpid(), signal.SIGTERM) if p.round == 1 else None,
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [1]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_what_the_users_code_starts_can_be_ended_as_usual(user_file, plan_of, tmp_path):
    name = user_file(
        """
        import signal, subprocess

        def build(mesh, size):
            helper = subprocess.Popen(["sleep", "60"])
            fork = os.fork()
            if fork == 0:
                time.sleep(60)
            helper.terminate()
            os.kill(fork, signal.SIGTERM)
            assert helper.wait(5) == -signal.SIGTERM
            assert os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) == -signal.SIGTERM
            return mean, placed(mesh, size)
        """
    )
    path = sweep.run(plan_of(name, launches=1, step_timeout_s=20.0), tmp_path / "sweep.jsonl")
    assert store.read(path).failures == ()


def test_a_second_sweep_is_refused_and_readers_are_not(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(), rounds=60, launches=1), tmp_path / "sweep.jsonl"
    with start(plan, path) as process:
        read_until(process, "measuring 1")
        process.send_signal(signal.SIGSTOP)  # or it is done before the others have begun
        with pytest.raises(store.RecordError, match=rf"sweep\.jsonl: process {process.pid} on .+ has been writing it"):
            sweep.run(plan, path)
        with start(plan, path) as second:
            assert f"process {process.pid}" in read_until(second, "error")
        assert second.returncode == 2
        assert complete(path) == 1
        process.kill()
    # The lock of a process that was killed holds nobody up.
    sweep.run(plan, path)
    assert sweep.complete_rounds(store.read(path)) >= 60
    assert [p.name for p in tmp_path.glob("sweep*")] == ["sweep.jsonl"]


def no_room(limit):
    """As a full disk, but for one process: no file of it may grow beyond a limit (Python ignores SIGXFSZ)."""
    return f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"


def test_a_full_disk_leaves_whole_lines(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(), rounds=60, launches=1), tmp_path / "sweep.jsonl"
    with start(plan, path, first=no_room(9000)) as process:
        said = read_until(process, "error")
    assert said == f"error: {path}: cannot be written: File too large.\n"
    assert process.returncode == 2
    assert path.read_bytes().endswith(b"\n")
    record = store.read(path)
    assert sweep.complete_launches(record) == 1
    # Still full when going on: nothing is added.
    before = path.read_bytes()
    with start(plan, path, first=no_room(len(before) + 100)) as process:
        assert "File too large" in read_until(process, "error")
    assert path.read_bytes() == before
    sweep.run(plan, path)
    assert sweep.complete_rounds(store.read(path)) >= 60
    assert path.read_bytes().startswith(before)


def test_a_disk_without_room_for_the_first_line_is_left_empty(user_file, plan_of, tmp_path):
    folder = tmp_path / "new"
    with start(plan_of(user_file()), folder / "sweep.jsonl", first=no_room(300)) as process:
        assert "File too large" in read_until(process, "error")
    assert not folder.exists()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 KiB; only root may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_disk_that_fills_up(user_file, plan_of, small_disk, tmp_path):
    plan, path = plan_of(user_file(), rounds=60, launches=1), small_disk / "sweep.jsonl"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(52 * 1024))
    with pytest.raises(store.RecordError, match=r"sweep\.jsonl: cannot be written: No space left on device"):
        sweep.run(plan, path)
    assert path.read_bytes().endswith(b"\n")
    assert complete(path) == 1
    before = path.read_bytes()
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(512))
    with pytest.raises(store.RecordError, match="No space left on device"):
        sweep.run(plan, path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(small_disk)) == ["ballast", "sweep.jsonl"]
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    sweep.run(plan, path)
    assert sweep.complete_rounds(store.read(path)) >= 60


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(user_file, plan_of, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    heard = []
    with pytest.raises(store.RecordError, match=r"sweep\.jsonl: no file can be made in its folder: Read-only file"):
        sweep.run(plan_of(user_file()), small_disk / "sweep.jsonl", on_progress=heard.append)
    assert heard == []


def test_a_record_that_cannot_be_written_is_told_before_anything_runs(user_file, plan_of, tmp_path, monkeypatch):
    plan, path = plan_of(user_file(), launches=2), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: True)
    before, heard, real = path.read_bytes(), [], os.open

    def protected(name, flags, *more):  # root may write anything, so that a file's own mode would tell nothing
        if str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return real(name, flags, *more)

    monkeypatch.setattr(os, "open", protected)
    with pytest.raises(store.RecordError, match=r"sweep\.jsonl: cannot be written: Permission denied"):
        sweep.run(plan, path, on_progress=heard.append)
    assert heard == []
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.glob("sweep*")] == ["sweep.jsonl"]


def pretend(path, **changes):
    """Change what the launches of a record say of their machine."""
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        if line["kind"] == "launch":
            line.update(changes)
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path.read_bytes()


def test_another_kind_of_device_is_refused(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file()), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: True)
    before = pretend(path, cpu="Elsewhere 3000")
    with pytest.raises(
        MeasureError, match=r"another kind of device: cpu \(Elsewhere 3000 there, .+ now\).*file with -o"
    ):
        sweep.run(plan, path)
    assert path.read_bytes() == before


def test_another_machine_of_the_same_kind_is_said(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file()), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: True)
    pretend(path, jax="0.0.1", cores=99)
    with pytest.warns(UserWarning, match=r"differ in cores \(99 there, \d+ now\), jax \(0\.0\.1 there, .+ now\)"):
        sweep.run(plan, path)
    assert [launch.cores == 99 for launch in store.read(path).launches] == [True, False]


def test_variables_that_change_the_program_or_its_calls_are_said(user_file, plan_of, tmp_path, monkeypatch):
    plan, path = plan_of(user_file()), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: True)
    monkeypatch.setenv("JAX_DEFAULT_MATMUL_PRECISION", "highest")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.warns(UserWarning, match=r"differ in JAX_DEFAULT_MATMUL_PRECISION \(not set there, highest now\)"):
        sweep.run(plan, path)
    assert complete(path) == 2


EDITED = """
def build(mesh, size):
    return (lambda x, v: {}), placed(mesh, size)
"""


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        # The same exchange, other work.
        ("jnp.mean(jnp.sin(x) @ v)", r"workload/as-written on 1 device, size 8: the program was changed\. Such times"),
        # Another exchange: the probes would be other cells, and no launch would hold them all.
        ("jnp.mean(x, axis=0)", r"on 2 devices, size 16: there 1 all-reduce of 4 bytes, now 1 all-reduce of 16 bytes"),
    ],
)
def test_an_edited_program_is_refused_and_the_record_stays(user_file, plan_of, tmp_path, edit, message):
    name, path = user_file(), tmp_path / "sweep.jsonl"
    devices = (2,) if "axis" in edit else (1, 2)
    plan = plan_of(name, launches=3, probes=True, devices=devices)
    sweep.run(plan, path, enough=lambda record: True)
    before = path.read_bytes()
    user_file(EDITED.format(edit))
    with pytest.raises(MeasureError, match=rf"sweep\.jsonl was measured with another program: .*{message}.*with -o"):
        sweep.run(plan, path)
    assert path.read_bytes() == before
    user_file("# only said otherwise" + EDITED.format("jnp.mean(x @ v)"))
    sweep.run(plan, path)
    assert complete(path) == 3


def test_an_edit_while_the_sweep_runs_is_refused(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(), launches=4), tmp_path / "sweep.jsonl"

    def edit(record):
        if len(record.launches) == 2:
            user_file(EDITED.format("jnp.mean(jnp.sin(x) @ v)"))

    with pytest.raises(MeasureError, match="the program was changed"):
        sweep.run(plan, path, on_launch=edit)
    assert complete(path) == 2


def test_a_program_that_is_another_one_at_every_start_is_measured(user_file, plan_of, tmp_path):
    name = user_file(
        """
        def build(mesh, size):
            width = 1 + time.time_ns() % 1000
            return (lambda x, v: jnp.mean(x @ v) + jnp.sin(jnp.ones(width)).sum() * v[0]), placed(mesh, size)
        """
    )
    plan, path = plan_of(name, launches=3), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: sweep.complete_launches(record) >= 2)
    sweep.run(plan, path)
    assert complete(path) == 3


BROKEN = """
def build(mesh, size):
    if mesh.size == 2:
        raise ValueError("bug")
    return mean, placed(mesh, size)
"""


def test_a_cell_that_was_mended_is_measured_in_as_many_launches_as_planned(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(BROKEN), launches=3), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: len(record.launches) == 2)
    user_file()
    with pytest.warns(UserWarning, match=r"failed before is tried once more: workload/.* on 2 devices, size 16 \(Val"):
        sweep.run(plan, path)
    record = store.read(path)
    assert [(f.error, f.cell.num_devices) for f in record.failures] == [("ValueError", 2)] * 2
    whole = {v.visit.launch for v in timed_visits(record) if v.complete}
    assert whole == {launch.launch for launch in record.launches[2:]}
    assert len(whole) == 3
    # It is done now.
    before = path.read_bytes()
    sweep.run(plan, path)
    assert path.read_bytes() == before


def test_a_cell_that_still_fails_gets_one_more_try_and_the_rest_is_kept(user_file, plan_of, tmp_path):
    plan, path = plan_of(user_file(BROKEN), launches=4), tmp_path / "sweep.jsonl"
    sweep.run(plan, path, enough=lambda record: len(record.launches) == 2)
    with pytest.warns(UserWarning, match="tried once more"):
        sweep.run(plan, path)
    record = store.read(path)
    assert len(record.failures) == 3
    assert len(record.launches) == complete(path) == 4
    before = path.read_bytes()
    with pytest.warns(UserWarning, match=r"failed before is not tried again, since nothing else is missing"):
        sweep.run(plan, path)
    assert path.read_bytes() == before
