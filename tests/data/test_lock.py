"""One writer at a time: who is refused, who takes over, and what is left behind."""

import os
import subprocess
import sys
import threading
import time

import msgspec
import pytest
from breakeven.data.lock import Held, Lock, Owner
from breakeven.data.store import RecordError

HOLD = """
import sys
from breakeven.data.lock import Lock
with Lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sweep.jsonl"


@pytest.fixture
def holder(path):
    """Another process that holds the lock until it is ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def leave(path, **changes):
    """A lock that some owner left."""
    owner = msgspec.structs.replace(Owner.here(), **changes)
    lock = path.with_name(f"{path.name}.lock")
    lock.write_bytes(msgspec.json.encode(owner))
    return lock


def test_nothing_is_left_behind(path):
    with Lock(path) as lock:
        assert lock.path.exists()
    assert os.listdir(path.parent) == []
    with pytest.raises(KeyboardInterrupt), Lock(path):
        raise KeyboardInterrupt
    assert os.listdir(path.parent) == []


def test_a_second_writer_is_told_who_writes(path, holder):
    with (
        pytest.raises(Held, match=rf"sweep\.jsonl: process {holder.pid} on .+ has been writing it since 20.+T.+"),
        Lock(path),
    ):
        pass
    assert path.with_name("sweep.jsonl.lock").exists()
    holder.communicate("")
    with Lock(path):
        pass


def test_a_link_to_the_record_has_its_lock(path, holder):
    link = path.with_name("link.jsonl")
    link.symlink_to(path)
    with pytest.raises(Held, match=r"link\.jsonl: process"), Lock(link):
        pass


@pytest.mark.parametrize("reaped", [True, False])
def test_a_killed_writer_is_followed_at_once(path, holder, reaped):
    holder.kill()
    if reaped:
        holder.wait()
    else:
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    with Lock(path) as lock:
        assert msgspec.json.decode(lock.path.read_bytes(), type=Owner).pid == os.getpid()


@pytest.mark.parametrize(
    "changes",
    [
        {"boot": "before", "pid": 1, "since": "2001-01-01T00:00:00+00:00"},
        {"started": "17"},
        {"pid": 2**22 + 1},
        {"namespace": "pid:[1]"},
    ],
    ids=["host started anew", "number of another process", "no such process", "container that ended"],
)
def test_who_is_gone_is_followed(path, changes):
    leave(path, **changes)
    with Lock(path):
        pass
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("changes", [{"boot": "other", "host": "node17"}, {"boot": "other", "host": "localhost"}])
def test_another_host_is_for_the_user_to_judge(path, changes, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "localhost")
    lock = leave(path, **changes)
    with pytest.raises(Held, match=rf"on {changes['host']} .*if it has ended, remove {lock}"), Lock(path):
        pass
    lock.unlink()
    with Lock(path):
        pass


def test_a_pod_of_the_same_name_on_another_node_is_for_the_user_to_judge(path):
    """It began after this system did, and not under it: this host was not started anew since."""
    leave(path, boot="another node's")
    with pytest.raises(Held, match="Whether it still runs cannot be known from here"), Lock(path):
        pass


def test_a_writer_in_another_container_of_this_host_is_seen(path, holder):
    """Its number means nothing here, but it holds a lock of the system on the very file."""
    lock = path.with_name("sweep.jsonl.lock")
    owner = msgspec.json.decode(lock.read_bytes(), type=Owner)
    lock.write_bytes(msgspec.json.encode(msgspec.structs.replace(owner, namespace="pid:[1]", pid=1)))
    with pytest.raises(Held, match="process 1 on"), Lock(path):
        pass


def test_where_there_are_no_system_locks_processes_are_told_apart_all_the_same(path, holder, monkeypatch):
    def none(*_arguments):
        raise OSError("no locks available")

    monkeypatch.setattr("fcntl.flock", none)
    with pytest.raises(Held), Lock(path):
        pass
    holder.kill()
    holder.wait()
    with Lock(path):
        pass
    leave(path, namespace="pid:[1]")
    with pytest.raises(Held, match="cannot be known from here"), Lock(path):
        pass


def test_an_empty_lock_was_left_in_the_making(path):
    path.with_name("sweep.jsonl.lock").touch()
    with Lock(path):
        pass
    assert os.listdir(path.parent) == []


def test_of_many_that_follow_only_one_may_write(path):
    """Threads that enter together: every one finds the owner gone, and one alone holds the lock at any time."""
    leave(path, pid=2**22 + 1)
    together, refused, inside = threading.Barrier(8), [], []

    def enter():
        together.wait()
        try:
            with Lock(path):
                inside.append(1)
                threading.Event().wait(0.2)
                assert len(inside) == 1
                inside.pop()
        except Held as held:
            refused.append(held)

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert os.listdir(path.parent) == []


def test_of_many_that_follow_an_empty_lock_only_one_may_write(path, monkeypatch):
    """Nobody takes a lock that another is just writing for one that was left in the making."""
    path.with_name("sweep.jsonl.lock").touch()
    held, refused, write = [], [], os.write

    def slowly(descriptor, data):
        if b'"namespace"' in data:
            time.sleep(0.3)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", slowly)

    def enter():
        try:
            held.append(Lock(path).__enter__())
        except Held as reason:
            refused.append(reason)

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for lock in held:
        lock.__exit__(None, None, None)
    assert (len(held), len(refused)) == (1, 3)


def test_folders_are_made_and_removed_when_nothing_was_written(tmp_path):
    with Lock(tmp_path / "a" / "b" / "sweep.jsonl"):
        assert (tmp_path / "a" / "b").is_dir()
    assert os.listdir(tmp_path) == []
    with Lock(tmp_path / "a" / "b" / "sweep.jsonl"):
        (tmp_path / "a" / "b" / "sweep.jsonl").touch()
    assert os.listdir(tmp_path / "a" / "b") == ["sweep.jsonl"]


def test_where_nothing_can_be_made_the_record_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match=r"sweep\.jsonl: no file can be made in its folder: "):
        Lock(tmp_path / "file" / "sweep.jsonl").__enter__()
    with pytest.raises(RecordError, match=r"/proc/sweep\.jsonl: no file can be made in its folder: "):
        Lock("/proc/sweep.jsonl").__enter__()
    with pytest.raises(RecordError, match="/dev/null: not a regular file"):
        Lock("/dev/null").__enter__()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("loop", "loop/sweep.jsonl"):
        with pytest.raises(RecordError, match=f"{name}: Too many levels of symbolic links"):
            Lock(tmp_path / name).__enter__()
    assert sorted(os.listdir(tmp_path)) == ["file", "loop"]


def test_what_stands_in_the_locks_place_is_named(path):
    path.with_name("sweep.jsonl.lock").mkdir()
    with pytest.raises(RecordError, match=r"sweep\.jsonl\.lock: no file, but a lock of the record is to stand there"):
        Lock(path).__enter__()


def test_a_folder_that_was_removed_is_said(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(RecordError, match=r"sweep\.jsonl: the current folder is gone: "):
        Lock("sweep.jsonl")


def test_a_folder_that_another_program_locked_is_not_waited_for_for_ever(path, monkeypatch):
    monkeypatch.setattr("breakeven.data.lock._PATIENCE_S", 0.2)
    with subprocess.Popen(["flock", str(path.parent), "sh", "-c", "echo held; read _"], stdin=-1, stdout=-1) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(RecordError, match="another program holds a lock on this folder, as 'flock' takes one"):
            Lock(path).__enter__()
        other.communicate(b"\n")
    with Lock(path):
        pass
