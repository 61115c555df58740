"""When the batch job around this process ends, where its system says so."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping

from .workload import MeasureError

JOB_END = "SLURM_JOB_END_TIME"
"""Seconds since 1970, as ``srun`` and ``sbatch`` set it."""
KEPT_S = 60.0
"""Left of a job when a sweep ends: the fit, the figures, and a round that takes longer than the last."""


def job_ends_at(environment: Mapping[str, str] = os.environ) -> float | None:
    """When a sweep must end, on ``time.monotonic``: a minute before its job does; None: no limit is known.

    Raises
    ------
    MeasureError
        If that is now or over.
    """
    text = environment.get(JOB_END, "")
    if not text.isdecimal():
        return None
    left = int(text) - time.time() - KEPT_S
    if left <= 0:
        raise MeasureError(
            f"the job ends within {KEPT_S:g} s ({JOB_END}): start the same command in a new one, and it goes on."
        )
    return time.monotonic() + left


def within_job(ends_at: float | None, job_ends_at: float | None) -> float | None:
    """Return the earlier of a budget's end and the job's; where the job shortens a budget, a warning says so."""
    if job_ends_at is None or ends_at is None:
        return job_ends_at if ends_at is None else ends_at
    if job_ends_at < ends_at:
        now = time.monotonic()
        warnings.warn(
            f"the job's time limit leaves {job_ends_at - now:.0f} s, and {ends_at - now:.0f} s were wanted: the "
            "launches share what is left.",
            stacklevel=2,
        )
    return min(ends_at, job_ends_at)
