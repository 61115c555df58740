"""Two ways of running the same thing, and laws in print against numbers that broke their own tools."""

import json

import pytest
from breakeven.cli.app import app
from typer.testing import CliRunner


@pytest.fixture
def compare(data):
    """``breakeven compare FILE --json``, end to end."""

    def run(name, *arguments):
        done = CliRunner().invoke(app, ["compare", str(data / name), "--json", *arguments])
        assert done.exit_code in (0, 1), done.output
        return json.loads(done.stdout)

    return run


def test_pjit_takes_3_ms_more_than_pmap_whatever_the_model(compare):
    found = compare("c02_pjit_pmap.csv", "--columns", "latency_s=ms/1e3", "--strategies", "pmap,pjit")
    line = found["line"]
    assert line["kind"] == "additive"
    assert "dispatch" in line["words"]
    assert line["slope"]["estimate"] == pytest.approx(1, abs=0.01)
    lower, upper = line["slope"]["interval"]
    assert lower < 1 < upper
    assert line["offset_s"]["estimate"] == pytest.approx(3.2e-3, abs=0.1e-3)
    lower, upper = line["offset_s"]["interval"]
    assert 2.5e-3 < lower < upper < 4e-3


def test_the_video_model_is_named_and_not_averaged_in(compare):
    line = compare("c02_pjit_pmap.csv", "--columns", "latency_s=ms/1e3", "--strategies", "pmap,pjit")["line"]
    assert line["num_cells"] == 3
    (stray,) = line["strays"]
    assert (stray["num_devices"], stray["size"]) == (8, 200_000_000)
    assert stray["residual_s"] > 0.2


def scalability(found):
    """The fit of the Universal Scalability Law."""
    (curve,) = next(c for c in found["contenders"] if c["name"] == "USL")["curves"]
    return curve


def test_throughput_that_falls_again_has_its_peak_at_96_users(compare):
    found = compare("c60_specsdm91.csv", "--columns", "devices=users,latency_s=1/scripts_per_hour*3600")
    curve = scalability(found)
    constants = {name: value["estimate"] for name, value in curve["parameters"].items()}
    assert constants["contention"] == pytest.approx(0.028, abs=0.0005)
    assert constants["coherency"] == pytest.approx(1.05e-4, rel=0.02)
    assert constants["rate"] * 3600 == pytest.approx(90.5, rel=0.01)
    assert curve["optimum"] == 96
    assert curve["at_bound"] == []


def test_the_best_load_measured_is_72_users(ask):
    found = ask("c60_specsdm91.csv", "devices=users,latency_s=1/scripts_per_hour*3600")
    assert found.optimal_devices.estimate == 72


def test_a_curve_that_only_rises_has_its_optimum_beyond_the_data(compare):
    curve = scalability(compare("c60_raytracer.csv", "--columns", "devices=cpus,latency_s=1/throughput"))
    assert curve["parameters"]["contention"]["estimate"] == pytest.approx(0.058, abs=0.0005)
    assert curve["at_bound"] == ["coherency"]
    assert curve["optimum"] is None
    assert "the optimum lies beyond the data" in curve["reason"]


def test_one_device_need_not_have_been_measured(data, tmp_path):
    rows = (data / "c60_raytracer.csv").read_text().splitlines()
    path = tmp_path / "from_four.csv"
    path.write_text("\n".join(row for row in rows if not row.startswith("1,")))
    done = CliRunner().invoke(app, ["compare", str(path), "--json", "--columns", "devices=cpus,latency_s=1/throughput"])
    curve = scalability(json.loads(done.stdout))
    assert curve["parameters"]["contention"]["estimate"] == pytest.approx(0.058, abs=0.01)


def test_negative_contention_is_reported_at_its_bound(tmp_path):
    # Throughput that grows faster than the count: an unbounded fit has a negative contention.
    path = tmp_path / "superlinear.csv"
    path.write_text("n,rate\n" + "".join(f"{n},{10 * n**1.1}\n" for n in (2, 4, 6, 8, 12, 16)))
    done = CliRunner().invoke(app, ["compare", str(path), "--json", "--columns", "devices=n,latency_s=1/rate"])
    curve = scalability(json.loads(done.stdout))
    assert set(curve["at_bound"]) == {"contention", "coherency"}
    assert curve["parameters"]["contention"]["estimate"] == pytest.approx(0, abs=1e-6)
    assert curve["optimum"] is None
