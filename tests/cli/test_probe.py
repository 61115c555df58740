"""``probe`` as a user runs it: records made by hand, and four forced host devices from end to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from breakeven.cli import render_links
from breakeven.data import store
from breakeven.data.schema import Failure, Machine
from breakeven.fit.links import links
from breakeven.fit.ring_orders import AS_IT_STANDS
from breakeven.measure.link_plans import orders_plan
from breakeven.measure.sweep import run
from breakeven.model.cell import Cell


@pytest.fixture
def write(links_record, tmp_path):
    """``write("links.jsonl", count, **truth)``: the file's name."""

    def make(name, count, **truth):
        record = links_record(count, **truth)
        path = tmp_path / name
        with store.Writer(path) as writer:
            for line in (*record.sweeps, *record.launches, *record.programs, *record.visits):
                writer.write(line)
        return str(path)

    return make


def test_text(run_cli, write):
    code, out, err = run_cli("probe", write("links.jsonl", 4, devices={2: 2.0}, noise=0.01))
    assert (code, err) == (0, "")
    assert all(len(line) <= 100 and line == line.rstrip() for line in out.splitlines())
    for said in (
        "links between 4 devices: messages of 4 B and 1 MiB, mean of both directions",
        "6 launches, 6 rounds, cpu, intervals 95 %, t over launches, simulated, not measured",
        "alpha of a message, µs",
        "1/beta, GB/s",
        "slow devices and links (slower by 25 % or more and significantly so)",
        "  device 2: messages of 4 B take 2.",
        "  device 2: messages of 1 MiB take ",
        "law by device: alpha and beta of a link are the means of its two devices'",
        "order of the ring, all-reduces whose messages have the sizes measured",
        "  16 B in messages of 4 B: any order: ",
        "  4 MiB in messages of 1 MiB: any order: ",
    ):
        assert said in out, said
    rows = out.partition("1/beta, GB/s")[2].splitlines()[3:7]
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "3"]
    assert [row.split()[1 + i] for i, row in enumerate(rows)] == ["-"] * 4
    # Device 2's links have half the bandwidth: 5 GB/s of 10, within 5 % / sqrt(6) of the launches' level.
    assert float(rows[0].split()[3]) == pytest.approx(5.0, rel=0.1)
    assert float(rows[0].split()[2]) == pytest.approx(10.0, rel=0.1)


def test_a_slow_link_and_a_proposed_order(run_cli, write):
    code, out, _ = run_cli("probe", write("links.jsonl", 5, links={(1, 2): 3.0}, noise=0.01))
    assert code == 0
    assert "  link 1 - 2: messages of 4 B take " in out
    assert "propose 0 " in out
    assert "its slowest link is significantly faster" in out
    assert " (sends overlap) to " in out


def test_many_devices_do_not_fit_on_a_page(run_cli, write):
    code, out, _ = run_cli("probe", write("links.jsonl", 14, links={(3, 9): 4.0}, noise=0.01))
    assert code == 0
    assert "the 10 slowest of 91 links (--json has the matrices)" in out
    listed = out.partition("slowest of")[2].splitlines()[3]
    assert listed.strip().startswith("3 and 9")
    assert all(len(line) <= 100 for line in out.splitlines())


def test_json(run_cli, write):
    code, out, _ = run_cli("probe", write("links.jsonl", 4, noise=0.01), "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["tried"] is None
    found = answer["links"]
    assert [len(row) for row in found["alpha_s"]] == [4] * 4
    assert found["alpha_s"][0][0] is None
    assert found["alpha_s"][1][3] == pytest.approx(20e-6, rel=0.1)
    assert found["beta_s_per_byte"][3][1] == pytest.approx(1e-10, rel=0.1)
    assert found["slow"] == []


def test_too_few_launches(run_cli, write):
    code, out, _ = run_cli("probe", write("links.jsonl", 4, launches=2))
    assert code == 1
    assert "slow devices and links: none named: fewer than three launches" in out


def test_why_pairs_were_not_measured_is_said(run_cli, write):
    file = write("the links.jsonl", 4, left_out=[(0, 1)])
    sweep = store.read(file).sweeps[0].sweep
    cell = Cell(role="pair", strategy="ppermute", num_devices=2, size=4, pair=(0, 1), k=2, payload_bytes=4)
    failed = Failure(sweep=sweep, launch="l", stage="build", error="MemoryError", message="no room\nat all", cell=cell)
    with store.Writer(file) as writer:
        writer.write(failed)
        writer.write(failed)
    code, _, err = run_cli("probe", file)
    assert code == 0
    assert err.startswith(f"warning: 2 failures ('breakeven show '{file}'' lists them), the first (pair/ppermute on ")
    assert err.endswith("): MemoryError: no room\n")


def test_a_pair_that_was_not_measured(run_cli, write):
    code, out, _ = run_cli("probe", write("links.jsonl", 4, left_out=[(0, 1)]))
    assert code == 0
    assert "cannot tell: not every pair of devices was measured" in out
    row = out.partition("alpha of a message")[2].splitlines()[3].split()
    assert row[:3] == ["0", "-", "-"]


@pytest.mark.parametrize("command", ["explain", "fit", "predict", "diagnose", "compare", "power"])
def test_other_commands_say_who_reads_links(run_cli, write, command):
    file = write("links.jsonl", 4)
    code, out, err = run_cli(command, file)
    assert (code, out) == (2, "")
    assert "a record of links between devices, without a workload; use: breakeven probe " in " ".join(err.split())
    assert file in err


def test_show_names_the_pair(run_cli, write):
    code, out, _ = run_cli("show", write("links.jsonl", 3))
    assert code == 0
    assert "0 and 2, k = 8, 1 MiB" in out
    assert "messages between pairs" in out
    assert not any(word in out for word in ("scaling", "objective", "controls"))


def test_show_keeps_pairs_apart(run_cli, write):
    code, out, _ = run_cli("show", write("links.jsonl", 4, links={(0, 1): 10.0}, noise=0.0), "--json")
    assert code == 0
    medians = {
        tuple(one["cell"]["pair"]): one["median_s"]
        for one in json.loads(out)["cells"]
        if (one["cell"]["k"], one["cell"]["payload_bytes"]) == (8, 4)
    }
    assert medians[0, 1] > 4 * medians[2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a record of links to read, or --pairs to measure one."),
        (["links.jsonl", "--pairs"], "give a record of links to read, or --pairs to measure one."),
        (["links.jsonl", "-o", "other.jsonl"], "goes with --pairs; a FILE is only read."),
        (["links.jsonl", "--launches", "6"], "--launches: goes with --pairs; a FILE is only read."),
        (["links.jsonl", "--payloads", "4,8"], "--payloads: goes with --pairs; a FILE is only read."),
        (["links.jsonl", "--hide-hosts"], "--hide-hosts: goes with --pairs or --try-order; a FILE is only read."),
        (["links.jsonl", "--processes", "2"], "--processes: goes with --pairs or --try-order; a FILE is only read."),
        (["five.jsonl", "--try-order", "--launches", "9"], "--launches: goes with --pairs; an order is tried as FILE"),
        (["five.jsonl", "--try-order", "--budget", "9s"], "--budget: goes with --pairs; an order is tried as FILE"),
        (["five.jsonl", "--try-order", "--seed", "0"], "--seed: goes with --pairs; an order is tried as FILE"),
        (["five.jsonl", "--try-order", "--calls", "9"], "--calls: goes with --pairs; an order is tried as FILE"),
        (["five.jsonl", "--try-order", "--platform", "cpu"], "--platform: goes with --pairs; an order is tried as"),
        (["five.jsonl", "--try-order", "--devices", "4"], "--devices: goes with --pairs; an order is tried as FILE"),
        (["--pairs", "-o", "folder"], "-o: folder is a folder; name a file in it."),
        (["--pairs", "--try-order", "-o", "six.jsonl"], "--try-order: six-order.jsonl is a folder;"),
        (["five.jsonl", "--try-order"], "--try-order: five-order.jsonl is a folder; name a file in it."),
        ([".", "--try-order"], "error: .: Is a directory."),
        (["absent.jsonl"], "absent.jsonl"),
        (["--pairs", "--payloads", "4"], "give at least two sizes, each once, as in 4,1MiB"),
        (["--pairs", "--payloads", "4,6"], "--payloads must be positive multiples of 4 bytes, got 6."),
        (["--pairs", "--payloads", "4,many"], "'many' is no positive whole size"),
        (["--pairs", "--devices", "1"], "--devices"),
        (["--pairs", "--devices", "1000"], "--devices 1000: JAX finds at most 256 here"),
        (["--pairs", "--budget", "soon"], "'soon' is no positive time"),
        (["--pairs", "--platform", "abacus"], "'abacus' is not one of cpu, gpu, tpu."),
        (["five.jsonl", "--try-order", "--processes", "2"], "with 1 process: give --processes 1."),
    ],
)
def test_what_cannot_be_done(run_cli, write, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    write("links.jsonl", 4, noise=0.0)
    write("five.jsonl", 5, links={(1, 2): 3.0})
    for folder in ("folder", "five-order.jsonl", "six-order.jsonl"):
        (tmp_path / folder).mkdir()
    platform = ["--platform", "cpu"] if "--pairs" in arguments and "--platform" not in arguments else []
    code, out, err = run_cli("probe", *arguments, *platform)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


@pytest.mark.parametrize(
    ("count", "reason"),
    [(4, "the order as it stands is the fastest found"), (2, "two or three devices form one ring only")],
)
def test_where_there_is_no_order_to_try_the_links_are_shown(run_cli, write, count, reason):
    code, out, err = run_cli("probe", write("links.jsonl", count, noise=0.0), "--try-order")
    assert (code, err) == (0, f"warning: --try-order: nothing to try: {reason}\n")
    assert f"links between {count} devices" in out


def test_a_file_is_read_whatever_else_is_here(run_cli, write, tmp_path, monkeypatch):
    """What --pairs would write, it need not be able to write."""
    monkeypatch.chdir(tmp_path)
    file = write("four.jsonl", 4, noise=0.01)
    (tmp_path / "links.jsonl").mkdir()
    code, out, err = run_cli("probe", file, "--confidence", "0.9")
    assert (code, err) == (0, "")
    assert "links between 4 devices" in out


def test_an_order_is_tried_as_its_file_was_measured(run_cli, write, monkeypatch):
    """But for the timeout, which the command line may say anew."""
    plans = []

    def keep(plan, *_arguments):
        plans.append(plan)
        raise KeyboardInterrupt("enough")

    monkeypatch.setattr("breakeven.cli.probe._measure", keep)
    file = write("links.jsonl", 5, links={(1, 2): 3.0})
    measured = store.read(file).sweeps[0].plan
    run_cli("probe", file, "--try-order")
    run_cli("probe", file, "--try-order", "--timeout", "7s")
    assert [plan.step_timeout_s for plan in plans] == [measured.step_timeout_s, 7.0]
    assert {(plan.launches, plan.budget_s, plan.seed) for plan in plans} == {
        (measured.launches, measured.budget_s, measured.seed)
    }


def only(payload, record):
    """The same record with the programs and visits of one size."""
    programs = tuple(one for one in record.programs if one.cell.payload_bytes == payload)
    kept = {(one.launch, one.program) for one in programs}
    visits = tuple(one for one in record.visits if (one.launch, one.program) in kept)
    return replace(record, programs=programs, visits=visits)


def test_the_slowest_links_are_those_of_the_largest_size_measured(links_record):
    text = render_links.links(links(only(4, links_record(14, links={(3, 9): 4.0}, noise=0.01))))
    assert "the 10 slowest of 91 links" in text
    assert text.partition("slowest of")[2].splitlines()[3].strip().startswith("3 and 9")


def test_nothing_to_try_quotes_the_reason_of_the_size_that_has_an_order(run_cli, links_record, tmp_path):
    """Of two sizes the larger was not measured: what the smaller says is quoted."""
    record = only(4, links_record(4, noise=0.0))
    path = tmp_path / "links.jsonl"
    with store.Writer(path) as writer:
        for line in (*record.sweeps, *record.launches, *record.programs, *record.visits):
            writer.write(line)
    code, out, err = run_cli("probe", str(path), "--try-order")
    assert (code, err) == (0, f"warning: --try-order: nothing to try: {AS_IT_STANDS}\n")
    assert "nan" not in out
    assert "a ring would take" not in out
    assert "messages of 1 MiB: none named: no messages of this size were measured in every launch" in " ".join(
        out.split()
    )


@pytest.mark.parametrize(
    ("nodes", "per_node", "cores", "said"),
    [
        (1, 4, 2, "your 4 devices share 2 cores: these links are the memory of one host"),
        (2, 2, 1, "on each node 2 devices share 1 core: links within a node are its memory"),
        (2, 2, 2, None),
    ],
)
def test_devices_that_share_cores(links_record, nodes, per_node, cores, said):
    """The first node's devices stand beside the first node's cores."""
    record = links_record(4)
    machines = tuple(Machine(boot=str(rank // per_node), affinity=tuple(range(cores))) for rank in range(4))
    spread = {"processes": 4, "nodes": nodes, "devices_per_process": 1, "devices_per_node": per_node}
    launches = tuple(
        msgspec.structs.replace(launch, platform="cpu", cores=cores, machines=machines, **spread)
        for launch in record.launches
    )
    text = render_links.links(links(replace(record, launches=launches)))
    assert ("devices share" in text) == (said is not None)
    assert text.startswith(said or "links between 4 devices, in 4 processes on 2 nodes")


def test_the_order_as_it_stands_is_not_proposed(run_cli, write):
    """Where it is the fastest found, no other order is shown."""
    _, out, _ = run_cli("probe", write("links.jsonl", 4, noise=0.0))
    assert f"  16 B in messages of 4 B: {AS_IT_STANDS}\n" in out
    assert "best found" not in out


def test_a_sweep_of_a_workload_holds_no_links(run_cli):
    code, _, err = run_cli("probe", "data:mean-all")
    assert code == 2
    assert "holds no links between devices; measure them with: breakeven probe --pairs" in " ".join(err.split())


def test_many_programs_are_announced(run_cli, monkeypatch, tmp_path):
    def stop(*_arguments, **_options):
        raise KeyboardInterrupt("enough")

    monkeypatch.setattr("breakeven.measure.sweep.run", stop)
    _, _, err = run_cli("probe", "--pairs", "--devices", "32", "--platform", "cpu", "-o", str(tmp_path / "x.jsonl"))
    assert "1984 programs in every launch" in err
    assert "give fewer --devices" in err


def test_four_devices_from_end_to_end(run_cli, tmp_path):
    """Measured, read again, and with an order tried; whatever the numbers are on a busy machine."""
    record = tmp_path / "links.jsonl"
    options = ["--devices", "4", "--payloads", "4,4096", "--launches", "3", "--budget", "3s", "--calls", "3"]
    code, out, err = run_cli("probe", "--pairs", *options, "--platform", "cpu", "-o", str(record))
    assert code == 0, err
    assert "links between 4 devices: messages of 4 B and 4 KiB" in out
    assert "3 launches" in out
    again = run_cli("probe", str(record))
    assert again[:2] == (0, out)
    plan = orders_plan(store.read(record).sweeps[0].plan, (0, 2, 1, 3))
    tried = Path(run(plan, tmp_path / "links-order.jsonl"))
    code, out, _ = run_cli("probe", str(tried))
    assert code == 0
    assert "order 0 2 1 3, measured beside the order as it stands (3 launches, cpu)" in out
    assert "\n  16 B " in out
    assert "\n  16 KiB " in out
    code, _, err = run_cli("probe", str(tried), "--try-order")
    assert code == 2
    assert "is already the record of an order that was tried" in " ".join(err.split())
