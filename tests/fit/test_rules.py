"""The twelve rules: what a sound sweep meets, and what a bare table cannot show."""

from dataclasses import replace

import msgspec
import pytest
from breakeven.data.catalog import open_record
from breakeven.data.plain_csv import read_csv
from breakeven.fit.answer import Diagnostic
from breakeven.fit.checks.rules import rules
from breakeven.fit.launches import from_record


def rules_of(record, *diagnostics):
    return {rule.number: rule for rule in rules(record, from_record(record), diagnostics)}


def check(name, passed):
    return Diagnostic(name=name, where="one cell", passed=passed, words="as found")


@pytest.fixture(scope="module")
def measured():
    return open_record("data:sin-reduce")


def test_there_are_twelve_in_order(measured):
    assert list(rules_of(measured)) == list(range(1, 13))


def test_a_measured_sweep_meets_those_the_program_can_meet(measured):
    found = rules_of(measured)
    assert {number for number, rule in found.items() if rule.met} >= {1, 3, 4, 5, 7, 9, 10, 11, 12}
    assert {number for number, rule in found.items() if rule.met is False} == set()
    assert "6 launches" in found[5].words


def test_how_several_processes_are_timed_is_said(measured):
    (sweep,) = measured.sweeps
    plan = msgspec.structs.replace(sweep.plan, processes=4, visible_devices=4)
    several = replace(measured, sweeps=(msgspec.structs.replace(sweep, plan=plan),))
    assert "4 processes pass a barrier before each call" in rules_of(several)[10].words
    assert "one process drives all devices" in rules_of(measured)[10].words


def test_a_failed_check_breaks_the_rules_that_rest_on_it(measured):
    found = rules_of(measured, check("one population", False))
    assert found[6].met is False
    assert "one population" in found[6].words
    assert found[8].met is False


def test_checks_that_passed_meet_the_rule_of_distributions(measured):
    assert rules_of(measured, check("one population", True)).get(6).met is True
    assert rules_of(measured, check("one population", None))[6].met is None


def test_a_bare_table_says_little(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("devices,latency_s\n2,1.0\n4,0.6\n")
    found = rules_of(read_csv(path))
    assert [number for number, rule in found.items() if rule.met is False] == [1, 5, 7, 9, 10]
    assert "a single device was not measured" in found[1].words
    assert found[6].met is None
