"""breakeven: from where on does adding devices help a JAX program, and what holds the rest back.

The rooms are subpackages (``breakeven.model``, ``.data``, ``.measure``, ``.fit``, ``.study``, ``.figures``);
public names below load theirs when first used, so that ``import breakeven`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_LAZY = {
    "workload": ("breakeven.measure.userfile", "workload"),
    "load": ("breakeven.data.catalog", "load"),
    "run": ("breakeven.study.loop", "run"),
}
_ROOMS = ("model", "data", "measure", "fit", "study", "figures")

if TYPE_CHECKING:
    from breakeven.data.catalog import load
    from breakeven.measure.userfile import workload
    from breakeven.study.loop import run

__all__ = ["__version__", "load", "run", "workload"]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"breakeven.{name}")
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'breakeven' has no attribute {name!r}")
