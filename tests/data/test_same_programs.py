"""Which launches measured the same programs, and which may not be pooled."""

import pytest
from breakeven.data.same_programs import mixed, programs_of, unlike
from breakeven.data.schema import Launch, Machine, Program
from breakeven.model.cell import Cell
from breakeven.model.program import Collective, ProgramFacts


def cell(role="workload", n=2):
    return Cell(role=role, strategy="jit", num_devices=n, size=10)


def launches(name, *fingerprints, size=4, role="workload", control=None, variables=(), jax="0.10"):
    """One launch a fingerprint, each with one program that all-reduces ``size`` bytes."""
    lines, programs = [], []
    for i, fingerprint in enumerate(fingerprints):
        exchange = Collective(
            kind="all-reduce", count=1, operands=1, message_bytes=size, operand_bytes=(size,), group_size=2
        )
        where = {"sweep": name, "launch": f"{name}{i}"}
        machine = Machine(variables=("XLA_FLAGS=--a", *variables))
        lines.append(Launch(**where, started="now", jax=jax, jaxlib=jax, machines=(machine,)))
        facts = ProgramFacts(collectives=(exchange,))
        programs.append(
            Program(**where, program=0, cell=cell(role), facts=facts, control=control, fingerprint=fingerprint)
        )
    return programs_of(lines, programs)


def test_one_program_is_the_same_and_an_edited_one_is_named():
    assert unlike(launches("a", "x", "x"), launches("b", "x")) is None
    found = unlike(launches("a", "x", "x"), launches("b", "y"))
    assert found is not None
    assert found.told("there", "now") == f"{cell()}: the program was changed"
    assert unlike(launches("a", "x"), launches("b", "y"), text=False) is None


@pytest.mark.parametrize(
    "other",
    [
        {"jax": "0.11"},
        {"variables": ("JAX_ENABLE_X64=1",)},
        {"role": "null"},
        {"role": "local", "control": "automatic"},
    ],
)
def test_what_versions_settings_and_our_own_programs_change_is_no_edit(other):
    role = {key: other[key] for key in ("role", "control") if key in other}
    assert unlike(launches("a", "x", **role), launches("b", "y", **other)) is None


def test_a_control_that_the_user_gave_may_be_edited_too():
    given = {"role": "local", "control": "user"}
    assert unlike(launches("a", "x", **given), launches("b", "y", **given)).cell == cell("local")


def test_variables_that_say_where_and_who_make_no_other_setting():
    here = launches("a", "x", variables=("JAX_PROCESS_ID=0", "JAX_COMPILATION_CACHE_DIR=/a", "NCCL_DEBUG=INFO"))
    assert unlike(here, launches("b", "y", variables=("JAX_COORDINATOR_ADDRESS=h:1",))) is not None


def test_what_is_another_program_at_every_start_is_not_judged():
    random = launches("a", "x", "y")
    assert unlike(random, launches("b", "z")) is None
    assert unlike(launches("b", "z"), random) is None
    assert mixed(random).told("", "") == f"{cell()}: the program was changed"


def test_records_without_fingerprints_are_judged_by_what_they_exchange():
    old = launches("a", None, None)
    assert unlike(old, launches("b", "x")) is None
    assert mixed(old) is None
    # Under other versions too: such cells, and their probes, are not those of the record.
    found = unlike(old, launches("b", None, size=8, jax="0.11"))
    assert found.told("there", "now") == f"{cell()}: there 1 all-reduce of 4 bytes, now 1 all-reduce of 8 bytes"


def test_counts_that_are_unknown_are_said():
    where = {"sweep": "a", "launch": "a"}
    loops = [
        Collective(kind="all-reduce", count=count, operands=1, message_bytes=4, operand_bytes=(4,), group_size=2)
        for count in (None, 3)
    ]
    lines = [
        Program(**where, program=i, cell=cell(), facts=ProgramFacts(collectives=found))
        for i, found in enumerate([(loops[0],), (loops[1], loops[1]), ()])
    ]
    known = programs_of([Launch(**where, started="now")], lines)
    assert known[cell()].collectives == {
        "any number of all-reduce of 4 bytes",
        "6 all-reduce of 4 bytes",
        "no collective",
    }
