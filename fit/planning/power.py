"""How many launches and rounds it takes to tell a difference, or to know a number well enough.

The product's own procedures are planned for: the two-sided t test of a log ratio over launches, and the t interval.
Where the noise comes from a pilot, power is averaged over the variances that the pilot speaks for, so that a design
reaches its power over pilots and not only for a pilot that happened to be right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from scipy import special

from ..intervals import MIN_LAUNCHES
from .noise import Noise

LAUNCHES = (3, 4, 6, 8, 12, 16, 24, 32)
ROUNDS = (1, 2, 4, 8, 16)
MOST_LAUNCHES = 1000
FAR_OUT = 500.0
"""From here on the power is 1 within 1e-9 even with 2 degrees of freedom; far beyond, ``ncfdtr`` returns NaN."""
START_IN_ROUNDS = 4
"""Where no pilot says what a launch costs, its start is taken to cost as much as so many rounds."""


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """So many launches of so many rounds, the power they have, and the seconds they take (None: no pilot says)."""

    launches: int
    rounds: int
    power: float
    seconds: float | None = None


Chance = Callable[[np.ndarray, int], np.ndarray]
"""From variances of a launch's mean, shape (Q,), and a number of launches to the probability of success, (Q,)."""


def detects(effect: float, level: float) -> Chance:
    """Power of the two-sided t test of "the mean is 0" when it is ``effect``.

    Notes
    -----
    With G launches the square of the statistic is noncentral F with 1 and G - 1 degrees of freedom and noncentrality
    effect² G / V. (scipy's ``nctdtr`` returns NaN for many arguments.)
    """

    def chance(variance: np.ndarray, launches: int) -> np.ndarray:
        critical = special.stdtrit(launches - 1, 1 - level / 2)
        noncentrality = np.minimum(effect**2 * launches / variance, FAR_OUT)
        return np.asarray(1 - special.ncfdtr(1, launches - 1, noncentrality, critical**2))

    return chance


def narrows(half_width: float, level: float) -> Chance:
    """Probability that the t interval's half width is at most ``half_width``: its own standard deviation varies."""

    def chance(variance: np.ndarray, launches: int) -> np.ndarray:
        if half_width <= 0:
            return np.zeros_like(variance)
        critical = special.stdtrit(launches - 1, 1 - level / 2)
        return special.chdtr(launches - 1, (launches - 1) * launches * (half_width / critical) ** 2 / variance)

    return chance


def designs(noise: Noise, chance: Chance, seconds: Callable[[int, int], float] | None) -> tuple[Design, ...]:
    """The table: power of every number of launches and rounds in it."""
    return tuple(
        Design(
            launches=g, rounds=r, power=power(noise, chance, g, r), seconds=None if seconds is None else seconds(g, r)
        )
        for r in rounds_for(noise)
        for g in LAUNCHES
    )


def power(noise: Noise, chance: Chance, launches: int, rounds: int) -> float:
    """Probability of success, averaged over the variances that the pilot speaks for."""
    return float(chance(noise.likely(rounds), launches).mean())


def cheapest(noise: Noise, chance: Chance, wanted: float, seconds: Callable[[int, int], float] | None) -> Design | None:
    """The design of least cost that reaches ``wanted``; None where ``MOST_LAUNCHES`` do not."""
    found = []
    for rounds in rounds_for(noise):
        launches = needed(lambda g, r=rounds: power(noise, chance, g, r) >= wanted)
        if launches is not None:
            cost = launches * (START_IN_ROUNDS + rounds) if seconds is None else seconds(launches, rounds)
            found.append((cost, launches, rounds))
    if not found:
        return None
    _, launches, rounds = min(found)
    return Design(
        launches=launches,
        rounds=rounds,
        power=power(noise, chance, launches, rounds),
        seconds=None if seconds is None else seconds(launches, rounds),
    )


def launches_range(
    noise: Noise, chance: Chance, wanted: float, rounds: int, confidence: float
) -> tuple[int | None, int | None] | None:
    """Launches needed at either end of the variance's interval; None where it was stated."""
    ends = noise.interval(rounds, confidence)
    if ends is None:
        return None
    lower, upper = (needed(lambda g, v=v: float(chance(np.array([v]), g)[0]) >= wanted) for v in ends)
    return lower, upper


def rounds_for(noise: Noise) -> Sequence[int]:
    """Rounds to plan with: one where the pilot cannot say what a second one adds."""
    return ROUNDS if noise.round_var is not None else ROUNDS[:1]


def needed(enough: Callable[[int], bool]) -> int | None:
    """The smallest number of launches that is enough, by halving; None where ``MOST_LAUNCHES`` are not."""
    if not enough(MOST_LAUNCHES):
        return None
    low, high = MIN_LAUNCHES - 1, MOST_LAUNCHES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
