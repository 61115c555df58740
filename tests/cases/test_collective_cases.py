"""Collectives timed by themselves, and one that hides in a loop."""

import pytest
from breakeven.cli.render_fit import fit
from breakeven.data.catalog import open_record
from breakeven.data.store import RecordError
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer

RING = "devices=gpus,message_bytes=bytes,latency_s=us/1e6"
FABRIC = "devices=ranks,message_bytes=bytes,latency_s=us/1e6"
NODE = "devices=gpus,message_bytes=bytes,latency_s=ms/1e3"


def law(found, name):
    return next(report for report in found.laws if report.name.startswith(name))


def base(found):
    """What one collective costs beside its steps."""
    return next(p for name, p in found.parameters.items() if "alpha0" in name and p.identified)


def test_a_small_all_reduce_takes_two_microseconds_a_step_of_the_ring(ask):
    found = ask("c27_ring.csv", RING)
    alpha = found.parameters["alpha"]
    assert alpha.estimate == pytest.approx(1.980e-6, rel=1e-3)
    # Standard error 0.047 us with 5 degrees of freedom: t = 2.571.
    assert alpha.interval == pytest.approx((1.980e-6 - 2.571 * 0.047e-6, 1.980e-6 + 2.571 * 0.047e-6), rel=5e-3)
    assert base(found).estimate == pytest.approx(5.56e-6, rel=2e-3)
    assert base(found).interval == pytest.approx((5.56e-6 - 2.571 * 0.42e-6, 5.56e-6 + 2.571 * 0.42e-6), rel=0.02)


def test_linear_growth_is_not_rejected_and_a_logarithm_is(ask):
    found = ask("c27_ring.csv", RING)
    ring, linear, log = (law(found, name) for name in ("ring", "linear", "log"))
    assert ring.adequate
    assert not log.adequate
    assert log.misfit > 5 * ring.misfit
    # The steps of ring and linear differ by a factor only, which no small message shows.
    assert linear.name in ring.indistinguishable_from


def test_the_same_law_on_a_slow_fabric_predicts_128_ranks(ask):
    found = ask("c28_slow_fabric.csv", FABRIC, max_devices=128)
    assert found.parameters["alpha"].estimate == pytest.approx(4.864e-6, rel=1e-3)
    assert base(found).estimate == pytest.approx(17.2e-6, rel=0.01)
    at = next(p for p in found.predictions if p.num_devices == 128)
    assert at.kind == "extrapolated"
    assert at.latency_s.estimate == pytest.approx(1.25e-3, rel=5e-3)
    lower, upper = at.latency_s.interval
    assert lower < 1.25e-3 < upper < 1.3e-3
    assert "not judged on a held-out count" in at.source


def test_measured_counts_stay_measured(ask):
    found = ask("c28_slow_fabric.csv", FABRIC, max_devices=128)
    measured = {p.num_devices: p.latency_s.estimate for p in found.predictions if p.kind == "measured"}
    assert measured == pytest.approx({16: 163e-6, 32: 319e-6, 64: 630e-6})


def test_laws_that_fit_alike_and_differ_elsewhere_predict_nothing(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("ranks,bytes,us\n2,1024,20\n4,1024,40\n")
    found = answer(from_record(open_record(str(path), columns=FABRIC)), max_devices=16)
    at = next(p for p in found.predictions if p.num_devices == 16)
    assert (at.kind, at.latency_s.estimate) == ("refused", None)
    assert "fit these times alike and differ here; measure another count" in at.source


def test_a_loop_of_one_byte_all_reduces_is_latency(data):
    found = answer(from_record(open_record(str(data / "c05_trace.jsonl"))))
    (collective,) = found.collectives
    assert (collective.kind, collective.count, collective.message_bytes) == ("all-reduce", 81, 1)
    communication = found.causes[4]["communication"]
    assert communication.latency_s.estimate == pytest.approx(1.376e-3)
    assert communication.share.estimate == pytest.approx(0.344)
    assert communication.latency_s.estimate / collective.count == pytest.approx(17e-6, rel=0.01)


@pytest.mark.parametrize(("strategy", "best", "cost"), [("shard_map", 4, 0.04), ("pmap", 1, 0.07), ("shard", 1, 0.36)])
def test_of_three_ways_to_shard_only_one_gains_and_by_4_percent(ask, strategy, best, cost):
    found = ask("c05_while_loop.csv", "devices=gpus,latency_s=epoch_s", strategy=strategy)
    optimum = found.optimal_devices
    assert optimum.estimate == best
    assert optimum.set == (1, 4)
    assert optimum.regret[5 - best].estimate == pytest.approx(cost, abs=0.005)
    # One device is within 5 % of the best, whichever way.
    assert optimum.within_tolerance == 1


def test_without_in_switch_reduction_the_bus_bandwidth_is_constant(ask):
    found = ask("c36_in_switch.csv", NODE, where="gpu=H200,in_switch=off")
    assert found.breaks == ()
    assert law(found, "ring").misfit < 0.01
    # The bus bandwidth rises from 363.3 to 365.6 GB/s, so that a twentieth of the time is called a constant.
    assert found.parameters["beta"].estimate == pytest.approx(1 / 364e9, rel=0.05)
    # One payload of 8 GiB: what it takes is its bytes.
    assert not found.parameters.get("alpha")
    assert any("the times follow the bandwidth, and alpha is taken as 0" in warning for warning in found.warnings)


def test_in_switch_reduction_turns_on_at_five_gpus(ask):
    found = ask("c36_in_switch.csv", f"{NODE},strategy=in_switch", where="gpu=H200", strategy="as-is")
    (border,) = found.breaks
    assert (border.axis, border.role, border.below, border.above) == ("count", "chain", 4, 5)
    assert border.factor.estimate < 1
    assert border.changes == "in-switch reduction"
    assert not any(report.adequate for report in found.laws)


def test_a_series_alone_names_no_other_border(ask):
    """It turns on at six GPUs; five counts without a series to compare with are few to prove it."""
    found = ask("c36_in_switch.csv", NODE, where="gpu=B200")
    assert all((border.below, border.above) == (5, 6) for border in found.breaks)


def test_the_latency_of_one_small_payload_is_not_called_bandwidth(ask):
    found = ask("c27_ring.csv", RING)
    assert "beta" not in found.parameters
    assert any("the times follow the latency, and beta is taken as 0" in warning for warning in found.warnings)


def test_more_gpus_that_bring_more_links_are_not_forced_into_one_law(tmp_path):
    """Two nodes, 1 GB, https://github.com/NVIDIA/nccl/issues/1250: every GPU brings a network card of its own."""
    path = tmp_path / "links.csv"
    path.write_text("gpus,nodes,bytes,s\n2,2,1000000000,0.27\n4,2,1000000000,0.13\n8,2,1000000000,0.067\n")
    found = answer(from_record(open_record(str(path), columns="devices=gpus,message_bytes=bytes,latency_s=s")))
    assert any("the bandwidth is not constant over these counts" in warning for warning in found.warnings)
    assert not any(report.adequate for report in found.laws)
    # Neither a latency nor a bandwidth is told from times that no law of the menu allows.
    assert not any(p.identified and p.interval for name, p in found.parameters.items() if name in ("alpha", "beta"))


def test_one_count_on_several_layouts_is_not_averaged(tmp_path):
    """https://github.com/NVIDIA/nccl/issues/569: eight GPUs on 8, 4 and 2 nodes."""
    path = tmp_path / "layouts.csv"
    path.write_text("gpus,nodes,bytes,ms\n8,8,1600000000,363\n8,4,1600000000,173\n8,2,1600000000,132\n")
    with pytest.raises(RecordError, match=r"differ in nodes .* would be mixed.*--columns strategy=nodes"):
        open_record(str(path), columns=NODE)


def test_ranks_that_never_met_are_turned_away(tmp_path):
    """https://github.com/NVIDIA/nccl-tests/issues/107: two tests of one rank each, side by side."""
    path = tmp_path / "alone.csv"
    path.write_text("gpus,bytes,ms,busbw\n1,1024,0.005,0\n1,4096,0.005,0\n")
    with pytest.raises(RecordError, match=r"every collective was timed on 1 device.*each its own rank 0"):
        open_record(str(path), columns=NODE)


def test_a_law_that_misses_the_times_is_called_so_above_its_numbers(tmp_path):
    """A bandwidth reached at large messages alone: eight sizes on one count (synthetic)."""
    times_us = {3: 164, 10: 165, 15: 225, 20: 309, 25: 1540, 28: 7200, 30: 26200, 31: 51400}
    path = tmp_path / "sizes.csv"
    path.write_text("gpus,bytes,us\n" + "".join(f"16,{2**k},{t}\n" for k, t in times_us.items()))
    text = " ".join(fit(answer(from_record(open_record(str(path), columns=RING)))).split())
    head = text[text.index("parameters of the law ring") : text.index("name estimate")]
    assert "no law describes these times; this one is the closest and errs by" in head
    assert "Intervals are as if it held" in head


def test_numbers_of_a_formula_are_said_to_be_ones(tmp_path):
    path = tmp_path / "formula.csv"
    path.write_text("gpus,bytes,us\n" + "".join(f"{n},64,{6 + 4 * (n - 1)}\n" for n in range(2, 9)))
    text = " ".join(fit(answer(from_record(open_record(str(path), columns=RING)))).split())
    assert "alpha 2.00 µs per step of a collective" in text
    assert "no interval: the numbers fit to the last digit (made by a formula, or rounded and too few)" in text
