"""The child of an ``Informant``: ``python -m breakeven.measure.informing WORKLOAD STDERR PARENT``."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .endings import die_with


def main() -> None:
    """Say what devices there are, then what the user's file declares, each in a line of JSON; and end."""
    workload, shown, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # Descriptor 1 becomes private; prints, also those of C code, go to 2.
    private = os.dup(1)
    os.dup2(2, 1)
    die_with(parent)
    # The backend starts first, as in the processes that measure, so that a file meets here what it will meet there.
    _say(private, _devices())
    for descriptor in (1, 2):
        os.dup2(shown, descriptor)
    os.close(shown)
    if workload:
        del sys.argv[1:]  # ours, and no business of a file that looks at them
        _say(private, _declared(workload))
    # Skips what the file left to be done at the exit, and its threads.
    os._exit(0)


def _devices() -> dict[str, Any]:
    import jax

    found = jax.devices()
    return {"platform": found[0].platform, "count": len(found), "kind": found[0].device_kind}


def _declared(workload: str) -> dict[str, Any]:
    from .userfile import resolve
    from .workload import MeasureError

    try:
        found = resolve(workload)
    except MeasureError as error:
        return {"error": str(error)}
    return {"path": found.path, "unit": found.unit, "divides": found.divides, "summary": found.summary}


def _say(private: int, answer: dict[str, Any]) -> None:
    line = json.dumps(answer).encode() + b"\n"
    while line:
        line = line[os.write(private, line) :]


if __name__ == "__main__":
    main()
