"""What is drawn: lines, points, labels and ticks, read back from the axes."""

import matplotlib as mpl
import numpy as np
import pytest
from breakeven.figures import scales, style, tables
from breakeven.figures.break_even import draw_break_even
from breakeven.figures.causes import draw_shares, draw_stack
from breakeven.figures.scaling import draw_scaling
from breakeven.fit.answer import Curve, Estimate, Part
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.figure import Figure
from msgspec.structs import replace


@pytest.fixture
def ax():
    with style.context():
        yield Figure(layout="constrained").subplots()


def at_headline(answers):
    measured, predicted = tables.measured(answers), tables.predicted(answers)
    size = answers[0].size
    return measured[measured["size"] == size], predicted[predicted["size"] == size]


def draw(ax, answers, **options):
    answer = answers[0]
    options = {"quantity": "latency_s", "reference_devices": answer.reference_devices, "path": answer.path, **options}
    assert draw_scaling(ax, *at_headline(answers), **options) is ax
    ax.figure.draw_without_rendering()
    return ax


def ticks(axis):
    low, high = sorted(axis.get_view_interval())
    return [t.label1.get_text() for t in axis.get_major_ticks() if low <= t.get_loc() <= high]


def lines(ax, style_):
    return [line for line in ax.lines if line.get_linestyle() == style_]


def test_points_lie_at_the_measured_times(ax, make_answer):
    answer = make_answer(max_devices=16)
    draw(ax, [answer])
    offsets = next(c.get_offsets() for c in ax.collections if len(c.get_offsets()) == 4)
    np.testing.assert_allclose(offsets[:, 0], [1, 2, 4, 8])
    times = [e.estimate * 1e6 for e in answer.curves[-1].latency_s]
    np.testing.assert_allclose(offsets[:, 1], times)


def test_intervals_are_ours_and_not_those_of_a_spread(ax, make_answer):
    answer = make_answer()
    draw(ax, [answer])
    (container,) = ax.containers
    segments = container.lines[2][0].get_segments()
    expected = [[x * 1e6 for x in e.interval] for e in answer.curves[-1].latency_s]
    np.testing.assert_allclose([s[:, 1] for s in segments], expected)


def test_lines_are_dashed_outside_the_measured_counts(ax, make_answer):
    draw(ax, [make_answer(max_devices=16)])
    (solid,) = [line for line in lines(ax, "-") if len(line.get_xdata())]
    (dashed,) = lines(ax, "--")
    assert list(solid.get_xdata()) == list(range(1, 9))
    assert list(dashed.get_xdata()) == list(range(8, 17))
    assert any(isinstance(c, PolyCollection) for c in ax.collections)  # the band


def test_nothing_dashed_where_nothing_was_extrapolated(ax, make_answer):
    draw(ax, [make_answer(max_devices=8)])
    assert not lines(ax, "--")


def test_refused_counts_are_not_drawn(ax, make_answer):
    answer = make_answer()
    nothing = Estimate(reason="the devices share cores")
    refused = tuple(
        p
        if p.kind == "measured"
        else replace(
            p, kind="refused", latency_s=nothing, cost=nothing, speedup=nothing, efficiency=nothing, throughput=nothing
        )
        for p in answer.predictions
    )
    draw(ax, [replace(answer, predictions=refused)])
    (solid,) = lines(ax, "-")
    assert list(solid.get_xdata()) == [1, 2, 4, 8]
    assert not any(isinstance(c, PolyCollection) for c in ax.collections)  # a line through points needs no band


def test_without_intervals_points_alone(ax, make_answer):
    draw(ax, [make_answer(interval=False)])
    assert not ax.containers


def test_one_series_a_strategy_told_apart_by_marker_and_colour(ax, make_answer):
    names = ("jit", "shard_map", "pmap", "pmap-unplaced")
    answers = [make_answer(strategies=names, strategy=name) for name in names[:2]]
    draw(ax, answers)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["jit", "shard_map", "pmap", "pmap (inputs unplaced)", "ideal"]
    points = [c for c in ax.collections if len(c.get_offsets()) == 4]
    assert len(points) == 4
    assert len({tuple(c.get_facecolor()[0]) for c in points}) == 4
    outlines = [c.get_paths()[0].vertices for c in points]
    assert len({(len(outline), round(float(np.abs(outline).sum()), 6)) for outline in outlines}) == 4


def test_the_legend_lies_above_the_data(ax, make_answer):
    draw(ax, [make_answer(strategies=("jit", "pmap"))])
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1


@pytest.mark.parametrize(
    ("path", "quantity", "last"),
    [("strong", "latency_s", 1 / 8), ("weak", "latency_s", 1), ("strong", "throughput", 8), ("weak", "throughput", 8)],
)
def test_the_ideal_line(ax, make_answer, path, quantity, last):
    draw(ax, [make_answer(path=path)], quantity=quantity)
    (ideal,) = lines(ax, ":")
    x, y = ideal.get_data()
    assert (x[0], x[-1]) == (1, 8)
    assert y[-1] / y[0] == pytest.approx(last)
    first = next(c.get_offsets() for c in ax.collections if len(c.get_offsets()) == 4)[0]
    assert y[0] == pytest.approx(first[1])


def test_no_ideal_line_without_its_point(ax, make_answer):
    draw(ax, [make_answer()], reference_devices=3)
    assert not lines(ax, ":")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["jit"]


def test_throughput_is_size_over_time(ax, make_answer):
    answer = make_answer(path="weak", objective="throughput", sizes=(100,))
    draw(ax, [answer], quantity="throughput", unit="rows")
    offsets = next(c.get_offsets() for c in ax.collections if len(c.get_offsets()) == 4)
    expected = [n * 100 / e.estimate / 1e6 for n, e in zip((1, 2, 4, 8), answer.curves[0].latency_s, strict=True)]
    np.testing.assert_allclose(offsets[:, 1], expected)
    assert ax.get_ylabel() == "throughput (M rows/s)"


def test_device_axis_has_integers_on_log2(ax, make_answer):
    draw(ax, [make_answer(max_devices=16)])
    assert ax.get_xscale() == "log"
    assert ax.xaxis.get_transform().base == 2
    assert ticks(ax.xaxis) == ["1", "2", "4", "8", "16"]
    assert ax.get_xlabel() == "devices"


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        (range(1, 513), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
        (range(1, 4097), [1, 4, 16, 64, 256, 1024, 4096]),
        (range(1, 9), [1, 2, 3, 4, 6, 8]),
        ((1, 2, 3, 6), [1, 2, 3, 6]),
        ((3584, 7168, 14336), [3584, 7168, 14336]),
    ],
)
def test_ticks_leave_each_other_room(ax, counts, shown):
    scales.device_axis(ax, counts)
    ax.figure.draw_without_rendering()
    assert ticks(ax.xaxis) == [str(n) for n in shown]


def test_one_count(ax, make_answer):
    draw(ax, [make_answer(counts=(4,), max_devices=4)])
    assert ticks(ax.xaxis) == ["4"]


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [([2e-6, 9e-4], "µs"), ([2e-3, 0.5], "ms"), ([0.4, 90], "s"), ([np.nan, 3e-3], "ms"), ([], "s")],
)
def test_time_units_for_reading(seconds, unit):
    factor, name = scales.time_unit(seconds)
    assert name == unit
    assert factor == {"µs": 1e-6, "ms": 1e-3, "s": 1}[unit]


@pytest.mark.parametrize(
    ("size", "label"),
    [
        (800, "800"),
        (9999, "9999"),
        (10240, "10 Ki"),
        (64 * 2**20, "64 Mi"),
        (640 * 2**20, "640 Mi"),
        (10**6, "1 M"),
        (1_024_000, "1000 Ki"),
        (1_500_000, "1.5 M"),
        (10**10, "10 G"),
        (3 * 10**12, "3 T"),
    ],
)
def test_size_labels(size, label):
    assert scales.size_label(size) == label


def test_a_linear_axis_shows_intervals_whole_up_to_three_times_the_values(ax):
    scales.value_axis(ax, np.array([1.0, 2.0]), [1.5, 3.5])
    assert ax.get_ylim() == pytest.approx((0, 3.85))
    scales.value_axis(ax, np.array([1.0, 2.0]), [1.5, 900.0])
    assert ax.get_ylim() == pytest.approx((0, 6.6))


def test_value_axis_is_linear_from_zero_when_values_are_close(ax):
    scales.value_axis(ax, np.array([1.0, 2.9]))
    assert ax.get_yscale() == "linear"
    assert ax.get_ylim()[0] == 0
    scales.value_axis(ax, np.array([1.0, 3.1]))
    assert ax.get_yscale() == "log"


def test_edges_lie_between_the_values():
    values = np.array([1.0, 2, 8, 9])
    found = scales.edges(values)
    assert (found[:-1] < values).all()
    assert (values < found[1:]).all()
    np.testing.assert_allclose(found[1:3], [2**0.5, 4])
    np.testing.assert_allclose(scales.edges(np.array([4.0])), [8**0.5, 32**0.5])


def bars(ax):
    """(label, bottoms, heights) of each stack."""
    return [
        (c.get_label(), np.array([b.get_y() for b in c]), np.array([b.get_height() for b in c])) for c in ax.containers
    ]


def test_the_stack_adds_up_to_the_measured_time(ax, make_answer):
    answer = make_answer()
    draw_stack(ax, tables.causes([answer]))
    assert [label for label, *_ in bars(ax)] == ["dispatch", "compute", "communication"]
    _, bottom, height = bars(ax)[-1]
    np.testing.assert_allclose(bottom + height, [e.estimate * 1e6 for e in answer.curves[-1].latency_s])
    np.testing.assert_allclose(bars(ax)[1][1], bars(ax)[0][2])  # compute stands on dispatch
    assert ax.get_ylabel() == "time per call (µs)"
    assert ticks(ax.xaxis) == ["1", "2", "4", "8"]


def test_what_no_control_explains_is_unattributed(ax, make_answer):
    answer = make_answer(parts={"dispatch": (0.3, 0.05), "communication": None, "compute": None})
    draw_stack(ax, tables.causes([answer]))
    (_, _, dispatch), (label, bottom, rest) = bars(ax)
    assert label == "unattributed"
    np.testing.assert_allclose(bottom, dispatch)
    np.testing.assert_allclose(rest, dispatch * 7 / 3)


def test_a_negative_difference_hangs_below_zero(ax, make_answer):
    parts = {"dispatch": (0.3, 0.05), "communication": (0.8, 0.1), "compute": (-0.1, -0.07)}
    draw_stack(ax, tables.causes([make_answer(parts=parts)]))
    stack = {label: (bottom, height) for label, bottom, height in bars(ax)}
    assert (stack["compute"][1] < 0).all()
    assert (stack["compute"][0] == 0).all()
    np.testing.assert_allclose(stack["communication"][0], stack["dispatch"][1])  # not on the negative one


def test_shares_have_our_intervals(ax, make_answer):
    draw_shares(ax, tables.causes([make_answer()]))
    ax.figure.draw_without_rendering()
    assert [line.get_label() for line in ax.lines if line.get_marker() in style.MARKERS] == [
        "dispatch",
        "compute",
        "communication",
    ]
    segments = ax.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose([s[:, 1] for s in segments], [[0.25, 0.35]] * 4)
    assert "20%" in ticks(ax.yaxis)


def test_shares_without_intervals_are_points(ax, make_answer):
    draw_shares(ax, tables.causes([make_answer(interval=False)]))
    assert not ax.containers
    assert ax.lines[0].get_ydata() == pytest.approx([0.3] * 4)


def test_an_input_transfer_is_a_cause_of_its_own(ax, make_answer):
    parts = {"dispatch": (0.3, 0.05), "communication": (0.1, 0.1), "compute": (0.2, 0.07), "input-transfer": (0.4, 0.1)}
    draw_stack(ax, tables.causes([make_answer(parts=parts)]))
    assert [label for label, *_ in bars(ax)] == ["dispatch", "compute", "communication", "input-transfer"]


def draw_map(ax, answer):
    draw_break_even(
        ax,
        tables.predicted([answer]),
        tables.break_even_sizes([answer]),
        reference_devices=answer.reference_devices,
        size_label="size",
    )
    ax.figure.draw_without_rendering()


def test_the_map_shows_log2_speedups_about_one(ax, make_answer):
    answer = make_answer()
    draw_map(ax, answer)
    (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
    shown = mesh.get_array()
    by_place = {(p.size, p.num_devices): p.speedup.estimate for p in answer.predictions}
    expected = [[np.log2(by_place[s, n]) for n in range(2, 9)] for s in answer.sizes]
    np.testing.assert_allclose(shown, expected)
    low, high = mesh.get_clim()
    assert low == -high  # white is break-even
    assert ticks(ax.yaxis) == ["500", "1000", "2000", "4000", "8000"]
    assert set(ticks(ax.xaxis)) >= {"2", "4", "8"}
    bar = ax.figure.axes[1]
    assert bar.get_ylabel() == "speedup against 1 device"
    assert "1×" in ticks(bar.yaxis)


def test_break_even_sizes_stand_on_top_with_intervals_open_at_the_border(ax, make_answer):
    draw_map(ax, make_answer())
    (diamonds,) = [line for line in ax.lines if line.get_marker() == "D"]
    assert list(diamonds.get_xdata()) == [2, 4, 8]
    np.testing.assert_allclose(diamonds.get_ydata(), [960, 1920, 3840])
    segments = np.array(next(c for c in ax.collections if not isinstance(c, QuadMesh)).get_segments())
    np.testing.assert_allclose(segments[:2, :, 1], [[800, 1200], [1600, 2400]])
    assert segments[2, 1, 1] == pytest.approx(ax.get_ylim()[1])  # no upper end: to the border


def test_a_size_that_nothing_bounds_is_not_drawn(ax, make_answer):
    answer = make_answer()
    first, *others = answer.break_even.sizes
    unbound = replace(first, roots=(replace(first.roots[0], interval=(None, None)),))
    draw_map(ax, replace(answer, break_even=replace(answer.break_even, sizes=(unbound, *others))))
    (diamonds,) = [line for line in ax.lines if line.get_marker() == "D"]
    assert list(diamonds.get_xdata()) == [4, 8]


def test_numbers_are_bold_where_the_interval_excludes_one(ax, make_answer):
    answer = make_answer()
    draw_map(ax, answer)
    weights = {(round(t.get_position()[0]), t.get_position()[1]): t.get_fontweight() for t in ax.texts}
    sure = {
        (p.num_devices, p.size) for p in answer.predictions if p.speedup.interval[0] > 1 or p.speedup.interval[1] < 1
    }
    assert {place for place, weight in weights.items() if weight == "bold"} == sure & weights.keys()
    assert "normal" in weights.values()
    # Nothing is written under the break-even interval of 4 devices, 1600 to 2400.
    assert (4, 2000) not in weights
    assert (4, 4000) in weights


def test_no_numbers_in_narrow_cells(ax, make_answer):
    draw_map(ax, make_answer(max_devices=32))
    assert not ax.texts


def test_extrapolated_counts_are_hatched(ax, make_answer):
    draw_map(ax, make_answer(max_devices=10))
    hatched = [p for p in ax.patches if p.get_hatch()]
    assert len(hatched) == 2
    assert hatched[0].get_x() < 9 < hatched[0].get_x() + hatched[0].get_width()


def test_the_look_does_not_leak(make_answer):
    before = dict(mpl.rcParams)
    with style.context():
        assert mpl.rcParams["pdf.fonttype"] == 42
    assert dict(mpl.rcParams) == before


def test_venues():
    assert "icml2024_half" in style.venues()
    width, height = style.figure_size("icml2024_half", aspect=0.5)
    assert width == pytest.approx(3.25)
    assert height == width / 2
    with pytest.raises(ValueError, match=r"venue 'nature' is not known; choose one of .*neurips2024"):
        style.figure_size("nature")
    for venue in style.venues():
        assert style.figure_size(venue)[0] > 2


def test_missing_numbers_are_nan_in_tables(make_answer):
    answer = make_answer(interval=False)
    assert tables.measured([answer])["latency_s_lower"].isna().all()
    assert tables.bounds(Estimate(reason="none")) == pytest.approx((np.nan,) * 3, nan_ok=True)
    half = tables.bounds(Estimate(estimate=1.0, interval=(None, 2.0)))
    assert half == pytest.approx((1.0, np.nan, 2.0), nan_ok=True)


def test_throughput_turns_the_ends_of_the_interval_round(make_answer):
    table = tables.measured([make_answer(path="weak", sizes=(100,))])
    assert (table["throughput_lower"] < table["throughput"]).all()
    assert (table["throughput"] < table["throughput_upper"]).all()
    np.testing.assert_allclose(table["throughput_lower"] * table["latency_s_upper"], 100 * table["num_devices"])


def test_no_remainder_without_a_measured_total(make_answer):
    answer = make_answer(parts={"dispatch": (0.3, 0.05), "compute": None})
    without = replace(answer, curves=tuple(c for c in answer.curves if c.size != answer.size))
    assert set(tables.causes([without])["cause"]) == {"dispatch"}


def test_control_curves_are_kept_apart(make_answer):
    answer = make_answer()
    local = Curve(strategy="jit", role="local", size=answer.size, num_devices=(1,), latency_s=(Estimate(estimate=1.0),))
    table = tables.measured([replace(answer, curves=(*answer.curves, local))])
    assert set(table["role"]) == {"workload", "local"}
    assert len(table) == 21


def test_parts_know_their_source(make_answer):
    answer = make_answer()
    chain = Part(latency_s=Estimate(estimate=1e-5), share=Estimate(estimate=0.1), source="chain")
    table = tables.causes([replace(answer, causes={2: {"communication": chain}})])
    assert table["source"].tolist() == ["chain"]
