"""What nobody said of the work of a call: taken for granted aloud, or asked for."""

import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError

COLUMNS = "devices=gpus,latency_s=ms/1e3"
PLAIN = "gpus,ms\n1,251\n2,262\n"


def assumed(path, columns=COLUMNS, **options):
    return read_csv(path, columns=columns, **options).sweeps[0].assumed


def test_a_table_without_sizes_is_taken_for_the_same_total_and_says_so(sheet):
    (said,) = assumed(sheet(PLAIN))
    assert said.startswith("no column says how much work a call is: taken as the same total on every count")
    assert "--scaling weak" in said


@pytest.mark.parametrize("scaling", ["strong", "weak"])
def test_what_was_said_is_not_assumed(sheet, scaling):
    assert assumed(sheet(PLAIN), scaling=scaling) == ()
    assert assumed(sheet(PLAIN), columns=f"{COLUMNS},size=1") == ()
    assert assumed(sheet("gpus,ms,flops\n1,251,8\n2,262,4\n"), columns=f"{COLUMNS},flops=flops") == ()
    assert assumed(sheet(f"gpus,ms,scaling\n1,251,{scaling}\n2,262,{scaling}\n")) == ()


@pytest.mark.parametrize("text", ["gpus,ms\n1,251\n1,262\n", "gpus,ms,message_bytes\n2,25,8\n4,26,8\n"])
def test_one_count_and_collectives_alone_need_no_size(sheet, text):
    assert assumed(sheet(text)) == ()


@pytest.mark.parametrize("name", ["imgs_per_gpu", "batch/device", "seqs per rank", "local_batch_size"])
def test_a_share_that_stays_is_asked_about(sheet, name):
    path = sheet(f"gpus,{name},ms\n1,256,251\n2,256,262\n")
    with pytest.raises(RecordError, match=rf"{name}' is 256 on every count.*size_per_device={name} .*--scaling strong"):
        read_csv(path, columns=COLUMNS)
    assert read_csv(path, columns=f"{COLUMNS},size_per_device={name}").sweeps[0].plan.path == "weak"
    assert read_csv(path, columns=COLUMNS, scaling="strong").sweeps[0].plan.path == "strong"


@pytest.mark.parametrize("name", ["cores_per_gpu", "gb_per_gpu", "gpus_per_node", "micro_batch", "batch", "imgs_per_s"])
def test_other_columns_that_stay_are_no_shares(sheet, name):
    assert len(assumed(sheet(f"gpus,{name},ms\n1,256,251\n2,256,162\n"))) == 1


def test_shares_that_shrink_show_that_the_total_stays(sheet):
    assert len(assumed(sheet("gpus,imgs_per_gpu,ms\n1,256,251\n2,128,162\n"))) == 1


TOTAL = "devices,work,latency_s\n1,4e12,40\n2,4e12,21\n4,4e12,12\n"


def test_work_that_stays_as_the_total_does_is_asked_about(sheet):
    with pytest.raises(RecordError, match=r"column 'work' grows with the size.*work=work/devices, or work=work"):
        read_csv(sheet(TOTAL))
    divided = read_csv(sheet(TOTAL), columns="work=work/devices")
    assert [p.facts.work for p in divided.programs] == [4e12, 2e12, 1e12]
    assert [p.facts.work for p in read_csv(sheet(TOTAL), columns="work=work").programs] == [4e12] * 3


@pytest.mark.parametrize(
    "text",
    [
        "devices,work,latency_s\n1,4e12,40\n2,2e12,21\n",
        "devices,size_per_device,work,latency_s\n1,64,4e12,40\n2,64,4e12,41\n",
        "devices,work,latency_s\n2,4e12,40\n2,4e12,21\n",
    ],
)
def test_the_work_of_one_device_is_taken_unasked(sheet, text):
    assert all(p.facts.work for p in read_csv(sheet(text)).programs)
