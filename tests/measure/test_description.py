"""A user's file is imported in a child: what it declares is learnt, and what it does at its top stays there."""

import os
import signal
import sys
import threading
import time
import warnings

import pytest
from breakeven.data import store
from breakeven.measure import description, sweep, userfile
from breakeven.measure.description import described
from breakeven.measure.devices import CPU
from breakeven.measure.planning import make_plan
from breakeven.measure.workload import MeasureError

DECLARED = """
import breakeven

@breakeven.workload(path="weak", unit="rows", divides=False, name="rows of mine", work=lambda s: 40 * s)
def build(mesh, size): ...
"""
LOUD = """
import atexit, os, signal, subprocess, sys, threading, time, warnings
import jax
assert len(sys.argv) == 1 and not sys.stdin.read()
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.chdir("/")
warnings.simplefilter("error")
jax.config.update("jax_numpy_dtype_promotion", "strict")
atexit.register(print, "at the exit")
threading.Thread(target=time.sleep, args=(600,)).start()
print("noise"); os.write(1, b"from C\\n")
def build(mesh, size): ...
"""


@pytest.fixture
def user(tmp_path):
    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text)
        return f"{tmp_path / name}:build"

    return write


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_in(path, seconds=30.0):
    """The number that a process writes, when it has."""
    ends = time.monotonic() + seconds
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < ends
        time.sleep(0.02)
    return int(path.read_text())


def test_what_a_file_declares_is_learnt_without_importing_it(user):
    name = user(DECLARED)
    found, devices = described(name, "cpu")
    assert (found.name, found.path, found.unit, found.divides) == (name, "weak", "rows", False)
    assert (found.summary, found.strategies, devices) == ("rows of mine", ("as-written",), CPU)
    assert "breakeven_user_mine" not in sys.modules
    with pytest.raises(MeasureError, match="the processes that measure build it"):
        found.builds["as-written"](None, 1)


def test_devices_are_found_by_the_same_child(user, monkeypatch):
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "3")
    assert described(user(DECLARED))[1].count == 3


def test_what_a_file_does_at_its_top_stays_in_the_child(user, capfd):
    def here():
        handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
        return os.getcwd(), handlers, list(warnings.filters), threading.active_count()

    before = here()
    described(user(LOUD), "cpu")
    assert here() == before
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "noise\nfrom C\n"


def test_a_file_that_goes_to_another_folder_moves_no_record_and_builds_there(user_file, tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "width").write_text("4")
    user_file("""
        os.chdir(os.path.join(os.path.dirname(__file__), "there"))
        def build(mesh, size):
            assert int(open("width").read()) == 4
            return mean, placed(mesh, size)
    """)
    monkeypatch.chdir(tmp_path)
    workload, available = described("mine.py:build", "cpu")
    options = {"sizes": [8], "devices": [1], "rounds": 1, "launches": 1, "calls": 1, "queued_calls": 0}
    plan = make_plan(workload, available=available, controls=False, sentinel=False, **options)
    sweep.run(plan, "sweep.jsonl")
    assert store.read(tmp_path / "sweep.jsonl").visits
    assert os.listdir("there") == ["width"]


@pytest.mark.skipif(sys.platform != "linux", reason="how a process shows in /proc")
def test_the_child_ends_with_all_that_it_started(user, tmp_path):
    text = f"import os\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + chr(10))\n"
    started = f"open({str(tmp_path / 'more')!r}, 'w').write(str(p.pid) + chr(10))\n"
    described(user(text + LOUD.replace("subprocess.Popen", "p = subprocess.Popen") + started), "cpu")
    assert not alive(pid_in(tmp_path / "pid"))
    ended, started_pid = time.monotonic() + 10, pid_in(tmp_path / "more")
    while alive(started_pid) and _state(started_pid) != "Z":  # whoever inherits it reaps it
        assert time.monotonic() < ended
        time.sleep(0.02)


def _state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize(
    "text", ["def prepare():\n    return 1 / 0\n\nprepare()\n", "x = 1\n", "def build(:\n", "import sys\nsys.exit(3)\n"]
)
def test_a_failure_has_the_words_that_it_has_where_the_file_is_imported(user, text):
    name = user(text, "spoilt.py")
    with pytest.raises(MeasureError) as there:
        described(name, "cpu")
    with pytest.raises(MeasureError) as here:
        userfile.resolve(name)
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\nos._exit(0)", r"mine.py: importing it ended the process, which exited with code 0"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", r"the process, which was ended by SIGSEGV"),
        # The copy keeps the pipe to the parent open.
        (
            "import os, time, warnings\nwarnings.simplefilter('ignore')\n"
            "if os.fork() == 0:\n    time.sleep(600)\nos._exit(3)",
            r"the process, which exited with code 3",
        ),
        ("import os, time\nos.closerange(3, 256)\ntime.sleep(600)", r"the process, which closed all its files"),
        ("raise KeyboardInterrupt", r"(?s)importing it failed.*KeyboardInterrupt"),
        ("import breakeven\nbreakeven.run(__file__ + ':build', sizes=[8])", r"starts a sweep when it is imported"),
    ],
)
def test_a_file_whose_import_ends_otherwise(user, text, message):
    began = time.monotonic()
    with pytest.raises(MeasureError, match=message):
        described(user(text), "cpu")
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a file that hangs outlives SIGTERM of its parent")
def test_a_file_that_hangs_ends_with_its_parent(user, tmp_path, spawn, number):
    text = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    text += f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + chr(10))\ntime.sleep(600)"
    code = f"from breakeven.measure.description import described; described({user(text)!r}, 'cpu')"
    parent = spawn([sys.executable, "-P", "-c", code], {})
    child = pid_in(tmp_path / "pid")
    parent.send_signal(number)
    _, err = parent.communicate(timeout=30)
    assert parent.returncode == -number
    assert ("KeyboardInterrupt" in err) == (number == signal.SIGINT)
    ends = time.monotonic() + 10
    while alive(child) and _state(child) != "Z":
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_no_child_where_none_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(description, "Informant", None)
    assert described("mean-all", "cpu")[0].path == "weak"
    with pytest.raises(MeasureError, match="no such file"):
        described(f"{tmp_path}/nowhere.py:build", "cpu")
    found, _ = described(build_here, "cpu")
    assert found.name == f"{__file__}:build_here"


def build_here(mesh, size):
    return None
