"""What was not told apart, as text: with a command for sweeps of our own, in words alone for data from elsewhere."""

import msgspec
import pytest
from breakeven.cli.render_identifiability import between_causes, every_tie
from breakeven.data.plain_csv import read_csv
from breakeven.fit.answer import Unidentified
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer


@pytest.fixture
def elsewhere(tmp_path):
    """The answer to hours and minutes that someone typed into a file."""
    file = tmp_path / "times.csv"
    file.write_text("devices,latency_s,size\n" + "".join(f"{n},{4000 / n + 30 * n},256\n" for n in (1, 2, 4, 8)))
    return answer(from_record(read_csv(file, scaling="strong")))


def test_data_from_elsewhere_are_told_what_to_add_and_nothing_of_its_cost(elsewhere):
    text = every_tie(elsewhere)
    assert "remedy: a local control (the same work without communication)" in text
    assert "remedy: a null control" in text
    for absent in ("cheapest", "device-seconds", "breakeven measure", "path/to"):
        assert absent not in text


def test_ties_of_one_remedy_stand_above_it_and_those_without_any_say_so(elsewhere):
    local, none = (
        Unidentified(parameters=("a", name), causes=("communication", "dispatch"), words=words, remedy=remedy)
        for name, words, remedy in (("b", "why b", "a local control"), ("c", "why c", None))
    )
    again = msgspec.structs.replace(local, words="why b too")
    text = between_causes(msgspec.structs.replace(elsewhere, unidentified=(local, none, again)))
    assert text.splitlines()[1:] == [
        "  why b",
        "  why b too",
        "    remedy: a local control",
        "  why c",
        "    no control, probe, count or size that can be added on these devices would tell them apart",
    ]


def test_a_sweep_of_our_own_gets_its_command_and_cost_once(elsewhere):
    tie = Unidentified(
        parameters=("alpha", "dispatch"),
        causes=("communication", "dispatch"),
        words="why",
        remedy="a local control",
        command="breakeven measure mine.py:build --devices 1,2",
        remedy_cost_s=120.0,
    )
    other = msgspec.structs.replace(tie, words="why else")
    text = every_tie(msgspec.structs.replace(elsewhere, unidentified=(tie, other)))
    assert "cheapest remedy: a local control; about 120 device-seconds in all" in text
    assert text.count("breakeven measure mine.py:build --devices 1,2") == 1
