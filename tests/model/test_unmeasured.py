"""Facts elsewhere: exact for products of powers, and unknown where nothing tells."""

import pytest
from breakeven.model.cell import Cell
from breakeven.model.program import Collective, ProgramFacts
from breakeven.model.unmeasured import facts_at
from hypothesis import given
from hypothesis import strategies as st


def cell(n, size, role="workload", **more):
    return Cell(role=role, strategy="jit", num_devices=n, size=size, **more)


def program(n, work, *payloads, count=1, group: int | None = None):
    collective = Collective(
        kind="all-reduce",
        count=count,
        operands=len(payloads),
        message_bytes=sum(payloads),
        operand_bytes=payloads,
        group_size=n if group is None else group,
    )
    return ProgramFacts(flops=work, collectives=(collective,) if n > 1 and payloads else (), inline=n == 1)


def strong(work, payload, *, counts=(1, 2, 4), sizes=(256, 1024, 4096)):
    return {cell(n, s): program(n, work(n, s), payload(n, s)) for n in counts for s in sizes}


def rows_of_a_matrix(n, s):
    return 2.0 * s**3 / n


def whole_matrix(n, s):
    return 4 * s * s


@pytest.mark.parametrize(("n", "size"), [(2, 512), (8, 1024), (8, 512), (16, 8192), (3, 256)])
def test_split_matrices_come_out_exactly(n, size):
    found = facts_at(strong(rows_of_a_matrix, whole_matrix), cell(n, size))
    assert not found.measured
    assert found.facts is not None
    assert found.facts.compute_work == pytest.approx(rows_of_a_matrix(n, size), rel=1e-9)
    (collective,) = found.facts.collectives
    assert collective.message_bytes == collective.operand_bytes[0] == whole_matrix(n, size)
    assert collective.group_size is None


@given(st.integers(0, 3), st.integers(0, 3), st.integers(1, 64), st.integers(64, 10**5))
def test_any_product_of_powers_comes_out(a, b, n, size):
    facts = strong(lambda m, s: 3.0 * m**a * s**b, lambda m, s: 8)
    found = facts_at(facts, cell(n, size)).facts
    assert found is not None
    assert found.compute_work == pytest.approx(3.0 * n**a * size**b, rel=1e-9)
    assert [c.message_bytes for c in found.collectives] == ([8] if n > 1 else [])


def test_a_weak_path_is_followed_at_its_per_device_size():
    facts = {cell(n, n * s): program(n, 50.0 * s, 4 * s, 8) for n in (1, 2, 4) for s in (10, 100)}
    found = facts_at(facts, cell(8, 800))
    assert found.facts is not None
    assert found.facts.compute_work == 5000
    assert found.facts.collectives[0].operand_bytes == (400, 8)
    assert not found.outside
    assert facts_at(facts, cell(8, 8000)).outside


def test_a_measured_program_is_returned_as_it_is():
    facts = strong(rows_of_a_matrix, whole_matrix)
    found = facts_at(facts, cell(2, 256))
    assert found.measured
    assert found.facts is facts[cell(2, 256)]


def test_one_device_has_no_collectives_and_no_inline_regime_is_carried_over():
    found = facts_at(strong(rows_of_a_matrix, whole_matrix), cell(1, 512)).facts
    assert found is not None
    assert found.collectives == ()
    assert found.inline is None


def test_one_count_says_nothing_about_a_payload_on_more():
    facts = strong(rows_of_a_matrix, whole_matrix, counts=(1, 2))
    found = facts_at(facts, cell(4, 1024))
    assert found.facts is None
    assert found.reason == "how the payload of its all-reduce depends on the device count was not measured"


def test_one_program_says_nothing_about_another_count():
    found = facts_at({cell(2, 64): program(2, 10.0, 8)}, cell(4, 64))
    assert found.facts is None
    assert "was not measured" in (found.reason or "")


def test_a_payload_that_never_changes_is_taken_to_stay():
    facts = strong(rows_of_a_matrix, lambda n, s: 4, counts=(1, 2))
    found = facts_at(facts, cell(4, 1024)).facts
    assert found is not None
    assert found.collectives[0].message_bytes == 4


def test_collectives_that_change_are_unknown_elsewhere():
    facts = strong(rows_of_a_matrix, whole_matrix)
    facts[cell(4, 4096)] = program(4, 1.0, 8, 8)
    assert "collectives differ" in (facts_at(facts, cell(8, 4096)).reason or "")


def test_groups_that_are_a_part_of_the_mesh_must_agree():
    def grouped(*groups):
        return {cell(n, 64): program(n, 1.0, 8, group=group) for n, group in zip((4, 8), groups, strict=True)}

    fixed = facts_at(grouped(2, 2), cell(16, 64)).facts
    assert fixed is not None
    assert fixed.collectives[0].group_size == 2
    assert "groups of its all-reduce differ" in (facts_at(grouped(2, 4), cell(16, 64)).reason or "")


def test_unknown_work_stays_unknown():
    facts = {cell(n, 64): ProgramFacts(unknown_trip_counts=True) for n in (1, 2)}
    found = facts_at(facts, cell(4, 64)).facts
    assert found is not None
    assert found.compute_work is None


def test_data_from_elsewhere_have_no_facts_and_a_chain_needs_none():
    assert facts_at({cell(2, 8): None}, cell(4, 8)).facts is None
    chain = cell(2, 8, "chain", k=4, payload_bytes=100)
    known = {cell(2, 8, "chain", k=4, payload_bytes=400): program(2, 0.0, 400, count=4)}
    assert facts_at(known, chain).facts is None
    assert facts_at(known, chain).reason is None
