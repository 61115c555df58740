"""``breakeven next``: a command that can be run, an honest no, and one line for a mistake."""

import msgspec
import pytest


def test_it_prints_a_command(run_cli):
    code, out, err = run_cli("next", "data:sin-reduce", "--for", "break-even ±6%", "--budget", "2m")
    assert (code, err) == (0, "")
    assert "breakeven measure sin-reduce --devices 1,2 --sizes" in out
    assert "device-seconds" in out
    assert max(map(len, out.splitlines())) <= 100


def test_not_resolvable_is_exit_code_1(run_cli):
    code, out, _ = run_cli("next", "data:sin-reduce", "--for", "break-even +-1%", "--budget", "5s")
    assert code == 1
    assert "not resolvable" in out


def test_known_already(run_cli):
    code, out, _ = run_cli("next", "data:sin-reduce", "--for", "optimum")
    assert code == 0
    assert "nothing more is needed" in out


def test_json_holds_the_same(run_cli):
    code, out, _ = run_cli("next", "data:train-step", "--for", "break-even", "--budget", "2m", "--json")
    found = msgspec.json.decode(out)
    assert code == (0 if found["reached"] else 1)
    assert found["best"]["plan"]["command"].startswith("breakeven measure train-step --devices")
    assert {"--sizes-per-device", "--budget"} <= set(found["best"]["plan"]["command"].split())
    assert sum(cell["ideal_share"] for cell in found["cells"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data:sin-reduce", "--for", "alpah"), "'alpah' is neither break-even nor optimum nor a parameter"),
        (("data:sin-reduce", "--for", "optimum ±5%"), "of the optimum --tolerance says how much a call may lose"),
        (("data:sin-reduce", "--for", "break-even ±0%"), "must lie between 0 and 100 %"),
        (("data:sin-reduce", "--budget", "soon"), "'soon' is no positive time"),
        (("data:sin-reduce", "--strategy", "pmap"), "'pmap' was not measured"),
        (("data:issue-21411-tpu",), "--noise 0.05"),
        (("data:sin-reduce", "--reference", "5"), "reference 5 is not a measured count"),
    ],
)
def test_a_mistake_is_named(run_cli, arguments, message):
    code, out, err = run_cli("next", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
