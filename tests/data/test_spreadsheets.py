"""Tables as people keep them: other separators, comments, labels, settings, and which sizes form a series."""

import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError
from breakeven.fit.launches import from_record


def times(record):
    """Seconds by count."""
    table = from_record(record)
    return {cell.num_devices: float(t[0]) for cell, t in zip(table.cells, table.latency_s, strict=True)}


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_values_may_be_separated_by_commas_semicolons_or_tabs(sheet, mark):
    path = sheet("gpus,ms\n1,500.5\n2,250.25\n".replace(",", mark))
    assert times(read_csv(path, columns="devices=gpus,latency_s=ms/1e3")) == pytest.approx({1: 0.5005, 2: 0.25025})


def test_beside_semicolons_the_comma_is_the_decimal_mark(sheet):
    path = sheet("gpus;ms\n1;500,5\n2;250,25\n")
    assert times(read_csv(path, columns="devices=gpus,latency_s=ms/1e3")) == pytest.approx({1: 0.5005, 2: 0.25025})


def test_beside_tabs_a_comma_could_be_anything(sheet):
    path = sheet("gpus\tms\n1\t1,024\n2\t512\n")
    with pytest.raises(RecordError, match=r"line 2, column 'ms': '1,024' is no number"):
        read_csv(path, columns="devices=gpus,latency_s=ms/1e3")


def test_a_header_may_stand_in_a_comment(sheet):
    """As numpy's savetxt writes it."""
    path = sheet("# run of Tuesday, on the new nodes, with tea\n# devices,latency_s\n1,0.5\n2,0.25\n")
    assert times(read_csv(path)) == {1: 0.5, 2: 0.25}


def test_comments_are_passed_over_and_lines_keep_their_numbers(sheet):
    path = sheet("# who: me\n\ndevices,latency_s\n# 1,0.4 (cold)\n1,0.5\n2,x\n")
    with pytest.raises(RecordError, match="line 6, column 'latency_s': 'x' is no number"):
        read_csv(path)


def test_a_file_of_comments_is_empty(sheet):
    with pytest.raises(RecordError, match="empty; the first line must name the columns"):
        read_csv(sheet("# nothing here\n"))


def test_text_that_describes_rows_is_a_note(sheet):
    path = sheet("threads,seconds,how\n1,5,pinned\n2,4,free\n")
    with pytest.raises(RecordError, match=r"rows that differ in how .* --columns note=how"):
        read_csv(path, columns="devices=threads,latency_s=seconds")
    assert times(read_csv(path, columns="devices=threads,latency_s=seconds,note=how")) == {1: 5, 2: 4}


def test_several_columns_can_be_notes(sheet):
    path = sheet("threads,seconds,how,strategy\n1,5,pinned,by Ann\n2,4,free,by Bob\n")
    record = read_csv(path, columns="devices=threads,latency_s=seconds,note=how,note=strategy")
    assert times(record) == {1: 5, 2: 4}
    assert record.sweeps[0].plan.strategies == ("as-written",)


RATES = "gpus,batch,img/s\n1,64,410\n2,128,690\n8,512,2050\n"


@pytest.mark.parametrize("expression", ["batch/img/s", "1e3*batch/img/s/1e3"])
def test_a_rate_of_elements_gives_the_time_of_a_step(sheet, expression):
    record = read_csv(sheet(RATES), columns=f"devices=gpus,latency_s={expression},size=batch")
    assert record.sweeps[0].plan.path == "weak"
    steps = {1: 64 / 410, 2: 128 / 690, 8: 512 / 2050}
    assert times(record) == pytest.approx(steps, abs=1e-9)


def test_one_over_a_rate_of_elements_is_no_time_of_a_call(sheet):
    with pytest.raises(RecordError, match=r"'img/s' grows 5.0 times from 1 to 8 devices .* latency_s=SIZE/img/s"):
        read_csv(sheet(RATES), columns="devices=gpus,latency_s=1/img/s,size=batch")


def test_one_over_a_rate_of_calls_is_the_time_of_a_call(sheet):
    path = sheet("gpus,batch,steps/s\n1,64,6\n2,128,5\n8,512,4\n")
    found = times(read_csv(path, columns="devices=gpus,latency_s=1/steps/s,size=batch"))
    assert found == pytest.approx({1: 1 / 6, 2: 1 / 5, 8: 1 / 4}, abs=1e-9)


def test_the_size_of_a_rate_is_taken_unasked(sheet):
    record = read_csv(sheet(RATES.replace("batch", "size")), columns="devices=gpus,latency_s=size/img/s")
    assert {p.cell.size for p in record.programs} == {64, 128, 512}


def test_a_batch_that_only_turns_a_rate_into_a_time_is_still_a_setting(sheet):
    path = sheet("gpus,batch,rate\n1,64,400\n1,32,390\n2,64,700\n2,32,600\n")
    with pytest.raises(RecordError, match=r"differ in batch .* would be mixed"):
        read_csv(path, columns="devices=gpus,latency_s=batch/rate")


@pytest.mark.parametrize(
    ("row", "message"),
    [("2,64,0", r"line 3, column 'rate': 0 under a fraction"), ("2,x,5", r"line 3, column 'batch': 'x' is no number")],
)
def test_a_fraction_of_columns_names_the_one_at_fault(sheet, row, message):
    with pytest.raises(RecordError, match=message):
        read_csv(
            sheet(f"gpus,batch,rate\n1,64,400\n{row}\n"), columns="devices=gpus,latency_s=batch/rate,size=1,note=batch"
        )


def test_a_share_is_the_total_over_the_devices(sheet):
    record = read_csv(sheet("devices,batch,latency_s\n1,64,1\n4,64,0.5\n"), columns="size_per_device=batch/devices")
    assert {p.cell.size for p in record.programs} == {64}
    assert record.sweeps[0].plan.path == "strong"


def test_a_target_said_twice_is_not_overwritten(sheet):
    path = sheet("devices,latency_s,total,part\n1,5,8,8\n2,4,8,4\n")
    with pytest.raises(RecordError, match="size=part: size was said before; only note may be repeated"):
        read_csv(path, columns="size=total,size=part")


@pytest.mark.parametrize("text", ["latency_s\n5\n4\n", "devices,latency_s\n,5\n,4\n"])
def test_a_series_without_a_count_is_told_how_to_state_it(sheet, text):
    path = sheet(text)
    with pytest.raises(RecordError, match=r"column 'devices' is .* or devices=8 where all rows have 8"):
        read_csv(path)
    assert {p.cell.num_devices for p in read_csv(path, columns="devices=8").programs} == {8}


@pytest.mark.parametrize("name", ["nodes", "GPUs per node", "batch_size"])
def test_a_setting_that_differs_within_a_cell_is_not_averaged(sheet, name):
    path = sheet(f"devices,latency_s,{name}\n8,0.3,1\n8,0.2,2\n4,0.5,4\n")
    with pytest.raises(RecordError, match=f"differ in {name} .* would be mixed.*strategy={name} to compare"):
        read_csv(path)


GRID = "devices,{},latency_s\n"


@pytest.mark.parametrize(
    ("column", "rows", "path"),
    [
        ("size", ((1, 512), (2, 1024)), "weak"),
        ("size", ((1, 512), (2, 512)), "strong"),
        ("size_per_device", ((1, 512), (2, 512)), "weak"),
        ("size_per_device", ((1, 512), (2, 256), (4, 128)), "strong"),
        # A full grid of one kind, where some sizes of the other kind meet by chance.
        ("size_per_device", tuple((n, s) for s in (16, 64) for n in (1, 2, 4)), "weak"),
        ("size", tuple((n, s) for s in (1000, 4000) for n in (1, 2, 4)), "strong"),
        # One count has no series along the counts.
        ("size", ((8, 10), (8, 20)), "strong"),
    ],
)
def test_the_path_is_inferred_where_sizes_form_one_series(sheet, column, rows, path):
    text = GRID.format(column) + "".join(f"{n},{s},0.5\n" for n, s in rows)
    assert read_csv(sheet(text)).sweeps[0].plan.path == path


@pytest.mark.parametrize("rows", [((1, 1), (1, 2), (2, 2)), ((1, 8), (2, 6))])
def test_the_path_is_asked_for_where_sizes_form_both_series_or_none(sheet, rows):
    text = GRID.format("size") + "".join(f"{n},{s},0.5\n" for n, s in rows)
    with pytest.raises(RecordError, match="Say --scaling strong"):
        read_csv(sheet(text))


def test_a_program_without_collectives_is_taken_at_its_word(sheet):
    path = sheet("devices,latency_s\n1,0.5\n2,0.3\n")
    facts = from_record(read_csv(path, columns="collective=none")).facts
    assert all(one.collectives_known and one.can_rule_out_communication for one in facts.values())
    assert [one.work for one in facts.values()] == [1.0, 0.5]


def test_work_says_nothing_about_collectives(sheet):
    facts = from_record(read_csv(sheet("devices,latency_s,work\n1,0.5,10\n2,0.3,5\n"))).facts
    assert not any(one.collectives_known or one.can_rule_out_communication for one in facts.values())


def test_one_device_may_lack_the_collective_that_more_have(sheet):
    text = "devices,latency_s,collective\n1,0.5,none\n2,0.3,all_reduce\n4,0.2,{}\n"
    facts = from_record(read_csv(sheet(text.format("all_reduce")))).facts
    assert [one.collectives_known for one in facts.values() if one] == [True]
    with pytest.raises(RecordError, match="line 4: the collective is none, but all_reduce on an earlier line"):
        read_csv(sheet(text.format("none")))


def test_collectives_of_two_kinds_are_not_mixed(sheet):
    text = "devices,message_bytes,latency_s,collective\n2,8,1e-5,all_reduce\n4,8,2e-5,all_gather\n"
    with pytest.raises(RecordError, match="line 3: the collective is all_gather, but all_reduce on an earlier line"):
        read_csv(sheet(text))


def test_a_collective_on_one_device_exchanges_nothing(sheet):
    with pytest.raises(RecordError, match="every collective was timed on 1 device"):
        read_csv(sheet("devices,message_bytes,latency_s\n1,8,1e-5\n1,16,1e-5\n"))
