import math

import pytest
from breakeven.data import store
from breakeven.measure import planning, sweep, userfile
from breakeven.measure.devices import MAX_FORCED, Devices
from breakeven.measure.workload import MeasureError, Workload
from hypothesis import assume, given
from hypothesis import strategies as st

HOST = Devices(platform="cpu", count=1, kind="cpu")
GPUS = Devices(platform="gpu", count=4, kind="H200")
MINE = Workload(name="mine.py:build", builds={"as-written": lambda mesh, size: ()})
STRONG = Workload(
    name="products",
    builds={"jit": lambda mesh, size: (), "pmap": lambda mesh, size: ()},
    path="strong",
    unit="rows",
    sizes=(64, 128),
)


def plan(workload=MINE, *, available=HOST, **options):
    return planning.make_plan(workload, available=available, **options)


def test_a_builtins_defaults_complete_the_plan():
    found = plan(STRONG)
    assert (found.workload, found.path, found.objective, found.unit) == ("products", "strong", "time", "rows")
    assert (found.devices, found.sizes, found.strategies) == ((1, 2, 4, 8), (64, 128), ("jit", "pmap"))
    assert (found.launches, found.budget_s, found.rounds, found.visible_devices) == (6, 60.0, None, 8)


def test_the_option_fixes_the_path():
    weak = plan(STRONG, sizes_per_device=[5, 3])
    assert (weak.path, weak.objective, weak.sizes) == ("weak", "throughput", (3, 5))
    assert weak.global_size(8, 5) == 40
    strong = plan(sizes=[32], devices=[4, 2])
    assert (strong.path, strong.objective, strong.devices, strong.visible_devices) == ("strong", "time", (2, 4), 4)
    assert plan(sizes=[32], objective="throughput").objective == "throughput"


def test_a_chosen_strategy_becomes_the_primary():
    assert plan(STRONG, strategies=["pmap"]).strategies == ("pmap",)


def test_rounds_replace_the_default_budget():
    assert plan(sizes=[8], rounds=3).budget_s is None
    assert plan(sizes=[8], rounds=3, budget_s=9).budget_s == 9


def test_elsewhere_all_devices_are_visible_and_defaults_stop_at_what_exists():
    found = plan(STRONG, available=GPUS)
    assert (found.platform, found.devices, found.visible_devices) == ("gpu", (1, 2, 4), 4)
    assert plan(STRONG, available=GPUS, devices=[2]).visible_devices == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"mine.py:build declares no path: give --sizes \(strong path: .*--sizes-per-device \(weak path: "),
        ({"sizes": [8], "sizes_per_device": [8]}, "sizes and sizes_per_device exclude each other: give --sizes"),
        ({"sizes": []}, "no default sizes; its path is strong: give --sizes"),
        ({"sizes": [8, 0]}, "sizes must be positive, got 0"),
        ({"sizes_per_device": [-3]}, "sizes-per-device must be positive, got -3"),
        ({"sizes": [8, 16, 8]}, "sizes: 8 is given twice"),
        ({"sizes": [8], "devices": []}, "devices: give at least one count"),
        ({"sizes": [8], "devices": [1, 0]}, "devices must be positive, got 0"),
        ({"sizes": [8], "devices": [1, 2, 1]}, "devices: 1 is given twice"),
        ({"sizes": [8], "devices": [MAX_FORCED + 1]}, f"{MAX_FORCED + 1} asked for, but at most {MAX_FORCED} host"),
        ({"sizes": [8], "strategies": ["pmap"]}, "mine.py:build has no strategy 'pmap'; it has as-written"),
        ({"sizes": [8], "strategies": []}, "strategies: give each once, of as-written"),
        ({"sizes": [8], "objective": "speed"}, "objective must be time or throughput, got 'speed'"),
        ({"sizes": [8], "launches": 0}, "launches must be at least 1, got 0"),
        ({"sizes": [8], "rounds": 0}, "rounds must be at least 1, got 0"),
        ({"sizes": [8], "calls": 0}, "calls must be at least 1, got 0"),
        ({"sizes": [8], "warmups": -1}, "warmups must be at least 0, got -1"),
        ({"sizes": [8], "queued_calls": 17}, "queued_calls must be from 0 to 16, got 17"),
        ({"sizes": [8], "budget_s": 0.0}, "budget_s must be a positive number of seconds, got 0"),
        ({"sizes": [8], "step_timeout_s": math.inf}, "step_timeout_s must be a positive number of seconds, got inf"),
        ({"sizes": [100]}, r"size 100 \(elements\) does not divide by 8 devices; 96 or 104 does by all counts"),
        ({"sizes": [3], "devices": [2, 4]}, r"size 3 \(elements\) does not divide by 2 devices; 4 does by all counts"),
    ],
)
def test_what_cannot_be_planned_is_said(options, message):
    with pytest.raises(MeasureError, match=message):
        plan(**options)


def test_more_devices_than_exist():
    with pytest.raises(MeasureError, match=r"devices: 8 asked for, but JAX finds 4 \(H200\). Give counts up to 4"):
        plan(STRONG, available=GPUS, devices=[1, 8])


def test_a_visit_never_holds_more_calls_than_the_record_allows():
    with pytest.raises(MeasureError, match="calls and warmups together must be at most 64, got 65"):
        plan(sizes=[8], calls=60, warmups=5)
    with pytest.raises(MeasureError, match=r"at most 64, got 65 \(up to 4 warmups, by a trend test\)"):
        plan(sizes=[8], calls=61)
    assert plan(sizes=[8], calls=60).warmups is None


def test_a_size_need_not_divide_where_the_workload_says_so():
    loose = Workload(name="mine.py:build", builds=MINE.builds, divides=False)
    assert plan(loose, sizes=[101]).sizes == (101,)


def test_sizes_as_they_stand():
    assert planning.parse_sizes("256,512, 1e3") == (256, 512, 1000)


def test_a_range_is_log_spaced_and_rounded_to_what_divides():
    assert planning.parse_sizes("1e3:1e6:4") == (1000, 10_000, 100_000, 1_000_000)
    assert planning.parse_sizes("1e3:1e6:4", (1, 3, 8)) == (1008, 9_984 + 24, 100_008, 1_000_008)
    assert planning.parse_sizes("1e3:1e6:4", (1, 3, 8), divides=False) == (1000, 10_000, 100_000, 1_000_000)
    assert planning.parse_sizes("1:8:9", (8,)) == (8,)
    assert planning.parse_sizes("1:4:9", (8,), divides=False) == (1, 2, 3, 4)
    assert planning.parse_sizes("5:900:1") == (5,)


@pytest.mark.parametrize(
    ("text", "counts", "near"),
    [
        (
            "256:4096:5",
            (7, 9, 11, 13),
            "divides by 7, 9, 11, 13 devices; 9009 is the first that does",
        ),
        ("10000:11000:5", (7, 9, 11, 13), "9009 and 18018 do. Give a range that holds such sizes"),
        ("1:4:9", (8,), "8 is the first that does"),
    ],
)
def test_a_range_without_a_size_that_divides(text, counts, near):
    with pytest.raises(MeasureError, match=near):
        planning.parse_sizes(text, counts)


@given(
    first=st.integers(1, 10**6),
    last=st.integers(1, 10**6),
    number=st.integers(1, 12),
    counts=st.lists(st.integers(1, 12), min_size=1, max_size=4),
)
def test_every_size_of_a_range_divides_and_is_near_its_range(first, last, number, counts):
    first, last = sorted((first, last))
    assume(any(size % math.lcm(*counts) == 0 for size in range(first, min(last, first + math.lcm(*counts)) + 1)))
    sizes = planning.parse_sizes(f"{first}:{last}:{number}", counts)
    multiple = math.lcm(*counts)
    assert 1 <= len(sizes) <= number
    assert list(sizes) == sorted(set(sizes))
    for size in sizes:
        assert all(size % n == 0 for n in counts)
        assert first - multiple < size < last + multiple


@pytest.mark.parametrize("text", ["", "8,x", "8,-3", "8,2.5", "0", "nan", "inf:8:2"])
def test_what_is_no_size(text):
    with pytest.raises(MeasureError, match="is no positive whole number"):
        planning.parse_sizes(text)


@pytest.mark.parametrize("text", ["1:2", "1:2:3:4"])
def test_what_is_no_range(text):
    with pytest.raises(MeasureError, match="a range is FIRST:LAST:HOW_MANY"):
        planning.parse_sizes(text)


def test_a_dry_run_compiles_and_says_what_is_identified(user_file):
    workload = userfile.resolve(user_file())
    asked = plan(workload, sizes_per_device=[8], devices=[1, 2, 4, 8], budget_s=40.0)
    found = planning.describe(asked)
    roles = [c.role for c in found.cells]
    assert {role: roles.count(role) for role in set(roles)} == {
        "workload": 4,
        "local": 4,
        "null": 4,
        "replay": 3,
        # k = 1, 4, 16 at 4 bytes and 1, 16 at 16 bytes, on three counts.
        "chain": 15,
        "sentinel": 1,
    }
    assert found.seconds >= 40.0
    assert found.round_s > 0
    assert 3 <= found.calls <= 32
    assert found.collectives is not None
    assert [(c.kind, c.message_bytes) for c in found.collectives] == [("all-reduce", 4)]
    assert {"dispatch", "alpha", "entry"} <= {name for name, known in found.identifiable.identified.items() if known}
    assert found.failures == ()


def test_a_dry_run_says_what_two_counts_and_no_controls_leave_open(user_file):
    workload = userfile.resolve(user_file())
    asked = plan(workload, sizes_per_device=[8], devices=[1, 2], controls=False, probes=False, rounds=2, launches=1)
    found = planning.describe(asked)
    assert found.identifiable.rank < found.identifiable.num_parameters
    assert found.identifiable.ties
    assert found.seconds == pytest.approx(found.startup_s + 2 * found.round_s)


def test_a_dry_run_of_a_users_mistake(user_file):
    workload = userfile.resolve(user_file("def build(mesh, size):\n    return size / 0\n"))
    with pytest.raises(MeasureError, match=r"(?s)cannot be measured.*in build.*ZeroDivisionError"):
        planning.describe(plan(workload, sizes=[8]))


def test_a_planned_sweep_runs(user_file, tmp_path):
    workload = userfile.resolve(user_file())
    asked = plan(workload, sizes=[8, 16], devices=[1, 2], rounds=1, launches=1, calls=1, queued_calls=0)
    assert sweep.complete_launches(store.read(sweep.run(asked, tmp_path / "s.jsonl"))) == 1
