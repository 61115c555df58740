"""What may be asked of a table: a strategy, size and counts that it holds; anything else is refused by name."""

from __future__ import annotations

from collections.abc import Sequence


class QuestionError(ValueError):
    """Something was asked for that was not measured; the message says what was."""


def check_strategy(measured: Sequence[str], strategy: str | None) -> str:
    """The strategy asked for, else the first measured."""
    if strategy is None:
        return measured[0]
    if strategy not in measured:
        raise QuestionError(f"strategy {strategy!r} was not measured; measured: {', '.join(measured)}.")
    return strategy


def check_size(measured: Sequence[int], size: int | None) -> int:
    """The size asked for, else the largest measured, which comes last."""
    if size is None:
        return measured[-1]
    if size not in measured:
        raise QuestionError(f"size {size} was not measured; measured: {', '.join(map(str, measured))}.")
    return size


def check_reference(measured: Sequence[int], reference: int | None) -> int:
    """The reference count asked for, else the smallest measured, which comes first."""
    if reference is None:
        return measured[0]
    if reference not in measured:
        raise QuestionError(f"reference {reference} was not measured; measured: {', '.join(map(str, measured))}.")
    return reference


def check_largest(measured: Sequence[int], reference: int, max_devices: int | None) -> int:
    """The largest measured count up to ``max_devices``: what was not measured has no causes."""
    if max_devices is None:
        return measured[-1]
    if max_devices < reference:
        raise QuestionError(f"max_devices {max_devices} lies below the reference count {reference}.")
    return max(n for n in measured if n <= max_devices)
