"""How many first calls of a visit are warm-ups: as many as it takes until the rest shows no falling trend.

Calls right after another program ran find cold caches, sleeping threads and a slow clock; a fixed number of calls to
leave out is too few on one machine and a waste on the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

FEWEST, MOST = 2, 4
"""The first two calls never count: a test on few visits may miss how slow they are. In 30 launches recorded on CPU the
first took 1.07 to 2.0 times the later ones, the second 1.01 to 1.2 times; unlimited, the test chose 2 to 5, 7 once.
More than four are never left out: in a sweep where it chose eight of eleven calls, three were left to count, and an
interval of a share was ten times as wide as usual."""
PROBED_CALLS = 12
"""Calls of a visit from which the number is taken; enough are left to show a trend after the most warm-ups."""
MATTERS = 0.01
"""A first call this little above the later ones is no warm-up, however sure the trend."""
_SERIES = 24
"""Visits, over all programs, that the number is taken from where time allows."""
_SHARE, _UNLIMITED_S = 0.1, 2.0
"""Of the time left that the test may take; and seconds, where nothing limits the time."""
_CRITICAL = 1.645
"""One-sided 5 % of the normal distribution. Written out, since scipy.stats takes half a second to import; of 1500
simulated sweeps of 2 to 90 visits without a trend 3 to 5 % were taken for falling."""


def passes(typical_s: Sequence[float], seconds_left: float | None) -> int:
    """Times to visit every program in turn for the test, so that each visit follows another program; 0: no time.

    Parameters
    ----------
    typical_s : one call of each program, seconds
    seconds_left : of the launch; None: no limit
    """
    seconds = _UNLIMITED_S if seconds_left is None else _SHARE * seconds_left
    one_pass_s = PROBED_CALLS * sum(typical_s)
    if not one_pass_s:
        return 0
    return max(0, min(math.ceil(_SERIES / len(typical_s)), int(seconds / one_pass_s)))


def first_steady(series: Sequence[Sequence[float]]) -> int:
    """Smallest number of warm-ups after which the calls of the visits fall no more.

    Parameters
    ----------
    series : the calls of each visit in order, at least ``PROBED_CALLS``, in any unit of time

    Returns
    -------
    int
        From ``FEWEST`` to ``MOST``; ``FEWEST`` where there is no visit.

    Notes
    -----
    For w = 2, 3, ... Kendall's S of the calls from w on against their order is summed over the visits, as Hirsch and
    others sum it over seasons [1]_, and w is taken when S is not significantly below 0, or when the next call lies
    less than ``MATTERS`` above the median of those after it (median over the visits). All programs together give one
    number: a visit alone has too few calls for a test, and a control must be treated as its workload is.

    References
    ----------
    .. [1] R. M. Hirsch, J. R. Slack, R. A. Smith, Water Resour. Res. 18, 107-121, 1982, doi:10.1029/WR018i001p00107.
    """
    if not series:
        return FEWEST
    calls = np.array([one[:PROBED_CALLS] for one in series], dtype=float)
    return next((w for w in range(FEWEST, MOST) if not falls(calls[:, w:])), MOST)


def falls(calls: np.ndarray) -> bool:
    """Whether calls, shape (visits, calls), fall with their place in the visit, and by enough to matter."""
    excess = calls[:, 0] / np.median(calls[:, 1:], axis=1) - 1
    if np.median(excess) < MATTERS:
        return False
    n = calls.shape[1]
    earlier, later = np.triu_indices(n, 1)
    score = np.sign(calls[:, later] - calls[:, earlier]).sum()
    # Ties, which a coarse clock gives, only make the variance smaller than this.
    variance = len(calls) * n * (n - 1) * (2 * n + 5) / 18
    return bool(score + 1 < -_CRITICAL * math.sqrt(variance))
