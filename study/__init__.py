"""The loop: plan, measure, fit, answer."""

from __future__ import annotations

from .loop import run

__all__ = ["run"]
