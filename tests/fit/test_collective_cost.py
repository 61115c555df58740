"""The cost of communication by three routes."""

import numpy as np
import pytest
from breakeven.fit.collective_cost import Route, chain_route, collective_costs, difference_route, replay_route
from breakeven.fit.input_transfer import input_transfers
from breakeven.model.cell import Cell
from breakeven.model.program import Collective, ProgramFacts

ALPHA, BETA = 5e-6, 2e-9


def truth(n, size):
    return 10e-6 * n, collective(n, 1000), 100e-6


def collective(n, message_bytes):
    """A linear all-reduce: n - 1 steps of the whole message."""
    return (n - 1) * (ALPHA + BETA * message_bytes)


def probes(devices=(2, 4, 8), payloads=(250, 1000, 4000), replay=1.0, chain=1.0):
    cells = {}
    for n in devices:
        for payload in payloads:
            for k in (1, 4, 16):
                cell = Cell(role="chain", strategy="jit", num_devices=n, size=1000, k=k, payload_bytes=payload)
                cells[cell] = 12e-6 * n + k * chain * collective(n, payload)
        cells[Cell(role="replay", strategy="jit", num_devices=n, size=1000)] = 12e-6 * n + replay * collective(n, 1000)
    return cells


def facts(*collectives, devices=(2, 4, 8)):
    program = ProgramFacts(collectives=collectives)
    return {Cell(role="workload", strategy="jit", num_devices=n, size=1000): program for n in devices}


@pytest.fixture
def sweep(make_table, make_all_reduce):
    def make(*, collectives=None, payloads=(250, 1000, 4000), replay=1.0, chain=1.0, **options):
        found = (make_all_reduce(1000),) if collectives is None else collectives
        extra = probes(payloads=payloads, replay=replay, chain=chain)
        options = {"path": "strong", "cell_sd": 0.01} | options
        return make_table(truth, extra=extra, facts=facts(*found), **options)

    return make


def test_three_routes_agree_where_they_measure_the_same(sweep):
    # Nine intervals at once: at 95 % one of them would often miss.
    answers = collective_costs(sweep(), "jit", 1000, confidence=0.999)
    assert [a.num_devices for a in answers] == [2, 4, 8]
    for answer in answers:
        for route in (answer.chain, answer.replay, answer.difference):
            low, high = route.interval
            assert low < collective(answer.num_devices, 1000) < high
    assert answers[-1].agree is True
    assert answers[-1].reason == "no difference detected between chain, replay, workload − local"


def test_agreement_is_denied_seldom_where_it_holds(sweep):
    denied = [collective_costs(sweep(seed=s), "jit", 1000, largest=2)[0].agree for s in range(200)]
    # Holm keeps 5 %: 10 of 200 in the mean, binomial sd 3.1.
    assert denied.count(False) <= 20


def test_a_hidden_half_of_the_communication_is_said(sweep):
    answer = collective_costs(sweep(chain=2, replay=2), "jit", 1000)[-1]
    assert answer.agree is False
    assert "chain exceeds workload − local by a factor of 2" in answer.reason
    assert answer.reason.count("misses what overlaps") == 1


def test_payload_between_probes_is_exact_under_a_linear_cost(sweep, make_all_reduce):
    table = sweep(collectives=(make_all_reduce(1750),), cell_sd=0)
    np.testing.assert_allclose(chain_route(table, "jit", 8, 1000).seconds.mean(), collective(8, 1750), rtol=0.05)


def test_loops_and_operands_are_counted(sweep, make_all_reduce):
    table = sweep(collectives=(make_all_reduce(count=3, operands=(1000, 250)),), cell_sd=0, launch_sd=0)
    route = chain_route(table, "jit", 4, 1000)
    np.testing.assert_allclose(route.seconds, 3 * (collective(4, 1000) + collective(4, 250)))


def test_small_payloads_are_extrapolated_and_large_ones_refused(sweep, make_all_reduce):
    small = chain_route(sweep(collectives=(make_all_reduce(4),), cell_sd=0, launch_sd=0), "jit", 8, 1000)
    np.testing.assert_allclose(small.seconds, collective(8, 4))
    assert small.note == "extrapolated to 4 B from 250..4000 B"
    large = chain_route(sweep(collectives=(make_all_reduce(5000),)), "jit", 8, 1000)
    assert large.seconds is None
    assert large.note == "a payload of 5000 B lies outside the probed 250..4000 B"
    single = chain_route(sweep(collectives=(make_all_reduce(4),), payloads=(250,)), "jit", 8, 1000)
    assert "a payload of 4 B lies outside" in single.note


def test_why_a_chain_says_nothing(sweep, make_table, make_all_reduce):
    gather = Collective(
        kind="all-gather", count=1, operands=1, message_bytes=1000, operand_bytes=(1000,), group_size=None
    )
    pairs = Collective(kind="all-reduce", count=1, operands=1, message_bytes=1000, operand_bytes=(1000,), group_size=2)
    reasons = {
        "the compiled program has no collective": sweep(collectives=()),
        "unknown trip count": sweep(collectives=(make_all_reduce(count=None),)),
        "did not probe all-gather": sweep(collectives=(gather,)),
        "spans 2 devices, the chain 8": sweep(collectives=(pairs,)),
        "collectives of the compiled program are not known": make_table(truth, extra=probes(), path="strong"),
        "no chain of collectives was measured": make_table(truth, facts=facts(make_all_reduce(9)), path="strong"),
    }
    for reason, table in reasons.items():
        route = chain_route(table, "jit", 8, 1000)
        assert route.seconds is None
        assert reason in route.note


def test_replay_is_freed_of_its_dispatch(make_table):
    cells = probes(payloads=())
    np.testing.assert_allclose(
        replay_route(make_table(truth, extra=probes(), path="strong", cell_sd=0, launch_sd=0), "jit", 8, 1000).seconds,
        collective(8, 1000),
    )
    table = make_table(truth, extra=cells, path="strong", cell_sd=0, launch_sd=0)
    route = replay_route(table, "jit", 8, 1000)
    assert route.note == "replay less null"
    np.testing.assert_allclose(route.seconds, collective(8, 1000) + 2e-6 * 8)
    bare = make_table(truth, extra=cells, path="strong", roles=("workload",))
    assert "neither chain nor null" in replay_route(bare, "jit", 8, 1000).note


def test_one_route_cannot_agree_with_itself(make_table):
    answer = collective_costs(make_table(truth, path="strong"), "jit", 1000)[-1]
    assert answer.agree is None
    assert answer.reason == "fewer than two routes were measured"
    assert answer.replay.estimate is None
    assert answer.replay.reason == "no replay was measured"


def test_two_launches_give_costs_and_no_verdict_on_them(sweep):
    answer = collective_costs(sweep(launches=2), "jit", 1000)[-1]
    assert answer.agree is None
    assert answer.reason == "fewer than three launches"
    assert answer.chain.estimate > 0


def test_a_refused_control_is_the_reason_of_the_difference(make_table):
    table = make_table(truth, path="strong", roles=("workload",), refused="bytes differ")
    assert difference_route(table, "jit", 8, 1000).note == "bytes differ"


def test_input_transfer_is_paired_by_launch(make_table):
    extra = {
        Cell(role="workload", strategy=strategy, num_devices=n, size=1000): seconds
        for n in (4, 8)
        for strategy, seconds in (("pmap", 300e-6), ("pmap-unplaced", 400e-6))
    }
    strategies = ("jit", "pmap", "pmap-unplaced")
    table = make_table(truth, path="strong", extra=extra, strategies=strategies, cell_sd=0.01, launch_sd=0.3)
    (answer,) = input_transfers(table)
    assert (answer.strategy, answer.placed, answer.num_devices) == ("pmap-unplaced", "pmap", 8)
    assert answer.share.interval[0] < 0.25 < answer.share.interval[1]
    # The launches differ by 30 %, the paired share does not.
    assert answer.share.interval[1] - answer.share.interval[0] < 0.05
    assert input_transfers(table, largest=4)[0].num_devices == 4
    assert input_transfers(table, size=7) == ()
    assert input_transfers(make_table(truth)) == ()


def test_a_replay_starts_where_the_chain_of_its_own_payload_does(make_table, make_all_reduce):
    """A chain of large buffers has a large intercept, which must not be taken off the replay of a small one."""
    own = {250: 20e-6, 1000: 40e-6, 4000: 400e-6}
    extra = {
        Cell(role="chain", strategy="jit", num_devices=2, size=1000, k=k, payload_bytes=v): own[v]
        + k * collective(2, v)
        for v in own
        for k in (1, 16)
    }
    extra[Cell(role="replay", strategy="jit", num_devices=2, size=1000)] = own[1000] + collective(2, 1000)
    workload = Cell(role="workload", strategy="jit", num_devices=2, size=1000)
    facts = {workload: ProgramFacts(collectives=(make_all_reduce(1000),))}
    options = {"path": "strong", "extra": extra, "facts": facts, "cell_sd": 1e-9, "launch_sd": 0}
    table = make_table(truth, devices=(1, 2), sizes=(1000,), **options)
    np.testing.assert_allclose(replay_route(table, "jit", 2, 1000).seconds, collective(2, 1000), rtol=1e-4)


def test_a_cost_below_zero_is_none_and_a_difference_may_be():
    seconds = -8e-3 * (1 + 0.01 * np.arange(6))
    cost = Route(seconds=seconds, note="replay less the chain's intercept").estimate(0.95)
    assert (cost.estimate, cost.reason) == (None, "replay less the chain's intercept; the data push it below 0")
    assert Route(seconds=seconds, cost=False).estimate(0.95).estimate == pytest.approx(seconds.mean())
