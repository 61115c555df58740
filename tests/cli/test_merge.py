"""``breakeven merge``: what it says, and what it refuses."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from breakeven.data import recorded
from breakeven.data.store import read
from breakeven.fit.launches import from_record

MEAN_ALL = Path(next(iter(recorded.__path__))) / "mean-all.jsonl"


@pytest.fixture
def halves(tmp_path):
    """A recorded sweep as two records: one with every launch but the last two, one with every launch but the first."""
    lines = MEAN_ALL.read_bytes().splitlines(keepends=True)
    launches = [launch.launch for launch in read(MEAN_ALL).launches]
    paths = tmp_path / "monday.jsonl", tmp_path / "tuesday.jsonl"
    for path, left_out in zip(paths, (launches[-2:], launches[:1]), strict=True):
        path.write_bytes(b"".join(x for x in lines if msgspec.json.decode(x).get("launch") not in left_out))
    return [str(path) for path in paths]


def test_a_sweep_that_was_split_is_whole_again(halves, run_cli, tmp_path):
    target = tmp_path / "both.jsonl"
    code, out, err = run_cli("merge", *halves, "-o", str(target))
    whole = from_record(read(MEAN_ALL))
    rounds = sum(block.shape[1] for block in whole.rounds_s)
    assert (code, err) == (0, "")
    assert (
        f"both.jsonl: {whole.num_launches} complete launches, {rounds} complete rounds, joined from 2 records; " in out
    )
    joined = from_record(read(target))
    assert joined.cells == whole.cells
    np.testing.assert_array_equal(np.sort(joined.latency_s, axis=1), np.sort(whole.latency_s, axis=1))


def test_as_json(halves, run_cli, tmp_path):
    code, out, _ = run_cli("merge", *halves, "-o", str(tmp_path / "both.jsonl"), "--json")
    assert code == 0
    found = json.loads(out)
    assert found["launches"] == len(read(MEAN_ALL).launches)
    assert found["duplicate_lines"] > 0


def test_what_is_refused_changes_nothing(halves, run_cli, tmp_path):
    target = tmp_path / "both.jsonl"
    target.write_text("notes")
    code, out, err = run_cli("merge", *halves, "-o", str(target))
    assert (code, out) == (2, "")
    assert "exists; give another file with -o, or --force to replace it" in err
    assert target.read_text() == "notes"
    assert run_cli("merge", *halves, "-o", str(target), "--force")[0] == 0
    code, _, err = run_cli("merge", halves[0], "-o", str(target))
    assert code == 2
    assert "at least two records" in err
    code, _, err = run_cli("merge", *halves, str(tmp_path / "none.jsonl"), "-o", str(target), "-f")
    assert code == 2
    assert "none.jsonl: No such file" in err
