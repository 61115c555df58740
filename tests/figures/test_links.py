"""Maps of links: what was drawn, not its pixels."""

from __future__ import annotations

import msgspec
import numpy as np
from breakeven.figures.links import draw_links, save_links
from breakeven.fit.answer import Estimate
from breakeven.fit.links import links
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle


def frames(ax):
    return [
        (patch.get_x(), patch.get_y(), patch.get_width(), patch.get_height())
        for patch in ax.patches
        if isinstance(patch, Rectangle)
    ]


def test_numbers_and_frames():
    seconds = np.array([[np.nan, 2e-6, 3e-6], [2e-6, np.nan, 4e-6], [3e-6, 4e-6, np.nan]])
    ax = draw_links(Figure().subplots(), seconds, [(1, 2)])
    assert [text.get_text() for text in ax.texts] == ["2", "3", "2", "4", "3", "4"]
    assert frames(ax) == [(1, 2, 1, 1), (2, 1, 1, 1)]
    assert ax.collections[0].colorbar.ax.get_ylabel() == "time of a message (µs)"


def test_a_slow_device_has_its_row_and_column():
    ax = draw_links(Figure().subplots(), np.full((4, 4), 1e-3), [(3,)])
    assert frames(ax) == [(3, 0, 1, 4), (0, 3, 4, 1)]


def test_many_devices_have_no_numbers():
    assert not draw_links(Figure().subplots(), np.full((9, 9), 1e-3), []).texts


def test_files_and_captions(links_record, tmp_path):
    found = links(links_record(5, links={(0, 1): 3.0}, noise=0.01))
    written = save_links(found, tmp_path / "maps")
    assert [path.name for path in written] == [
        *("links-4.pdf", "links-4.png", "links-1048576.pdf", "links-1048576.png", "captions.md")
    ]
    assert all(path.stat().st_size > 100 for path in written)
    captions = written[-1].read_text()
    assert "Time of one message of 1 MiB between every two of 5 devices" in captions
    assert "Framed: slower than the others by 25 % or more and significantly so" in captions
    assert "Simulated, not measured." in captions


def test_a_pair_that_was_not_measured_stays_empty():
    seconds = np.full((3, 3), 1e-6)
    seconds[0, 1] = seconds[1, 0] = np.nan
    np.fill_diagonal(seconds, np.nan)
    assert len(draw_links(Figure().subplots(), seconds, []).texts) == 4


def test_nothing_measured_draws_nothing(links_record, tmp_path):
    found = links(links_record(3))
    blank = msgspec.structs.replace(
        found, links=tuple(msgspec.structs.replace(one, messages=unknown(one)) for one in found.links)
    )
    assert [path.name for path in save_links(blank, tmp_path)] == ["captions.md"]
    assert "- Messages of 4 B: no pair of devices was measured." in (tmp_path / "captions.md").read_text()


def unknown(link):
    return tuple(msgspec.structs.replace(message, seconds=Estimate(reason="lost")) for message in link.messages)
