"""Least squares with coefficients bounded at 0, thousands of small problems in one call, in JAX float64.

Each problem is given by its Gram matrix X'WX and its right-hand side X'Wy, so its cost does not depend on the number
of observations. Inside a block the problems run along the last axis: elementwise operations are then contiguous.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

BLOCK = 512
"""Problems solved together; a block's matrices stay in the processor's cache."""
UNROLLED = 8
"""Up to this many coefficients the elimination is written out: three times faster, but slow to compile beyond."""
DEPENDENT = 1e-10
"""A column is left out when less than this share of its squared length is its own (1 - R² on the columns before)."""
TOLERANCE = 1e-12
"""Violations of a bound below this share of the largest right-hand side entry are rounding."""
MAX_EXCHANGES = 200


class SolverError(RuntimeError):
    """Problems that hold what is not finite; the message says how many."""


def solve_bounded(gram: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    r"""Minimise :math:`\tfrac12 x^T G x - b^T x` over :math:`x \ge 0`, for B problems.

    Parameters
    ----------
    gram : ndarray, shape (P, P) shared by all problems, or (B, P, P)
        Symmetric, positive semi-definite. Rows and columns of zeros are padding: their coefficient is 0.
    rhs : ndarray, shape (B, P)

    Returns
    -------
    ndarray, shape (B, P), float64
        Where columns depend on one another some of their coefficients are 0; the fitted values are those of least
        squares all the same.

    Raises
    ------
    SolverError
        If an entry is not finite.

    Notes
    -----
    Block principal pivoting [1]_: guess which coefficients are free, solve for them, exchange all that violate their
    condition of optimality; where that does not lessen the violations, exchange only the last one. Where columns are
    dependent up to rounding it may go round in circles: what is not solved after ``MAX_EXCHANGES`` exchanges is left
    to scipy's active sets.

    References
    ----------
    .. [1] J. Kim & H. Park, SIAM J. Sci. Comput. 33(6), 3261-3281, 2011, doi:10.1137/110821172.
    """
    with jax.enable_x64(True):
        solution, unsolved = _solve(np.asarray(gram, dtype=float), np.asarray(rhs, dtype=float))
    solution, left = np.asarray(solution), np.flatnonzero(unsolved)
    if left.size:
        solution = solution.copy()
        grams = np.broadcast_to(gram, (len(rhs), *np.shape(gram)[-2:]))
        if not (np.isfinite(grams[left]).all() and np.isfinite(rhs[left]).all()):
            raise SolverError(
                f"{left.size} of {len(rhs)} bounded least-squares problems were not solved; "
                "check that all times and weights are finite."
            )
        for i in left:
            solution[i] = _by_active_sets(grams[i], rhs[i])
    return solution


def _by_active_sets(gram: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """One problem, from a square root of its Gram matrix; what is dependent up to rounding is left out."""
    from scipy.optimize import nnls

    length = np.sqrt(np.diagonal(gram))
    length = np.where(length > 0, length, 1.0)
    squares, directions = np.linalg.eigh(gram / (length[:, None] * length))
    kept = squares > DEPENDENT
    root, directions = np.sqrt(squares[kept]), directions[:, kept]
    return nnls(root[:, None] * directions.T, directions.T @ (rhs / length) / root)[0] / length


@jax.jit
def _solve(gram: jax.Array, rhs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve block by block; problems added to fill the last block are empty."""
    count, size = rhs.shape
    block = min(BLOCK, count)
    padding = -count % block

    def stack(array: jax.Array) -> jax.Array:
        padded = jnp.pad(array, [(0, padding)] + [(0, 0)] * (array.ndim - 1))
        return padded.reshape(-1, block, *array.shape[1:])

    if gram.ndim == 2:
        solution, unsolved = lax.map(lambda part: _pivot(gram, part.T), stack(rhs))
    else:
        solution, unsolved = lax.map(
            lambda part: _pivot(jnp.moveaxis(part[0], 0, -1), part[1].T), (stack(gram), stack(rhs))
        )
    return solution.reshape(-1, size)[:count], unsolved.reshape(-1)[:count]


def _pivot(gram: jax.Array, rhs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Block principal pivoting of one block: the solution, shape (b, P), and whether it is unsolved, shape (b,)."""
    num_coefficients, count = rhs.shape
    gram = gram.reshape(num_coefficients, num_coefficients, -1)
    length = jnp.sqrt(jnp.diagonal(gram).T)
    length = jnp.where(length > 0, length, 1.0)
    gram, rhs = gram / (length[:, None] * length), rhs / length
    slack = TOLERANCE * jnp.max(jnp.abs(rhs), axis=0)
    eliminate = _eliminate_unrolled if num_coefficients <= UNROLLED else _eliminate_looped
    index = jnp.arange(num_coefficients)[:, None]

    def exchange(state):
        free, fewest, patience, _, _, turn = state
        # Of free coefficients the value, of those at 0 how fast the fit would get better.
        value, swept = eliminate(gram, rhs, free)
        # A free column that depends on others stays at 0, and nothing is gained by moving it.
        wrong = jnp.where(free, swept & (value < -slack), value > slack)
        violations = wrong.sum(0)
        fewer = violations < fewest
        last = wrong & (index == jnp.max(jnp.where(wrong, index, -1), axis=0))
        free = free ^ jnp.where(fewer | (patience > 0), wrong, last)
        patience = jnp.where(fewer, 3, jnp.maximum(patience - 1, 0))
        return free, jnp.minimum(fewest, violations), patience, jnp.where(swept, value, 0.0), violations > 0, turn + 1

    def unfinished(state):
        return jnp.any(state[4]) & (state[5] < MAX_EXCHANGES)

    start = (
        jnp.ones(rhs.shape, bool),
        jnp.full(count, num_coefficients + 1),
        jnp.full(count, 3),
        jnp.zeros_like(rhs),
        jnp.ones(count, bool),
        0,
    )
    _, _, _, solution, wrong, _ = lax.while_loop(unfinished, exchange, start)
    unsolved = wrong | ~jnp.isfinite(rhs).all(0)
    return (jnp.maximum(solution, 0.0) / length).T, unsolved


def _eliminate_unrolled(gram: jax.Array, rhs: jax.Array, free: jax.Array) -> tuple[jax.Array, jax.Array]:
    """LDL' factors written out entry by entry, so that XLA fuses them; returns what ``_eliminate_looped`` does."""
    size = range(rhs.shape[0])
    lower = [[rhs[0]] * rhs.shape[0] for _ in size]
    pivots, swept, forward, value = [], [], [], [rhs[0]] * rhs.shape[0]
    for j in size:
        pivot = gram[j, j] - sum(lower[j][k] ** 2 * pivots[k] for k in range(j))
        swept.append(free[j] & (pivot > DEPENDENT))
        pivots.append(jnp.where(swept[j], pivot, 1.0))
        for i in size[j + 1 :]:
            entry = gram[i, j] - sum(lower[i][k] * lower[j][k] * pivots[k] for k in range(j))
            lower[i][j] = jnp.where(swept[j], entry / pivots[j], 0.0)
        forward.append(jnp.where(swept[j], rhs[j] - sum(lower[j][k] * forward[k] for k in range(j)), 0.0))
    for i in reversed(size):
        value[i] = jnp.where(swept[i], forward[i] / pivots[i] - sum(lower[k][i] * value[k] for k in size[i + 1 :]), 0.0)
    solution, mask = jnp.stack(value), jnp.stack(swept)
    return jnp.where(mask, solution, rhs - jnp.sum(gram * solution, axis=1)), mask


def _eliminate_looped(gram: jax.Array, rhs: jax.Array, free: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve for the free coefficients by Gauss-Jordan sweeps of [G b].

    Returns
    -------
    value : shape (P, B), of swept coefficients the solution, of the others the right-hand side less the fit
    swept : shape (P, B), the free ones that do not depend on those before
    """

    index = jnp.arange(len(rhs))

    def sweep(k, state):
        tableau, swept = state
        # Masks, not scatters: a scatter would be compiled to a loop of its own.
        here = (index == k)[:, None]
        column = lax.dynamic_index_in_dim(tableau, k, 1, keepdims=True)
        pivot = jnp.sum(jnp.where(here, column[:, 0], 0.0), axis=0)
        take = jnp.any(here & free, axis=0) & (pivot > DEPENDENT)
        row = lax.dynamic_index_in_dim(tableau, k, 0, keepdims=True) / jnp.where(take, pivot, 1.0)
        reduced = jnp.where(here[:, None], row, tableau - column * row)
        return jnp.where(take, reduced, tableau), swept | (here & take)

    full = jnp.broadcast_to(gram, (len(rhs), *rhs.shape))
    tableau = jnp.concatenate([full, rhs[:, None]], axis=1)
    tableau, swept = lax.fori_loop(0, rhs.shape[0], sweep, (tableau, jnp.zeros(rhs.shape, bool)))
    return tableau[:, -1], swept
