"""The texts of the tests, section by section."""

import msgspec
import pytest
from breakeven.cli.render_explain import explain
from breakeven.cli.render_fit import fit
from breakeven.cli.render_tests import tests as render
from breakeven.fit.answer import DispatchBound, Estimate, LawShare, Meaning, NoDifference, PairedTests

NOTHING = Estimate(reason="fewer than three launches")
FOUND = Estimate(estimate=0.6, interval=(0.55, 0.65))
SHARE = Meaning(estimate=0.6, interval=(0.55, 0.65), p_above=0.002, p_below=0.998, holds="yes", reason="it is 60 %")
UNDEFINED = Meaning(estimate=None, interval=None, p_above=None, p_below=None, holds="undefined", reason="weak path")


def with_tests(answer, **fields):
    return msgspec.structs.replace(answer, **fields)


def paired(**fields):
    fields = {
        "name": "communication",
        "unit": "s",
        "rounds": 48,
        "positive": 47,
        "launches": 6,
        "sign_p": 0.031,
        "hodges_lehmann": Estimate(estimate=20e-6, interval=(18e-6, 23e-6)),
        "t": Estimate(estimate=21e-6, interval=(19e-6, 23e-6)),
        "agree": True,
        **fields,
    }
    return PairedTests(**fields)


def no_difference(n, equivalent, *, reason=None):
    ratio = Estimate(estimate=1.01, interval=(0.99, 1.03))
    return NoDifference(num_devices=n, ratio=ratio, margin=0.05, p=0.01, equivalent=equivalent, reason=reason)


def law_share(**fields):
    fields = {
        "num_devices": 8,
        "size": 100,
        "law": "ring, per-device",
        "by_law": FOUND,
        "measured": FOUND,
        "difference": Estimate(estimate=0.0, interval=(-0.02, 0.02)),
        "margin": 0.05,
        "agree": "yes",
        "reason": "the same within 5 % of the time",
        **fields,
    }
    return LawShare(**fields)


def test_without_tests_nothing_is_said(strong_answer):
    assert render(strong_answer) is None


def test_dispatch_bound(strong_answer):
    bound = DispatchBound(size=100, num_devices=8, share=SHARE, prevents_gain=UNDEFINED)
    text = render(with_tests(strong_answer, dispatch_bound=bound))
    assert text.startswith("dispatch bound? two meanings at 8 devices, 100 ")
    first, second = (line.split() for line in text.splitlines() if "takes more" in line or "alone prevents" in line)
    assert first[-4:] == ["%", "0.002", "0.998", "yes"]
    assert second[-6:] == ["-", "0", "%", "-", "-", "undefined"]
    assert "(i) it is 60 %" in text
    assert "(ii) weak path" in text


@pytest.mark.parametrize(
    ("said", "overall"),
    [(("yes", "yes"), "yes"), (("yes", "undecided"), "undecided"), (("undecided", "no"), "no")],
)
def test_no_difference(strong_answer, said, overall):
    found = tuple(no_difference(n, one) for n, one in zip((2, 4), said, strict=True))
    text = render(with_tests(strong_answer, no_difference=found))
    assert text.splitlines()[0] == f"adding devices makes no difference within 5 %: {overall}"
    assert "1.01 [0.99, 1.03]" in text
    assert "Holm over the counts" in text


def test_no_difference_without_a_test_says_why(strong_answer):
    found = (no_difference(2, "undecided", reason="fewer than three launches"),)
    assert "2 devices: cannot tell: fewer than three launches" in render(with_tests(strong_answer, no_difference=found))


def test_paired(strong_answer):
    ratio = {"name": "speedup", "unit": "ratio", "t": FOUND, "hodges_lehmann": FOUND}
    text = render(with_tests(strong_answer, paired=(paired(), paired(**ratio, agree=False, reason="they disagree"))))
    assert "47 of 48" in text
    assert "21 µs [19, 23]" in text
    assert "0.60 [0.55, 0.65]" in text
    assert [line.split()[-1] for line in text.splitlines() if "47 of 48" in line] == ["agree", "DISAGREE"]
    assert "  speedup: they disagree" in text


def test_paired_without_numbers(strong_answer):
    missing = paired(hodges_lehmann=NOTHING, t=NOTHING, sign_p=None, agree=None, reason="fewer than three launches")
    text = render(with_tests(strong_answer, paired=(missing,)))
    assert "µs" not in text
    assert "communication: fewer than three launches" in text


@pytest.mark.parametrize(("agree", "word"), [("yes", "agree"), ("no", "DISAGREE"), ("undecided", "undecided")])
def test_law_share(strong_answer, agree, word):
    text = render(with_tests(strong_answer, law_share=law_share(agree=agree)))
    assert "by the law 'ring, per-device'" in text
    assert "measured    60 % [55, 65]" in text
    assert f"  {word}: the same within 5 % of the time" in text


def test_law_share_with_one_half_missing(strong_answer):
    missing = {"agree": "undecided", "difference": NOTHING, "reason": "fewer than three launches"}
    text = render(with_tests(strong_answer, law_share=law_share(law=None, by_law=NOTHING, **missing)))
    assert text.endswith("cannot tell: fewer than three launches")
    assert "None" not in text
    assert render(with_tests(strong_answer, law_share=law_share(by_law=NOTHING, measured=NOTHING, **missing))) is None


def test_explain_has_them_and_lines_fit(strong_answer):
    full = with_tests(
        strong_answer,
        dispatch_bound=DispatchBound(size=100, num_devices=8, share=SHARE, prevents_gain=UNDEFINED),
        paired=(paired(),),
        no_difference=(no_difference(2, "yes"),),
        law_share=law_share(),
    )
    text = explain(full)
    assert render(full) in text
    assert max(map(len, text.splitlines())) <= 100
    assert all(line == line.rstrip() for line in text.splitlines())


def test_fit_prints_the_p_value_of_zero(strong_answer):
    name, value = next((name, value) for name, value in strong_answer.parameters.items() if value.identified)
    tested = msgspec.structs.replace(value, p_zero=0.123)
    text = fit(with_tests(strong_answer, parameters={name: tested}))
    assert "p of 0" in text
    assert "0.123" in text
