"""Design matrices against times written out by hand for each role, and what a law says nothing about."""

from dataclasses import replace

import numpy as np
import pytest
from breakeven.model.cell import Cell
from breakeven.model.law import MENU, Law, Spread, design, undefined
from breakeven.model.program import Collective, ProgramFacts
from breakeven.model.rank import identify

RING = Law("ring", "per-device")
VALUES = {
    "c0": 3e-6,
    "c0_probe": 5e-6,
    "entry": 7e-6,
    "dispatch": 11e-6,
    "floor": 13e-6,
    "gamma": 17e-9,
    "alpha0": 19e-6,
    "alpha": 23e-6,
    "beta": 29e-9,
}


def cell(role, n, size=800, **more):
    return Cell(role=role, strategy="jit", num_devices=n, size=size, **more)


def all_reduce(payload=1000, count: int | None = 1, operands=1):
    return Collective(
        kind="all-reduce",
        count=count,
        operands=operands,
        message_bytes=payload * operands,
        operand_bytes=(payload,) * operands,
        group_size=None,
    )


ONE_REDUCE = (all_reduce(),)


def facts_of(cells, collectives=ONE_REDUCE):
    return {
        c: ProgramFacts(
            flops=2.0 * c.size_per_device if c.role in ("workload", "local") else 0.0,
            collectives=collectives if c.role in ("workload", "replay") else (),
        )
        for c in cells
    }


def times(law, cells, facts, *, cores=None, values=VALUES):
    found = design(law, cells, facts, cores=cores)
    return found.matrix @ np.array([values[name] for name in found.names])


def test_the_menu_is_every_all_reduce_with_every_compute():
    assert len({law.name for law in MENU}) == len(MENU) == 16


def test_each_role_costs_what_its_program_does():
    cells = [cell(role, 4) for role in ("workload", "local", "null", "replay")]
    cells.append(cell("chain", 4, k=16, payload_bytes=250))
    us = 1e-6
    launch = (3 + 7 + 4 * 11) * us
    compute = 13 * us + 17e-9 * 2 * 800 / 4
    once = 19 * us + 6 * 23 * us + 1500 * 29e-9
    small = 19 * us + 6 * 23 * us + 375 * 29e-9
    expected = [launch + compute + once, launch + compute, launch, launch + 2 * us + once, launch + 2 * us + 16 * small]
    facts = facts_of(cells) | {cells[-1]: None}
    np.testing.assert_allclose(times(RING, cells, facts), expected, rtol=1e-12)


def test_one_device_pays_neither_entry_nor_communication():
    cells = [cell("workload", 1), cell("local", 1), cell("workload", 2)]
    alone, local, _ = times(RING, cells, facts_of(cells))
    assert alone == local == pytest.approx(3e-6 + 11e-6 + 13e-6 + 17e-9 * 1600, rel=1e-12)


def test_the_compute_forms_differ_by_who_shares_the_cores():
    cells = [cell("workload", n) for n in (1, 2, 8)]
    facts = facts_of(cells)

    def gamma(compute):
        found = design(Law("ring", compute), cells, facts, cores=2)
        return found.matrix[:, found.names.index("gamma")]

    np.testing.assert_allclose(gamma("per-device"), [1600, 800, 200])
    np.testing.assert_allclose(gamma("cores-limited"), [1600, 800, 800])
    np.testing.assert_allclose(gamma("constant"), [1600, 1600, 1600])


def test_a_free_compute_time_is_shared_by_cells_of_one_per_device_size():
    cells = [cell("workload", 1, 100), cell("local", 1, 100), cell("workload", 2, 200), cell("workload", 2, 100)]
    found = design(Law("ring", "by-local-size"), cells, facts_of(cells, ()), cores=None)
    assert found.names == ("c0", "entry", "dispatch", "compute[50]", "compute[100]")
    np.testing.assert_array_equal(found.matrix[:, -2:], [[0, 1], [0, 1], [0, 1], [1, 0]])


def test_a_free_collective_time_belongs_to_a_count_and_a_payload():
    cells = [cell("workload", 2), cell("workload", 4), cell("chain", 4, k=4, payload_bytes=1000)]
    facts = facts_of(cells, (all_reduce(count=2, operands=3),)) | {cells[2]: None}
    found = design(Law("free", "per-device"), cells, facts, cores=None)
    assert found.names[-2:] == ("collective[2, 1000]", "collective[4, 1000]")
    np.testing.assert_array_equal(found.matrix[:, -2:], [[6, 0], [0, 6], [0, 4]])


def test_other_kinds_keep_their_own_free_times():
    cells = [cell("workload", 2)]
    gather = replace(all_reduce(), kind="all-gather")
    found = design(Law("free", "per-device"), cells, facts_of(cells, (all_reduce(), gather)), cores=None)
    assert set(found.names[-2:]) == {"collective[2, 1000]", "collective[2, 1000, all-gather]"}


@pytest.mark.parametrize("law", MENU, ids=lambda law: law.name)
def test_columns_say_their_cause_and_none_is_empty(law):
    cells = [cell(role, n) for role in ("workload", "local", "null") for n in (1, 2, 4)]
    found = design(law, cells, facts_of(cells), cores=2)
    assert len(found.names) == len(found.units) == len(found.causes) == found.matrix.shape[1]
    assert np.all(np.any(found.matrix != 0, axis=0))
    null = np.array([c.role == "null" for c in cells])
    silent = np.array([c.role != "workload" or c.num_devices == 1 for c in cells])
    causes = np.array(found.causes)
    assert not found.matrix[np.ix_(null, causes != "dispatch")].any()
    assert not found.matrix[np.ix_(silent, causes == "communication")].any()


def test_a_program_without_collectives_has_no_communication_columns():
    cells = [cell("workload", n) for n in (1, 2, 4)]
    assert "communication" not in design(RING, cells, facts_of(cells, ()), cores=None).causes


def test_data_without_facts_scale_with_the_per_device_size():
    cells = [cell("workload", 1), cell("workload", 8)]
    found = design(RING, cells, {}, cores=None)
    np.testing.assert_allclose(found.matrix[:, found.names.index("gamma")], [800, 100])
    assert "communication" not in found.causes


def test_unknown_work_leaves_only_the_free_form():
    cells = [cell("workload", 2)]
    facts = {cells[0]: ProgramFacts(unknown_trip_counts=True)}
    for compute in ("per-device", "cores-limited", "constant"):
        with pytest.raises(ValueError, match="the work of workload/jit on 2 devices, size 800 is unknown"):
            design(Law("ring", compute), cells, facts, cores=2)
    assert design(Law("ring", "by-local-size"), cells, facts, cores=2).names[-1] == "compute[400]"


def test_a_per_device_size_that_does_not_fix_the_work_has_no_free_form():
    # S x S matrices split by rows: 2 S^3 / n flops.
    cells = [cell("workload", n, size) for n, size in ((1, 512), (2, 1024))]
    facts = {c: ProgramFacts(flops=2 * c.size**3 / c.num_devices) for c in cells}
    reason = undefined(Law("ring", "by-local-size"), cells, facts, cores=2)
    assert reason == "cells of the same per-device size 512 do different work"
    assert undefined(RING, cells, facts, cores=2) is None


def test_cores_that_nobody_recorded_are_not_guessed():
    cells = [cell("workload", 2)]
    with pytest.raises(ValueError, match="the number of cores is not recorded"):
        design(Law("ring", "cores-limited"), cells, facts_of(cells), cores=None)


def test_an_unknown_trip_count_is_named_with_its_cell():
    cells = [cell("workload", 2)]
    with pytest.raises(
        ValueError, match="workload/jit on 2 devices, size 800: an all-reduce runs in a loop of unknown"
    ):
        design(RING, cells, facts_of(cells, (all_reduce(count=None),)), cores=None)


def test_unknown_forms_are_named():
    with pytest.raises(ValueError, match="all_reduce must be one of ring, log, linear, free, got 'tree'"):
        Law("tree", "per-device")
    with pytest.raises(ValueError, match="compute must be one of per-device"):
        Law("ring", "perfect")


def test_a_process_pays_dispatch_for_its_own_devices_only():
    cells = [cell("null", n) for n in (1, 2, 4, 8)]
    found = design(RING, cells, {}, cores=None, spread=Spread(per_process=2, per_node=4))
    values = [VALUES[name] for name in found.names]
    expected = [3e-6 + 11e-6, 3e-6 + 7e-6 + 22e-6, 3e-6 + 7e-6 + 22e-6, 3e-6 + 7e-6 + 22e-6]
    np.testing.assert_allclose(found.matrix @ values, expected, rtol=1e-12)


def test_with_one_device_a_process_dispatch_is_part_of_the_constant():
    cells = [cell("null", n) for n in (1, 2, 4, 8)]
    alone = identify(design(RING, cells, {}, cores=None))
    spread = identify(design(RING, cells, {}, cores=None, spread=Spread(per_process=1)))
    assert alone.identified == {"c0": True, "entry": True, "dispatch": True}
    assert spread.identified == {"c0": False, "entry": True, "dispatch": False}
    assert set(spread.tied[0]) == {"c0", "dispatch"}
    assert spread.ties == (
        "c0 and dispatch multiply the same column; several devices in each process would separate them",
    )


def test_devices_of_one_host_share_its_cores():
    law, size = Law("ring", "cores-limited"), 800
    found = design(
        law,
        [cell("local", n, size * n) for n in (1, 2, 4, 8)],
        {},
        cores=2,
        spread=Spread(per_process=2, per_node=4),
    )
    gamma = found.matrix[:, found.names.index("gamma")]
    # Of 8 devices, 4 on each of two hosts: two cores a host do the work of 4.
    np.testing.assert_allclose(gamma, [size, size, 2 * size, 2 * size])
