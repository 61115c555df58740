"""What the table's facts say against its times: named, and silent on sound data."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from breakeven.data.catalog import open_record
from breakeven.data.schema import Launch, Plan, Program, Sweep, Visit
from breakeven.data.store import Record, RecordError
from breakeven.fit.guards import guard_warnings
from breakeven.fit.launches import LaunchTable, from_record
from breakeven.fit.report import answer
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts

RECORDED = ("issue-21411", "matmul-contract", "mean-all", "sin-reduce", "train-step", "issue-21411-tpu")


def cells(role="workload", strategy="jit", devices=(1, 2, 4, 8), size=1000, path="weak"):
    return [
        Cell(role=role, strategy=strategy, num_devices=n, size=n * size if path == "weak" else size) for n in devices
    ]


def truth(n, size):
    return 1e-4 * n, 2e-5 * n, 1e-7 * size


def named(table, strategy="jit"):
    return {one.name: one for one in guard_warnings(table, strategy, 8)}


@pytest.mark.parametrize("name", RECORDED)
def test_no_guard_fires_on_what_ships(name):
    table = from_record(open_record(f"data:{name}"))
    assert table.impossible == ()
    for strategy in table.strategies:
        assert guard_warnings(table, strategy, table.devices()[-1]) == ()


def test_no_facts_no_warnings(make_table):
    assert guard_warnings(make_table(truth), "jit", 8) == ()


def test_a_function_that_was_compiled_as_a_whole_is_named(make_table):
    found = named(replace(make_table(truth), pieces={cells()[1]: 20}))["compiled-whole"]
    assert re.search(r"is not jitted; .* starts about 20 one after another", found.text)


# A control that does other work, or takes longer than all of it.


def pair(control_s, *, devices=(1, 4)):
    """Four launches of a workload of 1 ms that scatter by a percent, and of its control."""
    scatter = np.array([0.99, 1.0, 1.01, 1.0])
    ours, theirs = cells(devices=devices, path="strong"), cells("local", devices=devices, path="strong")
    times = np.concatenate([np.full((len(ours), 4), 1e-3), np.full((len(theirs), 4), control_s)]) * scatter
    times[-1] = control_s * scatter[::-1] ** 0.5
    plan = Plan(workload="w", path="strong", objective="time", devices=devices, sizes=(1000,), strategies=("jit",))
    return LaunchTable(plan=plan, cells=(*ours, *theirs), latency_s=times)


def test_a_control_slower_than_its_workload_is_named():
    found = named(pair(1.1e-3))["slower-control"]
    assert found.doubts_verdict
    assert re.search(
        r"takes at least [78]\.?\d* % longer than the whole workload on 4 devices at size 1,000", found.text
    )
    # Programs compiled apart differ a little; one device has no communication to leave out.
    assert named(pair(1.01e-3)) == named(pair(0.8e-3)) == named(pair(1.1e-3, devices=(1,))) == {}


def test_work_that_every_device_repeats_is_named_in_a_strong_sweep():
    table = pair(0.8e-3)
    repeats = {c: ProgramFacts(flops=1e6) for c in table.cells}
    found = named(replace(table, facts=repeats))["repeated-work"]
    assert found.text.startswith("all of the work on 1 device is done again by each of 4")
    assert not found.doubts_verdict
    divided = {c: ProgramFacts(flops=1e6 / c.num_devices) for c in table.cells}
    assert named(replace(table, facts=divided)) == named(replace(table, facts=repeats, foreign=True)) == {}


def test_a_control_with_other_work_is_named(make_table, make_all_reduce):
    def facts(flops, bytes_accessed=1e6):
        given = {c: ProgramFacts(flops=1e6, bytes_accessed=1e6, collectives=(make_all_reduce(4000),)) for c in cells()}
        return given | {c: ProgramFacts(flops=flops, bytes_accessed=bytes_accessed) for c in cells("local")}

    found = named(make_table(truth, facts=facts(2e6)))["unlike-control"]
    assert "2e+06 flops against 1e+06 of the workload" in found.text
    assert found.doubts_verdict
    assert "1.2e+06 bytes accessed" in named(make_table(truth, facts=facts(1e6, 1.2e6)))["unlike-control"].text
    # Within the reduction's own: 5 % and an operation a byte of the message; 5 % and 2.5 times the message.
    assert named(make_table(truth, facts=facts(1e6 - 53_000, 1e6 - 59_000))) == {}


def test_a_control_that_communicates_is_named(make_table, make_all_reduce):
    reduced = ProgramFacts(flops=1e6, collectives=(make_all_reduce(4),))
    table = make_table(truth, facts=dict.fromkeys([*cells(), *cells("local")], reduced))
    assert "it communicates itself" in named(table)["unlike-control"].text


def test_loops_of_unknown_length_are_not_compared(make_table, make_all_reduce):
    given = dict.fromkeys(cells(), ProgramFacts(flops=1e6, collectives=(make_all_reduce(4, count=None),)))
    assert named(make_table(truth, facts=given | dict.fromkeys(cells("local"), ProgramFacts(flops=5e6)))) == {}


# Padding.


def test_padded_sizes_are_named_and_a_mixture_is_said(make_table):
    def facts(shares):
        return {c: ProgramFacts(padded_share=share) for c, share in zip(cells(), shares, strict=True)}

    mixed = named(make_table(truth, facts=facts((0.0, 0.0, 0.02, 0.14))))["padding"]
    assert "2 of 4 cells hold padding, 14 % of an axis on 8 devices at size 8,000" in mixed.text
    assert "bends where it starts" in mixed.text
    assert not mixed.doubts_verdict
    assert "bends" not in named(make_table(truth, facts=facts((0.1,) * 4)))["padding"].text
    assert named(make_table(truth, facts=facts((0.0,) * 4))) == named(make_table(truth, facts=facts((None,) * 4))) == {}


# Inputs moved at each call.


def test_inputs_that_each_call_moves_are_named(make_table):
    moved = {c: 100 * c.num_devices for c in cells()}
    found = named(make_table(truth, moved_bytes=moved))["inputs-moved"]
    assert "800 B on 8 devices" in found.text
    assert named(make_table(truth, moved_bytes=dict.fromkeys(cells(strategy="other"), 100))) == {}


# Times that do not grow with the work, in data from elsewhere.


def csv(tmp_path, text, columns="", **options):
    path = tmp_path / "made.csv"
    path.write_text(text)
    return from_record(open_record(str(path), columns=columns or None, **options))


def flat(factor, work="work"):
    rows = [f"{n},{s},{1e-4 * (1 + factor * i)},{s * 1e6 / n}" for n in (1, 2) for i, s in enumerate((8, 64, 512))]
    return f"devices,size,latency_s,{work}\n" + "\n".join(rows) + "\n"


def test_time_that_stands_still_while_the_work_grows(tmp_path):
    table = csv(tmp_path, flat(0.02), scaling="strong")
    (found,) = guard_warnings(table, "as-written", 2)
    assert found.name == "not-waited-for"
    assert found.doubts_verdict
    assert "by a factor of 1.04 while the work of a device grows by 64" in found.text
    asked = answer(table)
    assert f"{found.name}: {found.text}" in asked.warnings
    assert found in asked.named_warnings


def test_time_that_grows_with_the_work_or_work_that_does_not_grow(tmp_path):
    assert guard_warnings(csv(tmp_path, flat(0.5), scaling="strong"), "as-written", 2) == ()
    same = "devices,size,latency_s\n1,8,1e-4\n2,8,1e-4\n1,16,1e-4\n2,16,1e-4\n"
    assert guard_warnings(csv(tmp_path, same, scaling="strong"), "as-written", 2) == ()


def test_times_of_ours_may_stand_still(make_table):
    table = make_table(lambda n, size: (1e-4 * n, 0.0, 0.0), sizes=(8, 64, 512))
    assert not table.foreign
    assert guard_warnings(table, "jit", 8) == ()


# Rates above what a device can do.

TPU = "device_kind,devices,size,latency_s,replicate\n"


def steps(*seconds, devices=(1, 2), kind="TPU v5p"):
    return TPU + "".join(f"{kind},{n},8,{s},{i}\n" for n in devices for i, s in enumerate(seconds))


def test_a_row_above_the_peak_is_left_out_and_named(tmp_path):
    flops = "flops=764.7e12"
    table = csv(tmp_path, steps(5.66, 0.319, 5.67), flops)
    np.testing.assert_allclose(table.latency_s[:, 0], 5.665)
    assert len(table.impossible) == 2
    assert table.impossible[0].startswith(
        "workload/as-written on 1 device, size 8: repeat 2 of 3 left out: 2,397 Tflop/s"
    )
    assert "which can do 918 at most" in table.impossible[0]
    found = answer(table)
    assert [one.name for one in found.named_warnings][:2] == ["impossible-rate"] * 2
    assert any(table.impossible[0] in text for text in found.warnings)


def test_an_unknown_kind_or_unknown_flops_are_not_judged(tmp_path):
    for text, columns in ((steps(5.66, 0.319, 5.67, kind="abacus"), "flops=764.7e12"), (steps(5.66, 0.319, 5.67), "")):
        table = csv(tmp_path, text, columns)
        assert table.impossible == ()
        np.testing.assert_allclose(table.latency_s[:, 0], (5.66 + 0.319 + 5.67) / 3)


def test_work_in_another_unit_is_no_rate(tmp_path):
    assert csv(tmp_path, steps(5.66, 0.319), "work=764.7e12").impossible == ()


def test_a_cell_whose_every_time_is_impossible_is_refused(tmp_path):
    with pytest.raises(RecordError, match=r"every time of workload/as-written on 1 device.* implies 7,647 Tflop/s"):
        csv(tmp_path, steps(0.1, 0.2), "flops=764.7e12")


def test_flops_may_not_differ_between_repeats(tmp_path):
    text = "devices,latency_s,f\n1,1,5\n1,1.1,6\n2,1,5\n"
    with pytest.raises(RecordError, match=r"line 3: flops is 6.*, but 5.* on an earlier line"):
        csv(tmp_path, text, "flops=f,note=f")


def collectives(seconds, size=2**33):
    return "device_kind,devices,message_bytes,latency_s\n" + "".join(
        f"NVIDIA H200,{n},{size},{s}\n" for n in (2, 4, 8) for s in seconds
    )


def test_a_collective_faster_than_memory_is_left_out(tmp_path):
    table = csv(tmp_path, collectives((0.03, 1e-5, 0.031)))
    assert len(table.impossible) == 3
    assert "859 TB/s on one device, which can do 4.8 at most" in table.impossible[0]
    assert any("859 TB/s" in text for text in answer(table).warnings)
    # What fits into a cache may be faster than memory.
    assert csv(tmp_path, collectives((0.03, 1e-5), size=2**20)).impossible == ()


def record(fast_round=None, *, peak=1e12, every=False):
    """Two launches of three rounds; one visit of one round may be impossibly fast."""
    plan = Plan(workload="w", path="strong", objective="time", devices=(1, 2), sizes=(8,), strategies=("jit",))
    lines: list[object] = [Sweep(schema=2, sweep="s", created="", version="", plan=plan)]
    both = cells(devices=(1, 2), size=8, path="strong")
    for launch in ("a", "b", "c"):
        lines.append(Launch(sweep="s", launch=launch, started=""))
        for number, cell in enumerate(both):
            facts = ProgramFacts(flops=1e6, peak_flops=peak)
            lines.append(Program(sweep="s", launch=launch, program=number, cell=cell, facts=facts))
        for round_ in range(3):
            for number in range(2):
                hit = number == 1 and (every or (launch, round_) == fast_round)
                times = (9, 10**6, 100 if hit else 10**6, 10**6 + 10**5 * round_)
                lines.append(
                    Visit(
                        sweep="s",
                        launch=launch,
                        program=number,
                        round=round_,
                        position=number,
                        time=0.0,
                        warmups=1,
                        latency_ns=times,
                    )
                )
    return Record.from_lines(lines, source="made")  # pyright: ignore


def test_a_round_of_ours_with_an_impossible_call_is_left_out_whole():
    table = from_record(record(("b", 1)))
    assert [block.shape for block in table.rounds_s] == [(2, 3), (2, 2), (2, 3)]
    assert table.impossible[0].startswith(
        "workload/jit on 2 devices, size 8: 1 of 9 visits, with their rounds, left out"
    )
    assert from_record(record()).impossible == ()
    # No bound was written: nothing is said.
    assert from_record(record(("b", 1), peak=None)).impossible == ()
    with pytest.raises(RecordError, match="made: every time of workload/jit on 2 devices"):
        from_record(record(every=True))


# Strategies of one sweep that do different things.


def test_strategies_that_exchange_different_things_are_named(make_table, make_all_reduce):
    other = dict.fromkeys(cells(strategy="pmap"), 1e-3)
    facts = dict.fromkeys(cells(), ProgramFacts(flops=1e6, collectives=(make_all_reduce(4096),)))
    alone = facts | dict.fromkeys(cells(strategy="pmap"), ProgramFacts(flops=1e6))
    table = make_table(truth, extra=other, facts=alone, strategies=("jit", "pmap"))
    found = named(table)["unlike-strategies"]
    assert found.text.startswith(
        "jit and pmap are not comparable: on 1, 2, 4, 8 devices: jit has 1 all-reduce of 4,096 B"
    )
    assert "pmap has no collective" in found.text
    alike = facts | dict.fromkeys(cells(strategy="pmap"), facts[cells()[0]])
    assert named(make_table(truth, extra=other, facts=alike, strategies=("jit", "pmap"))) == {}


def test_named_warnings_survive_json(tmp_path):
    found = answer(csv(tmp_path, flat(0.02), scaling="strong"))
    assert msgspec.json.decode(msgspec.json.encode(found))["named_warnings"][0]["name"] == "not-waited-for"


# Launches of different programs.


def with_programs(change):
    """A recorded sweep whose last launches are changed."""
    record = open_record("data:mean-all")
    late = {launch.launch for launch in record.launches[-2:]}
    return replace(record, programs=tuple(change(p, p.launch in late) for p in record.programs))


def test_launches_of_an_edited_program_are_named():
    def marked(program, late):
        return msgspec.structs.replace(program, fingerprint="b" if late else "a")

    found = named(from_record(with_programs(marked)))["changed-program"]
    assert re.search(r"programs \(workload/jit on 1 device, .*: the program was changed\): the file", found.text)
    assert not found.doubts_verdict
    assert named(from_record(with_programs(lambda p, _late: marked(p, False)))) == {}


def exchanging_twice(program, late):
    """A program whose collectives are twice as large, and its chains the cells of those."""
    if not late or not program.facts.collectives or program.cell.role not in ("workload", "chain"):
        return program
    larger = tuple(replace(one, message_bytes=2 * one.message_bytes) for one in program.facts.collectives)
    payload = None if program.cell.payload_bytes is None else 2 * program.cell.payload_bytes
    return msgspec.structs.replace(
        program,
        facts=replace(program.facts, collectives=larger),
        cell=replace(program.cell, payload_bytes=payload),
    )


def test_launches_that_exchange_different_things_are_told_apart():
    def without_chains(program, late):
        return exchanging_twice(program, late) if program.cell.role == "workload" else program

    found = named(from_record(with_programs(without_chains)))["changed-program"]
    assert "some launches have 1 all-reduce of 4 bytes, others 1 all-reduce of 8 bytes" in found.text
    assert found.doubts_verdict
    # With chains of other payloads no launch holds every cell, and a larger budget would not help.
    with pytest.raises(RecordError, match=r"some have 1 all-reduce of 4 .* none holds the cells of all; measure anew"):
        from_record(with_programs(exchanging_twice))
