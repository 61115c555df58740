"""The record: writing, reading back, being killed, being joined, being spoilt."""

import errno
import json
import os
import warnings
from pathlib import Path

import msgspec
import pytest
from breakeven.data.catalog import load, names, open_record
from breakeven.data.schema import SCHEMA_VERSION, Failure, Launch, Plan, Program, Sweep, Visit
from breakeven.data.store import Record, RecordError, Writer, read
from breakeven.model.cell import Cell
from breakeven.model.program import Collective, ProgramFacts

PLAN = Plan(
    workload="w", path="strong", objective="time", devices=(1, 2), sizes=(10,), strategies=("jit",), visible_devices=2
)


def sweep(uuid="s1", **changes):
    return Sweep(
        schema=SCHEMA_VERSION, sweep=uuid, created="now", version="0", plan=msgspec.structs.replace(PLAN, **changes)
    )


def cell(n, role="workload"):
    return Cell(role=role, strategy="jit", num_devices=n, size=10)


def launch_lines(uuid="s1", launch="a", rounds=2, counts=(1, 2)):
    lines = [Launch(sweep=uuid, launch=launch, started="now", cores=2, visible_devices=2, platform="cpu")]
    lines += [Program(sweep=uuid, launch=launch, program=i, cell=cell(n)) for i, n in enumerate(counts)]
    lines += [
        Visit(sweep=uuid, launch=launch, program=i, round=r, position=i, time=float(r), warmups=1, latency_ns=(9, 5, 7))
        for r in range(rounds)
        for i in range(len(counts))
    ]
    return lines


def write(path, lines):
    with Writer(path) as writer:
        for line in lines:
            writer.write(line)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sweep.jsonl"


def test_lines_come_back_as_written(path):
    collective = Collective(
        kind="all-reduce", count=None, operands=2, message_bytes=12, operand_bytes=(4, 8), group_size=None
    )
    facts = ProgramFacts(flops=1.5, collectives=(collective,), custom_calls=("x",), inline=None)
    lines = [
        sweep(),
        *launch_lines(),
        Program(sweep="s1", launch="a", program=7, cell=cell(2, "local"), facts=facts, control="automatic"),
        Failure(sweep="s1", launch="a", stage="visit", error="ValueError", message="µ\n", cell=cell(1), frames=("f",)),
    ]
    record = read(write(path, lines))
    assert [*record.sweeps, *record.launches, *record.programs, *record.visits, *record.failures] == [
        lines[0],
        lines[1],
        *[x for x in lines if isinstance(x, Program)],
        *[x for x in lines if isinstance(x, Visit)],
        lines[-1],
    ]
    assert record.source == str(path)
    assert path.read_bytes().count(b"\n") == len(lines)


def test_the_file_is_made_at_the_first_line(path):
    with Writer(path):
        assert not path.exists()
    assert not path.exists()


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_cut_last_line_is_skipped_with_a_warning(path, cut):
    write(path, [sweep(), *launch_lines()])
    path.write_bytes(path.read_bytes()[:-cut])
    if cut == 1:  # only the line end is missing: nothing is lost
        assert len(read(path).visits) == 4
        return
    with pytest.warns(UserWarning, match="the last line was cut while being written"):
        record = read(path)
    assert len(record.visits) == 3


@pytest.mark.parametrize(("cut", "visits"), [(1, 8), (25, 7)])
def test_the_next_writer_ends_an_open_line(path, cut, visits):
    write(path, [sweep(), *launch_lines()])
    path.write_bytes(path.read_bytes()[:-cut])
    write(path, launch_lines(launch="b"))
    assert len(read(path).visits) == visits


def test_every_prefix_of_a_record_is_readable_or_refused(path):
    content = write(path, [sweep(), *launch_lines(rounds=1)]).read_bytes()
    first = content.index(b"\n")
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        if length < first:
            with pytest.raises(RecordError, match=r"empty|not a breakeven record"):
                read(path)
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            record = read(path)
        whole = content[:length].count(b"\n") + (content[length : length + 1] == b"\n")
        assert len(record.sweeps) + len(record.launches) + len(record.programs) + len(record.visits) == whole
        assert len(caught) == (not content[:length].endswith(b"\n") and content[length : length + 1] != b"\n")


def test_a_spoilt_line_is_named(path):
    lines = write(path, [sweep(), *launch_lines()]).read_bytes().splitlines(keepends=True)
    lines[4] = lines[4][:30] + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(RecordError, match=r"sweep\.jsonl, line 5: spoilt .*Remove the line to read the rest"):
        read(path)


PSUM = {"name": "psum.1", "kind": "all-reduce", "device": 1}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("calls", 0, r"`int` >= 1 - at `\$\.calls`"),
        ("busy_ns", [5], "busy_ns has 1 entries for 2 devices"),
        ("busy_ns", [5, -1], r"`int` >= 0 - at `\$\.busy_ns"),
        ("ops", [PSUM | {"duration_ns": [3]}], "psum.1 on device 1 has times"),
        ("ops", [PSUM | {"duration_ns": [3, 4], "wait_ns": [-1, 2]}], r"`int` >= 0 - at `\$\.ops"),
    ],
)
def test_a_trace_that_cannot_be_is_spoilt(path, field, value, message):
    cell = {"role": "workload", "strategy": "jit", "num_devices": 2, "size": 8}
    trace = {"kind": "trace", "sweep": "s1", "launch": "a", "cell": cell, "calls": 2}
    trace |= {"devices": [0, 1], "busy_ns": [5, 6]}
    write(path, [sweep(), *launch_lines()])
    whole = path.read_bytes()
    path.write_bytes(whole + json.dumps(trace).encode() + b"\n")
    assert len(read(path).traces) == 1
    path.write_bytes(whole + json.dumps(trace | {field: value}).encode() + b"\n")
    with pytest.raises(RecordError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("devices", []), ("devices", [0, 1]), ("sizes", []), ("sizes", [-8]), ("strategies", []), ("processes", 0)],
)
def test_a_plan_of_nothing_is_spoilt(path, field, value):
    write(path, [sweep(), *launch_lines()])
    opening, *rest = path.read_text().splitlines()
    opening = json.loads(opening)
    opening["plan"][field] = value
    path.write_text("\n".join([json.dumps(opening), *rest, ""]))
    with pytest.raises(RecordError, match=rf"line 1: Expected .* at `\$\.plan\.{field}"):
        read(path)


def test_a_wrong_field_is_named(path):
    write(path, [sweep(), *launch_lines()])
    path.write_bytes(path.read_bytes().replace(b'"round":1', b'"round":"one"'))
    with pytest.raises(RecordError, match=r"line 7: spoilt \(Expected `int`, got `str` - at `\$\.round`\)"):
        read(path)


def test_a_newer_schema_is_told_from_a_spoilt_line(path):
    ours, next_one = f'"schema":{SCHEMA_VERSION}', f'"schema":{SCHEMA_VERSION + 1},"colour":3'
    newer = msgspec.json.encode(sweep()).replace(ours.encode(), next_one.encode())
    for end in (b"\n", b""):
        path.write_bytes(newer + end)
        with pytest.raises(
            RecordError,
            match=rf"line 1: schema {SCHEMA_VERSION + 1}; this breakeven reads up to {SCHEMA_VERSION}\. Upgrade",
        ):
            read(path)


def test_files_that_are_no_record(path, tmp_path):
    with pytest.raises(RecordError, match="No such file"):
        read(path)
    with pytest.raises(RecordError, match="Is a directory"):
        read(tmp_path)
    for content in (b"", b"\n\n"):
        path.write_bytes(content)
        with pytest.raises(RecordError, match="empty; nothing was measured"):
            read(path)
    for content in (b"n,ms\n1,2\n", b"\x89PNG\r\n\x1a\n", b"{}\n", b'{"kind":"meter"}\n'):
        path.write_bytes(content)
        with pytest.raises(RecordError, match=r"not a breakeven record \(line 1"):
            read(path)


def test_a_record_needs_a_sweep_and_whole_references():
    with pytest.raises(RecordError, match="no sweep in it"):
        Record.from_lines(launch_lines())
    with pytest.raises(RecordError, match="belongs to sweep s2, which is not in the file"):
        Record.from_lines([sweep(), *launch_lines("s2")])
    without_program = [line for line in launch_lines() if not isinstance(line, Program)]
    with pytest.raises(RecordError, match="names launch a, program 0, which is not in the file"):
        Record.from_lines([sweep(), *without_program])
    strange = Program(sweep="s1", launch="a", program=9, cell=cell(1, "helper"))
    with pytest.raises(RecordError, match="unknown role 'helper'"):
        Record.from_lines([sweep(), *launch_lines(), strange])


def test_records_join_by_concatenation(path, tmp_path):
    write(path, [sweep(), *launch_lines()])
    other = write(tmp_path / "other.jsonl", [sweep("s2"), *launch_lines("s2")])
    joined = tmp_path / "joined.jsonl"
    # The first file a second time: what stands there twice was measured once.
    joined.write_bytes(path.read_bytes() + other.read_bytes() + path.read_bytes())
    record = read(joined)
    assert [s.sweep for s in record.sweeps] == ["s1", "s2"]
    assert len(record.visits) == 8
    assert len(record.launches) == 2


def test_a_join_behind_a_cut_line_names_it(path, tmp_path):
    write(path, [sweep(), *launch_lines()])
    other = write(tmp_path / "other.jsonl", [sweep("s2"), *launch_lines("s2")])
    path.write_bytes(path.read_bytes()[:-20] + other.read_bytes())
    with pytest.raises(RecordError, match="line 8: spoilt"):
        read(path)


def test_the_catalog():
    assert "issue-21411-tpu" in names()
    for name in names():
        assert load(name).source == f"data:{name}"
    with pytest.raises(RecordError, match=r"data:nothing: no recorded sweep .* there are .*issue-21411-tpu"):
        open_record("data:nothing")
    with pytest.raises(RecordError, match=r"data:issue-21411-tpu: --scaling says how to read a \.csv file"):
        open_record("data:issue-21411-tpu", scaling="weak")


def test_the_issues_four_numbers():
    record = open_record("data:issue-21411-tpu")
    times = {
        (p.cell.num_devices, p.cell.size): v.latency_ns[0] for p, v in zip(record.programs, record.visits, strict=True)
    }
    small, large = 8 * 1024 * 8 * 1024, 8 * 1024 * 10 * 8 * 1024
    assert times == {(4, small): 662_000, (8, small): 510_000, (4, large): 4_410_000, (8, large): 2_390_000}
    assert record.sweeps[0].plan.path == "strong"
    assert record.sweeps[0].source == "https://github.com/jax-ml/jax/issues/21411"
    assert record.launches[0].device_kind == "TPU"


def test_open_record_takes_a_path(path):
    write(path, [sweep(), *launch_lines()])
    assert open_record(path).sweeps == (sweep(),)
    assert open_record(str(path)).sweeps == (sweep(),)
    with pytest.raises(RecordError, match=r"--columns says how to read a \.csv file; a record needs none"):
        open_record(path, columns="devices=n")


def test_a_device_is_no_record():
    with pytest.raises(RecordError, match="/dev/full: a device, not a file"):
        read("/dev/full")


def test_what_cannot_be_written_is_said(tmp_path):
    for path, message in ((tmp_path, "not a regular file"), (Path("/proc/none.jsonl"), "cannot be written")):
        with pytest.raises(RecordError, match=message):
            Writer(path).write(sweep())


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    def no_space(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = Writer(tmp_path / "a.jsonl")
    writer.write(sweep())
    monkeypatch.setattr(os, "write", no_space)
    with pytest.raises(RecordError, match=r"a\.jsonl: cannot be written: No space left on device"):
        writer.write(sweep())
    monkeypatch.undo()
    writer.close()
    assert len(read(tmp_path / "a.jsonl").sweeps) == 1


def test_a_file_whose_cut_line_cannot_be_mended_is_closed_again(path, monkeypatch):
    write(path, [sweep(), *launch_lines()])
    path.write_bytes(path.read_bytes()[:-20])

    def fail(*_arguments):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", fail)
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(RecordError, match=r"cannot be written: Input/output error"):
        Writer(path).reopen()
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_devices": 0}, "has num_devices 0; it must lie between 1 and"),
        ({"num_devices": 10**12}, "has num_devices 1000000000000; it must lie between 1 and"),
        ({"size": -1}, "has size -1; it must lie between 1 and"),
    ],
)
def test_an_impossible_cell_is_named(path, changes, message):
    wrong = Cell(**{"role": "workload", "strategy": "jit", "num_devices": 2, "size": 10} | changes)
    write(path, [sweep(), *launch_lines(), Program(sweep="s1", launch="a", program=9, cell=wrong)])
    with pytest.raises(RecordError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"work": 1e300}, r"program 9 has work 1e\+300; it must be at least 0, and at most 1e\+30"),
        ({"work": -5.0}, "program 9 has work -5"),
        ({"flops": float("inf")}, "program 9 has flops inf"),
        ({"bytes_accessed": float("nan")}, "program 9 has bytes_accessed nan"),
        ({"peak_flops": 0.0}, "program 9 has peak_flops 0; it must be above 0"),
    ],
)
def test_an_impossible_amount_is_named(facts, message):
    lines, possible = [sweep(), *launch_lines()], ProgramFacts(flops=0.0, work=0.0, peak_flops=1.0)
    fine = Program(sweep="s1", launch="a", program=9, cell=cell(2), facts=possible)
    assert len(Record.from_lines([*lines, fine]).programs) == 3
    wrong = msgspec.structs.replace(fine, facts=ProgramFacts(**facts))
    with pytest.raises(RecordError, match=message):
        Record.from_lines([*lines, wrong])


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_nested_beyond_reading_is_spoilt_like_any_other(path, end):
    write(path, [sweep(), *launch_lines()])
    deep = b'{"kind":"visit","schema":2,"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    path.write_bytes(path.read_bytes() + deep + end)
    if end:
        with pytest.raises(RecordError, match=r"line 9: spoilt \(maximum recursion depth"):
            read(path)
        return
    with pytest.warns(UserWarning, match="the last line was cut while being written"):
        assert len(read(path).visits) == 4
    write(path, launch_lines(launch="b"))
    assert len(read(path).visits) == 8


def test_warmups_below_none_are_spoilt(path):
    write(path, [sweep(), *launch_lines()])
    path.write_bytes(path.read_bytes().replace(b'"time":1.0,"warmups":1', b'"time":1.0,"warmups":-1'))
    with pytest.raises(RecordError, match=r"line 7: spoilt .*`int` >= 0 - at `\$\.warmups"):
        read(path)


def test_an_impossible_path_is_named(path):
    write(path, [sweep(path="sideways"), *launch_lines()])
    with pytest.raises(RecordError, match=r"path 'sideways'.*must be strong or weak"):
        read(path)


def test_a_time_beyond_all_measure_is_spoilt(path):
    write(path, [sweep(), *launch_lines()])
    path.write_bytes(path.read_bytes().replace(b'"latency_ns":[', b'"latency_ns":[' + b"9" * 40 + b",", 1))
    with pytest.raises(RecordError, match=r"line \d+: spoilt .*latency_ns"):
        read(path)
