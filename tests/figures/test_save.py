"""The folder: which files, which fonts, which captions, and why a figure is missing."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from breakeven.figures import save_all
from breakeven.figures.captions import causes
from breakeven.fit.answer import BreakEven, Curve, Estimate, LawReport, Part
from msgspec.structs import replace
from PIL import Image


def names(paths):
    return sorted(path.name for path in paths)


def test_everything_is_written_and_listed(make_answer, tmp_path):
    paths = save_all(make_answer(max_devices=16), tmp_path / "new" / "folder")
    assert names(paths) == sorted(os.listdir(tmp_path / "new" / "folder"))
    assert names(paths) == [
        *("break-even-sizes.csv", "break-even.pdf", "break-even.png"),
        *("captions.md", "causes.csv", "causes.pdf", "causes.png"),
        *("measured.csv", "predicted.csv", "scaling.pdf", "scaling.png"),
    ]
    for path in paths:
        if path.suffix == ".pdf":
            content = path.read_bytes()
            assert content.startswith(b"%PDF")
            assert b"/Type3" not in content
            assert b"/CIDFontType2" in content  # TrueType, embedded
        if path.suffix == ".png":
            with Image.open(path) as image:
                pixels = np.asarray(image.convert("L"))
            assert min(pixels.shape) > 400
            assert 0.01 < (pixels < 250).mean() < 0.9
            assert (pixels[[0, -1]] > 250).all()  # nothing runs out at the top or the bottom


def test_the_same_answer_gives_the_same_files(make_answer, tmp_path):
    answer = make_answer()
    for folder in ("a", "b"):
        save_all(answer, tmp_path / folder)
    for name in os.listdir(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_one_scaling_figure_for_all_strategies(make_answer, tmp_path):
    strategies = ("jit", "pmap-unplaced")
    paths = save_all([make_answer(strategies=strategies, strategy=s) for s in strategies], tmp_path)
    assert "scaling.pdf" in names(paths)
    assert {"causes-jit.pdf", "causes-pmap-unplaced.pdf", "break-even-jit.png"} <= set(names(paths))
    assert len(pd.read_csv(tmp_path / "measured.csv")) == 2 * 5 * 4


def test_a_cause_with_several_sources_names_them_by_counts(make_answer):
    table = pd.DataFrame({"cause": "communication", "num_devices": [1, 2, 4], "source": ["A/A", "timed", "timed"]})
    assert "communication: A/A on 1, timed on 2, 4." in causes(make_answer(), table, narrow=False)


def test_dollars_in_names_are_no_formula(make_answer, tmp_path):
    # As formulas these would not even parse.
    names_of = ("a $y^{$ b", "$x_{$")
    answers = [make_answer(strategies=names_of, strategy=name, objective="throughput") for name in names_of]
    assert save_all([replace(answer, unit="rows $_{$") for answer in answers], tmp_path)


def test_tables_are_read_back(make_answer, tmp_path):
    answer = make_answer()
    save_all(answer, tmp_path)
    table = pd.read_csv(tmp_path / "predicted.csv")
    assert len(table) == len(answer.predictions)
    assert table["latency_s"].tolist() == [p.latency_s.estimate for p in answer.predictions]


def captions(answer, folder, **options):
    save_all(answer, folder, **options)
    return (folder / "captions.md").read_text(encoding="utf-8")


def test_captions_say_what_is_drawn(make_answer, tmp_path):
    text = captions(make_answer(max_devices=16, shared=True, synthetic=True), tmp_path)
    assert "Time per call of sin-reduce against devices, 8,000 elements (strong scaling)." in text
    assert "Points: measured, 95% intervals (Student t over 6 launches; 180 rounds)." in text
    assert "Lines: prediction (ring, per-device), bands: its intervals, dashed outside the measured counts." in text
    assert "Dotted: ideal scaling from 1 device of jit." in text
    assert "Sources: dispatch: workload - local;" in text
    assert "Diamonds: break-even sizes, 95% intervals" in text
    assert "Hatched: outside the measured range." in text
    assert text.count("Synthetic: the samples were simulated.") == 3
    assert text.count("Your 8 devices share 2 cores") == 3
    assert "Not drawn" not in text


def test_captions_say_nothing_that_is_not_drawn(make_answer, tmp_path):
    text = captions(make_answer(path="weak", objective="throughput", counts=(1, 2, 3), max_devices=3), tmp_path)
    assert "Throughput of sin-reduce against devices, 8,000 elements per device (weak scaling)." in text
    assert "Lines join the points." in text
    for words in ("Synthetic", "share 2 cores", "dashed", "Hatched", "Grey", "prediction"):
        assert words not in text


def test_without_replication_the_caption_says_so(make_answer, tmp_path):
    text = captions(make_answer(interval=False), tmp_path)
    assert "Points: measured, without intervals (replication unknown)." in text
    assert "Lines: prediction (ring, per-device)." in text
    for words in ("95%", "bands", "bold"):
        assert words not in text


def test_the_caption_names_the_laws_that_were_kept(make_answer, tmp_path):
    law = LawReport(
        name="log, per-device",
        misfit=0.01,
        held_out_size=0.01,
        held_out_count=0.02,
        baseline_held_out=0.1,
        discrepancy=0.02,
        judged=True,
        adequate=True,
        kept=True,
    )
    laws = (law, replace(law, name="linear, per-device", kept=False))
    assert "Lines: prediction (log, per-device), bands" in captions(replace(make_answer(), laws=laws), tmp_path)


def test_no_ideal_line_without_the_reference_point(make_answer, tmp_path):
    answer = make_answer()
    text = captions(replace(answer, curves=tuple(without_first_count(c) for c in answer.curves)), tmp_path)
    assert "Dotted" not in text


def without_first_count(curve: Curve) -> Curve:
    return replace(curve, num_devices=curve.num_devices[1:], latency_s=curve.latency_s[1:])


def test_what_cannot_be_drawn_is_left_out_with_the_reason(make_answer, tmp_path):
    text = captions(make_answer(sizes=(1000,), parts={}), tmp_path)
    assert "- Causes (jit): no cause's time is known: no controls or probes were measured." in text
    assert "- Break-even map (jit): one size was measured: no map over sizes; measure another with --sizes." in text
    assert not list(tmp_path.glob("causes*"))
    assert not list(tmp_path.glob("break-even*"))


def test_the_answers_own_reason_is_passed_on(make_answer, tmp_path):
    nothing = Estimate(reason="no local control: the program has a loop of unknown trip count")
    part = Part(latency_s=nothing, share=nothing, source="none")
    text = captions(replace(make_answer(), causes={2: {"compute": part, "dispatch": part}}), tmp_path)
    assert "no cause's time is known: no local control: the program has a loop" in text


def test_one_count_and_no_measurement(make_answer, tmp_path):
    one = make_answer(counts=(4,), max_devices=4)
    assert "only the reference count was measured" in captions(one, tmp_path / "one")
    answer = make_answer()
    bare = replace(answer, curves=(), predictions=(), causes={}, break_even=without_sizes(answer.break_even))
    paths = save_all(bare, tmp_path / "bare")
    assert names(paths) == ["captions.md"]
    assert "Scaling: nothing was measured at size 8000" in paths[0].read_text()


def without_sizes(found: BreakEven) -> BreakEven:
    return replace(found, sizes=())


def test_a_map_without_any_break_even_size(make_answer, tmp_path):
    answer = make_answer()
    text = captions(replace(answer, break_even=without_sizes(answer.break_even)), tmp_path)
    assert "Diamonds" not in text
    assert (tmp_path / "break-even.pdf").exists()
    assert not (tmp_path / "break-even-sizes.csv").exists()


def test_narrow_venues_stand_panels_above_each_other(make_answer, tmp_path):
    text = captions(make_answer(), tmp_path, venue="icml2024_half")
    assert "Top: seconds by cause" in text
    assert "Bottom: shares" in text
    with Image.open(tmp_path / "causes.png") as image:
        width, height = image.size
    assert height > width
    assert width == pytest.approx(3.25 * 200, abs=2)


def test_mistakes_are_explained_before_anything_is_written(make_answer, tmp_path):
    folder = tmp_path / "none"
    with pytest.raises(ValueError, match="answers is empty"):
        save_all([], folder)
    with pytest.raises(ValueError, match=r"answers differ in size \(4000, 8000\); draw them apart"):
        save_all([make_answer(), make_answer(sizes=(1000, 4000))], folder)
    with pytest.raises(ValueError, match="venue 'nature' is not known"):
        save_all(make_answer(), folder, venue="nature")
    assert not folder.exists()


def test_no_window_is_opened_and_no_figure_is_kept(make_answer, tmp_path):
    code = (
        "import pickle, sys; from pathlib import Path; answer = pickle.loads(Path(sys.argv[1]).read_bytes());"
        "from breakeven.figures import save_all; save_all(answer, sys.argv[2]);"
        "import matplotlib.pyplot as plt; assert plt.get_fignums() == []"
    )
    (tmp_path / "answer").write_bytes(pickle.dumps(make_answer(sizes=(1000,), parts={})))
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MPLBACKEND")}
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "answer", tmp_path / "out"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
