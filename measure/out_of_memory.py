"""When memory runs out: the measuring process is the kernel's victim, and its end is told as that."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from .control_group import memory_kills, read_text

_MOST_WILLING = 1000


def volunteer(root: Path = Path("/")) -> None:
    """Have the kernel end this process, and what it starts, before any other when memory runs out.

    Upwards that takes no privilege. Where the kernel keeps no such score, or lets nobody write it (``/proc`` mounted to
    be read only), the largest process is its choice anyway.
    """
    score = root / "proc/self/oom_score_adj"
    with contextlib.suppress(OSError):
        score.write_text(str(_MOST_WILLING))


def kills(root: Path = Path("/")) -> int | None:
    """Processes that the kernel ended for memory so far: in this process's control group, else anywhere.

    None where nothing counts them.
    """
    counted = memory_kills(root)
    if counted is not None:
        return counted
    found = re.search(r"^oom_kill (\d+)$", read_text(root / "proc/vmstat"), re.MULTILINE)
    return int(found[1]) if found else None
