"""10,000 bounded refits of resampled rounds, end to end, against loops over scipy and statsmodels.

    python benchmarks/refits.py

48 cells, 30 rounds, 5 parameters. Everybody gets the same draws and is charged for drawing them. The loops are the
best ones found: ``nnls`` sees the 5 x 5 Cholesky factor of the normal equations and never the rows; ``WLS`` sees 48
cell means. ``WLS`` knows no bounds, so its answers are compared where no bound is met.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from breakeven.fit.resample import draw_counts, normal_equations, refit
from scipy.optimize import nnls

DRAWS = 10_000
ROUNDS = 30
COUNTS = (1, 2, 4, 8)
SIZES = tuple(2**k for k in range(10, 22))
PARAMETERS = np.array([20e-6, 0.0, 8e-6, 1e-10, 2e-10])
"""c0, entry (0: about half of the refits meet its bound), dispatch, gamma, beta; SI units."""
RUNS = 5
SUBSET = 500
"""Resamples that statsmodels fits; its time is scaled up."""


@dataclass(frozen=True)
class Sweep:
    """48 cells x 30 rounds with their weights."""

    design: np.ndarray
    latency_s: np.ndarray
    weights: np.ndarray


def make_sweep(*, balanced: bool, seed: int = 3) -> Sweep:
    """Times with 10 % noise; where not ``balanced``, a tenth of the visits is missing."""
    rng = np.random.default_rng(seed)
    n, size = (axis.ravel().astype(float) for axis in np.meshgrid(COUNTS, SIZES))
    design = np.stack([np.ones_like(n), n > 1, n, size / n, 2 * (n - 1) / n * size], axis=1)
    truth = design @ PARAMETERS
    latency_s = truth[:, None] * (1 + 0.1 * rng.standard_normal((len(truth), ROUNDS)))
    if not balanced:
        latency_s[rng.random(latency_s.shape) < 0.1] = np.nan
    return Sweep(design, latency_s, 1 / truth**2)


def ours(sweep: Sweep) -> np.ndarray:
    """Draw, sum the normal equations, solve: all resamples at once."""
    counts = draw_counts(ROUNDS, DRAWS, seed=1)
    return refit(*normal_equations(sweep.design, sweep.latency_s, sweep.weights), counts)


def scipy_loop(sweep: Sweep) -> np.ndarray:
    """Solve one ``nnls`` of 5 rows a resample; one factorisation where the rounds are balanced."""
    counts = draw_counts(ROUNDS, DRAWS, seed=1)
    gram, rhs = normal_equations(sweep.design, sweep.latency_s, sweep.weights)
    # Columns differ by fifteen orders of magnitude.
    lengths = np.sqrt(np.einsum("pp...->p...", gram).reshape(len(gram), -1).mean(axis=1))
    right = (counts @ rhs.T) / lengths
    if gram.ndim == 2:
        factor = np.linalg.cholesky(gram * ROUNDS / np.outer(lengths, lengths)).T
        targets = np.linalg.solve(factor.T, right.T).T.copy()
        return np.array([nnls(factor, target)[0] for target in targets]) / lengths
    grams = (counts @ gram.reshape(-1, ROUNDS).T).reshape(-1, *gram.shape[:2]) / np.outer(lengths, lengths)
    factors = np.swapaxes(np.linalg.cholesky(grams), 1, 2).copy()
    targets = np.linalg.solve(np.swapaxes(factors, 1, 2), right[:, :, None])[:, :, 0]
    return np.array([nnls(a, y)[0] for a, y in zip(factors, targets, strict=True)]) / lengths


def statsmodels_loop(sweep: Sweep, draws: int = SUBSET) -> np.ndarray:
    """Fit one ``WLS`` of 48 cell means a resample (balanced rounds only)."""
    from statsmodels.regression.linear_model import WLS

    counts = draw_counts(ROUNDS, DRAWS, seed=1)[:draws]
    lengths = np.linalg.norm(sweep.design, axis=0)
    design = sweep.design / lengths
    means = counts @ sweep.latency_s.T / ROUNDS
    weights: Any = sweep.weights  # the stub knows a single number only
    return np.array([WLS(times, design, weights=weights).fit().params for times in means]) / lengths


def timed(function: Callable[[], np.ndarray]) -> tuple[float, float, np.ndarray]:
    """Seconds of the first run and the median of ``RUNS`` more; the last answer."""
    start = time.perf_counter()
    function()
    first = time.perf_counter() - start
    seconds, answer = [], np.empty(0)
    for _ in range(RUNS):
        start = time.perf_counter()
        answer = function()
        seconds.append(time.perf_counter() - start)
    return first, statistics.median(seconds), answer


def differ(found: np.ndarray, expected: np.ndarray, sweep: Sweep) -> float:
    """Largest difference of fitted times, relative to the cell's time: parameters weighed by what they do."""
    scale = np.sqrt(sweep.weights)[:, None]
    return float(np.abs((sweep.design * scale) @ (found - expected).T).max())


def main() -> None:
    print(
        f"{DRAWS:,} refits, {len(COUNTS) * len(SIZES)} cells x {ROUNDS} rounds x 5 parameters; medians of {RUNS} runs"
    )
    for balanced, target in ((True, 12), (False, 8)):
        sweep = make_sweep(balanced=balanced)
        first, seconds, found = timed(lambda sweep=sweep: ours(sweep))
        _, rival_s, rival = timed(lambda sweep=sweep: scipy_loop(sweep))
        print(f"\n{'balanced' if balanced else 'unbalanced'} rounds ({np.mean(found[:, 1] == 0):.0%} meet a bound)")
        print(f"  breakeven    {seconds * 1e3:8.2f} ms warm, {first * 1e3:.0f} ms the first time (compiles)")
        print(f"  scipy nnls   {rival_s * 1e3:8.2f} ms  {rival_s / seconds:6.1f} times (target {target})", end="")
        print(f"   answers differ by {differ(found, rival, sweep):.1e}")
        if balanced:
            compare_statsmodels(sweep, seconds, found)


def compare_statsmodels(sweep: Sweep, seconds: float, found: np.ndarray) -> None:
    """Print the line of statsmodels, timed on a subset."""
    _, part_s, book = timed(lambda: statsmodels_loop(sweep))
    scaled_s = part_s * DRAWS / SUBSET
    inside = (found[:SUBSET] > 0).all(axis=1)
    print(f"  statsmodels  {scaled_s * 1e3:8.0f} ms  {scaled_s / seconds:6.0f} times (target 200)", end="")
    print(f"   answers differ by {differ(found[:SUBSET][inside], book[inside], sweep):.1e}", end="")
    print(f"   [{SUBSET} of {DRAWS:,} timed and scaled; {inside.sum()} without a bound compared]")


if __name__ == "__main__":
    main()
