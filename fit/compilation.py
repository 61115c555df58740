"""JAX's persistent compilation cache, in a private folder of the user; in batch jobs only where one is named."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

OWN = "BREAKEVEN_CACHE"
"""The folder itself; empty: keep nothing."""
_BATCH_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "KUBERNETES_SERVICE_HOST")
"""Where one is set, the home folder is shared, small or not the user's."""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """``$BREAKEVEN_CACHE``, else ``$XDG_CACHE_HOME/breakeven``, else ``~/.cache/breakeven``; None: none is wanted.

    In a batch job nothing is kept below the home folder unless a variable says so.
    """
    if OWN in environment:
        return Path(environment[OWN]) if os.path.isabs(environment[OWN]) else None
    base = environment.get("XDG_CACHE_HOME", "")
    # The specification: a relative path is to be ignored.
    if os.path.isabs(base):
        return Path(base) / "breakeven"
    return None if any(name in environment for name in _BATCH_JOBS) else Path.home() / ".cache" / "breakeven"


def enable_cache() -> Path | None:
    """Let JAX keep what it compiles for the fits; call once, at process start, before anything is compiled.

    It sets JAX's global configuration, so it is for processes of our own (the command line), never for a library call
    inside a user's program, nor for processes that measure.

    Returns
    -------
    Path or None
        The folder; None where none is wanted, and where there is none that only this user can write to: cached
        programs are executed, so nobody else may put any there.
    """
    folder = cache_folder()
    if folder is None or not _is_private(folder):
        return None
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder))
    # The fits compile in less than JAX's threshold of one second; without these two nothing would be kept.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return folder


def _is_private(folder: Path) -> bool:
    """Make the folder with mode 0700, or take one of ours back to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            return False
        if stat.S_IMODE(status.st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError:
        return False
    return True
