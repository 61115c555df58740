"""All figures of an Answer into a folder: PDF and PNG, captions, and the tables behind them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ..fit.answer import Answer
from . import captions, style, tables
from .break_even import draw_break_even, has_numbers
from .causes import draw_shares, draw_stack
from .scaling import draw_scaling, reference_value

DOTS_PER_INCH = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """One figure of the set: how to draw it, or why there is nothing to draw."""

    name: str
    title: str
    caption: str = ""
    draw: Callable[[Figure], object] | None = None
    aspect: float = style.GOLDEN
    reason: str | None = None


def save_all(
    answers: Answer | Sequence[Answer], folder: str | os.PathLike[str], *, venue: str | None = None
) -> list[Path]:
    """Write every figure that the answers can fill, ``captions.md`` and the tables.

    Parameters
    ----------
    answers : of one sweep, one a strategy; the first is the primary one
    folder : made when missing
    venue : width of the figures, a name from ``style.venues``

    Returns
    -------
    list of Path
        Files written. A figure with nothing to show is not written; ``captions.md`` says why.

    Raises
    ------
    ValueError
        If there is no answer, or the answers are about different workloads, sizes or objectives.
    """
    answers = [answers] if isinstance(answers, Answer) else list(answers)
    _check_alike(answers)
    width, _ = style.figure_size(venue)
    folder = Path(folder)
    written = save_drawings(list(_drawings(answers, narrow=style.is_narrow(width))), folder, venue=venue)
    return written + _write_tables(answers, folder)


def save_drawings(drawings: Sequence[Drawing], folder: Path, *, venue: str | None = None) -> list[Path]:
    """Write figures as PDF and PNG, and ``captions.md``; the folder is made when missing."""
    width, _ = style.figure_size(venue)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with style.context(width):
        for drawing in drawings:
            if drawing.draw is not None:
                written += _save(drawing, folder, venue)
    return [*written, _write_captions(drawings, folder)]


def _check_alike(answers: Sequence[Answer]) -> None:
    if not answers:
        raise ValueError("answers is empty; there is nothing to draw.")
    for field in ("workload", "path", "objective", "size", "reference_devices"):
        values = {getattr(answer, field) for answer in answers}
        if len(values) > 1:
            raise ValueError(f"answers differ in {field} ({', '.join(map(str, sorted(values)))}); draw them apart.")


def _drawings(answers: Sequence[Answer], *, narrow: bool) -> Iterator[Drawing]:
    yield _scaling(answers)
    for answer in answers:
        suffix = f"-{_slug(answer.strategy)}" if len(answers) > 1 else ""
        yield _causes(answer, suffix, narrow=narrow)
        yield _break_even(answer, suffix)


def _scaling(answers: Sequence[Answer]) -> Drawing:
    answer = answers[0]
    measured = tables.measured(answers)
    measured = measured[(measured["role"] == "workload") & (measured["size"] == answer.size)]
    predicted = tables.predicted(answers)
    predicted = predicted[predicted["size"] == answer.size]
    about = partial(Drawing, name="scaling", title="Scaling")
    if measured["latency_s"].notna().sum() == 0:
        return about(reason=f"nothing was measured at size {answer.size}")
    # The primary strategy stands first: the ideal line starts at its point.
    measured = measured.sort_values("strategy", key=lambda names: names != answer.strategy, kind="stable")
    quantity = "throughput" if answer.objective == "throughput" else "latency_s"
    start = reference_value(measured, quantity, answer.reference_devices)
    ideal = start is not None and bool((measured["num_devices"] > answer.reference_devices).any())

    def draw(figure: Figure) -> object:
        return draw_scaling(
            figure.subplots(),
            measured,
            predicted,
            quantity=quantity,
            unit=answer.unit,
            reference_devices=answer.reference_devices if ideal else None,
            path=answer.path,
        )

    return about(caption=captions.scaling(answers, predicted, ideal=ideal), draw=draw, aspect=0.7)


def _causes(answer: Answer, suffix: str, *, narrow: bool) -> Drawing:
    table = tables.causes([answer])
    about = partial(Drawing, name=f"causes{suffix}", title=f"Causes ({answer.strategy})")
    known = table[table["cause"] != style.REMAINDER]
    if known.empty:
        reasons = (part.latency_s.reason for parts in answer.causes.values() for part in parts.values())
        why = next((reason for reason in reasons if reason), "no controls or probes were measured")
        return about(reason=f"no cause's time is known: {why}")

    def draw(figure: Figure) -> object:
        first, second = figure.subplots(2, 1, sharex=True) if narrow else figure.subplots(1, 2)
        drawn = draw_stack(first, table), draw_shares(second, table)
        first.label_outer()
        handles, labels = first.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2 if narrow else 4, handlelength=1.4)
        return drawn

    return about(caption=captions.causes(answer, table, narrow=narrow), draw=draw, aspect=1.3 if narrow else 0.55)


def _break_even(answer: Answer, suffix: str) -> Drawing:
    predicted = tables.known_counts(tables.predicted([answer]))
    sizes = tables.break_even_sizes([answer])
    about = partial(Drawing, name=f"break-even{suffix}", title=f"Break-even map ({answer.strategy})")
    known = predicted[predicted["speedup"].notna() & (predicted["num_devices"] != answer.reference_devices)]
    if known.empty:
        return about(reason="only the reference count was measured: nothing to compare")
    if known["size"].nunique() < 2:
        return about(reason="one size was measured: no map over sizes; measure another with --sizes")
    unit = f"{answer.unit} per device" if answer.path == "weak" else answer.unit

    def draw(figure: Figure) -> object:
        return draw_break_even(
            figure.subplots(),
            predicted,
            sizes,
            reference_devices=answer.reference_devices,
            size_label=f"size ({style.plain(unit)})",
        )

    numbers = has_numbers(predicted, answer.reference_devices)
    caption = captions.break_even(answer, predicted, sizes, numbers=numbers)
    return about(caption=caption, draw=draw, aspect=0.7)


def _save(drawing: Drawing, folder: Path, venue: str | None) -> list[Path]:
    assert drawing.draw is not None
    figure = Figure(figsize=style.figure_size(venue, aspect=drawing.aspect), layout="constrained")
    drawing.draw(figure)
    paths = [folder / f"{drawing.name}.{ending}" for ending in ("pdf", "png")]
    # Without a date, the same answer gives the same file.
    options: tuple[dict[str, Any], ...] = ({"metadata": {"CreationDate": None}}, {"dpi": DOTS_PER_INCH})
    for path, option in zip(paths, options, strict=True):
        # Drawn in memory: a disk that fills up must not end in the middle of a PDF writer.
        drawn = BytesIO()
        figure.savefig(drawn, format=path.suffix[1:], **option)
        path.write_bytes(drawn.getvalue())
    return paths


def _write_captions(drawings: Sequence[Drawing], folder: Path) -> Path:
    drawn = [f"## {d.title}\n\n![{d.title}]({d.name}.png)\n\n{d.caption}\n" for d in drawings if d.draw is not None]
    left_out = [f"- {d.title}: {d.reason}." for d in drawings if d.draw is None]
    text = ["# Figures\n", *drawn]
    if left_out:
        text.append("## Not drawn\n\n" + "\n".join(left_out) + "\n")
    path = folder / "captions.md"
    path.write_text("\n".join(text), encoding="utf-8")
    return path


def _write_tables(answers: Sequence[Answer], folder: Path) -> list[Path]:
    made: dict[str, pd.DataFrame] = {
        "measured": tables.measured(answers),
        "predicted": tables.predicted(answers),
        "causes": tables.causes(answers),
        "break-even-sizes": tables.break_even_sizes(answers),
    }
    paths = []
    for name, table in made.items():
        if not table.empty:
            paths.append(folder / f"{name}.csv")
            table.to_csv(paths[-1], index=False)
    return paths


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-").lower()
