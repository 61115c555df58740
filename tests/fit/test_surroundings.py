"""Named warnings, each from the one thing that is wrong, and the verdict that they put in doubt."""

import re
import subprocess
from dataclasses import replace as with_fields

import numpy as np
import pytest
from breakeven.data.schema import Closing, Launch, Machine, Plan
from breakeven.data.simulated import simulated_lines
from breakeven.data.store import Record, RecordError, Writer, read
from breakeven.fit.crowding import Crowd, crowd
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer
from breakeven.fit.surroundings import named_warnings
from breakeven.model.cell import Cell
from msgspec.structs import replace

LAUNCH = Launch(
    sweep="s",
    launch="l",
    started="",
    platform="cpu",
    device_kind="cpu",
    cores=8,
    jax="0.10.2",
    cpu="x",
    machines=(Machine(host="a", boot="b", affinity=tuple(range(8)), clock_resolution_ns=1.0, clock_overhead_ns=60.0),),
)
CLOSING = Closing(
    sweep="s",
    launch="l",
    seconds=10.0,
    others_busy_cores=0.05,
    stolen_share=0.0,
    throttled_s=0.0,
    heat_throttles=0,
    frequency_mhz=(800.0, 3000.0),
    clock_jump_s=1e-4,
    suspended_s=0.0,
)
QUIET = (LAUNCH, CLOSING)


def machine(**fields):
    return {"machines": (replace(LAUNCH.machines[0], **fields),)}


def table_with(make_table, *around, devices=(1, 2, 4), cores=8):
    table = make_table(
        lambda n, size: (10e-6 * n, 1e-6, 40e-6), devices=devices, launches=len(around or (QUIET,) * 6), cores=cores
    )
    around = around or (QUIET,) * 6
    fields = {
        "launches": tuple(replace(line, launch=str(g)) for g, (line, _) in enumerate(around)),
        "closings": tuple(replace(line, launch=str(g)) for g, (_, line) in enumerate(around) if line is not None),
    }
    return with_fields(table, **fields)


def names(table, largest=4):
    return [one.name for one in named_warnings(table, "jit", largest)]


def test_a_quiet_machine_gives_none(make_table):
    assert names(table_with(make_table)) == []


def one_of(*, launch=None, closing=None, which=2):
    """Six launches, one of them with other fields."""
    odd = (replace(LAUNCH, **(launch or {})), replace(CLOSING, **(closing or {})))
    return [odd if g == which else QUIET for g in range(6)]


@pytest.mark.parametrize(
    ("odd", "name", "text", "doubts"),
    [
        ({"closing": {"throttled_s": 0.2}}, "throttled", "processes back 2 % of the time in 1 of 6 launches", True),
        ({"closing": {"heat_throttles": 3}}, "throttled", "slowed down for heat 3 times", True),
        ({"closing": {"others_busy_cores": 1.5}}, "other-load", "up to 1.5 of 8 cores busy in 1 of 6 launches", True),
        ({"closing": {"stolen_share": 0.1}}, "other-load", "gave up to 10 % of the time to others", True),
        ({"closing": {"clock_jump_s": -3600.0}}, "clock-jump", "jumped by -3600 s in 1 of 6 launches", False),
        ({"closing": {"suspended_s": 60.0}}, "suspended", "slept up to 60 s in 1 of 6 launches", False),
        ({"closing": {"frequency_mhz": (800.0, 2000.0)}}, "frequency", "at 2000 to 3000 MHz", False),
        ({"launch": machine(governor="powersave")}, "frequency", "the frequency governor is powersave", False),
        ({"launch": machine(clock_resolution_ns=1e3)}, "coarse-clock", "a step of the clock takes 1000 ns", True),
        ({"launch": machine(clock_overhead_ns=1e3)}, "coarse-clock", "a reading of the clock takes 1000 ns", True),
        ({"launch": machine(host="c")}, "unlike-machines", r"1 of 6 launches differ .* in host \(a and c\)", False),
        ({"launch": {"jax": "0.9"}}, "unlike-machines", r"from the first in jax \(0.10.2 and 0.9\)", False),
    ],
)  # fmt: skip
def test_each_by_its_name(make_table, odd, name, text, doubts):
    (found,) = named_warnings(table_with(make_table, *one_of(**odd)), "jit", 4)
    assert found.name == name
    assert found.doubts_verdict is doubts
    assert re.search(text, found.text), found.text


@pytest.mark.parametrize(
    "closing",
    [
        {"throttled_s": 0.05},
        {"others_busy_cores": 0.7},
        {"stolen_share": 0.01},
        # Kept in time by the network.
        {"clock_jump_s": 0.1},
        {"frequency_mhz": (100.0, 2900.0)},
    ],
)
def test_a_little_is_no_alarm(make_table, closing):
    assert names(table_with(make_table, *one_of(closing=closing))) == []


@pytest.mark.parametrize(
    ("cores", "largest", "expected"),
    [(8, 4, []), (7, 4, ["few-cores"]), (4, 4, ["few-cores"]), (3, 4, ["forced-devices"]), (4, 2, []), (1, 1, ["few-cores"])],  # noqa: E501
)  # fmt: skip
def test_cores_a_device(make_table, cores, largest, expected):
    found = named_warnings(table_with(make_table, cores=cores), "jit", largest)
    assert [one.name for one in found] == expected
    assert all(one.doubts_verdict for one in found)


def test_devices_of_other_nodes_take_no_cores_here(make_table):
    ranks = [
        Machine(host="a", boot="1", affinity=(0, 1)),
        Machine(host="a", boot="1", affinity=(2, 3)),
        Machine(host="b", boot="2", affinity=(0, 1)),
        Machine(host="b", boot="2", affinity=(0, 1)),
    ]
    spread = replace(LAUNCH, processes=4, nodes=2, devices_per_process=1, devices_per_node=2, machines=tuple(ranks))
    table = table_with(make_table, *[(spread, CLOSING)] * 6, cores=2)
    assert crowd(table, 4) == Crowd(2, 4)
    assert names(table) == []
    bound = replace(spread, machines=tuple(replace(m, affinity=(0,), quota_cores=0.5) for m in ranks))
    assert crowd(table_with(make_table, *[(bound, CLOSING)] * 6, cores=2), 4) == Crowd(2, 1)


def test_the_load_before_counts_where_nothing_else_says_what_others_did(make_table):
    loaded = (replace(LAUNCH, load_average=9.0), None)
    (found,) = named_warnings(table_with(make_table, *[loaded] * 6), "jit", 4)
    assert (found.name, found.doubts_verdict) == ("other-load", False)
    assert "the load average was 9.0 on 8 cores" in found.text
    # Later launches hold our own load; a launch that knows what others did needs no guess.
    assert names(table_with(make_table, (LAUNCH, None), *[loaded] * 5)) == []
    assert names(table_with(make_table, *[(loaded[0], CLOSING)] * 6)) == []


def test_hosts_with_enough_launches_of_their_own_are_pointed_out(make_table):
    other = (replace(LAUNCH, **machine(host="c")), CLOSING)
    (found,) = named_warnings(table_with(make_table, *[QUIET] * 3, *[other] * 3), "jit", 4)
    assert "each host has 3 launches or more: split the file" in found.text
    (found,) = named_warnings(table_with(make_table, *[QUIET] * 4, *[other] * 2), "jit", 4)
    assert "each host" not in found.text


def test_drift_is_warned_of_but_does_not_doubt_a_verdict(make_table):
    rng = np.random.default_rng(0)
    minutes = np.arange(6) / 2
    sentinel = tuple(
        np.array([60 * at + np.arange(8.0), 2e-4 * np.exp(0.1 * at + rng.normal(0, 0.01, 8))]) for at in minutes
    )
    table = with_fields(table_with(make_table), sentinel_s=sentinel)
    (found,) = named_warnings(table, "jit", 4)
    assert (found.name, found.doubts_verdict) == ("drift", False)
    assert "over the sweep" in found.text
    assert answer(table).doubts == ()


def test_doubts_reach_the_verdict_but_not_where_there_is_none(make_table):
    around = [(LAUNCH, replace(CLOSING, others_busy_cores=4.0))] * 6
    found = answer(table_with(make_table, *around))
    assert found.verdict == "dispatch"
    assert found.doubts == ("other-load",)
    assert found.named_warnings[0].text in found.warnings
    undecided = answer(table_with(make_table, *around[:2]))
    assert undecided.verdict == "undecided"
    assert undecided.doubts == ()
    assert undecided.named_warnings[0].name == "other-load"


PLAN = Plan(workload="made", path="weak", objective="time", devices=(1,), sizes=(8,), strategies=("jit",))


def record_on(*launches):
    """A record of as many launches, each with the fields given."""
    cell = Cell(role="workload", strategy="jit", num_devices=1, size=8)
    samples = np.random.default_rng(0).uniform(1e-4, 2e-4, (1, len(launches), 2, 3))
    fields = iter(launches)
    lines = [
        replace(line, **next(fields)) if isinstance(line, Launch) else line
        for line in simulated_lines(PLAN, [cell], samples)
    ]
    return Record.from_lines(lines, source="two.jsonl")


def test_two_kinds_of_device_are_never_pooled():
    gpu = {"platform": "gpu", "device_kind": "H200"}
    record = record_on(gpu, {**gpu, "device_kind": "A100"}, gpu)
    with pytest.raises(RecordError, match=r"1 of 3 launches .* kind \(H200 and A100\).* never pooled") as told:
        from_record(record)
    assert f"""grep -v -e '"launch":"{record.launches[1].launch[:8]}' two.jsonl""" in str(told.value)
    assert from_record(record_on(gpu, gpu)).num_launches == 2
    with pytest.raises(RecordError, match=r"platform \(gpu and cpu\)"):
        from_record(record_on(gpu, {"platform": "cpu"}))


def test_the_told_command_takes_the_other_kind_out(tmp_path):
    gpu = {"platform": "gpu", "device_kind": "H200"}
    record = record_on(gpu, {**gpu, "device_kind": "A100"}, gpu)
    path = tmp_path / "two.jsonl"
    with Writer(path) as writer:
        for line in (*record.sweeps, *record.launches, *record.programs, *record.visits):
            writer.write(line)
    with pytest.raises(RecordError) as told:
        from_record(read(path))
    command = str(told.value).partition("take them out with: ")[2]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert from_record(read(tmp_path / "one-kind.jsonl")).num_launches == 2
