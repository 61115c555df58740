"""Tables that are not plain CSV files, and values that are no numbers."""

import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError

COLUMNS = "devices=gpus,latency_s=ms/1e3"
EXPECTED = {1: 0.41, 2: 0.23}


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\ngpus;ms\n1;410,0\n2;230,0\n",
        '"sep=;"\ngpus;ms\n1;410\n2;230\n',
        "| gpus | ms |\n|------|----:|\n| 1 | 410 |\n| 2 | 230 |\n",
        "gpus|ms\n1|410\n2|230\n",
        "gpus ms\n1 410\n2 230\n",
        "gpus     ms\n1       410\n2       230\n",
        "# gpus ms\n1.0e+00 4.1e+02\n2.0e+00 2.3e+02\n",
    ],
)
def test_a_table_is_read_however_its_values_are_parted(sheet, times, text):
    assert times(read_csv(sheet(text), columns=COLUMNS)) == pytest.approx(EXPECTED)


def test_two_blanks_part_values_whose_names_hold_one(sheet):
    """As the OSU benchmarks print, names in a comment."""
    path = sheet("# Allreduce Latency Test\n# Size       Avg Latency(us)\n4        25.31\n1024     31.77\n")
    record = read_csv(path, columns="devices=4,message_bytes=Size,latency_s=Avg Latency(us)/1e6")
    assert {p.cell.payload_bytes for p in record.programs} == {4, 1024}


def test_lines_keep_their_numbers_in_every_layout(sheet):
    path = sheet("| gpus | ms |\n|---|---|\n| 1 | 410 |\n| 2 | fast |\n")
    with pytest.raises(RecordError, match="line 4, column 'ms': 'fast' is no number"):
        read_csv(path, columns=COLUMNS)


def test_blanks_that_part_nothing_are_said_to(sheet):
    path = sheet("gpus  ms\n1  410\n2\n")
    with pytest.raises(RecordError, match=r"no column 'gpus' .*blanks part values where every line has as many"):
        read_csv(path, columns=COLUMNS)


def test_one_column_may_have_blanks_in_its_name(sheet, times):
    assert times(read_csv(sheet("step time\n5\n4\n"), columns="devices=1,latency_s=step time")) == {1: 4.5}


def test_all_names_that_stand_twice_are_told(sheet):
    """As nccl-tests print: out of place, then in place."""
    path = sheet("#  size   type  time  busbw  time  busbw\n  1024  float  20.1   0.09  19.8   0.09\n")
    with pytest.raises(RecordError, match=r"line 1: columns 'time', 'busbw' stand there twice\. Give each a name"):
        read_csv(path, columns="devices=8,message_bytes=size,latency_s=time/1e6")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            "1,OOM\n2,310\n4,170\n",
            r"line 2, column 'ms': 'OOM' is no number\. Where there is no value.*leave the row out",
        ),
        ("1,410\n2,n/a\n4,n/a\n", r"line 3.*'n/a'.*leave the row out \(a # in front.*\) \(as on lines 3, 4\)"),
        ("1,5.1 s\n2,8.4 s\n", r"line 2.*'5.1 s' is no number\. Write 5.1 alone; its unit .* latency_s=ms/1e3"),
        ("1,fast\n2,slow\n", r"line 2.*'fast' is no number\. Name another column for latency_s"),
        ('1,"1,410"\n2,830\n', r"line 2.*'1,410' is no number\. Write it with nothing between thousands"),
    ],
)
def test_a_value_that_is_no_number_is_told_with_what_helps(sheet, rows, message):
    with pytest.raises(RecordError, match=message):
        read_csv(sheet(f"gpus,ms\n{rows}"), columns=COLUMNS)


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        ("bs*gpus/img/s", 64 * 2 / 512),
        ("gpus*bs/img/s", 64 * 2 / 512),
        ("1e3*bs*gpus/img/s/1e3", 64 * 2 / 512),
        ("1/img/s/gpus", 1 / 512 / 2),
        ("bs/img/s*gpus*3", 3 * 64 * 2 / 512),
        ('bs*"gpus"/"img/s"', 64 * 2 / 512),
    ],
)
def test_columns_multiply_and_divide(sheet, times, expression, seconds):
    path = sheet("gpus,bs,img/s\n2,64,512\n")
    assert times(read_csv(path, columns=f"devices=gpus,latency_s={expression}")) == pytest.approx(
        {2: seconds}, abs=1e-9
    )


def test_what_names_several_columns_is_no_word(sheet):
    with pytest.raises(RecordError, match=r"no column 'gpus\*ms' \(from --columns launch=gpus\*ms\)"):
        read_csv(sheet("gpus,ms\n1,2\n"), columns=f"{COLUMNS},launch=gpus*ms")


def test_a_product_of_counts_stays_whole(sheet):
    big = 2**53 + 1
    record = read_csv(sheet(f"gpus,ms,local\n2,5,{big}\n"), columns=f"{COLUMNS},size=local*gpus")
    assert record.programs[0].cell.size == 2 * big
