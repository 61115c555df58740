import signal
import time
import warnings

import pytest
from breakeven.data.store import read
from breakeven.measure import sweep, time_limit
from breakeven.measure.time_limit import job_ends_at, within_job
from breakeven.measure.workload import MeasureError


def ending_in(seconds):
    return {"SLURM_JOB_END_TIME": str(int(time.time() + seconds))}


def test_a_sweep_ends_a_minute_before_its_job():
    # The variable holds whole seconds.
    assert job_ends_at(ending_in(600)) - time.monotonic() == pytest.approx(540, abs=2)


@pytest.mark.parametrize("environment", [{}, {"SLURM_JOB_END_TIME": ""}, {"SLURM_JOB_END_TIME": "UNLIMITED"}])
def test_no_limit_is_known(environment):
    assert job_ends_at(environment) is None


def test_a_job_that_is_about_to_end_starts_nothing():
    with pytest.raises(MeasureError, match=r"the job ends within 60 s \(SLURM_JOB_END_TIME\): start the same command"):
        job_ends_at(ending_in(50))


def test_the_earlier_end_counts_and_a_shorter_budget_is_said():
    now = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert within_job(None, None) is None
        assert within_job(now + 100, None) == now + 100
        assert within_job(None, now + 100) == now + 100
        assert within_job(now + 50, now + 100) == now + 50
    with pytest.warns(UserWarning, match="the job's time limit leaves 100 s, and 300 s were wanted"):
        assert within_job(now + 300, now + 100) == now + 100


def test_a_sweep_stops_when_its_job_is_about_to_end(monkeypatch, plan_of, user_file, tmp_path):
    """Between launches: what was measured is whole, and the same command goes on."""
    path = tmp_path / "sweep.jsonl"
    plan = plan_of(user_file(), launches=2)
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time() + 1000)))

    def over(_record):
        monkeypatch.setattr(time_limit.time, "monotonic", lambda now=time.monotonic: now() + 2000)

    with pytest.raises(sweep.Interrupted, match="holds 1 of 2 launches; the same command goes on") as ended:
        sweep.run(plan, path, on_launch=over)
    assert ended.value.signal == signal.SIGTERM
    monkeypatch.undo()
    sweep.run(plan, path)
    assert sweep.complete_launches(read(path)) == 2
