"""The record: schema, store, tidy table, readers of foreign formats, and the recorded sweeps that ship."""

from __future__ import annotations

from .catalog import load

__all__ = ["load"]
