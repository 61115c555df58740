"""What is left of log times when nothing but cells and launches is taken out: the raw material of the diagnostics.

Logarithms, because noise on clocks is relative: a residual of 0.05 is a time 5 % too long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model.cell import Cell
from ..answer import Diagnostic
from ..launches import LaunchTable

LEVEL = 0.01
"""Of each family of tests after Holm inside it: a sound sweep raises any alarm at all in at most a few percent."""

MATTERS = 0.05
"""An effect below this share of the time is no alarm, however significant: no answer turns on it."""


@dataclass(frozen=True, kw_only=True)
class Residuals:
    """Residuals of C cells over G launches, law-free.

    Attributes
    ----------
    cells : C cells
    mean_s : ndarray, shape (C,), seconds: geometric mean over launches
    levels : ndarray, shape (C, G): log time minus the cell's mean
    launches : ndarray, shape (C, G): the same minus the launch's mean over cells
    launch_effects : ndarray, shape (G,): how much slower a launch was as a whole (median over cells)
    rounds : a launch each, shape (C, R): log visit minus the cell's mean in that launch; NaN where not visited
    round_effects : a launch each, shape (R,): how much slower a round was as a whole (median over cells), mean 0
    """

    cells: tuple[Cell, ...]
    mean_s: np.ndarray
    levels: np.ndarray
    launches: np.ndarray
    launch_effects: np.ndarray
    rounds: tuple[np.ndarray, ...]
    round_effects: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, table: LaunchTable) -> Residuals:
        """Take out cells and launches; cells not measured in every launch are left out."""
        there = np.isfinite(table.latency_s).all(axis=1)
        logs = np.log(table.latency_s[there])
        mean = logs.mean(axis=1, keepdims=True)
        levels = logs - mean
        rounds = tuple(_centred(np.log(block[there])) for block in table.rounds_s)
        return cls(
            cells=tuple(table.cells[i] for i in np.flatnonzero(there)),
            mean_s=np.exp(mean[:, 0]),
            levels=levels,
            launches=levels - levels.mean(axis=0),
            launch_effects=np.median(levels, axis=0),
            rounds=rounds,
            round_effects=tuple(_common(block) for block in rounds),
        )

    @property
    def num_launches(self) -> int:
        """G."""
        return self.launches.shape[1]


def _centred(logs: np.ndarray) -> np.ndarray:
    return logs - np.nanmean(logs, axis=1, keepdims=True)


def _common(block: np.ndarray) -> np.ndarray:
    effects = np.nanmedian(block, axis=0)
    return effects - effects.mean()


def percent(log_effect: float) -> str:
    """A log effect as a change in percent: ``12 %``, ``-3 %``."""
    change = 100 * np.expm1(log_effect)
    return f"{round(change)} %" if abs(change) >= 10 else f"{change:.2g} %"


def skipped(name: str, why: str, remedy: str = "", *, where: str = "all cells") -> Diagnostic:
    """A check that could not be run."""
    return Diagnostic(name=name, where=where, passed=None, words=why, remedy=remedy)


def judged(
    name: str, where: str, *, statistic: float, p: float | None, failed: bool, words: str, remedy: str
) -> Diagnostic:
    """A check that was run; the remedy only where it failed."""
    return Diagnostic(
        name=name,
        where=where,
        statistic=float(statistic),
        p=p,
        passed=not failed,
        words=words,
        remedy=remedy if failed else "",
    )


def others(count: int) -> str:
    """`` and 3 other cells`` behind the worst one."""
    return "" if count < 1 else f" and {count} other cell{'s' if count > 1 else ''}"
