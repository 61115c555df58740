"""Any CSV file as a record: what columns mean, which rows are taken, what is refused."""

import math

import numpy as np
import pytest
from breakeven.data.catalog import open_record
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError
from breakeven.fit.launches import from_record
from breakeven.model.cell import Cell
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture
def csv(tmp_path):
    """Write lines into a file and return its path."""

    def write(*lines, name="runs.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding=encoding)
        return path

    return write


def latencies(record):
    """Seconds by (n, S), averaged by hand."""
    cells = {(p.launch, p.program): p.cell for p in record.programs}
    found = {}
    for visit in record.visits:
        cell = cells[visit.launch, visit.program]
        found.setdefault((cell.num_devices, cell.size), []).extend(t * 1e-9 for t in visit.latency_ns)
    return {key: sum(values) / len(values) for key, values in found.items()}


def test_named_columns_are_taken_unasked(csv):
    record = read_csv(csv("devices,size,latency_s", "1,100,0.5", "2,100,0.25"))
    assert latencies(record) == {(1, 100): 0.5, (2, 100): 0.25}
    plan = record.sweeps[0].plan
    assert (plan.path, plan.objective, plan.devices, plan.sizes) == ("strong", "time", (1, 2), (100,))
    assert record.sweeps[0].foreign
    assert not record.sweeps[0].synthetic


@pytest.mark.parametrize(
    ("header", "value", "columns", "seconds"),
    [
        ("ms", "250", "latency_s=ms/1e3", 0.25),
        ("us", "250000", "latency_s=us*1e-6", 0.25),
        ("rate", "4", "latency_s=1/rate", 0.25),
        ("rate", "4", "latency_s=1/rate*3", 0.75),
        ("rate", "4", "latency_s=6/rate/2", 0.75),
        ("step time", "0.25", "latency_s=step time", 0.25),
        ("ms/step", "250", "latency_s=ms/step/1e3", 0.25),
        ("ms/step", "250", 'latency_s="ms/step"/1e3', 0.25),
        ("t/1e3", "0.25", "latency_s=t/1e3", 0.25),  # a column of exactly that name wins over arithmetic
        ("1/rate", "0.25", "latency_s=1/rate", 0.25),
        ('"time, s"', "0.25", 'latency_s="time, s"', 0.25),
    ],
)
def test_expressions(csv, header, value, columns, seconds):
    record = read_csv(csv(f"gpus,{header}", f"1,{value}", f"2,{value}"), columns=f"devices=gpus,{columns}")
    assert latencies(record) == pytest.approx({(1, 1): seconds, (2, 1): seconds}, rel=1e-8)


def test_columns_and_where_take_mappings(csv):
    path = csv("gpus,ms,run by,kind", '1,500,"me, too",a', '2,250,"me, too",a', "2,1,you,a")
    record = read_csv(path, columns={"devices": "gpus", "latency_s": "ms/1e3"}, where={"run by": "me, too"})
    assert latencies(record) == {(1, 1): 0.5, (2, 1): 0.25}


def test_a_constant_stands_for_a_column(csv):
    path = csv("devices,size,latency_s", "1,64x64,0.5", "2,64x64,0.25")
    with pytest.raises(RecordError, match=r"line 2, column 'size': '64x64' is no number.*size=1"):
        read_csv(path)
    assert latencies(read_csv(path, columns="size=1")) == {(1, 1): 0.5, (2, 1): 0.25}


def test_where_takes_rows_by_value_number_or_part(csv):
    path = csv("devices,latency_s,variant,batch", "1,1,mean;a=1,8", "1,9,p99;a=2,8.0", "2,1,mean;a=3,16")
    assert latencies(read_csv(path, where="variant~mean,batch=8")) == {(1, 1): 1.0}
    assert latencies(read_csv(path, where="variant=p99;a=2")) == {(1, 1): 9.0}
    with pytest.raises(RecordError, match=r"no row is left with batch=32; batch holds 8 \(1 row\)"):
        read_csv(path, where="batch=32")
    with pytest.raises(RecordError, match=r"--where batsh=8: no such column.*devices, latency_s, variant, batch"):
        read_csv(path, where="batsh=8")
    with pytest.raises(RecordError, match="no such column"):
        read_csv(path, where="batch")


def test_where_tells_a_blank_from_a_text(csv):
    path = csv("devices,latency_s,flags", "1,1,", "2,3,FAST=1")
    with pytest.raises(RecordError, match=r"flags: \(blank\) \(1 row\), FAST=1 \(1 row\)"):
        read_csv(path)
    assert latencies(read_csv(path, where="flags=")) == {(1, 1): 1.0}
    assert latencies(read_csv(path, where="flags=FAST=1")) == {(2, 1): 3.0}


def test_mixed_text_is_refused_with_values_and_the_way_out(csv):
    path = csv("devices,latency_s,workload,source", "1,1,gmean,a", "2,1,gmean,b", "1,2,matmul,c", "2,2,matmul,d")
    message = (
        r"rows that differ in workload would be mixed \(workload: gmean \(2 rows\), matmul \(2 rows\)\)\. "
        r"Take one with --where workload=gmean .*--columns strategy=workload .*replicate=workload"
    )
    with pytest.raises(RecordError, match=message):
        read_csv(path)
    record = read_csv(path, where="workload=gmean")
    assert record.sweeps[0].plan.workload == "gmean"
    compared = read_csv(path, columns="strategy=workload")
    assert compared.sweeps[0].plan.strategies == ("gmean", "matmul")
    assert compared.sweeps[0].plan.workload == "runs"


def test_an_unmentioned_setting_is_refused(csv):
    path = csv("devices,latency_s,batch", "1,1,8", "2,1,8", "1,2,16", "2,2,16")
    with pytest.raises(RecordError, match=r"differ in batch \(8 \(2 rows\), 16 \(2 rows\)\).*--columns size=batch"):
        read_csv(path)
    assert len(latencies(read_csv(path, columns="size=batch", scaling="strong"))) == 4
    assert latencies(read_csv(path, columns="replicate=batch")) == {(1, 1): 1.5, (2, 1): 1.5}


def test_counters_and_measured_quantities_are_no_settings(csv):
    path = csv("devices,latency_s,run,flops", "1,1,0,17", "2,1,0,18", "1,2,1,19", "2,2,1,20")
    assert latencies(read_csv(path)) == {(1, 1): 1.5, (2, 1): 1.5}


def test_repeats_of_a_collective_may_tell_its_flops(csv):
    path = csv("devices,latency_s,message_bytes,flops", "2,1e-3,1024,256", "2,2e-3,1024,256", "4,1e-3,1024,512")
    record = read_csv(path, columns="flops=flops")
    assert {p.cell.num_devices: p.facts.flops for p in record.programs} == {2: 256, 4: 512}
    path = csv("devices,latency_s,message_bytes,flops", "2,1e-3,1024,256", "2,2e-3,1024,255", "4,1e-3,1024,512")
    with pytest.raises(RecordError, match="line 3: flops is 255, but 256"):
        read_csv(path, columns="flops=flops")


def test_equal_replicates_that_differ_elsewhere_are_refused(csv):
    path = csv("devices,latency_s,replicate,delay", "1,1,0,0", "2,1,0,0.5", "1,2,0,0.5", "2,2,0,0.1")
    with pytest.raises(RecordError, match=r"lines 2 and 4 have the same devices, size and replicate \(0\).*delay"):
        read_csv(path)
    assert len(read_csv(path, where="delay=0.5").visits) == 2


def test_rounds_hold_replicates_as_calls(csv):
    path = csv(
        "devices,latency_s,round,replicate",
        *(f"{n},{n + r + c / 10},{r},{c}" for n in (1, 2) for r in (0, 1) for c in (0, 1, 2)),
    )
    record = read_csv(path)
    assert [len(v.latency_ns) for v in record.visits] == [3] * 4
    # The median of a visit, then the mean over rounds.
    assert from_record(record).latency_s[:, 0] == pytest.approx([1.6, 2.6])


def test_repeats_without_a_replicate_column_are_rounds(csv):
    record = read_csv(csv("devices,latency_s", "1,1", "1,2", "1,6", "2,1"))
    table = from_record(record)
    assert not table.replicated
    assert table.foreign
    assert table.latency_s[:, 0] == pytest.approx([3.0, 1.0])  # unbalanced


def test_launches_replicate_only_when_each_is_complete(csv):
    lines = ["1,1,a", "2,3,a", "1,1.5,b", "2,3.5,b"]
    whole = from_record(read_csv(csv("devices,latency_s,job", *lines), columns="launch=job"))
    assert whole.replicated
    assert whole.latency_s.tolist() == [[1, 1.5], [3, 3.5]]
    part = from_record(read_csv(csv("devices,latency_s,job", *lines[:3]), columns="launch=job"))
    assert not part.replicated
    assert part.latency_s.tolist() == [[1.25], [3]]


def test_three_whole_launches_replicate_and_a_broken_one_is_left_out(csv):
    lines = [f"{n},{n + 0.1 * i},{name}" for i, name in enumerate("abc") for n in (1, 2)]
    table = from_record(read_csv(csv("devices,latency_s,job", *lines, "1,9,broken"), columns="launch=job"))
    assert (table.replicated, table.num_launches, table.excluded_launches) == (True, 3, 1)
    assert table.latency_s == pytest.approx(np.array([[1, 1.1, 1.2], [2, 2.1, 2.2]]))


def test_scaling_must_be_said_when_sizes_leave_a_choice(csv):
    path = csv("devices,size,latency_s", "1,100,1", "2,200,1", "2,100,1", "4,400,1")
    with pytest.raises(RecordError, match=r"holds several sizes.*--scaling strong .*--scaling weak"):
        read_csv(path)
    weak = read_csv(path, scaling="weak").sweeps[0].plan
    assert (weak.path, weak.objective, weak.sizes) == ("weak", "throughput", (50, 100))
    strong = read_csv(path, scaling="strong").sweeps[0].plan
    assert (strong.path, strong.objective, strong.sizes) == ("strong", "time", (100, 200, 400))
    with pytest.raises(RecordError, match="must be 'strong' or 'weak', got 'loud'"):
        read_csv(path, scaling="loud")


def test_a_file_may_say_its_scaling(csv):
    path = csv("devices,size,latency_s,scaling", "1,100,1,weak", "2,200,1,weak")
    assert read_csv(path).sweeps[0].plan.sizes == (100,)


def test_size_per_device(csv):
    path = csv("devices,rows,latency_s", "1,100,1", "4,100,1")
    record = read_csv(path, columns="size_per_device=rows")
    assert record.sweeps[0].plan.path == "weak"
    assert sorted(latencies(record)) == [(1, 100), (4, 400)]
    strong = read_csv(path, columns="size_per_device=rows", scaling="strong")
    assert strong.sweeps[0].plan.sizes == (100, 400)
    several = csv("devices,rows,latency_s", "1,100,1", "4,200,1")
    with pytest.raises(RecordError, match="holds several sizes"):
        read_csv(several, columns="size_per_device=rows")
    with pytest.raises(RecordError, match="give size or size_per_device, not both"):
        read_csv(path, columns="size=rows,size_per_device=rows")
    both = csv("devices,size,size_per_device,latency_s", "2,100,50,1")
    with pytest.raises(RecordError, match="has size and size_per_device; say which"):
        read_csv(both)


def test_weak_sizes_must_divide(csv):
    path = csv("devices,size,latency_s", "1,100,1", "3,100,1")
    with pytest.raises(RecordError, match=r"line 3: size 100 is no multiple of 3 devices.*size_per_device=size"):
        read_csv(path, scaling="weak")
    # On the strong path a device's share need not be whole.
    assert from_record(read_csv(path)).cells[1].size_per_device == pytest.approx(100 / 3)


def test_fractional_sizes_need_a_unit(csv):
    path = csv("devices,size,latency_s", "1,0.1,1", "2,0.3,1")
    with pytest.raises(RecordError, match=r"line 2: size is 0.1, which is not a whole number.*size=NAME\*1e6"):
        read_csv(path, scaling="strong")
    # 0.1 * 1000 and 0.3 * 1000 are whole only up to rounding.
    assert read_csv(path, columns="size=size*1000", scaling="strong").sweeps[0].plan.sizes == (100, 300)


def test_sizes_far_apart(csv):
    big = 10**12 * 7 + 1
    path = csv("devices,size,latency_s", "1,7,1", f"1,{big},1", f"2,{2**53 + 1},1")
    table = from_record(read_csv(path, scaling="strong"))
    assert table.sizes() == (7, big, 2**53 + 1)
    with pytest.raises(RecordError, match=r"it must lie between"):
        read_csv(csv("devices,size,latency_s", "1,1e30,1"), scaling="strong")


def test_message_rows_are_chains_of_one_collective(csv):
    path = csv(
        "devices,bytes,latency_s,collective", "2,0,1e-5,all_gather", "2,4096,2e-5,all_gather", "4,4096,3e-5,all_gather"
    )
    record = read_csv(path, columns="message_bytes=bytes")
    table = from_record(record)
    cell = Cell(role="chain", strategy="as-written", num_devices=4, size=1, k=1, payload_bytes=4096)
    assert table.row(cell) == pytest.approx([3e-5])
    (collective,) = table.facts[cell].collectives
    assert (collective.kind, collective.count, collective.message_bytes, collective.group_size) == (
        "all-gather",
        1,
        4096,
        4,
    )
    # A message of 0 bytes is a message.
    assert {c.payload_bytes for c in table.cells} == {0, 4096}
    assert record.sweeps[0].plan.probes


def test_message_rows_read_as_all_reduce_when_nothing_is_said(csv):
    record = read_csv(csv("devices,message_bytes,latency_s", "2,8,1e-5"))
    assert record.programs[0].facts.collectives[0].kind == "all-reduce"


def test_message_column_is_not_taken_for_the_size_too(csv):
    record = read_csv(csv("devices,size,latency_s", "2,8,1e-5", "2,16,1e-5"), columns="message_bytes=size")
    assert record.sweeps[0].plan.sizes == (1,)


def test_unknown_collective(csv):
    path = csv("devices,message_bytes,latency_s,collective", "2,8,1e-5,none")
    with pytest.raises(RecordError, match="holds 'none', which is none of all-gather, all-reduce"):
        read_csv(path)


def test_roles_and_work(csv):
    path = csv("devices,latency_s,role,message_bytes,work", "2,1,workload,,50", "2,.5,local,,50", "2,.1,chain,64,0")
    table = from_record(read_csv(path))
    assert [c.role for c in table.cells] == ["workload", "local", "chain"]
    assert [table.facts[c].work for c in table.cells] == [50, 50, 0]
    assert read_csv(path).sweeps[0].plan.controls
    with pytest.raises(RecordError, match="line 2: role is 'worker'; it must be one of workload, local"):
        read_csv(csv("devices,latency_s,role", "2,1,worker"))
    with pytest.raises(RecordError, match="line 2: a chain row needs message_bytes"):
        read_csv(csv("devices,latency_s,role", "2,1,chain"))
    with pytest.raises(RecordError, match=r"line 3: work is 60.* but 50.* on an earlier line"):
        read_csv(csv("devices,latency_s,work", "2,1,50", "2,1,60"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2,,", r"line 3, column 'latency_s': blank, but latency_s is needed in every row"),
        ("2,fast,", r"line 3, column 'latency_s': 'fast' is no number"),
        ("2,NaN,", r"line 3, column 'latency_s': 'NaN' is no finite number"),
        ("2,inf,", r"line 3, column 'latency_s': 'inf' is no finite number"),
        ("2,0,", r"line 3: latency_s is 0; a time must be above 0"),
        ("2,-1e-3,", r"line 3: latency_s is -0.001; a time must be above 0.*smaller than their noise.*measure longer"),
        ("2,3e-9,", r"line 3: latency_s is 3e-09 s; .* below 100 ns. Is the unit right"),
        ("1.5,1,", r"line 3: devices is 1.5, which is not a whole number\."),
        ("0,1,", r"line 3: devices is 0; it must lie between 1 and"),
        (",1,", r"line 3, column 'devices': blank"),
        ("2", r"line 3: 1 values, but the header names 3 columns"),
        ("2,1,a,b", r"line 3: 4 values, but the header names 3 columns"),
    ],
)
def test_a_bad_row_is_named(csv, row, message):
    with pytest.raises(RecordError, match=message):
        read_csv(csv("devices,latency_s,note", "1,1,x", row))


def test_zero_under_a_fraction(csv):
    with pytest.raises(RecordError, match="line 2, column 'rate': 0 under a fraction gives no latency_s"):
        read_csv(csv("devices,rate", "1,0"), columns="latency_s=1/rate")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (None, r"column 'latency_s' is missing. The columns are devices, ms; .*--columns latency_s=NAME"),
        ("latency_s=s", r"no column 's' \(from --columns latency_s=s\). The columns are devices, ms"),
        ("latency_s=s/1e3", r"no column 's' \(from"),
        ("latency=ms", r"'latency' is none of devices, latency_s"),
        ("latency_s", r"write NAME=COLUMN"),
        ("latency_s=ms/0", r"a factor of 0"),
    ],
)
def test_bad_columns_are_explained(csv, columns, message):
    with pytest.raises(RecordError, match=message):
        read_csv(csv("devices,ms", "1,2"), columns=columns)


def test_a_blank_column_is_said_to_be_blank(csv):
    with pytest.raises(RecordError, match=r"column 'latency_s' is blank in every row.*latency_s=1/throughput"):
        read_csv(csv("devices,latency_s,throughput", "1,,2", "2,,3"))


def test_bad_files(csv, tmp_path):
    with pytest.raises(RecordError, match=r"nowhere\.csv: No such file"):
        read_csv(tmp_path / "nowhere.csv")
    with pytest.raises(RecordError, match="empty; the first line must name the columns"):
        read_csv(csv(""))
    with pytest.raises(RecordError, match="no rows below the header"):
        read_csv(csv("devices,latency_s"))
    with pytest.raises(RecordError, match="line 1: column 'a' stands there twice"):
        read_csv(csv("a,a", "1,2"))
    with pytest.raises(RecordError, match="not UTF-8"):
        read_csv(csv("devices,latency_s,note", "1,1,µ", encoding="latin-1"))
    with pytest.raises(RecordError, match="no comma-separated file"):
        read_csv(csv("devices,latency_s", '1,"1'))


def test_byte_order_mark_blank_lines_and_spaces(csv):
    path = csv("devices , latency_s", "", " 1, 2", "", encoding="utf-8-sig")
    assert latencies(read_csv(path)) == {(1, 1): 2.0}


def test_one_count_is_readable(csv):
    assert from_record(read_csv(csv("devices,latency_s", "4,1"))).devices() == (4,)


def test_open_record_reads_csv_with_its_options(csv):
    path = csv("n,ms,kind", "1,2,a", "1,3,b")
    record = open_record(path, columns="devices=n,latency_s=ms/1e3", where="kind=b", scaling="strong")
    assert latencies(record) == {(1, 1): pytest.approx(3e-3)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.dictionaries(
        st.tuples(st.integers(1, 10_000), st.integers(1, 10**12)), st.floats(1e-6, 1e5), min_size=1, max_size=12
    )
)
def test_every_cell_comes_back_with_its_time(tmp_path, rows):
    path = tmp_path / "any.csv"
    path.write_text("devices,size,latency_s\n" + "".join(f"{n},{s},{t!r}\n" for (n, s), t in rows.items()))
    table = from_record(read_csv(path, scaling="strong"))
    assert len(table.cells) == len(rows)
    for cell, (seconds,) in zip(table.cells, table.latency_s, strict=True):
        # Whole nanoseconds are stored.
        assert math.isclose(seconds, rows[cell.num_devices, cell.size], abs_tol=0.51e-9, rel_tol=1e-12)
