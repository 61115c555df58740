"""The sentinel, and a real launch whose record holds it, the machine, the warm-ups found, and how the launch ended."""

import os

import numpy as np
import pytest
from breakeven.data.store import read
from breakeven.fit.launches import from_record
from breakeven.measure import sentinel, sweep
from breakeven.measure.inventory import SENTINEL_SIDE, sentinel_cells
from breakeven.measure.planning import make_plan
from breakeven.measure.userfile import resolve
from breakeven.measure.warmup import FEWEST, MOST


def test_its_numbers_stay_what_they_are():
    fn, args = sentinel.build(SENTINEL_SIDE)
    once = np.asarray(fn(*args))
    # Every product with the mean gives the mean of each row again: 0.5 on average, as the start has.
    np.testing.assert_allclose(once.mean(), 0.5, rtol=1e-5)
    np.testing.assert_allclose(once, np.asarray(args[0]).mean(axis=1, keepdims=True) + 0 * once, rtol=1e-4)


USER_FILE = """
import jax.numpy as jnp

def build(mesh, size):
    return jnp.sin, (jnp.ones(size),)
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentinel")
    (folder / "mine.py").write_text(
        "import jax.numpy as jnp\ndef build(mesh, size):\n    return jnp.sin, (jnp.ones(size),)\n"
    )
    plan = make_plan(
        resolve(f"{folder}/mine.py:build"), devices=[1], sizes=[64], launches=2, rounds=3, controls=False, probes=False
    )  # fmt: skip
    return read(sweep.run(plan, folder / "sweep.jsonl"))


def test_new_sweeps_have_a_sentinel_and_find_their_warmups(record):
    plan = record.sweeps[0].plan
    assert plan.sentinel
    assert plan.warmups is None
    for launch in record.launches:
        found = {v.warmups for v in record.visits if v.launch == launch.launch}
        assert len(found) == 1
        assert FEWEST <= found.pop() <= MOST


def test_it_is_visited_once_a_round_and_is_no_cell(record):
    (cell,) = sentinel_cells(record.sweeps[0].plan)
    programs = {(p.launch, p.program) for p in record.programs if p.cell == cell}
    rounds = [(v.launch, v.round) for v in record.visits if (v.launch, v.program) in programs]
    assert len(rounds) == len(set(rounds)) == 6
    table = from_record(record)
    assert cell not in table.cells
    assert [one.shape for one in table.sentinel_s] == [(2, 3), (2, 3)]
    for times, seconds in table.sentinel_s:
        assert (np.diff(times) > 0).all()
        assert ((seconds > 1e-6) & (seconds < 1)).all()
    (second,) = table.take(np.array([1])).sentinel_s
    np.testing.assert_array_equal(second, table.sentinel_s[1])


def test_each_launch_says_what_was_around_it(record):
    for launch in record.launches:
        (machine,) = launch.machines
        assert machine.host
        assert set(machine.affinity) == os.sched_getaffinity(0)
        assert machine.clock_resolution_ns is not None
        assert any(one.startswith("XLA_FLAGS=--xla_force_host") for one in machine.variables)
    assert [c.launch for c in record.closings] == [launch.launch for launch in record.launches]
    for closing in record.closings:
        assert closing.seconds > 0
        assert closing.others_busy_cores is not None
        assert closing.clock_jump_s == pytest.approx(0, abs=0.05)
        assert closing.suspended_s == pytest.approx(0, abs=0.05)


def test_a_plan_may_do_without(record):
    plan = make_plan(resolve(record.sweeps[0].plan.workload), devices=[1], sizes=[64], sentinel=False)
    assert sentinel_cells(plan) == ()
