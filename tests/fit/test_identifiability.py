"""What a sweep cannot tell apart: the ranks of the usual plans as oracle, and every remedy tried out on new data."""

import numpy as np
import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.schema import Plan
from breakeven.data.simulated import simulated_record
from breakeven.fit.identifiability import unidentified
from breakeven.fit.launches import from_record
from breakeven.fit.lawfit import fit_laws
from breakeven.model.simulate import sample, truth

ONE, THREE = (16384,), (4096, 16384, 65536)


def sweep(*, devices=(1, 2, 4, 8), sizes=ONE, controls=False, probes=False, launches=4, rounds=2, seed=1):
    made = truth("latency", devices=devices, sizes=sizes, controls=controls, probes=probes)
    plan = Plan(
        workload="mine.py:build",
        path="strong",
        objective="time",
        devices=devices,
        sizes=sizes,
        strategies=("jit",),
        visible_devices=max(devices),
        controls=controls,
        probes=probes,
    )
    times = sample(made.times_s, launches=launches, rounds=rounds, calls=3, seed=seed)
    return from_record(simulated_record(plan, made.cells, times, facts=made.facts, cores=64))


def ties(table):
    strategy = table.cells[0].strategy
    return unidentified(table, strategy, fit_laws(table, strategy))


def plain(tmp_path, text):
    file = tmp_path / "times.csv"
    file.write_text(text, encoding="utf-8")
    return from_record(read_csv(file, scaling="strong"))


@pytest.mark.parametrize(
    ("plan", "parameters", "rank"),
    [
        # c0, entry, dispatch, floor, gamma, alpha0, alpha, beta, and of probes c0_probe.
        ({"devices": (1, 2, 4, 8)}, 8, 4),
        ({"devices": (1, 2, 4, 8), "sizes": THREE}, 8, 5),
        ({"devices": (1, 2, 4, 8), "controls": True}, 8, 8),
        ({"devices": (1, 2, 4), "controls": True}, 8, 7),
        ({"devices": (1, 2, 4), "controls": True, "sizes": THREE}, 8, 8),
        ({"devices": (1, 2), "controls": True}, 8, 5),
        ({"devices": (1, 2)}, 8, 2),
        ({"devices": (1, 2, 4, 8), "probes": True}, 9, 8),
        ({"devices": (1, 2, 4, 8), "controls": True, "probes": True}, 9, 9),
    ],
)
def test_one_tie_for_each_missing_rank(plan, parameters, rank):
    assert len(ties(sweep(**plan))) == parameters - rank


@pytest.mark.parametrize("devices", [(1, 2), (1, 2, 4), (1, 2, 4, 8)])
@pytest.mark.parametrize("sizes", [ONE, THREE])
@pytest.mark.parametrize(("controls", "probes"), [(False, False), (True, False), (False, True)])
def test_every_remedy_separates_when_it_is_measured(devices, sizes, controls, probes):
    """The command's own sweep, simulated: the tie is gone from it."""
    for tie in ties(sweep(devices=devices, sizes=sizes, controls=controls, probes=probes)):
        assert tie.command is not None
        words = [word for word in tie.command.split() if not word.startswith("--no-")]
        chosen = dict(zip(words[3::2], words[4::2], strict=False))
        after = sweep(
            devices=tuple(map(int, chosen["--devices"].split(","))),
            sizes=tuple(map(int, chosen["--sizes"].split(","))),
            controls="--no-controls" not in tie.command,
            probes="--no-probes" not in tie.command,
        )
        assert tie.parameters not in [left.parameters for left in ties(after)]


def test_the_central_tie_in_words():
    found = {tie.parameters: tie for tie in ties(sweep())}
    tie = found["alpha", "c0", "dispatch"]
    assert tie.words == "dispatch per device and 2 alpha rise by the same amount from count to count"
    assert tie.causes == ("communication", "dispatch")
    assert tie.remedy == "a local control (the same work without communication)"
    assert (
        tie.command == "breakeven measure mine.py:build --devices 1,2,4,8 --sizes 16384 --strategies jit --no-probes "
        "--launches 6 --budget 22s --platform cpu"
    )


def test_a_file_of_another_tool_is_told_the_same(tmp_path):
    """Nobody compiled its program: one all-reduce is assumed, so that alpha can be named at all."""
    times = "".join(f"{n},{0.1 / n + 0.01 * n},256\n" for n in (1, 2, 4, 8))
    found = {tie.parameters: tie for tie in ties(plain(tmp_path, "devices,latency_s,size\n" + times))}
    assert set(found) == {
        ("floor", "c0"),
        ("alpha0", "entry"),
        ("alpha", "c0", "dispatch"),
        ("beta", "c0", "gamma"),
    }
    assert found["alpha", "c0", "dispatch"].remedy == "a local control (the same work without communication)"
    # Its times are of a machine and a program that no command of ours can run.
    assert {(tie.command, tie.remedy_cost_s) for tie in found.values()} == {(None, None)}


@pytest.mark.parametrize(("collective", "confounded"), [("none", False), ("", True)])
def test_a_file_that_rules_collectives_out_leaves_no_communication_to_confound(tmp_path, collective, confounded):
    rows = "".join(f"{n},{0.1 / n + 0.01 * n},256,{collective}\n" for n in (1, 2, 4, 8))
    found = ties(plain(tmp_path, "devices,latency_s,size,collective\n" + rows))
    assert ("floor", "c0") in [tie.parameters for tie in found]
    names = {name for tie in found for name in tie.parameters}
    assert bool(names & {"alpha0", "alpha", "beta"}) == confounded
    assert any("communication" in tie.causes for tie in found) == confounded


def test_another_count_where_probes_are_dearer():
    (tie,) = ties(sweep(devices=(1, 2, 4), controls=True, rounds=10))
    assert tie.parameters == ("beta", "alpha0", "alpha")
    assert tie.words.startswith("2 and 4 devices are 2 counts, and beta, alpha0 and alpha are 3 costs")
    assert tie.remedy == "a run on 8 devices too"


def test_costs_are_device_seconds_of_the_whole_sweep():
    """By hand: 6 launches that hold 8 devices, start, compile 8 cells, 2 rounds of 8 + 2 calls."""
    table = sweep()
    tie = next(tie for tie in ties(table) if tie.remedy and "local" in tie.remedy)
    measured = table.latency_s.mean(axis=1).sum()
    # The controls' times are taken to be the workload's: an upper bound.
    by_hand = 8 * 6 * (2.0 + 8 * 0.2 + 2 * 10 * 2 * measured)
    assert tie.remedy_cost_s == pytest.approx(by_hand)


def test_nothing_is_dearer_than_needed():
    """Every single addition that separates costs at least as much as the one that was chosen."""
    for tie in ties(sweep(devices=(1, 2), controls=True)):
        assert " and " not in (tie.remedy or "").replace("lengths and payloads", "")


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_and_order_play_no_part(factor):
    from dataclasses import replace

    table = sweep(sizes=THREE)
    scaled = replace(table, latency_s=table.latency_s * factor)
    order = np.random.default_rng(0).permutation(table.num_launches)
    expected = [(tie.parameters, tie.words, tie.remedy) for tie in ties(table)]
    assert [(tie.parameters, tie.words, tie.remedy) for tie in ties(table.take(order))] == expected
    # Where calls take long, start-up no longer decides what is cheapest.
    assert [(tie.parameters, tie.words) for tie in ties(scaled)] == [(p, w) for p, w, _ in expected]


def test_collectives_alone(tmp_path):
    """One count: steps and the collective's base cannot be told apart, and there is no workload to add controls to."""
    rows = "".join(f"4,{1e-5 * (1 + i)},{1024 * 4**i}\n" for i in range(4))
    found = ties(plain(tmp_path, "devices,latency_s,message_bytes\n" + rows))
    assert found
    assert all(tie.remedy is None for tie in found)
