"""Named warnings, each from the one thing that is wrong, and the verdict that they put in doubt."""

import re
import subprocess
from dataclasses import replace as with_fields

import numpy as np
import pytest
from breakeven.data.schema import Closing, Launch, Machine, Plan
from breakeven.data.simulated import simulated_lines
from breakeven.data.store import Record, RecordError, Writer, read
from breakeven.fit.comparing.sides import Side
from breakeven.fit.comparing.two_sweeps import compare
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
        ({"closing": {"throttled_s": 0.2}}, "throttled", "back for up to 2 % of one core's time in 1 of 6", True),
        # Added up over the cores it is longer than the launch.
        ({"closing": {"throttled_s": 34.0}}, "throttled", "340 % of one core's time in 1 of 6 launches", True),
        ({"closing": {"heat_throttles": 3}}, "throttled", "slowed down for heat 3 times", True),
        ({"closing": {"others_busy_cores": 1.5}}, "other-load", "up to 1.5 of 8 cores busy in 1 of 6 launches", True),
        ({"closing": {"stolen_share": 0.1}}, "other-load", "gave up to 10 % of the time to others", True),
        ({"closing": {"clock_jump_s": -3600.0}}, "clock-jump", "jumped by -3600 s in 1 of 6 launches", False),
        ({"closing": {"suspended_s": 60.0}}, "suspended", "slept up to 60 s in 1 of 6 launches", False),
        ({"closing": {"frequency_mhz": (800.0, 2000.0)}}, "frequency", "at 2000 to 3000 MHz", False),
        ({"launch": machine(governor="powersave")}, "frequency", "the frequency governor is powersave", False),
        ({"launch": machine(clock_resolution_ns=1e3)}, "coarse-clock", "a step of the clock takes 1000 ns", True),
        ({"launch": machine(clock_overhead_ns=1e3)}, "coarse-clock", "a reading of the clock takes 1000 ns", True),
        ({"launch": machine(host="c", boot="d")}, "unlike-machines", r"1 of 6 .* differ .* in host \(a and c\)", False),
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
    assert crowd(table, 4) == Crowd(devices=2, cores=4)
    # One device is in the first process, and only there.
    assert crowd(table, 1) == Crowd(devices=1, cores=2)
    assert names(table) == []
    bound = replace(spread, machines=tuple(replace(m, affinity=(0,), quota_cores=0.5) for m in ranks))
    assert crowd(table_with(make_table, *[(bound, CLOSING)] * 6, cores=2), 4) == Crowd(devices=2, cores=1)


def test_what_others_do_is_set_against_the_cores_where_it_was_seen(make_table):
    ranks = tuple(Machine(host="a", boot="1", affinity=(2 * rank, 2 * rank + 1)) for rank in range(8))
    spread = replace(LAUNCH, processes=8, devices_per_node=8, machines=ranks)
    table = table_with(make_table, *[(spread, replace(CLOSING, others_busy_cores=1.0))] * 6, cores=16)
    texts = [one.text for one in named_warnings(table, "jit", 4) if one.name == "other-load"]
    assert texts == ["others kept up to 1.0 of 2 cores busy in 6 of 6 launches"]


def test_where_systems_do_not_say_who_they_are_their_names_tell_nodes_apart(make_table):
    ranks = [Machine(host=host, affinity=cores) for host, cores in (("a", (0, 1)), ("a", (2, 3)), ("b", (4, 5)))]
    spread = replace(LAUNCH, processes=3, devices_per_node=2, machines=tuple(ranks))
    assert crowd(table_with(make_table, *[(spread, CLOSING)] * 6, cores=2), 4) == Crowd(devices=2, cores=4)


def test_the_cores_of_one_node_are_set_against_its_own_devices(make_table):
    """Two nodes with four devices on two cores each, in a process each."""
    ranks = [Machine(host=host, boot=host, affinity=(0, 1)) for host in ("a", "b")]
    spread = replace(LAUNCH, processes=2, nodes=2, devices_per_process=4, devices_per_node=4, machines=tuple(ranks))
    found = answer(table_with(make_table, *[(spread, CLOSING)] * 6, devices=(1, 2, 4, 8), cores=2))
    assert found.shared_resource
    assert found.shared_cores == Crowd(devices=4, cores=2)
    alone = answer(table_with(make_table, devices=(1, 2, 4, 8), cores=2))
    assert alone.shared_cores == Crowd(devices=8, cores=2)
    assert answer(table_with(make_table)).shared_cores is None


def test_cores_that_several_processes_share_out_are_those_of_all(make_table):
    ranks = [Machine(host="a", boot="b", affinity=cores) for cores in ((0, 1), (2,))]
    together = replace(LAUNCH, processes=2, devices_per_process=2, devices_per_node=4, machines=tuple(ranks))
    truth = table_with(make_table, *[(together, CLOSING)] * 6, cores=1)
    assert "devices taking turns on 3 cores" in answer(truth).confounded_with


def hashed(name, **fields):
    """A launch whose host is called so, by a sweep that hides hosts."""
    return replace(LAUNCH, sweep=name, **machine(host=f"host-{name * 10}", **fields)), CLOSING


def test_hashed_names_of_several_sweeps_do_not_make_several_hosts(make_table):
    def warned(*around):
        return names(table_with(make_table, *around))

    # One system, and one that does not say who it is: each sweep has its own name for it.
    assert warned(*[hashed("a")] * 3, *[hashed("b")] * 3) == []
    assert warned(*[hashed("a", boot=None)] * 3, *[hashed("b", boot="d")] * 3) == []
    assert warned(*[QUIET] * 3, *[hashed("b", boot="d")] * 3) == []
    # Within a sweep one host has one name.
    first, _ = hashed("a", boot=None)
    other = replace(hashed("c", boot=None)[0], sweep="a")
    (found,) = named_warnings(table_with(make_table, *[(first, CLOSING)] * 3, *[(other, CLOSING)] * 3), "jit", 4)
    assert found.name == "unlike-machines"
    assert "split the file" in found.text


def test_hashed_names_do_not_count_as_hosts_of_their_own(make_table):
    newer = [(replace(line, jax="0.9"), closing) for line, closing in [hashed("b")] * 3]
    (found,) = named_warnings(table_with(make_table, *[hashed("a")] * 3, *newer), "jit", 4)
    assert "in jax" in found.text
    assert "each host" not in found.text


def test_those_that_doubt_the_verdict_come_first(make_table):
    table = table_with(make_table, *[(LAUNCH, replace(CLOSING, others_busy_cores=4.0))] * 6)
    moved = with_fields(table, moved_bytes={table.select("workload", "jit")[0]: 64})
    assert [one.name for one in answer(moved).named_warnings] == ["other-load", "inputs-moved"]


def test_the_load_before_counts_where_nothing_else_says_what_others_did(make_table):
    loaded = (replace(LAUNCH, load_average=9.0), None)
    (found,) = named_warnings(table_with(make_table, *[loaded] * 6), "jit", 4)
    assert (found.name, found.doubts_verdict) == ("other-load", False)
    assert "the load average was 9.0 on 8 cores" in found.text
    # Later launches hold our own load; a launch that knows what others did needs no guess.
    assert names(table_with(make_table, (LAUNCH, None), *[loaded] * 5)) == []
    assert names(table_with(make_table, *[(loaded[0], CLOSING)] * 6)) == []


def test_hosts_with_enough_launches_of_their_own_are_pointed_out(make_table):
    other = (replace(LAUNCH, **machine(host="c", boot="d")), CLOSING)
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
    assert f"{found.named_warnings[0].name}: {found.named_warnings[0].text}" in found.warnings
    undecided = answer(table_with(make_table, *around[:2]))
    assert undecided.verdict == "undecided"
    assert undecided.doubts == ()
    assert undecided.named_warnings[0].name == "other-load"


PLAN = Plan(workload="made", path="weak", objective="time", devices=(1,), sizes=(8,), strategies=("jit",))


def record_on(*launches):
    """A record of as many launches, each with the fields given; its name needs quotes in a shell."""
    cell = Cell(role="workload", strategy="jit", num_devices=1, size=8)
    samples = np.random.default_rng(0).uniform(1e-4, 2e-4, (1, len(launches), 2, 3))
    fields = iter(launches)
    lines = [
        replace(line, **next(fields)) if isinstance(line, Launch) else line
        for line in simulated_lines(PLAN, [cell], samples)
    ]
    return Record.from_lines(lines, source="two kinds.jsonl")


def test_two_kinds_of_device_are_never_pooled():
    gpu = {"platform": "gpu", "device_kind": "H200"}
    record = record_on(gpu, {**gpu, "device_kind": "A100"}, gpu)
    with pytest.raises(RecordError, match=r"1 of 3 launches .* kind \(H200 and A100\).* never pooled") as told:
        from_record(record)
    assert f"""grep -v -e '"launch":"{record.launches[1].launch[:8]}' 'two kinds.jsonl' > """ in str(told.value)
    assert from_record(record_on(gpu, gpu)).num_launches == 2
    with pytest.raises(RecordError, match=r"platform \(gpu and cpu\)"):
        from_record(record_on(gpu, {"platform": "cpu"}))


def test_the_told_command_takes_the_other_kind_out(tmp_path):
    gpu = {"platform": "gpu", "device_kind": "H200"}
    record = record_on(gpu, {**gpu, "device_kind": "A100"}, gpu)
    path = tmp_path / "two kinds.jsonl"
    with Writer(path) as writer:
        for line in (*record.sweeps, *record.launches, *record.programs, *record.visits):
            writer.write(line)
    with pytest.raises(RecordError) as told:
        from_record(read(path))
    command = str(told.value).partition("take them out with: ")[2]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert from_record(read(tmp_path / "one-kind.jsonl")).num_launches == 2


def test_a_comparison_tells_what_the_machine_of_a_side_was_doing(make_table):
    quiet = Side(label="before", table=table_with(make_table), strategy="jit")
    loaded = Side(
        label="after",
        table=table_with(make_table, *one_of(closing={"others_busy_cores": 1.5})),
        strategy="jit",
    )
    (told,) = compare(quiet, loaded, paired=False).warnings
    assert told.startswith("after: other-load: ")
    assert compare(quiet, quiet, paired=False).warnings == ()
    # What is so on both sides cannot tell them apart, and is the verdict's matter.
    crowded = with_fields(quiet, table=table_with(make_table, cores=2))
    assert compare(crowded, crowded, paired=False).warnings == ()
