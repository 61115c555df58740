"""Does a blind sweep find the latency, bandwidth, work rate, best count and break-even sizes that were imposed?

Four hosts in namespaces, joined by a switch with a known delay and rate; one JAX process in each, started by variables
as on a cluster; a workload that sleeps a known time, then adds up a message (``tests/truth``). Needs root. From the
repository's root:

    python -m benchmarks.truth            # three settings, 50 minutes; writes docs/truth.*
    python -m benchmarks.truth --small    # the first one with few cells; writes nothing
    python -m benchmarks.truth --keep F   # leaves the records in a folder, and answers anew from those it finds there
"""

from __future__ import annotations

# pyright: reportMissingImports=false
# Run from the root, which is then on the path.
import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from breakeven.data.store import read

from tests.truth.bare import excess_s
from tests.truth.blind import answer, sweep
from tests.truth.imposed import FEW_DEVICES, FEW_SIZES, ITEMS_PER_ROUND_TRIP, SHORT_BYTES, Truth
from tests.truth.network import unavailable
from tests.truth.verdicts import LARGEST_ERROR, LARGEST_REGRET, Row, compare

from .stamp import DOCS, stamp, write_rows

SETTINGS = (
    Truth(round_trip_s=28e-3, bytes_per_s=6.25e6),
    Truth(round_trip_s=32e-3, bytes_per_s=3.125e6),
    Truth(round_trip_s=36e-3, bytes_per_s=6.25e6),
)
"""Long enough for what wakes a process up to be small beside it: 0.3 to 0.5 ms a step and 1 ms a callback here, which
at 20 ms moved a break-even size by 4 %."""
LAUNCHES, CALLS = 3, 2
TIMEOUT_S = 1800


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """One setting, and what a blind sweep said of it.

    ``without_own``: the rows against what is imposed alone; ``load``: of the machine when it began
    """

    truth: Truth
    rows: list[Row]
    without_own: list[Row]
    load: float

    @property
    def name(self) -> str:
        """For the tables."""
        return f"{self.truth.round_trip_s * 1e3:g} ms, {self.truth.bytes_per_s / 1e6:g} MB/s"


def measure(truth: Truth, seed: int, folder: Path) -> Sweep:
    """One blind sweep, into a folder; a record that is there is answered from again."""
    # One round a launch, however long it takes.
    options = ["--launches", str(LAUNCHES), "--budget", "1s", "--seed", str(seed)]
    options += ["--warmups", "0", "--calls", str(CALLS), "--queue", "0"]
    record = folder / f"truth-{truth.round_trip_s * 1e3:g}ms.jsonl"
    if not record.exists():
        # Under its name only when it is whole.
        part = record.with_suffix(".part.jsonl")
        sweep(truth, part, options=options, timeout_s=TIMEOUT_S)
        part.rename(record)
    own = record.with_suffix(".own.json")
    if not own.exists():
        own.write_text(json.dumps(excess_s(truth)))
    true = dataclasses.replace(truth, own_s={int(n): s for n, s in json.loads(own.read_text()).items()})
    found = answer(record)
    return Sweep(truth=true, rows=compare(true, found), without_own=compare(truth, found), load=load_before(record))


def load_before(record: Path) -> float:
    """Of the machine when a sweep began."""
    return read(record).launches[0].load_average or 0.0


def rows_of(sweeps: Iterable[Sweep]) -> Iterator[dict[str, object]]:
    """One row a setting and quantity."""
    for one in sweeps:
        for row in one.rows:
            own = " ".join(f"{1e3 * seconds:.2f}" for _, seconds in sorted(one.truth.own_s.items()))
            yield {"setting": one.name, **dataclasses.asdict(row), "load": f"{one.load:.2f}", "own_ms": own}


def markdown(sweeps: Sequence[Sweep], stamped: dict[str, str]) -> str:
    """The page ``docs/truth.md``."""
    limits = ", ".join(f"{name} {limit:.0%}" for name, limit in LARGEST_ERROR.items())
    lines = [
        "# Does a blind sweep find the truth?",
        "",
        "Four hosts in network namespaces of one machine, joined by a switch with an imposed delay and rate; one JAX "
        "process in each, joined through variables as on a cluster. The workload sleeps "
        f"1/{ITEMS_PER_ROUND_TRIP} of a round trip an item, each device its share, then all add up a message (gloo): "
        f"{SHORT_BYTES} bytes, at the smallest size {sweeps[0].truth.long:g} round trips long on the link. Who answers "
        "(`breakeven explain`) knows the record only.",
        "",
        f"Made by `python -m benchmarks.truth`: {', '.join(f'{k} {v}' for k, v in stamped.items())}; "
        f"{LAUNCHES} launches a setting.",
        "",
        "*alpha*: seconds a step of the ring, against the round trip; *beta*: seconds a byte, against the rate without "
        f"the headers; *gamma*: seconds an item. Errors allowed: {limits}; regret of the best count "
        f"{LARGEST_REGRET:.0%}; a break-even set must hold the true size. Brackets: interval or set.",
        "",
        "Beside what is imposed a call takes a little of its own: callbacks, gloo's work in each step, processes that "
        "wake up. A plain loop of the same program at the same delay, without breakeven, tells how much; it is part of "
        f"the true break-even sizes: {'; '.join(map(_own, sweeps))}. {_missed_without(sweeps)} Intervals of alpha, "
        "beta and gamma are over the launches and speak of their scatter; alpha also holds what a step itself takes, "
        "so that its interval may lie above the round trip.",
        "",
        "| setting | quantity | imposed | found | | error | passed |",
        "| --- | --- | ---: | ---: | --- | ---: | --- |",
    ]
    lines += [
        f"| {one.name} | {r.quantity} | {_number(r.imposed)} | {_number(r.found)} "
        f"| [{_number(r.lower)}, {_number(r.upper)}] | {'-' if r.error is None else f'{100 * r.error:.1f} %'} "
        f"| {'yes' if r.passed else 'no'} |"
        for one in sweeps
        for r in one.rows
    ]
    return "\n".join([*lines, ""])


def _own(one: Sweep) -> str:
    counts = " and ".join([", ".join(map(str, one.truth.devices[:-1])), str(one.truth.devices[-1])])
    times = ", ".join(f"{1e3 * one.truth.own_s[n]:.1f}" for n in one.truth.devices)
    return f"{times} ms on {counts} hosts ({one.name})"


def _missed_without(sweeps: Sequence[Sweep]) -> str:
    """How many break-even sets would miss if the own cost were no part of the truth, and by how much."""
    sets = [row for one in sweeps for row in one.without_own if row.quantity.startswith("break-even")]
    missed = [row for row in sets if not row.passed]
    ends = [(row, end) for row in missed for end in (row.lower, row.upper) if end is not None]
    if not ends:
        return "Against what is imposed alone no set would miss."
    furthest = max(min(abs(end / row.imposed - 1) for one, end in ends if one is row) for row in missed)
    return f"Against what is imposed alone {len(missed)} of {len(sets)} sets would miss, by {furthest:.1%} at most."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1 else f"{value:.0f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the settings; 1 when a quantity is missed."""
    parser = argparse.ArgumentParser(description="A blind sweep over a network whose latency and bandwidth are known.")
    parser.add_argument("--small", action="store_true", help="one setting, few cells; writes nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder of the records; those that are there are not measured again")
    options = parser.parse_args(arguments)
    if reason := unavailable():
        print(f"no laboratory here: {reason}", file=sys.stderr)
        return 2
    small = dataclasses.replace(SETTINGS[0], devices=FEW_DEVICES, sizes=FEW_SIZES)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) if options.keep is None else options.keep
        sweeps = [measure(truth, options.seed, kept) for truth in ([small] if options.small else SETTINGS)]
    stamped = stamp(options.seed)
    print(markdown(sweeps, stamped))
    if not options.small:
        (DOCS / "truth.md").write_text(markdown(sweeps, stamped))
        write_rows(DOCS / "truth.csv", rows_of(sweeps), stamped)
    return 0 if all(row.passed for one in sweeps for row in one.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
