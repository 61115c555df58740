"""Rates: of calls, of elements on all devices, of elements on one. Which of them gives the time of a call, and when."""

import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError

SHARES = "gpus,bs,{}\n1,64,800\n2,64,{}\n8,64,{}\n"


def read(path, latency, sizes="size_per_device=bs", **options):
    return read_csv(path, columns=",".join(filter(None, ("devices=gpus", f"latency_s={latency}", sizes))), **options)


@pytest.mark.parametrize("rates", [(1400, 4400), (850, 1100), (700, 600)])
@pytest.mark.parametrize("name", ["img/s", "samples_per_sec", "tokensPerSec", "TFLOPS"])
def test_one_over_a_rate_of_elements_is_refused_whether_it_rises_or_falls(sheet, times, name, rates):
    path = sheet(SHARES.format(name, *rates))
    with pytest.raises(RecordError, match=rf"counts elements.*latency_s=SIZE/{name}.*here latency_s=bs\*gpus/{name}\."):
        read(path, f"1/{name}")
    # What the message says is right: each call takes n shares at the rate of all.
    assert times(read(path, f"bs*gpus/{name}")) == pytest.approx({1: 64 / 800, 2: 128 / rates[0], 8: 512 / rates[1]})


def test_one_over_a_rate_of_elements_compares_calls_of_one_size(sheet, times):
    path = sheet("gpus,batch,img/s\n1,512,800\n2,512,1400\n")
    assert times(read(path, "1/img/s", "size=batch")) == pytest.approx({1: 1 / 800, 2: 1 / 1400}, abs=1e-9)


def test_sizes_that_differ_at_one_count_need_the_size_too(sheet):
    path = sheet("gpus,batch,img/s\n1,512,800\n2,512,1400\n1,64,600\n2,64,700\n")
    with pytest.raises(RecordError, match=r"of one size\. .*here latency_s=batch/img/s"):
        read(path, "1/img/s", "size=batch", scaling="strong")


def test_without_a_size_the_ratios_are_right_and_the_reader_is_told(sheet):
    record = read(sheet("gpus,tokens/s\n1,800\n2,700\n"), "1/tokens/s", None)
    (said,) = record.sweeps[0].assumed
    assert "its ratios are those of the rates" in said
    assert "latency_s=SIZE/tokens/s" in said


@pytest.mark.parametrize("name", ["it/s", "steps_per_sec", "batches/s"])
def test_a_rate_of_calls_gives_their_time(sheet, name):
    record = read(sheet(SHARES.format(name, 750, 700)), f"1/{name}")
    assert record.sweeps[0].assumed == ()


def test_a_rate_of_which_nothing_is_known_is_taken_for_calls_and_said_so(sheet):
    (said,) = read(sheet(SHARES.format("rate", 850, 900)), "1/rate").sweeps[0].assumed
    assert "if 'rate' counts calls; if it counts elements, say latency_s=bs*gpus/rate" in said


@pytest.mark.parametrize("name", ["tflops_per_gpu", "img/s/device", "tokens_per_s_per_chip"])
def test_the_rate_of_one_device_is_the_time_of_a_share_that_stays(sheet, times, name):
    path = sheet(SHARES.format(name, 790, 700))
    assert times(read(path, f"1/{name}")) == pytest.approx({1: 1 / 800, 2: 1 / 790, 8: 1 / 700}, abs=1e-9)


def test_the_rate_of_one_device_needs_to_know_what_stays(sheet, times):
    path = sheet("gpus,tflops_per_gpu\n8,142\n64,131\n")
    message = r"rate of one device.*--scaling weak .*if the total stays, latency_s=1/tflops_per_gpu/gpus"
    for scaling in (None, "strong"):
        with pytest.raises(RecordError, match=message):
            read(path, "1/tflops_per_gpu", None, scaling=scaling)
    assert times(read(path, "1/tflops_per_gpu", None, scaling="weak")) == pytest.approx({8: 1 / 142, 64: 1 / 131})
    strong = times(read(path, "1/tflops_per_gpu/gpus", None, scaling="strong"))
    assert strong[8] / strong[64] == pytest.approx(131 * 64 / (142 * 8), rel=1e-4)


def test_the_rate_of_one_device_needs_its_share_where_shares_differ(sheet):
    path = sheet("gpus,batch,img/s/gpu\n1,512,800\n2,512,700\n")
    with pytest.raises(RecordError, match=r"here latency_s=batch/gpus/img/s/gpu"):
        read(path, "1/img/s/gpu", "size=batch")


def test_the_share_over_the_rate_of_all_devices_is_no_time_of_a_call(sheet):
    path = sheet(SHARES.format("img_s", 1500, 5900))
    with pytest.raises(RecordError, match=r"fall 7.4 times .* so bs/img_s is not the time of a call.*bs\*gpus/img_s"):
        read(path, "bs/img_s")
    with pytest.raises(RecordError, match=r"is not the time of a call"):
        read(path, "bs/img_s", scaling="weak")


def test_the_share_over_a_rate_that_hardly_changes_is_told(sheet):
    (said,) = read(sheet(SHARES.format("img_s", 790, 700)), "bs/img_s").sweeps[0].assumed
    assert "takes 'img_s' for the rate of one device; if it is that of all of them, say latency_s=bs*gpus/img_s" in said


TOTAL_AS_SHARE = "gpus,batch,s\n1,1024,1.6\n2,1024,0.83\n8,1024,0.27\n"


def test_times_that_fall_although_each_share_stays_are_asked_about(sheet):
    with pytest.raises(RecordError, match=r"fall 5.9 times from 1 to 8 .* efficiency of 593 %.*say size=batch"):
        read(sheet(TOTAL_AS_SHARE), "s", "size_per_device=batch")


def test_who_insists_is_answered_and_told(sheet):
    record = read(sheet(TOTAL_AS_SHARE), "s", "size_per_device=batch", scaling="weak")
    assert record.sweeps[0].plan.path == "weak"
    (said,) = record.sweeps[0].assumed
    assert "an efficiency of 593 %" in said


def test_a_little_more_than_linear_is_believed(sheet):
    record = read(sheet("gpus,bs,s\n1,64,0.50\n2,64,0.45\n8,64,0.40\n"), "s")
    assert record.sweeps[0].assumed == ()
