"""The workloads that come with the package, one module each."""

from __future__ import annotations

import importlib

from ..workload import MeasureError, Workload

_MODULES = {
    "issue-21411": "issue_21411",
    "mean-all": "mean_all",
    "matmul": "matmul",
    "matmul-contract": "matmul_contract",
    "train-step": "train_step",
    "sin-reduce": "sin_reduce",
}


def names() -> tuple[str, ...]:
    """Names of the built-in workloads."""
    return tuple(_MODULES)


def builtin(name: str) -> Workload:
    """Return a built-in workload.

    Raises
    ------
    MeasureError
        If there is none of that name.
    """
    if name not in _MODULES:
        raise MeasureError(f"unknown built-in workload {name!r}. Built in: {', '.join(_MODULES)}.")
    return importlib.import_module(f".{_MODULES[name]}", __name__).WORKLOAD
