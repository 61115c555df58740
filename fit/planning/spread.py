"""How much a cell's time varies, between launches and within one, as far as a pilot sweep shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...model.cell import Cell
from ..intervals import MIN_LAUNCHES
from ..launches import LaunchTable


class NoSpread(ValueError):
    """A pilot that shows no spread between launches; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Variances of log times.

    Attributes
    ----------
    cells : of one launch's mean over ``rounds`` rounds, by cell, without what all cells of a launch share
    typical : the same, for a cell that was not measured
    launch_sd : standard deviation of what all cells of a launch share
    within : share of the variances that comes from the rounds, and shrinks with their number
    rounds : of a launch of the pilot
    dof : degrees of freedom behind; None where the spread was stated
    """

    cells: Mapping[Cell, float]
    typical: float
    launch_sd: float
    within: float
    rounds: float
    dof: int | None

    def variance(self, cell: Cell, rounds: np.ndarray | float) -> np.ndarray | float:
        """Variance of one launch's log time of a cell after so many rounds."""
        return self.cells.get(cell, self._like(cell)) * (1 - self.within + self.within * self.rounds / rounds)

    def _like(self, cell: Cell) -> float:
        """The mean over the cells of the same program at the same count, else over all."""
        kin = [
            v for c, v in self.cells.items() if (c.role, c.strategy, c.num_devices) == _program(cell) and c.k == cell.k
        ]
        return float(np.mean(kin)) if kin else self.typical


def spread(table: LaunchTable, noise: float | None = None) -> Spread:
    """Estimate the spread of a pilot, or take it as stated.

    Parameters
    ----------
    table : LaunchTable
    noise : standard deviation of a cell's log time between launches (0.05: 5 %), instead of the pilot's own

    Raises
    ------
    NoSpread
        If the pilot has fewer than three launches, or a single cell, and ``noise`` is not given.

    Notes
    -----
    Times are centred by cell and by launch (two-way analysis of variance on logarithms), rounds within a launch
    likewise. A cell's own variance, on few degrees of freedom, is averaged with that of all cells.
    """
    if noise is not None:
        return Spread(cells={}, typical=noise**2, launch_sd=noise, within=0.0, rounds=1.0, dof=None)
    _check(table)
    logs = np.log(table.latency_s)
    cells, launches = logs.shape
    own = _interaction(logs)
    typical = float(own.mean())
    rounds, visit = _visits(table)
    within = min(1.0, visit / rounds / typical) if typical > 0 else 0.0
    shared = float(logs.mean(axis=0).var(ddof=1)) - typical / cells
    return Spread(
        cells=dict(zip(table.cells, ((own + typical) / 2).tolist(), strict=True)),
        typical=typical,
        launch_sd=float(np.sqrt(max(0.0, shared))),
        within=within,
        rounds=rounds,
        dof=launches - 1,
    )


def _check(table: LaunchTable) -> None:
    state = "or state the spread of a time between launches, as --noise 0.05 for 5 %"
    if table.partial_launches:
        raise NoSpread(f"{table.source}: how much launches differ is unknown: {table.partial_launches}, {state}.")
    if not table.replicated:
        raise NoSpread(
            f"{table.source}: nothing says which rows come from independent launches, so how much they differ is "
            f"unknown. Name the column with --columns launch=NAME, {state}."
        )
    if table.num_launches < MIN_LAUNCHES:
        raise NoSpread(
            f"{table.source}: {table.num_launches} launches show no spread. Measure {MIN_LAUNCHES} or more, {state}."
        )
    if len(table.cells) < 2:
        raise NoSpread(f"{table.source}: a single cell shows no spread of differences. Measure more, {state}.")


def _interaction(logs: np.ndarray) -> np.ndarray:
    """Variance of each row after centring rows and columns of shape (C, G), shape (C,)."""
    cells, columns = logs.shape
    left = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=0) + logs.mean()
    return (left**2).sum(axis=1) / ((columns - 1) * (cells - 1) / cells)


def _visits(table: LaunchTable) -> tuple[float, float]:
    """Rounds of a launch, and the variance of one visit within a launch, 0 where there is one round only."""
    blocks = [np.log(block[:, ~np.isnan(block).any(axis=0)]) for block in table.rounds_s]
    several = [block for block in blocks if block.shape[1] > 1]
    if not several:
        return 1.0, 0.0
    return float(np.mean([b.shape[1] for b in blocks])), float(np.mean([_interaction(b).mean() for b in several]))


def _program(cell: Cell) -> tuple[str, str, int]:
    return cell.role, cell.strategy, cell.num_devices
