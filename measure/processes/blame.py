"""Several processes, one thing that went wrong: which of their failures is the root, and which only follow it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ...data.schema import Failure

WAITING = "Waiting"
"""Error of a process that was ended while it waited for the others: nothing was wrong with it."""

SILENT = "Silent"
"""Error of a process that does not even answer when it is asked to show where it is."""

_FOLLOWS = re.compile(
    r"Gloo .*(failed|error)|NCCL .*(failed|error)|connection (closed|reset)|coordination.?service|"
    r"JAX distributed service|heartbeat|broken pipe",
    re.IGNORECASE,
)
"""What gloo, NCCL and the coordination service say in the other processes when one has gone."""


def follows(failure: Failure) -> bool:
    """Whether a failure is what a healthy process says when another one is gone or does not come."""
    return failure.error == WAITING or _FOLLOWS.search(failure.message) is not None


def root(failures: Sequence[Failure], everyone: int) -> Failure:
    """The failure at the root, which names its rank; none is named where the same happened to all.

    Parameters
    ----------
    failures : at least one, each with its rank, in the order in which they were heard of
    everyone : processes that could have failed
    """
    guilty = [failure for failure in failures if not follows(failure)] or [failures[0]]
    first = next((failure for failure in guilty if failure.error == SILENT), guilty[0])
    alike = {failure.rank for failure in failures if _what(failure) == _what(first)}
    if len(alike) == everyone > 1:
        return msgspec.structs.replace(first, rank=None)
    return msgspec.structs.replace(first, message=f"rank {first.rank}: {first.message}")


def _what(failure: Failure) -> tuple[str, str, tuple[str, ...]]:
    return failure.error, failure.message, failure.frames
