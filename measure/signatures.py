"""Whether a user's functions take what they will be given, asked before anything starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .workload import MeasureError


def refuse_signature(function: Callable[..., Any] | None, what: str, arguments: tuple[str, ...]) -> None:
    """Refuse a function that cannot be called with so many positional arguments.

    Parameters
    ----------
    function : callable, optional
        None, and callables whose signature nobody knows, pass.
    what : str
        How the message names it.
    arguments : tuple of str
        Names of what it will be given.

    Raises
    ------
    MeasureError
        The message says what it must accept, and what it takes.
    """
    if function is None:
        return
    if not callable(function):
        raise MeasureError(f"{what} must be a function of ({', '.join(arguments)}), got {type(function).__name__}.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        taken = ", ".join(str(one).partition(":")[0] for one in signature.parameters.values())
        raise MeasureError(
            f"{what} is called with ({', '.join(arguments)}), but it takes ({taken}): {error}. "
            f"Write it as def {what.rpartition(':')[2].rpartition(' ')[2]}({', '.join(arguments)})."
        ) from None
