"""From the repository's root:

    python -m benchmarks.calibration                        # 2,000 sweeps a scenario; docs/calibration.md and .csv
    python -m benchmarks.calibration --small                # 100 a scenario, printed only
    python -m benchmarks.calibration --only "latency, weak" # scenarios whose name begins so, printed only

Chunks of a hundred sweeps are kept in the folder of ``--parts``, by commit; the same command takes up where it was
stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..stamp import DOCS, stamp
from .study import pick, rows_of
from .table import markdown, write_csv

SWEEPS, SMALL = 2000, 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; 1 where a row misses its goal without a known reason."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration",
        description="Coverage of intervals and sets, and error rates of tests, on simulated sweeps.",
    )
    parser.add_argument("--small", action="store_true", help=f"{SMALL} sweeps a scenario instead of {SWEEPS:,}")
    parser.add_argument("--sweeps", type=int, help="sweeps a scenario")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each (default 2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="SCENARIO", help="only scenarios whose name begins so")
    parser.add_argument(
        "--parts", type=Path, metavar="FOLDER", help="keep finished chunks here, and take them from here"
    )
    options = parser.parse_args(arguments)
    try:
        scenarios = pick(options.only)
    except ValueError as mistake:
        parser.error(str(mistake))
    sweeps = options.sweeps or (SMALL if options.small else SWEEPS)
    stamped = stamp(options.seed)
    # Chunks of another commit answer for another code.
    parts = options.parts and options.parts / stamped["commit"]
    rows = rows_of(scenarios, sweeps, options.seed, jobs=options.jobs, parts=parts)
    page = markdown(rows, stamped)
    print(page)
    if not (options.small or options.only or options.sweeps):
        DOCS.mkdir(exist_ok=True)
        (DOCS / "calibration.md").write_text(page, encoding="utf-8")
        write_csv(DOCS / "calibration.csv", rows, stamped)
    return 1 if any(row.verdict in ("too low", "too many") and not row.reason for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
