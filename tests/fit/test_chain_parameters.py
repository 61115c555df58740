"""Latency and bandwidth from the slopes of chains, where several processes ran a launch."""

from dataclasses import replace

import msgspec
import pytest
from breakeven.fit.answer import Parameter
from breakeven.fit.chain_parameters import with_chains
from breakeven.fit.lawfit import fit_laws
from breakeven.fit.report import answer
from breakeven.model.cell import Cell
from breakeven.model.program import ProgramFacts

REMARK = "from the chains (ring), whose slopes are free of the processes' skew"
ALPHA0, ALPHA, BETA, SKEW = 30e-6, 100e-6, 2e-9, 900e-6
SIZE = 1000
PAYLOADS = (10**4, 4 * 10**4, 16 * 10**4)


def ring_s(n, payload):
    """One all-reduce, step by step."""
    part = payload / n
    return ALPHA0 + sum(ALPHA + part * BETA for _step in range(2 * (n - 1)))


def made(
    make_table,
    make_all_reduce,
    *,
    payloads=PAYLOADS,
    processes=8,
    devices=(1, 2, 4, 8),
    noise=0.002,
    seed=0,
    skew=SKEW,
):
    """A sweep whose every call pays a skew that grows with the processes that take part."""
    chains, facts, own = {}, {}, (payloads or PAYLOADS)[1]
    for n in devices:
        facts |= {
            Cell(role=role, strategy="jit", num_devices=n, size=SIZE): ProgramFacts(
                flops=1e6 / n, collectives=(make_all_reduce(own),) if role == "workload" and n > 1 else ()
            )
            for role in ("workload", "local", "null")
        }
        for payload in payloads if n > 1 else ():
            for k in (1, 4, 16):
                cell = Cell(role="chain", strategy="jit", num_devices=n, size=SIZE, k=k, payload_bytes=payload)
                chains[cell] = 50e-6 + (n - 1) * skew + k * ring_s(n, payload)
                facts[cell] = ProgramFacts(flops=1.0, collectives=(make_all_reduce(payload, count=k),))
    table = make_table(
        lambda n, s: (50e-6, 0.0 if n == 1 else ring_s(n, own) + (n - 1) * skew, 5e-3 / n),
        devices=devices,
        sizes=(SIZE,),
        path="strong",
        extra=chains,
        facts=facts,
        cell_sd=noise,
        launch_sd=0.01,
        seed=seed,
    )
    return replace(table, plan=msgspec.structs.replace(table.plan, processes=processes))


def found(table):
    fits = fit_laws(table, "jit")
    return with_chains(table, "jit", fits, dict(fits.parameters)), fits.parameters


def test_skew_does_not_enter_the_latency(make_table, make_all_reduce):
    ours, of_all_cells = found(made(make_table, make_all_reduce))
    for name, true in (("alpha", ALPHA), ("beta", BETA)):
        assert ours[name].estimate == pytest.approx(true, rel=0.05)
        lower, upper = ours[name].interval
        assert (lower, upper) == pytest.approx((true, true), rel=0.05)
        assert REMARK in ours[name].reason
    # What the fit of all cells makes of the skew is why this is needed.
    assert of_all_cells["alpha"].estimate > 2 * ALPHA


def test_short_messages_leave_the_bandwidth_to_the_other_cells(make_table, make_all_reduce):
    ours, of_all_cells = found(made(make_table, make_all_reduce, payloads=(64, 256, 1024), noise=0.02))
    assert ours["alpha"].estimate == pytest.approx(ALPHA, rel=0.1)
    assert ours.get("beta") == of_all_cells.get("beta")


def test_noise_on_short_messages_does_not_choose_another_algorithm(make_table, make_all_reduce):
    """On 2 and 4 devices ring and linear differ there in the number of steps alone: by a factor of two in alpha."""
    short = {"payloads": (64, 256, 1024), "devices": (1, 2, 4), "skew": 20e-6}
    # A draw in which linear comes closer to the chains by a third.
    table = made(make_table, make_all_reduce, **short, noise=0.005, seed=11)
    fits = fit_laws(table, "jit")
    assert fits.chosen.law.all_reduce == "ring"
    alpha = with_chains(table, "jit", fits, dict(fits.parameters))["alpha"]
    assert alpha.estimate == pytest.approx(ALPHA, rel=0.05)


def test_the_more_precise_fit_speaks_of_the_bandwidth(make_table, make_all_reduce):
    table = made(make_table, make_all_reduce, skew=20e-6)
    fits = fit_laws(table, "jit")
    assert fits.chosen.law.all_reduce == "ring"
    for width, ours in ((1e-13, False), (1e-7, True)):
        theirs = Parameter(estimate=BETA, interval=(BETA - width, BETA + width), identified=True, unit="s/B")
        beta = with_chains(table, "jit", fits, {**fits.parameters, "beta": theirs})["beta"]
        assert (beta is not theirs) == ours


def test_one_process_keeps_the_fit_of_all_cells(make_table, make_all_reduce):
    ours, of_all_cells = found(made(make_table, make_all_reduce, processes=1))
    assert ours == of_all_cells


def test_too_few_slopes_determine_nothing(make_table, make_all_reduce):
    ours, of_all_cells = found(made(make_table, make_all_reduce, devices=(1, 2)))
    assert ours == of_all_cells


def test_a_sweep_without_chains_keeps_the_fit_of_all_cells(make_table, make_all_reduce):
    ours, of_all_cells = found(made(make_table, make_all_reduce, payloads=()))
    assert ours == of_all_cells


def test_the_answer_has_them(make_table, make_all_reduce):
    assert REMARK in answer(made(make_table, make_all_reduce)).parameters["alpha"].reason
