"""The table of surroundings, and the line of ``explain`` that puts a verdict in doubt."""

from breakeven.cli.render_explain import explain
from breakeven.cli.render_surroundings import surroundings
from breakeven.data.schema import Closing, Machine, Plan, Sweep
from breakeven.data.simulated import simulated_lines
from breakeven.data.store import Record
from breakeven.data.surroundings import Surroundings
from breakeven.data.surroundings import surroundings as around
from breakeven.fit.answer import NamedWarning
from breakeven.model.cell import Cell
from msgspec.structs import replace

MACHINE = Machine(host="node1", governor="performance", frequency_mhz=(800, 3000), clock_resolution_ns=1)
CLOSING = Closing(
    sweep="s",
    launch="0123456789",
    seconds=10,
    others_busy_cores=0.25,
    stolen_share=0.012,
    throttled_s=1.5,
    heat_throttles=2,
    frequency_mhz=(2999.9, 3000.1),
    clock_jump_s=-0.25,
    suspended_s=0.0,
)
FULL = Surroundings(
    launch="0123456789",
    cores=4,
    load_average=1.0,
    warmups=3,
    machines=(replace(MACHINE, clock_overhead_ns=60.4),),
    closing=CLOSING,
)
CUT = Surroundings(launch="fedcba9876", cores=4, load_average=1.0, warmups=2, machines=(MACHINE,), closing=None)


def test_the_table():
    found = surroundings([FULL, CUT])
    assert found is not None
    head, columns, _, full, cut = found.splitlines()
    assert head == "surroundings: host node1, governor performance, clock steps of 1 ns, 60 ns a reading"
    headers = ("launch", "cores", "MHz", "warm-ups", "others", "stolen", "held back", "clock", "slept")
    assert " ".join(columns.split()) == " ".join(headers)
    assert " ".join(full.split()) == "01234567 4 3000 3 0.25 cores 1.2 % 1.5 s, heat x2 -250.0 ms 0.0 s"
    assert " ".join(cut.split()) == "fedcba98 4 800-3000 2 - - - - -"
    assert max(map(len, found.splitlines())) <= 100


def test_columns_that_nobody_fills_are_left_out():
    found = surroundings([CUT])
    assert found is not None
    assert found.splitlines()[1].split() == ["launch", "cores", "MHz", "warm-ups"]


def test_a_record_that_says_nothing_has_no_table():
    assert surroundings([]) is None
    plan = Plan(workload="made", path="weak", objective="time", devices=(1,), sizes=(8,), strategies=("jit",))
    cell = Cell(role="workload", strategy="jit", num_devices=1, size=8)
    lines = simulated_lines(plan, [cell], [[[[1e-4]], [[2e-4]]]])  # pyright: ignore[reportArgumentType]
    record = Record.from_lines(lines)
    assert around(record) == ()
    (sweep,) = record.sweeps
    assert isinstance(sweep, Sweep)
    ended = replace(CLOSING, sweep=sweep.sweep, launch=record.launches[1].launch)
    (found,) = around(Record.from_lines([*lines, ended]))
    assert (found.launch, found.warmups, found.closing) == (record.launches[1].launch, 0, ended)


def test_a_verdict_in_doubt_says_so(strong_answer):
    few = NamedWarning(name="few-cores", text="2 cores for 2 devices", doubts_verdict=True)
    drift = NamedWarning(name="drift", text="it drifts")
    shared = NamedWarning(name="forced-devices", text="8 devices share 2 cores", doubts_verdict=True)
    named = (shared, few, drift)
    plain = explain(strong_answer)
    assert "doubtful" not in plain
    found = explain(replace(strong_answer, named_warnings=named, doubts=("forced-devices", "few-cores")))
    # Drift doubts no verdict; that devices share cores stands elsewhere.
    assert [line for line in found.splitlines() if line not in plain.splitlines()] == [
        "  doubtful, few-cores: 2 cores for 2 devices"
    ]
    assert explain(replace(strong_answer, named_warnings=named)) == plain
