"""Named warnings of programs and times that are not what they are taken for, from the facts beside the times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..data.schema import MAX_DEVICES
from ..model.cell import Cell, devices
from ..model.control import same_bytes, same_flops
from ..model.divided_work import repeated_work
from .answer import NamedWarning
from .attribution import UNPLACED
from .comparing.sides import Side, unlike_programs
from .intervals import t_estimate
from .launches import LaunchTable
from .repeats import doubt

WORK_GROWS = 8.0
"""Factor of the work from the smallest size to the largest, from which the time must show it."""
TIME_STANDS = 1.25
"""Factor of the time that does not show it."""
SLOWER = 0.02
"""Share of the workload's time by which a control without its communication must be slower to be called so: programs
compiled apart differ by as much."""


def guard_warnings(table: LaunchTable, strategy: str, largest: int) -> tuple[NamedWarning, ...]:
    """All that apply to one strategy.

    Parameters
    ----------
    table : LaunchTable
    strategy, largest : in question: its counts up to the largest one asked for
    """
    cells = [c for c in table.select("workload", strategy) if c.num_devices <= largest]
    found = [
        *times_of_other_work(table, strategy, largest),
        *_unlike_control(table, cells),
        *_slower_control(table, cells),
        *_repeated_work(table, cells),
        *_padding(table, cells),
        *_unlike_strategies(table, strategy, cells),
        *_inputs_moved(table, strategy, cells),
        *_changed_program(table),
        *_compiled_whole(table, cells),
    ]
    return tuple(found)


def times_of_other_work(table: LaunchTable, strategy: str, largest: int = MAX_DEVICES) -> tuple[NamedWarning, ...]:
    """What the times alone say against themselves: not one call each, not waited for, or of other work.

    Parameters
    ----------
    table : LaunchTable
    strategy, largest : in question: its counts up to the largest one asked for
    """
    found = [NamedWarning(name="impossible-rate", text=words, doubts_verdict=True) for words in table.impossible]
    odd = {c: one for c, one in table.odd_repeats.items() if c.strategy == strategy and c.num_devices <= largest}
    if odd:
        found.append(NamedWarning(name="odd-repeats", text=doubt(odd), doubts_verdict=True))
    if growth := stands_still(table, strategy, largest):
        found.append(NamedWarning(name="not-waited-for", text=growth, doubts_verdict=True))
    if table.first_left_out:
        found.append(NamedWarning(name="first-repeats", text=table.first_left_out))
    return tuple(found)


def stands_still(table: LaunchTable, strategy: str, largest: int = MAX_DEVICES) -> str | None:
    """Say so where the time stands still over the sizes while the work grows, on every count, in data from elsewhere.

    Calls that were timed here were waited for; there a small program's time stands still for its dispatch.
    """
    if not table.foreign:
        return None
    grown: list[tuple[float, float]] = []
    for n in (n for n in table.devices("workload", strategy) if n <= largest):
        cells = sorted((c for c in table.select("workload", strategy) if c.num_devices == n), key=lambda c: c.size)
        first, last = cells[0], cells[-1]
        work = _work(table, last) / _work(table, first)
        if work >= WORK_GROWS:
            grown.append((work, float(np.nanmean(_row(table, last)) / np.nanmean(_row(table, first)))))
    if not grown or any(time >= TIME_STANDS for _, time in grown):
        return None
    work, time = max(grown)
    return (
        f"the time grows by a factor of {time:.3g} while the work of a device grows by {work:.3g}: either each call "
        "costs its dispatch alone, or it was not waited for (jax.block_until_ready), and the times are those of "
        "starting the work"
    )


def _row(table: LaunchTable, cell: Cell) -> np.ndarray:
    row = table.row(cell)
    assert row is not None
    return row


def _work(table: LaunchTable, cell: Cell) -> float:
    """Work of one device: as the file says, else its share of the size."""
    facts = table.facts.get(cell)
    return (None if facts is None else facts.compute_work) or cell.size_per_device


def _unlike_control(table: LaunchTable, cells: list[Cell]) -> Iterator[NamedWarning]:
    """A control that computes, or reads and writes, other than its workload less the collectives."""
    found: dict[str, tuple[Cell, float, float]] = {}
    for cell in cells:
        ours, theirs = table.facts.get(cell), table.facts.get(_control(cell))
        if ours is None or theirs is None:
            continue
        if theirs.communicates:
            yield _control_warning(cell, "it communicates itself")
            return
        if any(one.count is None for one in ours.collectives):
            continue
        message = sum((one.count or 0) * one.message_bytes for one in ours.collectives)
        for name, same in (("flops", same_flops), ("bytes_accessed", same_bytes)):
            a, b = getattr(ours, name), getattr(theirs, name)
            if a is not None and b is not None and not same(a, b, message):
                found[name] = (cell, a, b)
    for name, (cell, a, b) in found.items():
        yield _control_warning(cell, f"{b:.4g} {name.replace('_', ' ')} against {a:.4g} of the workload")


def _control(cell: Cell) -> Cell:
    return Cell(role="local", strategy=cell.strategy, num_devices=cell.num_devices, size=cell.size)


def _control_warning(cell: Cell, words: str) -> NamedWarning:
    text = (
        f"the control without communication differs from the workload by more than the communication on "
        f"{devices(cell.num_devices)} at size {cell.size:,}: {words}; what is called communication holds the rest too"
    )
    return NamedWarning(name="unlike-control", text=text, doubts_verdict=True)


def _slower_control(table: LaunchTable, cells: list[Cell]) -> Iterator[NamedWarning]:
    """A control slower than its workload on the most devices, by more than ``SLOWER`` and what launches scatter."""
    most = max((cell.num_devices for cell in cells), default=1)
    pairs = [(cell, table.row(cell), table.row(_control(cell))) for cell in cells if cell.num_devices == most > 1]
    both = [(cell, ours, control) for cell, ours, control in pairs if ours is not None and control is not None]
    found: list[tuple[float, Cell]] = []
    for cell, ours, control in both:
        more = t_estimate(control / ours - 1, confidence=1 - 0.05 / len(both))
        least = more.interval[0] if more.interval else None
        if least is not None and least > SLOWER:
            found.append((least, cell))
    if found:
        least, cell = max(found, key=lambda one: (one[0], one[1].sort_key))
        text = (
            f"the control without communication takes at least {100 * least:.2g} % longer than the whole workload on "
            f"{devices(cell.num_devices)} at size {cell.size:,}: it is not the same work, and communication cannot be "
            "told by the difference"
        )
        yield NamedWarning(name="slower-control", text=text, doubts_verdict=True)


def _repeated_work(table: LaunchTable, cells: list[Cell]) -> Iterator[NamedWarning]:
    """Work that every device does again, in a sweep that shares one size out."""
    shares_out = table.plan.path == "strong" and not table.foreign
    if shares_out and (repeated := repeated_work({cell: table.facts.get(cell) for cell in cells})):
        yield NamedWarning(name="repeated-work", text=str(repeated))


def _padding(table: LaunchTable, cells: list[Cell]) -> Iterator[NamedWarning]:
    """Sizes that do not divide and were padded: their work is more than the size says."""
    shares = {c: facts.padded_share for c in cells if (facts := table.facts.get(c)) and facts.padded_share is not None}
    padded = {cell: share for cell, share in shares.items() if share > 0}
    if not padded:
        return
    worst = max(padded, key=lambda cell: padded[cell])
    text = (
        f"{len(padded)} of {len(shares)} cells hold padding, {100 * padded[worst]:.2g} % of an axis on "
        f"{devices(worst.num_devices)} at size {worst.size:,}: that is worked on too"
    )
    if len(padded) < len(shares):
        text += ", and a law over sizes with and without padding bends where it starts"
    text += "; choose sizes that divide by every count"
    yield NamedWarning(name="padding", text=text)


def _unlike_strategies(table: LaunchTable, strategy: str, cells: list[Cell]) -> Iterator[NamedWarning]:
    """Strategies of one sweep whose programs exchange or compute different things."""
    one = Side(label=strategy, table=table, strategy=strategy)
    places = sorted({(c.num_devices, table.axis_size(c)) for c in cells})
    for name in table.strategies:
        if name == strategy:
            continue
        differences = unlike_programs(one, Side(label=name, table=table, strategy=name), places)
        if differences:
            text = f"{strategy} and {name} are not comparable: {'; '.join(differences)}"
            yield NamedWarning(name="unlike-strategies", text=text)


def _changed_program(table: LaunchTable) -> list[NamedWarning]:
    """Launches of different programs in one file: edited between them, or another one at every start."""
    if (found := table.changed_program) is None:
        return []
    words = found.told("some launches have", "others")
    text = (
        f"launches measured different programs ({words}): the file was edited between them, or makes another program "
        "at every start; a mean over them is the time of none"
    )
    return [NamedWarning(name="changed-program", text=text, doubts_verdict=found.one is not None)]


def _inputs_moved(table: LaunchTable, strategy: str, cells: list[Cell]) -> Iterator[NamedWarning]:
    moved = [(table.moved_bytes[c], c) for c in cells if c in table.moved_bytes]
    if moved and not strategy.endswith(UNPLACED):
        size, cell = max(moved, key=lambda pair: (pair[0], pair[1].sort_key))
        text = (
            f"every call moves its inputs to the devices first, at least {size:,} B on {devices(cell.num_devices)} at "
            f"size {cell.size:,}: place them once, in build (jax.device_put), or what is called dispatch holds their "
            "transfer"
        )
        yield NamedWarning(name="inputs-moved", text=text)


def _compiled_whole(table: LaunchTable, cells: list[Cell]) -> Iterator[NamedWarning]:
    """A function that was not jitted, and was timed as one compiled program all the same."""
    if pieces := max((table.pieces.get(cell, 0) for cell in cells), default=0):
        text = (
            "the function is not jitted; it was compiled as one program and timed as that. Called as it is, it starts "
            f"about {pieces} one after another, with a dispatch each, and its Python too: jit it where you use it, "
            "or these are not the times of your calls"
        )
        yield NamedWarning(name="compiled-whole", text=text)
