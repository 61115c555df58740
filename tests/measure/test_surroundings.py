"""What happens around a launch, from two readings of made counters, and around this very process."""

import os
import time
from dataclasses import replace

import pytest
from breakeven.measure.devices import MEASURING
from breakeven.measure.surroundings import Surroundings

BEFORE = Surroundings(
    monotonic_s=100.0,
    wall_s=1e9,
    boot_s=150.0,
    busy_s=40.0,
    stolen_s=1.0,
    all_s=200.0,
    own_s=8.0,
    throttled_s=0.5,
    heat_throttles=3,
    frequency_mhz=(800.0, 900.0),
)
QUIET = replace(BEFORE, monotonic_s=110.0, wall_s=1e9 + 10, boot_s=160.0, busy_s=49.0, own_s=17.0, all_s=220.0)


def closing(**after):
    return BEFORE.closing(replace(QUIET, **after), sweep="s", launch="l")


def test_a_quiet_launch():
    found = closing()
    assert found.seconds == 10
    assert found.others_busy_cores == 0
    assert found.stolen_share == 0
    assert found.throttled_s == 0
    assert found.heat_throttles == 0
    assert found.clock_jump_s == pytest.approx(0, abs=1e-6)
    assert found.suspended_s == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("after", "field", "expected"),
    [
        ({"busy_s": 64.0}, "others_busy_cores", 1.5),
        ({"stolen_s": 2.0}, "stolen_share", 0.05),
        ({"throttled_s": 2.0}, "throttled_s", 1.5),
        ({"heat_throttles": 5}, "heat_throttles", 2),
        ({"wall_s": 1e9 - 3590}, "clock_jump_s", -3600),
        # Asleep for 300 s: the calendar went on, rightly.
        ({"wall_s": 1e9 + 310, "boot_s": 460.0}, "suspended_s", 300),
        ({"wall_s": 1e9 + 310, "boot_s": 460.0}, "clock_jump_s", 0),
        ({"frequency_mhz": (1.0, 2.0)}, "frequency_mhz", (1.0, 2.0)),
        # Without a clock that goes on in sleep, sleep is a jump.
        ({"wall_s": 1e9 + 310, "boot_s": None}, "clock_jump_s", 300),
        ({"boot_s": None}, "suspended_s", None),
        ({"own_s": None}, "others_busy_cores", None),
        ({"busy_s": None}, "others_busy_cores", None),
        ({"all_s": None}, "stolen_share", None),
        ({"throttled_s": None}, "throttled_s", None),
        ({"heat_throttles": None}, "heat_throttles", None),
    ],
)
def test_what_happened(after, field, expected):
    found = getattr(closing(**after), field)
    assert found == (expected if expected is None else pytest.approx(expected, abs=1e-6))


def process(root, pid, parent, times, environment=b"", cores="0,2"):
    """A process of the made tree; ``times``: user, system, and those of children waited for, in ticks."""
    folder = root / f"proc/{pid}"
    folder.mkdir(parents=True)
    fields = " ".join(map(str, times))
    (folder / "stat").write_text(f"{pid} (a) b (c) S {parent} 1 1 0 -1 0 0 0 0 0 {fields} 20 0\n")
    (folder / "environ").write_bytes(environment)
    (folder / "status").write_text(f"Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t{cores}\n")


def test_counters_are_those_of_the_allowed_cores_and_of_this_launch(tmp_path, monkeypatch):
    monkeypatch.setenv(MEASURING, "mine")
    process(tmp_path, 10, 1, (500, 500, 900, 900))  # the parent that watches: what it waited for is over
    process(tmp_path, 11, 10, (100, 20, 3, 4), b"A=1\0" + MEASURING.encode() + b"=mine\0")
    process(tmp_path, 12, 11, (50, 0, 0, 0), MEASURING.encode() + b"=mine\0")
    process(tmp_path, 13, 1, (7000, 0, 0, 0), MEASURING.encode() + b"=another\0")
    process(tmp_path, 14, 1, (9000, 0, 0, 0))
    (tmp_path / "proc/stat").write_text(
        "cpu  9 9 9 9 9 9 9 9 9 9\n"
        "cpu0 100 10 20 800 5 1 2 30 0 0\n"
        "cpu1 1000 0 0 0 0 0 0 0 0 0\n"
        "cpu2 200 0 0 700 0 0 0 0 50 0\n"
        "intr 1\n"
    )
    heat = tmp_path / "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    heat.parent.mkdir(parents=True)
    heat.write_text("4\n")
    found = Surroundings.now(cores=(0, 2), root=tmp_path)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert found.busy_s == pytest.approx((133 + 200) * tick)
    assert found.stolen_s == pytest.approx(30 * tick)
    assert found.all_s == pytest.approx((968 + 900) * tick)
    assert found.own_s == pytest.approx((127 + 50 + 1000) * tick)
    assert found.heat_throttles == 4


def test_processes_on_other_cores_take_no_time_of_these(tmp_path, monkeypatch):
    """Ranks bound to cores of their own, each with a parent that is bound as it is."""
    monkeypatch.setenv(MEASURING, "mine")
    mine = MEASURING.encode() + b"=mine\0"
    for rank, cores in enumerate(("0-1", "2-3")):
        process(tmp_path, 10 + rank, 1, (30, 0, 0, 0), cores=cores)
        process(tmp_path, 20 + rank, 10 + rank, (500, 0, 0, 0), mine, cores=cores)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert Surroundings.now(cores=(0, 1), root=tmp_path).own_s == pytest.approx(530 * tick)
    assert Surroundings.now(cores=(0, 1, 2, 3), root=tmp_path).own_s == pytest.approx(1060 * tick)
    assert Surroundings.now(cores=(0, 1, 2), root=tmp_path).own_s is None
    process(tmp_path, 30, 20, (1, 0, 0, 0), mine, cores="0-3")
    assert Surroundings.now(cores=(0, 1), root=tmp_path).own_s is None


def test_an_empty_tree_says_nothing(tmp_path):
    found = Surroundings.now(cores=(0,), root=tmp_path)
    assert (found.busy_s, found.own_s, found.all_s, found.throttled_s, found.heat_throttles) == (None,) * 5


@pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="no /proc here")
def test_what_this_process_does_is_not_the_others(monkeypatch):
    monkeypatch.delenv(MEASURING, raising=False)
    before = Surroundings.now()
    start = time.process_time()
    while time.process_time() < start + 0.5:
        pass
    after = Surroundings.now()
    assert before.own_s is not None
    assert after.own_s is not None
    # Half a second of work, counted in ticks of 10 ms, by this process or its parent.
    assert after.own_s - before.own_s >= 0.48
