"""What one call of a plain Python program does beside computing: compiles, moves inputs, leaves work running."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
"""JAX says so at each compilation, with the function's name."""

_PAUSE_S = 0.02
_MOST_PAUSES = 100
_LEAST_WORK_S = 1e-3
"""Less processor time than this after a call is no work left behind: threads going to sleep, timers."""
_TRANSFER = re.compile(r"(?:host|device)-to-device transfer:(.*)")
_ARRAY = re.compile(r"ShapedArray\([a-z]+(\d*)\w*\[([\d,]*)\]")


@dataclass(frozen=True, kw_only=True)
class Watched:
    """One call, watched.

    Attributes
    ----------
    compiled : names of the functions that it compiled
    transfers : whether anything was moved to a device
    moved_bytes : at least so much of it, of the arrays whose type JAX says: a line of its log is about one device's
        part, and arrays of equal type and target cannot be told from parts of one
    """

    compiled: tuple[str, ...]
    transfers: bool
    moved_bytes: int


def watch(call: Callable[[], Any]) -> Watched:
    """Call once and wait, under JAX's own monitoring and transfer guard."""
    import jax

    with _compilations() as compiled, _transfers() as lines:
        jax.block_until_ready(call())
    return Watched(compiled=tuple(compiled), transfers=bool(lines), moved_bytes=sum(map(_bytes, set(lines))))


def leaves_work(call: Callable[[], Any], idle_s: float) -> bool:
    """Whether most of a call's work is done after what it returned is ready.

    Parameters
    ----------
    call : callable
    idle_s : ``work_in_pause`` before the first call of it: what the process works anyway

    Notes
    -----
    By processor time, so that other processes do not matter; on forced host devices only, where the devices are threads
    of this process. Two of three attempts must show it: on a busy machine the work may be done before the call returns.
    """
    import jax

    if jax.default_backend() != "cpu":
        return False
    _work_until_quiet(idle_s)
    # Always three: the calls of several processes must be as many in each.
    return sum([_works_after(call, idle_s) for _ in range(3)]) >= 2


def _works_after(call: Callable[[], Any], idle_s: float) -> bool:
    import jax

    start = time.process_time()
    jax.block_until_ready(call())
    during_s = time.process_time() - start
    after_s = _work_until_quiet(idle_s)
    return after_s > max(during_s, _LEAST_WORK_S)


def _work_until_quiet(idle_s: float) -> float:
    """Wait until the process works no more than it does anyway; the processor time beyond that, seconds."""
    total_s, quiet = 0.0, 0
    for _ in range(_MOST_PAUSES):
        beyond_s = work_in_pause() - idle_s
        total_s += max(beyond_s, 0.0)
        # Two pauses in a row: threads may wait for a core for one.
        quiet = quiet + 1 if beyond_s < max(_LEAST_WORK_S, idle_s / 4) else 0
        if quiet == 2:
            break
    return total_s


def work_in_pause() -> float:
    """Processor time of this process while the calling thread sleeps for 20 ms, seconds."""
    start = time.process_time()
    time.sleep(_PAUSE_S)
    return time.process_time() - start


@contextlib.contextmanager
def _compilations() -> Iterator[list[str]]:
    """Names of the functions that are compiled within it."""
    from jax import monitoring

    found: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        del duration_secs
        if event == COMPILE_EVENT:
            found.append(str(kwargs.get("fun_name", "a function")))

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        monitoring.unregister_event_duration_listener(listen)


@contextlib.contextmanager
def _transfers() -> Iterator[list[str]]:
    """What is moved to devices within it, as JAX's transfer guard logs it: arrays from Python with type and target.

    The guard writes to descriptor 2 from C++; whatever else is written there comes out afterwards.
    """
    import jax

    found: list[str] = []
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            with jax.transfer_guard("log_explicit"):
                yield found
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            log.seek(0)
            for line in log.read().decode(errors="replace").splitlines(keepends=True):
                if moved := _TRANSFER.search(line):
                    found.append(moved[1])
                else:
                    os.write(2, line.encode())


def _bytes(transfer: str) -> int:
    """Size of the array that a line of the guard's log is about; 0 for a number, or where it does not say."""
    found = _ARRAY.search(transfer)
    if found is None or not found[2]:
        return 0
    bits = int(found[1] or 8)
    return math.prod(int(size) for size in found[2].split(",") if size) * max(bits // 8, 1)
