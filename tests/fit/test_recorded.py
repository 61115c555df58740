"""The recorded sweeps of the built-in workloads: real measurements, and what they must show."""

import math

import pytest
from breakeven.data.catalog import load
from breakeven.fit.breakeven import break_even
from breakeven.fit.intervals import log_t_estimate
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer


@pytest.fixture(scope="module")
def table_of():
    known = {}

    def open_once(name):
        if name not in known:
            known[name] = from_record(load(name))
        return known[name]

    return open_once


@pytest.fixture(scope="module")
def issue(table_of):
    return answer(table_of("issue-21411"))


def test_the_issues_program_is_not_communication_bound(issue):
    assert issue.collectives == ()
    bound = issue.communication_bound
    assert "no collective" in bound.rejected_outright
    meanings = (bound.share, bound.exceeds_compute, bound.growth, bound.no_gain_even_with_free_dispatch)
    assert [meaning.holds for meaning in meanings] == ["no"] * 4


def test_the_issues_growth_is_dispatch_on_shared_cores(issue):
    assert issue.verdict == "dispatch"
    assert issue.shared_resource
    assert (issue.growth_range.from_devices, issue.growth_range.to_devices) == (2, 8)
    lower, upper = issue.growth["communication"].interval
    assert lower < 0 < upper
    assert upper - lower <= 0.2
    assert issue.growth_step.undecided
    assert issue.optimal_devices.estimate == 8  # by throughput, since each device brings its own work


def test_pmap_as_the_issue_wrote_it_differs_by_input_transfer(issue):
    (transfer,) = issue.input_transfer
    assert (transfer.strategy, transfer.placed, transfer.num_devices) == ("pmap-unplaced", "pmap", 8)
    assert transfer.latency_s.interval[0] > 100e-6


def test_a_global_mean_is_one_all_reduce_of_four_bytes(table_of):
    mean_all = answer(table_of("mean-all"))
    (collective,) = mean_all.collectives
    assert (collective.kind, collective.count, collective.message_bytes) == ("all-reduce", 1, 4)
    assert collective.group_size == 8
    lower, upper = mean_all.growth["communication"].interval
    assert upper - lower <= 0.3
    assert lower > 0
    for cost in mean_all.collective_cost:
        assert None not in (cost.chain.interval, cost.replay.interval, cost.difference.interval)
        assert cost.agree or cost.reason


def test_the_payload_of_a_contraction_is_its_whole_result(table_of):
    table = table_of("matmul-contract")
    cells = [cell for cell in table.select("workload") if cell.num_devices > 1]
    assert len(cells) == 9
    for cell in cells:
        (collective,) = table.facts[cell].collectives
        assert (collective.kind, collective.message_bytes) == ("all-reduce", 4 * cell.size**2)
        assert collective.group_size == cell.num_devices


def test_the_break_even_size_lies_where_sizes_left_out_of_the_fit_put_it(table_of):
    """Every other size is left out; the bracket is what those sizes show without any fit."""
    table = table_of("sin-reduce")
    sizes = table.sizes()
    fitted, checked = sizes[::2], sizes[1::2]
    kept = [i for i, cell in enumerate(table.cells) if table.axis_size(cell) in fitted]
    part = table.__class__(
        plan=table.plan, cells=tuple(table.cells[i] for i in kept), latency_s=table.latency_s[kept], facts=table.facts
    )
    (found,) = break_even(part, "jit", None, axis_size=fitted[-1]).sizes
    ((lower, upper),) = found.pieces

    ratios = {
        s: log_t_estimate(table.time("workload", "jit", 2, s) / table.time("workload", "jit", 1, s)) for s in checked
    }
    slower = max(s for s, ratio in ratios.items() if ratio.interval[0] > 1)
    faster = min(s for s, ratio in ratios.items() if ratio.interval[1] < 1)
    assert slower < faster
    assert max(lower, slower) <= min(upper, faster)
    assert upper / lower <= 2
    assert found.helps == "above"


def test_four_numbers_without_repeats_carry_no_interval(table_of):
    tpu = answer(table_of("issue-21411-tpu"))
    assert tpu.interval_method == "residuals, replication unknown"
    assert tpu.verdict == "undecided"
    assert tpu.optimal_devices.estimate == 8
    assert tpu.optimal_devices.outcome == "undecided"
    speedups = {p.size: p.speedup.estimate for p in tpu.predictions if p.num_devices == 8}
    assert speedups[8 * 1024 * 8 * 1024] == pytest.approx(662 / 510)
    assert speedups[8 * 1024 * 8 * 1024 * 10] == pytest.approx(4.41 / 2.39)
    assert all(math.isfinite(s) for s in speedups.values())
