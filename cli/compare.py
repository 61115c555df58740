"""``breakeven compare FILE [FILE]``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options, output
from .answering import fit_on_cpu

if TYPE_CHECKING:
    from ..fit.comparing.sides import Side
    from ..fit.launches import LaunchTable

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE [FILE]",
        help="One file: its laws against their rivals. Two: what changed from the first to the second.",
        show_default=False,
    ),
]
Pair = Annotated[
    str | None,
    typer.Option(
        "--strategies",
        metavar="X,Y",
        help="Compare strategy X with Y: of one file, or X of the first with Y of the second.",
        show_default=False,
    ),
]


def command(
    files: Files,
    strategies: Pair = None,
    strategy: options.Strategy = None,
    confidence: options.Confidence = 0.95,
    margin: options.Margin = 0.10,
    columns: options.Columns = None,
    scaling: options.Scaling = None,
    where: options.Where = None,
    as_json: options.AsJson = False,
) -> None:
    """Set laws against their rivals, one sweep against another, or two strategies side by side.

    \b
    Example:
      breakeven compare data:mean-all
      breakeven compare old.jsonl new.jsonl
      breakeven compare sweep.jsonl --strategies jit,pmap

    One file: every law of the menu, Amdahl, Gustafson, USL, Ernest, the sign-free three terms and the damped trend, by
    what they err on counts and sizes left out. Two files or two strategies: the ratio of every cell that both have,
    which cause and which parameter changed, and whether the times differ by a constant or by a factor. Compiled
    programs that communicate differently are not comparable; that is said first. Exit code 1: nothing is decided.
    """
    if len(files) > 2:
        output.bad_argument("FILE", f"takes one or two files, got {len(files)}.")
    if strategy is not None and strategies is not None:
        output.bad_argument("--strategy", "and --strategies exclude each other.")
    options.one_of("--scaling", scaling, ("strong", "weak"))
    pair = None if strategies is None else _names(strategies, len(files))
    fit_on_cpu()
    opened = [_open(file, columns, scaling, where) for file in files]
    if len(opened) == 1 and pair is None:
        raise typer.Exit(_one(opened[0][0], strategy, confidence, margin, as_json))
    raise typer.Exit(_two(_sides(files, opened, strategy, pair), len(opened) == 1, confidence, as_json))


def _names(text: str, files: int) -> tuple[str, ...]:
    """Two names; the same one twice where each file has its own."""
    words = tuple(word.strip() for word in text.split(","))
    if len(words) != 2 or not all(words) or (files == 1 and words[0] == words[1]):
        output.bad_argument("--strategies", f"{text!r} must be two names, X,Y.")
    return words


def _open(
    file: str, columns: str | None, scaling: str | None, where: str | None
) -> tuple[LaunchTable, dict[str, str | None]]:
    """A FILE as a table, and the versions and machine that its first launch names."""
    from ..data.catalog import open_record
    from ..fit.launches import from_record

    record = open_record(file, columns=columns, scaling=scaling, where=where)
    first = record.launches[0] if record.launches else None
    names = ("jax", "jaxlib", "python", "device_kind", "cpu", "xla_flags")
    setup = {name.replace("_", " "): None if first is None else getattr(first, name) for name in names}
    return from_record(record), setup


def _one(table: LaunchTable, strategy: str | None, confidence: float, margin: float, as_json: bool) -> int:
    from ..fit.comparing.league import league

    if strategy is not None:
        _check_strategy(table, strategy)
    found = league(table, strategy, confidence=confidence, margin=margin)
    if as_json:
        output.emit_json(found)
    else:
        from .render_compare import rivals

        output.emit(rivals(found))
        output.warn_all(found.warnings)
    return output.UNDECIDED if found.judged_on is None else output.DECIDED


def _two(sides: tuple[Side, Side], shared: bool, confidence: float, as_json: bool) -> int:
    from ..fit.comparing.two_sweeps import NothingInCommon, compare

    try:
        found = compare(*sides, paired=shared, confidence=confidence)
    except NothingInCommon as error:
        raise typer.BadParameter(str(error)) from error
    if as_json:
        output.emit_json(found)
    else:
        from .render_compare import two_sides

        output.emit(two_sides(found))
        output.warn_all(found.warnings)
    return output.DECIDED if found.outcome == "decided" else output.UNDECIDED


def _sides(
    files: list[str],
    opened: list[tuple[LaunchTable, dict[str, str | None]]],
    strategy: str | None,
    pair: tuple[str, ...] | None,
) -> tuple[Side, Side]:
    from ..fit.comparing.sides import Side

    (first, setup), (second, other_setup) = opened[0], opened[-1]
    for file, (table, _) in zip(files, opened, strict=True):
        if not table.strategies:
            output.bad_argument("FILE", f"{file} times collectives alone; two sides are compared by their programs.")
    if pair is None:
        common = [name for name in first.strategies if name in second.strategies]
        if strategy is None and not common:
            output.bad_argument(
                "FILE",
                f"{files[0]} has the strategies {', '.join(first.strategies)}, {files[1]} has "
                f"{', '.join(second.strategies)}; say which to compare, --strategies X,Y.",
            )
        pair = (strategy or common[0],) * 2
    option = "--strategy" if strategy is not None else "--strategies"
    for table, name in zip((first, second), pair, strict=True):
        _check_strategy(table, name, option)
    labels = pair if len(files) == 1 else _labels(files)
    return (
        Side(label=labels[0], table=first, strategy=pair[0], setup=setup),
        Side(label=labels[1], table=second, strategy=pair[1], setup=other_setup),
    )


def _labels(files: list[str]) -> tuple[str, str]:
    """Short names of two files; as given where those would be the same."""
    one, other = (Path(file).name for file in files)
    if one != other:
        return one, other
    return (files[0], files[1]) if files[0] != files[1] else (f"{one} (first)", f"{other} (second)")


def _check_strategy(table: LaunchTable, name: str, option: str = "--strategy") -> None:
    # Collectives alone have strategies too, of no workload.
    measured = table.strategies or tuple(dict.fromkeys(cell.strategy for cell in table.cells))
    if name not in measured:
        output.bad_argument(option, f"{name!r} was not measured in {table.source}; measured: {', '.join(measured)}.")
