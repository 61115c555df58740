"""Figures for papers, drawn from an Answer: they compute nothing and draw nothing that the Answer does not hold."""

from __future__ import annotations

from .save import save_all

__all__ = ["save_all"]
