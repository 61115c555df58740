"""Does adding devices help? Weak and strong, inside and out of a node, and where the peak lies."""

import pytest
from breakeven.cli.render_predict import predict
from breakeven.data.catalog import open_record
from breakeven.data.store import RecordError
from breakeven.fit.launches import from_record
from breakeven.fit.lawfit import fit_laws
from breakeven.fit.report import answer


def cell(found, num_devices, size=None):
    return next(p for p in found.predictions if p.num_devices == num_devices and p.size == (size or found.size))


@pytest.mark.parametrize(
    ("name", "columns", "devices", "ratio", "efficiency"),
    [
        ("c26_openseq2seq.csv", "size_per_device=batch_per_gpu", 4, 2.27, 0.57),
        ("c26_dlbench.csv", "size=global_batch", 2, 0.82, 0.41),
        ("c26_densedepth.csv", "size=global_batch", 4, 0.90, 0.225),
    ],
)
def test_weak_scaling_is_inferred_and_judged_by_throughput(ask, name, columns, devices, ratio, efficiency):
    found = ask(name, f"devices=gpus,latency_s=step_s,{columns}")
    assert (found.path, found.objective) == ("weak", "throughput")
    at = cell(found, devices)
    assert at.speedup.estimate == pytest.approx(ratio, abs=0.006)
    assert at.efficiency.estimate == pytest.approx(efficiency, abs=0.006)
    (entry,) = found.weak_efficiency
    assert entry.efficiency.estimate == pytest.approx(efficiency, abs=0.006)
    helps = ratio > 1
    assert found.optimal_devices.estimate == (devices if helps else 1)
    assert found.break_even.first.estimate == (devices if helps else None)
    # One run a count: the ratio stands, its interval does not.
    assert found.break_even.first.outcome == "undecided"
    assert at.speedup.interval is None


def test_two_counts_do_not_say_what_the_laws_give_between_them(ask):
    found = ask("c26_openseq2seq.csv", "devices=gpus,latency_s=step_s,size_per_device=batch_per_gpu")
    between = cell(found, 2)
    assert between.source == "damped trend"
    assert 0.789 < between.latency_s.estimate < 1.390


def test_scaling_is_asked_for_where_the_sizes_allow_both(ask):
    with pytest.raises(RecordError, match=r"Say --scaling strong .* or --scaling weak"):
        ask("c47_unet.csv", "devices=gpus,size=batch,latency_s=step_ms/1e3")


UNET = "devices=gpus,size=batch,latency_s=step_ms/1e3"


def test_a_second_gpu_saves_7_percent_at_equal_batch(ask):
    found = ask("c47_unet.csv", UNET, scaling="strong")
    assert 1 - 1 / cell(found, 2).speedup.estimate == pytest.approx(0.07, abs=0.005)
    assert found.optimal_devices.estimate == found.break_even.first.estimate == 2


def test_of_a_batch_that_one_count_ran_no_best_count_is_told(ask):
    found = ask("c47_unet.csv", UNET, scaling="strong")
    alone = found.optimal_by_size[1]
    assert (alone.estimate, alone.set, alone.outcome) == (None, (), "undecided")
    assert "only one count is known at this size" in alone.reason
    rows = [line.split() for line in predict(found).splitlines()]
    assert ["1", "cannot", "tell", "-", "-"] in rows
    assert "  1 elements: cannot tell: only one count is known at this size; measure others\n" in predict(found)
    # Two GPUs never ran a batch of one: what the law gives there lies outside what was measured.
    assert cell(found, 2, 1).kind == "extrapolated"


def test_one_gpu_takes_109_ms_and_145_ms_an_image_and_two_gpus_116_ms_more(table, ask):
    found = ask("c47_unet.csv", UNET, scaling="strong")
    gamma = found.parameters["gamma"]
    assert gamma.estimate == pytest.approx(0.145)
    law = next(
        x
        for x in fit_laws(table("c47_unet.csv", UNET, scaling="strong"), "as-written").laws
        if "ring, per-device" in x.name
    )
    seconds = {(n, size): float(law.latency_s(n, size).item()) for n in (1, 2) for size in (1, 2, 16)}
    assert seconds[1, 1] - gamma.estimate == pytest.approx(0.109)
    assert seconds[2, 2] - seconds[1, 1] == pytest.approx(0.116)
    # Eight images a GPU: 2429 ms on one, 1385 on two.
    assert seconds[1, 16] / seconds[2, 16] == pytest.approx(2429 / 1385, rel=1e-4)


def test_three_points_and_three_parameters_give_no_interval(ask):
    found = ask("c47_unet.csv", UNET, scaling="strong")
    identified = [p for p in found.parameters.values() if p.identified]
    assert identified
    for parameter in identified:
        assert parameter.interval is None
        assert parameter.upper_limit is None
        assert "as many parameters as points" in parameter.reason
    assert all(p.speedup.interval is None for p in found.predictions if p.num_devices == 2)


def test_two_gpus_break_even_where_0_8_images_are_saved_a_gpu(ask):
    (entry,) = ask("c47_unet.csv", UNET, scaling="strong").break_even.sizes
    (root,) = entry.roots
    # Half the images leave the first GPU: 0.8 = S / 2. Between the sizes 1 and 2 the curve is drawn straight in log S.
    assert root.estimate / 2 == pytest.approx(116 / 145, rel=0.01)
    assert root.interval is None
    assert "predicted (ring, per-device)" in root.reason
    assert entry.outcome == "undecided"


DDP = "devices=gpus,latency_s=step_s"


def test_strong_scaling_of_resnet_is_best_on_four_gpus(ask):
    found = ask("c53_ddp_v100.csv", f"{DDP},size=global_batch", where="model=resnet152,sweep=strong")
    assert (found.path, found.size) == ("strong", 64)
    assert found.optimal_devices.estimate == 4
    assert found.optimal_devices.regret[8].estimate == pytest.approx(0.026, abs=0.001)
    assert not found.optimal_devices.at_upper_end


def test_strong_scaling_of_a_transformer_is_best_on_eight_or_more(ask):
    found = ask("c53_ddp_v100.csv", f"{DDP},size=global_batch", where="model=vit_b_16,sweep=strong")
    assert found.optimal_devices.estimate == 8
    assert found.optimal_devices.at_upper_end
    assert found.break_even.last.at_least


def test_the_same_machine_scales_at_95_percent_when_each_gpu_keeps_its_batch(ask):
    found = ask("c53_ddp_v100.csv", f"{DDP},size=global_batch", where="model=resnet152,sweep=weak")
    assert (found.path, found.size) == ("weak", 128)
    at_eight = next(e for e in found.weak_efficiency if e.num_devices == 8)
    assert at_eight.efficiency.estimate == pytest.approx(0.954, abs=0.001)
    assert found.optimal_devices.estimate == 8


@pytest.mark.parametrize("sweep", ["strong", "weak"])
def test_the_batch_of_one_gpu_says_the_same_as_the_global_one(ask, sweep):
    of_one, of_all = (
        ask("c53_ddp_v100.csv", f"{DDP},{column}", where=f"model=resnet152,sweep={sweep}")
        for column in ("size_per_device=batch_per_gpu", "size=global_batch")
    )
    assert of_one == of_all


FFT = "devices=gpus,size=side,latency_s=ms/1e3"


def test_an_fft_that_leaves_its_node_pays_back_between_32_and_64_gpus(ask):
    for size in (512, 1024):
        found = ask("c56_fft.csv", FFT, scaling="strong", size=size)
        assert 32 < found.break_even.first.estimate <= 64
        assert found.optimal_devices.estimate == 128


def test_an_fft_on_powers_of_two_is_answered_on_powers_of_two(ask):
    found = ask("c56_fft.csv", FFT, scaling="strong", size=512)
    counts = {4, 8, 16, 32, 64, 128}
    assert {p.num_devices for p in found.predictions} == set(found.optimal_devices.regret) == counts
    assert set(found.break_even.first.set) == counts - {4} | {None}
    assert all((tie.command, tie.remedy_cost_s) == (None, None) for tie in found.unidentified)


def test_a_small_fft_never_pays_back(ask):
    found = ask("c56_fft.csv", FFT, scaling="strong", size=256)
    assert found.break_even.first.estimate is None
    assert "no count up to 128 beat the reference" in found.break_even.first.reason
    assert found.optimal_devices.estimate == 4


def test_no_single_law_holds_over_the_node_border(ask):
    found = ask("c56_fft.csv", FFT, scaling="strong")
    assert not any(law.adequate or law.kept for law in found.laws)
    (border,) = found.breaks
    assert (border.axis, border.below, border.above) == ("count", 4, 8)
    assert border.p < 0.05
    assert "work per device falls by 2 there, so the rise can only be communication" in border.reason
    assert "communication-bound, indirect evidence" in border.reason
    assert cell(found, 8, 512).latency_s.estimate / cell(found, 4, 512).latency_s.estimate == pytest.approx(
        3.6, abs=0.01
    )


def test_an_fft_without_controls_shows_no_cause(ask):
    found = ask("c56_fft.csv", FFT, scaling="strong")
    assert found.verdict == "undecided"
    assert "no local control was measured" in found.verdict_reason


def test_the_largest_job_on_32_cores_is_not_best_on_four_that_ran_small_ones(tmp_path):
    """Seven runs of an experiment design: few cores on small shares of the data, many on all of it (synthetic)."""
    small = ((4, 15625, 4.72), (4, 21382, 4.88))
    middle = ((12, 50164, 6.71), (12, 55921, 6.72), (12, 61678, 6.67), (16, 61678, 6.84))
    rows = (*small, *middle, (32, 125000, 7.95))
    path = tmp_path / "design.csv"
    path.write_text("devices,size,latency_s\n" + "".join(f"{n},{size},{t}\n" for n, size, t in rows))
    found = answer(from_record(open_record(str(path), scaling="strong")))
    assert cell(found, 4).kind == "extrapolated"
    assert cell(found, 12).kind == "extrapolated"
    assert (found.optimal_devices.estimate, found.optimal_devices.outcome) == (None, "undecided")
    assert "the reference, or every other count, is not known at this size" in found.break_even.first.reason
    assert "optimal devices, 125,000 elements: cannot tell: only one count is known" in predict(found)
