"""Whether one over a rate, or a size over it, can be the time of a call.

A rate of calls (steps a second) always gives it. One over a rate of elements (images a second) is the time of an
element: times of calls up to a factor only where all calls are of the same size; one over the rate of one device only
where each device's share stays. The sizes show which, and the column's name what it counts; where its name says
neither, the reader is told what was taken for granted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from .columns import Source
from .delimited import Table
from .foreign import Measurement
from .names import ELEMENTS, of_one_device, words
from .store import RecordError

FASTER = 1.5
"""More often than this, against the fewest devices, no call runs whose share of each device stays the same."""

CALLS = frozenset(
    {
        *("call", "calls", "step", "steps", "timestep", "timesteps", "it", "its", "iter", "iters"),
        *("iteration", "iterations", "batches", "epoch", "epochs", "run", "runs", "update", "updates"),
        *("solve", "solves", "query", "queries", "request", "requests", "qps", "rps"),
    }
)
"""Words for what is done once a call; ``it/s``, ``steps_per_sec``."""


def counts_elements(rate: str) -> bool:
    """Whether a column's name says that it counts what all devices work on, not calls."""
    return bool(ELEMENTS & set(words(rate))) and not of_one_device(rate)


def check_rates(
    rows: Sequence[Measurement], table: Table, sources: Mapping[str, Source], path: str, *, told: bool
) -> tuple[str, ...]:
    """Refuse times that are none of a call, and say what had to be taken for granted.

    Parameters
    ----------
    path : ``strong`` or ``weak``; ``told`` : whether the user or the file says so

    Returns
    -------
    tuple of str
        What the reader of an answer must know.

    Raises
    ------
    RecordError
        If the times cannot be those of calls; the message says how to write them.
    """
    rows = [row for row in rows if row.cell.role == "workload"]
    latency = sources["latency_s"]
    too_fast = _too_fast(rows, table, sources, told=told) if path == "weak" else ()
    if len(latency.below) != 1 or len({row.cell.num_devices for row in rows}) < 2:
        return too_fast
    if not latency.reciprocal:
        return too_fast + _of_a_share(latency, sources)
    (rate,) = latency.below
    totals, shares = {row.cell.size for row in rows}, {row.cell.size_per_device for row in rows}
    sized = not sources.keys().isdisjoint({"size", "size_per_device"})
    if of_one_device(rate):
        if len(shares) > 1:
            raise RecordError(f"{table.path}: {_of_one_device(rate, sources, sized)}")
    elif counts_elements(rate):
        if len(totals) > 1:
            raise RecordError(
                f"{table.path}: {rate!r} counts elements, and one over it is the time of a call only where all calls "
                f"are of one size. {_say_the_size(rate, sources)} If each of them is a call, name the column calls/s."
            )
        if not (sized or told):
            return (
                f"1/{rate} is taken as the time of the same work on every count: its ratios are those of the rates, "
                f"but times of a call need its size, latency_s=SIZE/{rate}",
            )
    elif len(totals) > 1 and not CALLS & set(words(rate)):
        return (
            *too_fast,
            f"1/{rate} is taken as the time of a call, as it is if {rate!r} counts calls; if it counts elements, say "
            f"latency_s={_total(sources)}/{rate}",
        )
    return too_fast


def _too_fast(
    rows: Sequence[Measurement], table: Table, sources: Mapping[str, Source], *, told: bool
) -> tuple[str, ...]:
    """Devices that each keep their work do not make a call much faster."""
    series: dict[tuple[str, float], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        series[row.cell.strategy, row.cell.size_per_device][row.cell.num_devices].append(row.latency_ns)
    latency = sources["latency_s"]
    for times in series.values():
        first, last = min(times), max(times)
        falls = min(times[first]) / max(times[last])
        if falls <= FASTER:
            continue
        if latency.reciprocal:
            raise RecordError(
                f"{table.path}: {latency.below[0]!r} grows {falls:.1f} times from {first} to {last} devices although "
                f"the size per device stays, so it counts elements and not calls. "
                f"{_say_the_size(latency.below[0], sources)}"
            )
        what = f"the times fall {falls:.1f} times from {first} to {last} devices although the size per device stays"
        if latency.below:
            raise RecordError(
                f"{table.path}: {what}, so {latency} is not the time of a call. "
                f"{_say_the_size(latency.below[-1], sources)}"
            )
        if told:
            return (f"{what}, an efficiency of {100 * falls:.0f} %: are the sizes those of one device?",)
        share = sources.get("size_per_device")
        raise RecordError(
            f"{table.path}: {what}, an efficiency of {100 * falls:.0f} %. "
            + (f"If {share} is the total of all devices, say size={share}; if" if share else "If")
            + " each device does keep its work, say --scaling weak; if the total stays, --scaling strong."
        )
    return ()


def _of_a_share(latency: Source, sources: Mapping[str, Source]) -> tuple[str, ...]:
    """The share of one device over a rate: of one device too, it must be."""
    share, (rate,) = sources.get("size_per_device"), latency.below
    if share is None or latency.above != share.columns or not counts_elements(rate):
        return ()
    return (
        f"{latency} takes {rate!r} for the rate of one device; if it is that of all of them, say "
        f"latency_s={_total(sources)}/{rate}",
    )


def _of_one_device(rate: str, sources: Mapping[str, Source], sized: bool) -> str:
    what = f"{rate!r} is the rate of one device, and one over it the time of a call only where each share stays."
    if sized:
        share = sources["size_per_device"] if "size_per_device" in sources else sources["size"] / sources["devices"]
        return f"{what} Say latency_s=SHARE/{rate}, SHARE being that of each device: here latency_s={share}/{rate}."
    return (
        f"{what} Say --scaling weak (or size_per_device=NAME) if it does; if the total stays, "
        f"latency_s=1/{rate}/{sources['devices']}."
    )


def _say_the_size(rate: str, sources: Mapping[str, Source]) -> str:
    total = _total(sources)
    here = "" if total == "SIZE" else f": here latency_s={total}/{rate}"
    return f"Say latency_s=SIZE/{rate}, SIZE being the global size of a call{here}."


def _total(sources: Mapping[str, Source]) -> str:
    """The global size of a call, as ``--columns`` takes it; SIZE where nothing says it."""
    if "size" in sources:
        return str(sources["size"])
    return str(sources["size_per_device"] * sources["devices"]) if "size_per_device" in sources else "SIZE"
