"""Tables as people keep them: other separators, comments, labels, settings, and which sizes form a series."""

import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError
from breakeven.fit.launches import from_record


@pytest.fixture
def sheet(tmp_path):
    """Write a text into a file and return its path."""

    def write(text):
        path = tmp_path / "sheet.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


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
