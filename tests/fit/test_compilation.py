import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from breakeven.fit.compilation import cache_folder, enable_cache

REFIT = """
from breakeven.fit.compilation import enable_cache
print(enable_cache())
import numpy as np
from breakeven.fit.solver import solve_bounded
solve_bounded(np.eye(3), np.ones((2, 3)))
"""


def test_programs_are_kept_in_a_private_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", REFIT],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    folder = tmp_path / "breakeven"
    assert done.stdout.strip() == str(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert any("solve" in path.name for path in folder.iterdir())


def test_a_relative_cache_home_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "breakeven"


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"BREAKEVEN_CACHE": "/scratch/fits", "XDG_CACHE_HOME": "/other"}, "/scratch/fits"),
        ({"BREAKEVEN_CACHE": "", "XDG_CACHE_HOME": "/other"}, None),
        ({"BREAKEVEN_CACHE": "somewhere"}, None),
        ({"SLURM_JOB_ID": "7"}, None),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None),
        ({"SLURM_JOB_ID": "7", "XDG_CACHE_HOME": "/scratch"}, "/scratch/breakeven"),
    ],
)
def test_a_batch_job_keeps_nothing_at_home_unless_told(variables, folder):
    assert cache_folder(variables) == (None if folder is None else Path(folder))


def test_nothing_is_kept_where_none_is_wanted(monkeypatch):
    monkeypatch.setenv("BREAKEVEN_CACHE", "")
    assert enable_cache() is None


@pytest.mark.parametrize("kind", ["file", "link"])
def test_no_cache_where_the_folder_is_not_ours_alone(monkeypatch, tmp_path, kind):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if kind == "file":
        (tmp_path / "breakeven").write_text("")
    else:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "breakeven").symlink_to(tmp_path / "elsewhere")
    assert enable_cache() is None
