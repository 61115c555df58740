"""``compare`` as it is called: one file, two files, two strategies."""

import json
import re
from types import SimpleNamespace

import pytest
from breakeven.cli.render_compare import _machine
from breakeven.fit.answer import Estimate
from breakeven.fit.comparing.machine_speed import MachineSpeed

# Seconds of three transformers and a video model on a TPU v3-8: https://github.com/jax-ml/jax/issues/11364
TRANSFORMERS = """devices,size,strategy,latency_s
8,1600000,pmap,0.00694
8,1600000,pjit,0.01010
8,25000000,pmap,0.01555
8,25000000,pjit,0.01896
8,100000000,pmap,0.03701
8,100000000,pjit,0.04011
8,110000000,pmap,0.0429
8,110000000,pjit,0.3087
"""
# Throughput by load: SPEC SDM91, https://github.com/smoeding/usl (BSD-2-Clause)
SPEC = "devices,throughput\n1,64.9\n18,995.9\n36,1652.4\n72,1853.2\n108,1828.9\n144,1775.0\n216,1702.2\n"
RAYS = "devices,throughput\n1,20\n4,78\n8,130\n12,170\n16,190\n20,200\n24,210\n28,230\n32,260\n48,280\n64,310\n"


@pytest.fixture
def write(tmp_path):
    """Write a CSV file and return its path."""

    def write(text, name="times.csv"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def launches(factor, number=4):
    """Two counts at two sizes, a row a launch; the spread of launches is fixed."""
    rows = ["devices,size,launch,latency_s"]
    for g in range(number):
        for n in (1, 4):
            for size in (100, 1000):
                rows.append(f"{n},{size},{g},{(1e-3 * n + 1e-5 * size) * factor * (1 + 0.01 * g)}")
    return "\n".join(rows) + "\n"


def test_a_constant_between_two_strategies_is_dispatch(run_cli, write):
    code, out, _ = run_cli("compare", write(TRANSFORMERS), "--scaling", "strong", "--strategies", "pmap,pjit")
    assert code == 0
    assert "additive" in out
    assert "dispatch, not work" in " ".join(out.split())
    assert "constant  3.2 ms [2.8, 3.6]" in out
    assert "does not follow, left out: 8 devices, size 110,000,000: 42.9 ms and 309 ms" in out


def test_the_scalability_law_is_printed_with_its_optimum(run_cli, write):
    code, out, _ = run_cli("compare", write(SPEC), "--columns", "latency_s=1/throughput")
    assert code == 0
    usl = out[out.index("USL: lambda") :]
    assert "sigma (contention) 0.0277" in usl
    assert "kappa (coherency) 0.000104, optimum 96" in " ".join(usl.split())


def test_a_constant_at_its_bound_is_said(run_cli, write):
    _, out, _ = run_cli("compare", write(RAYS), "--columns", "latency_s=1/throughput")
    words = " ".join(out.split())
    assert "kappa (coherency) at bound 0" in words
    assert "the optimum lies beyond the data" in words


def test_two_files_say_what_changed(run_cli, write):
    old, new = write(launches(1.0), "old.csv"), write(launches(1.3), "new.csv")
    code, out, _ = run_cli("compare", old, new, "--scaling", "strong")
    assert code == 0
    assert "new.csv against old.csv: of 4 cells: 4 slower" in out
    assert "1.30 [" in out
    _, out, _ = run_cli("compare", new, old, "--scaling", "strong", "--json")
    found = json.loads(out)
    assert {cell["change"] for cell in found["cells"]} == {"faster"}
    assert found["line"]["slope"]["estimate"] == pytest.approx(1 / 1.3)


def test_one_launch_a_side_decides_nothing(run_cli, write):
    rows = "devices,latency_s\n1,0.1\n2,0.06\n"
    code, out, _ = run_cli("compare", write(rows, "a.csv"), write(rows, "b.csv"))
    assert code == 1
    assert "no cell is decided: fewer than three launches" in out


def test_one_device_count_is_enough(run_cli, write):
    code, out, _ = run_cli("compare", write(TRANSFORMERS), "--scaling", "strong", "--strategy", "pmap")
    assert code == 0
    assert "left out: one size in turn" in out


def test_one_cell_decides_nothing(run_cli, write):
    code, out, _ = run_cli("compare", write("devices,latency_s\n8,0.5\n"))
    assert code == 1
    assert "cannot tell: nothing can be left out" in out


def test_shipped_sweep_ranks_laws_and_rivals(run_cli):
    code, out, _ = run_cli("compare", "data:issue-21411")
    assert code == 0
    assert "predictions come from: " in out
    assert all(len(line) <= 100 and line == line.rstrip() for line in out.splitlines())
    for name in ("Amdahl", "Gustafson", "USL", "Ernest", "1, 1/n, n", "damped trend", "ring, per-device"):
        assert f"\n  {name} " in out


def test_programs_that_communicate_differently_are_not_comparable(run_cli):
    code, out, _ = run_cli("compare", "data:mean-all", "data:issue-21411")
    assert code == 1
    assert out.startswith("not comparable: the compiled programs differ\n")
    assert "has 1 all-reduce of 4 B in all" in out.split("\n\n")[0]
    assert all(len(line) <= 100 and line == line.rstrip() for line in out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data:mean-all", "data:mean-all", "data:mean-all"), "takes one or two files, got 3"),
        (("data:mean-all", "--strategies", "jit"), "'jit' must be two names"),
        (("data:mean-all", "--strategies", "jit,jit"), "'jit,jit' must be two names"),
        (("data:mean-all", "--strategies", "jit,pmap"), "'pmap' was not measured in data:mean-all; measured: jit"),
        (("data:mean-all", "--strategy", "pmap"), "'pmap' was not measured in data:mean-all; measured: jit"),
        (("data:mean-all", "--strategy", "jit", "--strategies", "jit,pmap"), "exclude each other"),
        (("data:mean-all", "data:sin-reduce"), "data:mean-all is a weak sweep and data:sin-reduce a strong one"),
        (("missing.jsonl",), "missing.jsonl"),
    ],
)
def test_mistakes_are_named(run_cli, arguments, message):
    code, _, err = run_cli("compare", *arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("p", "matters", "said"),
    [(0.001, True, "the machine itself differs: the sentinel"), (0.3, True, "itself may differ"), (0.001, False, None)],
)
def test_a_machine_of_another_speed_is_told_with_its_interval(p, matters, said):
    speed = MachineSpeed(ratio=Estimate(estimate=0.66, interval=(0.62, 0.7)), p=p, matters=matters)
    told = _machine(SimpleNamespace(machine=speed, confidence=0.95, second="new.jsonl"))
    assert [said in line and "took 0.66 [0.62, 0.70] times as long in new.jsonl" in line for line in told] == (
        [True] if said else []
    )


# Synthetic: a compiled function that was not waited for beside one in NumPy.
UNWAITED = "devices,size,strategy,us\n" + "".join(
    f"1,{size},{name},{time}\n"
    for name, times in (("numpy", (310, 2950, 31200, 330000)), ("jit", (96, 98, 99, 103)))
    for size, time in zip((1000, 10000, 100000, 1000000), times, strict=True)
)


@pytest.mark.parametrize("options", [("--strategies", "numpy,jit"), ("--strategy", "jit")])
def test_times_that_stand_still_are_doubted(run_cli, write, options):
    file = write(UNWAITED)
    common = ("compare", file, "--columns", "latency_s=us/1e6", "--scaling", "strong", *options)
    _, _, err = run_cli(*common)
    assert "not-waited-for: the time grows by a factor of 1.07" in " ".join(err.split())
    (warning,) = json.loads(run_cli(*common, "--json")[1])["warnings"]
    assert ("jit: not-waited-for" in warning) == (options[0] == "--strategies")


def test_sound_times_are_not_doubted(run_cli, write):
    _, _, err = run_cli("compare", write(launches(1.0), "a.csv"), write(launches(1.1), "b.csv"), "--scaling", "strong")
    assert "doubt" not in err
    assert "not-waited-for" not in err


def test_of_collectives_alone_the_strategies_timed_are_those_to_ask_for(run_cli, tmp_path):
    path = tmp_path / "ways.csv"
    rows = [f"{n},1024,{n * us},{way}" for way, us in (("ring", 4), ("tree", 3)) for n in (2, 3, 4, 6, 8)]
    path.write_text("\n".join(["devices,message_bytes,us,strategy", *rows]) + "\n")
    columns = ("--columns", "latency_s=us/1e6")
    code, out, _ = run_cli("compare", str(path), "--strategy", "tree", *columns)
    assert (code, out.splitlines()[0][:11]) == (0, "ways (tree)")
    code, _, err = run_cli("compare", str(path), "--strategy", "star", *columns)
    assert code == 2
    assert "'star' was not measured" in " ".join(err.split())
    assert "measured: ring, tree." in " ".join(err.split())


def test_as_many_constants_as_counts_leave_nothing_to_judge_them_by(run_cli, tmp_path):
    path = tmp_path / "three.csv"
    path.write_text("devices,rps\n2,190\n8,610\n32,820\n")
    _, out, _ = run_cli("compare", str(path), "--columns", "latency_s=1/rps")
    (usl,) = re.findall(r"  USL: .*\n.*", out)
    assert "no optimum: as many constants as counts, so nothing is left to judge them by" in " ".join(usl.split())
    path.write_text("devices,rps\n2,190\n8,610\n")
    _, out, _ = run_cli("compare", str(path), "--columns", "latency_s=1/rps")
    (amdahl,) = re.findall(r"  Amdahl: .*\n.*", out)
    assert "as many constants as counts" in " ".join(amdahl.split())
