"""Which numeric columns part rows that look alike: settings do, measurements and counters of repeats do not."""

import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("rails", ((16, 1), (16, 2), (16, 4), (16, 8))),
        ("accum_steps", ((4, 1), (4, 2), (8, 4), (8, 8))),
        ("tp", ((8, 1), (8, 2), (8, 3), (16, 1))),
        ("clock_mhz", ((8, 1410), (8, 1200), (16, 1410))),
        ("anything", ((8, 16), (8, 64), (16, 32))),
        ("anything", ((4, 0.5), (4, 1.5), (8, 0.5), (8, 1.5))),
        ("power_limit_w", ((4, 300), (4, 400), (8, 300), (8, 400))),
    ],
)
def test_a_setting_that_differs_within_a_cell_is_refused(sheet, name, rows):
    path = sheet(f"gpus,{name},ms\n" + "".join(f"{n},{value},{100 + n}\n" for n, value in rows))
    with pytest.raises(RecordError, match=f"differ in {name} .* would be mixed.*note={name} if it changes nothing"):
        read_csv(path, columns="devices=gpus,latency_s=ms/1e3")
    assert read_csv(path, columns=f"devices=gpus,latency_s=ms/1e3,note={name}").visits


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epoch", (0, 0, 1, 1)),
        ("global_step", (4, 8, 16, 32)),
        ("run_id", (4, 8, 16, 32)),
        ("attempt", (1, 2, 1, 2)),
        ("loss", (0.5, 0.25, 0.5, 0.25)),
        ("loss_scale", (32768, 65536, 32768, 65536)),
        ("learning_rate", (0.1, 0.01, 0.1, 0.01)),
        ("gpu_util", (97, 98, 97, 98)),
        ("memory_mib", (1024, 2048, 1024, 2048)),
        ("tokens_seen", (1000, 2000, 3000, 4000)),
        ("anything", (1, 2, 1, 3)),
        ("anything", (0.51, 0.52, 0.53, 0.54)),
        ("batch_time", (2, 4, 2, 4)),
    ],
)
def test_repeats_and_measurements_are_averaged(sheet, name, values):
    path = sheet(
        f"gpus,{name},ms\n" + "".join(f"{n},{x},{100 + n}\n" for n, x in zip((1, 1, 2, 2), values, strict=True))
    )
    assert len(read_csv(path, columns="devices=gpus,latency_s=ms/1e3").visits) == 4


def test_a_schedule_in_the_log_of_one_run_is_no_setting(sheet):
    rows = "".join(f"{0.1 if i < 3 else 0.01},{100 + i}\n" for i in range(6))
    assert len(read_csv(sheet(f"momentum,ms\n{rows}"), columns="devices=1,latency_s=ms/1e3").visits) == 6
