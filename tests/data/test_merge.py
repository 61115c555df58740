"""Joining records: what is the same counts once, what must not be pooled is refused by name."""

import os

import msgspec
import pytest
from breakeven.data.catalog import load
from breakeven.data.lock import Held, Lock
from breakeven.data.merge import merge
from breakeven.data.rounds import barred, timed_visits
from breakeven.data.schema import SCHEMA_VERSION, Failure, Launch, Machine, Plan, Program, Sweep, Visit
from breakeven.data.store import RecordError, Writer, read
from breakeven.model.cell import Cell

PLAN = Plan(
    workload="w", path="strong", objective="time", devices=(1, 2), sizes=(10,), strategies=("jit",), visible_devices=2
)


def cell(n):
    return Cell(role="workload", strategy="jit", num_devices=n, size=10)


def sweep(name="s1", *, synthetic=False, **changes):
    plan = msgspec.structs.replace(PLAN, **changes)
    return Sweep(schema=SCHEMA_VERSION, sweep=name, created="now", version="0", plan=plan, synthetic=synthetic)


def launch_lines(name="s1", launch="a", rounds=2, **machine):
    said = {"platform": "gpu", "device_kind": "H200", "visible_devices": 2, "cores": 4} | machine
    lines = [Launch(sweep=name, launch=launch, started="now", **said)]
    lines += [Program(sweep=name, launch=launch, program=i, cell=cell(n)) for i, n in enumerate((1, 2))]
    for r in range(rounds):
        for i in range(2):
            lines.append(
                Visit(
                    sweep=name,
                    launch=launch,
                    program=i,
                    round=r,
                    position=i,
                    time=float(r),
                    warmups=1,
                    latency_ns=(9, 5, 7 + ord(launch) + r),
                )
            )
    return lines


def write(path, *lines):
    with Writer(path) as writer:
        for line in lines:
            writer.write(line)
    return path


@pytest.fixture
def two(tmp_path):
    """Two records of one plan, one launch each, from two sweeps."""
    return [
        write(tmp_path / "a.jsonl", sweep("s1"), *launch_lines("s1", "a")),
        write(tmp_path / "b.jsonl", sweep("s2", seed=7, launches=3), *launch_lines("s2", "b", rounds=3)),
    ]


@pytest.fixture
def target(tmp_path):
    return tmp_path / "joined.jsonl"


def test_launches_of_all_records_are_in_the_new_one(two, target):
    merged = merge(two, target)
    record = read(target)
    assert (merged.launches, merged.rounds, merged.duplicates) == (2, 5, 0)
    assert [(launch.sweep, launch.launch) for launch in record.launches] == [("s1", "a"), ("s2", "b")]
    for source in map(read, two):
        assert set(source.visits) <= set(record.visits)
        assert set(source.programs) <= set(record.programs)
    assert len(record.visits) == 10
    assert target.read_bytes() == two[0].read_bytes() + two[1].read_bytes()
    assert sorted(os.listdir(target.parent)) == ["a.jsonl", "b.jsonl", "joined.jsonl"]


def test_what_stands_in_several_counts_once(two, target, tmp_path):
    a, b = two
    overlapping = write(tmp_path / "c.jsonl", *read_all(a), *launch_lines("s1", "c"))
    merged = merge([a, overlapping, b], target)
    assert (merged.launches, merged.rounds) == (3, 7)
    assert merged.duplicates == len(read_all(a))
    assert merge([b, overlapping, a], target, replace=True).launches == 3
    assert merge([a, a], target, replace=True).launches == 1


def read_all(path):
    from breakeven.data.store import read_lines

    return read_lines(path)


def test_a_joined_record_can_be_joined_again(two, target, tmp_path):
    merge(two, target)
    again = tmp_path / "again.jsonl"
    assert merge([target, two[1]], again).launches == 2
    assert again.read_bytes() == target.read_bytes()


def test_two_failures_in_the_same_words_stay_two(two, target, tmp_path):
    failure = Failure(sweep="s1", launch="c", stage="visit", error="ValueError", message="enough", cell=cell(2))
    failed = write(tmp_path / "c.jsonl", sweep("s1"), *launch_lines("s1", "c"), failure, failure)
    merge([failed, two[0], failed], target)
    assert read(target).failures == (failure, failure)
    assert barred(read(target)) == {cell(2)}


def test_an_incomplete_round_stays_incomplete(two, target):
    a, b = two
    a.write_bytes(b"".join(a.read_bytes().splitlines(keepends=True)[:-1]))
    assert merge([a, b], target).rounds == 4
    assert sum(v.complete for v in timed_visits(read(target))) == 8


def test_a_cut_last_line_is_left_out(two, target):
    a, b = two
    a.write_bytes(a.read_bytes()[:-20])
    with pytest.warns(UserWarning, match=r"a\.jsonl: the last line was cut"):
        assert merge([a, b], target).rounds == 4
    assert len(read(target).visits) == 9


@pytest.mark.parametrize(
    ("opening", "machine", "message"),
    [
        ({"devices": (1, 4)}, {}, r"a\.jsonl and .*c\.jsonl: differ in devices \(\(1, 2\) and \(1, 4\)\).*compare"),
        ({"warmups": 5}, {}, r"differ in warmups \(2 and 5\)"),
        ({"queued_calls": 2}, {}, r"differ in queued_calls \(4 and 2\)"),
        ({"synthetic": True}, {}, "one is measured, the other simulated"),
        ({}, {"device_kind": "A100"}, r"different kinds of device, device kind \(H200 and A100\)"),
        ({}, {"platform": "tpu"}, r"different kinds of device, platform \(gpu and tpu\)"),
    ],
)
def test_what_must_not_be_pooled_is_refused_by_name(two, target, tmp_path, opening, machine, message):
    other = write(tmp_path / "c.jsonl", sweep("s3", **opening), *launch_lines("s3", "c", **machine))
    with pytest.raises(RecordError, match=message):
        merge([*two, other], target)
    assert not target.exists()


def test_a_record_of_two_plans_is_refused_by_its_own_name(two, target, tmp_path):
    lines = [sweep("s3"), *launch_lines("s3", "c"), sweep("s4", sizes=(11,))]
    with pytest.raises(RecordError, match=r"c\.jsonl: holds sweeps that differ in sizes"):
        merge([write(tmp_path / "c.jsonl", *lines), two[0]], target)


def test_another_host_of_the_same_kind_is_said(two, target, tmp_path):
    other = write(tmp_path / "c.jsonl", sweep("s3"), *launch_lines("s3", "c", jax="0.9.1", cores=8))
    named = write(tmp_path / "d.jsonl", sweep("s4"), *launch_lines("s4", "d", jax="0.10.2"))
    with pytest.warns(
        UserWarning, match=r"differ in cores \(8 and 4\), jax \(0\.9\.1 and 0\.10\.2\).*joined all the same"
    ):
        merge([other, named], target)


def test_one_host_under_two_hashed_names_is_one_host(two, target, tmp_path):
    def on(letter, boot):
        machine = Machine(host=f"host-{letter * 10}", boot=boot)
        lines = launch_lines(letter, letter, machines=(machine,))
        return write(tmp_path / f"on-{letter}.jsonl", sweep(letter), *lines)

    merge([on("a", "same"), on("b", "same")], target)
    merge([on("c", None), on("d", None)], target, replace=True)
    assert len(read(target).launches) == 2


def test_a_record_that_does_not_say_how_many_calls_it_queued_is_pooled(two, target):
    a, b = two
    said = b'"queued_calls":4,'
    assert said in a.read_bytes()
    a.write_bytes(a.read_bytes().replace(said, b""))
    assert merge([a, b], target).launches == 2


def test_what_exists_is_replaced_only_when_told(two, target):
    target.write_text("my notes\n")
    with pytest.raises(RecordError, match=r"joined\.jsonl: exists; give another file with -o, or --force"):
        merge(two, target)
    assert target.read_text() == "my notes\n"
    merge(two, target, replace=True)
    assert len(read(target).launches) == 2
    # Into one of the sources, since it was read before.
    merge(two, two[0], replace=True)
    assert read(two[0]).launches == read(target).launches


def test_what_another_writes_is_not_even_read(two, target, tmp_path):
    with Lock(target), pytest.raises(Held, match=r"joined\.jsonl: process"):
        merge([tmp_path / "none.jsonl"], target)
    with Lock(two[0]), pytest.raises(Held, match=r"a\.jsonl: process"):
        merge(two, two[0], replace=True)


def test_a_link_stays_a_link(two, target, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target.symlink_to(folder / "real.jsonl")
    merge(two, target)
    merge(two, target, replace=True)
    assert target.is_symlink()
    assert os.listdir(folder) == ["real.jsonl"]
    assert len(read(folder / "real.jsonl").launches) == 2


def test_kinds_of_device_are_compared_each_with_each(target, tmp_path):
    """The first record does not say what it ran on."""
    kinds = [None, "H200", "A100"]
    records = [
        write(tmp_path / f"{i}.jsonl", sweep(f"s{i}"), *launch_lines(f"s{i}", "abc"[i], device_kind=kind))
        for i, kind in enumerate(kinds)
    ]
    with pytest.raises(RecordError, match=r"1\.jsonl and .*2\.jsonl: .*different kinds of device.*H200 and A100"):
        merge(records, target)


def test_a_full_disk_leaves_what_was_there(two, target, monkeypatch):
    before = merge(two, target) and target.read_bytes()

    def no_space(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(RecordError, match="No space left on device"):
        merge([two[0], two[0]], target, replace=True)
    assert target.read_bytes() == before
    assert sorted(os.listdir(target.parent)) == ["a.jsonl", "b.jsonl", "joined.jsonl"]


@pytest.mark.parametrize("other", ["y", "x", None])
def test_an_edited_program_is_not_joined(two, target, tmp_path, other):
    def marked(name, mark):
        lines = launch_lines(name, name)
        changed = [msgspec.structs.replace(x, fingerprint=mark) if isinstance(x, Program) else x for x in lines]
        return write(tmp_path / f"{name}.jsonl", sweep(name), *changed)

    sources = [*two, marked("c", "x"), marked("d", other)]
    if other == "y":
        with pytest.raises(RecordError, match=r"c\.jsonl and .*d\.jsonl: measured with different programs, work"):
            merge(sources, target)
        assert not target.exists()
    else:
        assert merge(sources, target).launches == 4


def test_recorded_sweeps_are_joined_by_their_names(target):
    assert merge(["data:mean-all", "data:mean-all"], target).launches == len(load("mean-all").launches)
    with pytest.raises(RecordError, match=r"^data:nothing: no recorded sweep of that name ships; there are "):
        merge(["data:mean-all", "data:nothing"], target, replace=True)
    with pytest.raises(RecordError, match=r"^data:issue-21411-tpu: a table; only records"):
        merge(["data:mean-all", "data:issue-21411-tpu"], target, replace=True)
