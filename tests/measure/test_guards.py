"""Programs whose time would mean nothing, each with the innocent programs next to it."""

from __future__ import annotations

import functools
import itertools
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest
from breakeven.data import store
from breakeven.measure import sweep, workloads
from breakeven.measure.clock import time_queued
from breakeven.measure.controls import ControlRefused
from breakeven.measure.devices import Devices
from breakeven.measure.guards import refuse_unlike_control
from breakeven.measure.host_peak import HIGHEST_CLOCK_HZ, host_peak_flops
from breakeven.measure.inventory import control_cells, workload_cells
from breakeven.measure.planning import make_plan, parse_sizes
from breakeven.measure.prepare import prepare
from breakeven.measure.programs import Programs
from breakeven.measure.userfile import resolve
from breakeven.measure.userfile import workload as declared
from breakeven.measure.workload import MeasureError, Workload
from breakeven.model.cell import Cell
from breakeven.model.peaks import memory_bandwidth, peak_flops
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

HOST = Devices(platform="cpu", count=1, kind="cpu")
doubled = jax.jit(lambda x: 2 * x)
scaled = jax.jit(lambda x, factor: factor * x, static_argnums=1)


def plain(function):
    """The same function, decided by a value: it cannot be lowered and runs as plain Python."""

    @functools.wraps(function)
    def run(x):
        return function(x) if bool(np.asarray(x).ravel()[0] < 9) else None

    return run


def split(mesh, array):
    return jax.device_put(array, NamedSharding(mesh, P("x0")))


# What comes out.


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: "done", r"returned no array and no number \(str\); return what it computes"),
        (lambda x: {"a": "done", "b": b"x"}, r"\(str, bytes\)"),
        (lambda x: object(), r"\(object\)"),
        (lambda x: np.array(["a"]), r"\(ndarray\)"),
        (lambda x: x / 0, "nothing but infinity"),
        (lambda x: (x * np.inf, jnp.arange(3)), "nothing but infinity"),
        (lambda x: float("inf"), "nothing but infinity"),
    ],
)
@pytest.mark.parametrize("as_written", [plain, lambda function: function])
def test_outputs_that_say_that_nothing_was_computed(returned, message, as_written):
    with pytest.raises(MeasureError, match=message):
        prepare((as_written(returned), (jnp.ones(3),)))


@pytest.mark.parametrize(
    "returned",
    [
        lambda x: (x, "a label"),
        lambda x: float(x.sum()),
        lambda x: np.asarray(x) + 1,
        lambda x: x.at[0].set(jnp.inf),
        lambda x: (jnp.inf, x),
        lambda x: jnp.arange(3),
        lambda x: x > 2,
        lambda x: (jnp.zeros((0,)), 1.0),
    ],
)
def test_outputs_that_may_look_odd_pass(returned):
    prepare((plain(returned), (jnp.ones(3),)))


# Not blocked on.

product = jax.jit(lambda x: x @ x @ x)


def test_work_that_goes_on_after_the_call_is_not_waited_for():
    def starts(x):
        product(x)
        return 1.0

    with pytest.raises(MeasureError, match="work goes on after everything that fn returned is ready"):
        prepare((plain(starts), (jnp.ones((1200, 1200)),)))


@pytest.mark.parametrize(
    "waits",
    [
        lambda x: float(product(x)[0, 0]),
        lambda x: np.asarray(product(x)),
        product,
        lambda x: product(x).block_until_ready()[0, 0].item(),
    ],
)
def test_work_that_is_waited_for_passes(waits):
    prepare((plain(waits), (jnp.ones((600, 600)),)))


# Traced again at each call.


numbers = itertools.count(20)


def fresh_static(x):
    return scaled(x, next(numbers))


@pytest.mark.parametrize(
    ("again", "name"),
    [
        (lambda x: jax.jit(lambda y: y + 1)(x), "lambda"),
        (lambda x: jax.jit(functools.partial(jnp.add, 1))(x) + jax.jit(lambda y: y * 3)(x), "lambda"),
        (fresh_static, "lambda"),
        (lambda x: jax.lax.scan(lambda carry, _: (carry + 1, None), x, length=3)[0], "scan"),
        (lambda x: jnp.ones(next(numbers)) + x[0], "broadcast|ones|fill"),
    ],
)
def test_a_program_that_compiles_at_each_call(again, name):
    with pytest.raises(MeasureError, match=rf"every call compiles again \(.*({name}).*make jitted functions once"):
        prepare((plain(again), (jnp.ones(3),)))


def plus_one(x):
    return x + 1


@pytest.mark.parametrize(
    "once",
    [
        doubled,
        lambda x: scaled(x, 2),
        lambda x: jax.jit(plus_one)(x),
        lambda x: jax.grad(lambda y: (y**2).sum())(x),
        lambda x: jax.vmap(lambda y: jnp.sin(y))(x),
        lambda x: jnp.linalg.norm(x) + jnp.mean(x),
    ],
)
def test_a_program_that_compiled_before_passes(once):
    assert prepare((plain(once), (jnp.ones(3),))).moved_bytes is None


def test_a_plain_step_may_compile_for_the_state_that_it_returned():
    def step(state, x):
        return (state + x if float(x[0]) > 0 else state), jnp.sum(state)

    program = prepare((step, 0, (jnp.ones(4),)))
    np.testing.assert_array_equal(program.args()[0], np.ones(4))


# Several processes: each must hear that none has refused the program before it makes more calls.


def test_plain_calls_are_made_only_after_all_have_agreed():
    done = []

    def counted(x):
        done.append("call")
        return doubled(x)

    prepare((plain(counted), (jnp.ones(3),)), before_call=lambda: done.append("agree"))
    assert done == ["agree", "call", "agree", "call", "call", "agree", "call", "call", "call"]

    done.clear()
    with pytest.raises(MeasureError, match="NaN"):
        prepare((plain(lambda x: counted(x) * np.nan), (jnp.ones(3),)), before_call=lambda: done.append("agree"))
    assert done == ["agree", "call"]


# Inputs moved at each call.


def test_host_arrays_of_a_plain_program_are_moved_at_each_call():
    assert prepare((plain(doubled), (np.ones(1000, np.float32),))).moved_bytes == 4000


def test_an_array_that_is_placed_inside_a_plain_program_is_seen(mesh_of):
    mesh, host = mesh_of(4), np.ones((1000, 4), np.float32)

    def places(x):
        return doubled(split(mesh, host)).sum() + x.sum()

    assert prepare((plain(places), (jnp.ones(3),))).moved_bytes == 16000

    narrow = host.astype(jnp.float8_e4m3fn)
    assert prepare((plain(lambda x: split(mesh, narrow)), (jnp.ones(3),))).moved_bytes == 4000


def test_what_moves_nothing_is_not_said_to(mesh_of):
    there = split(mesh_of(2), np.ones(4, np.float32))
    for function in (lambda x: x * 2.0, lambda x: scaled(x, 3), lambda x: float(x.sum())):
        assert prepare((plain(function), (there,))).moved_bytes is None
    # An array that stays on the host is none that is moved.
    assert prepare((plain(lambda x: x + 1), (np.ones(3),))).moved_bytes is None


def test_inputs_that_a_strategy_leaves_elsewhere_are_counted(mesh_of):
    args = split(mesh_of(4), jnp.ones((8, 20))), np.ones(20, np.float32)
    program = prepare((lambda x, v: jnp.mean(x @ v), args), place=False)
    assert program.moved_bytes == 80
    assert prepare((lambda x, v: jnp.mean(x @ v), args)).moved_bytes is None


def test_what_a_watched_call_prints_still_comes_out(capfd):
    def prints(x):
        sys.stderr.write("theirs\n")
        return doubled(x)

    prepare((plain(prints), (np.ones(3, np.float32),)))
    assert capfd.readouterr().err.count("theirs") >= 3


# Donated inputs that are needed again.

uses_up = jax.jit(lambda x: x + 1, donate_argnums=0)


def test_donated_arguments_on_every_route():
    for function in (uses_up, plain(uses_up)):
        with pytest.raises(MeasureError, match=r"fn donates its arguments; return \(step, state, rest\)"):
            prepare((function, (jnp.ones(3),)))


def test_a_step_that_donates_its_rest():
    step = jax.jit(lambda state, x: (state + x, 2 * x), donate_argnums=(0, 1))
    for function in (step, lambda state, x: step(state, x) if float(x[0]) > 0 else None):
        with pytest.raises(MeasureError, match=r"donate the state alone \(donate_argnums=0\)"):
            prepare((function, jnp.ones(3), (jnp.ones(3),)))


def test_a_state_whose_array_is_in_rest_too():
    shared = jnp.ones(3)
    with pytest.raises(MeasureError, match="an array of the state is in rest too"):
        prepare((lambda state, x: uses_up(state) if float(x[0]) > 0 else x, shared, (shared,)))


def test_a_state_with_the_same_array_twice():
    shared = jnp.ones(3)
    step = jax.jit(lambda state: {"a": state["a"] + 1, "b": state["b"] + 1}, donate_argnums=0)
    with pytest.raises(MeasureError, match="the same array is given twice where it is donated; make a copy"):
        prepare((step, {"a": shared, "b": shared}, ()))


def test_an_array_that_is_donated_twice():
    shared = jnp.ones(3)
    with pytest.raises(MeasureError, match="the same array is given twice where it is donated; make a copy"):
        prepare((jax.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1)), (shared, shared)))


def test_equal_numbers_may_be_donated():
    step = jax.jit(lambda state: {"a": state["a"] + 1, "b": state["b"] + 1}, donate_argnums=0)
    prepare((step, {"a": 0, "b": 0}, ()))


def test_an_array_that_build_hands_out_twice():
    state = jnp.ones(3)
    prepare((uses_up, state, ()))
    with pytest.raises(MeasureError, match="make the state anew in each build"):
        prepare((uses_up, state, ()))


def test_a_plain_program_that_donates_what_it_keeps():
    kept = jnp.ones(3)
    with pytest.raises(MeasureError, match="fn uses an array that an earlier call has donated"):
        prepare((plain(lambda x: uses_up(kept) + x), (jnp.ones(3),)))


def test_donation_as_it_should_be_passes():
    step = jax.jit(lambda state, x: (state + x, state.sum()), donate_argnums=0)
    program = prepare((step, jnp.zeros(3), (jnp.ones(3),)))
    time_queued(program.call, jax.block_until_ready, calls=3, keep=False)
    plainly = prepare((lambda state, x: step(state, x) if float(x[0]) > 0 else None, jnp.zeros(3), (jnp.ones(3),)))
    time_queued(plainly.call, jax.block_until_ready, calls=3, keep=False)
    # A donated buffer that fits no output is not taken.
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        prepare((jax.jit(lambda x: x.sum(), donate_argnums=0), (jnp.ones(3),)))


# What hardware can do.


def test_published_rates_by_the_names_that_jax_gives():
    assert peak_flops("NVIDIA A100-SXM4-80GB") == 624e12
    assert peak_flops("TPU v5 lite") == 394e12
    assert peak_flops("TPU v5p") == peak_flops("TPU v5") == 918e12
    assert peak_flops("Tesla V100-SXM2-16GB") == 130e12
    assert memory_bandwidth("NVIDIA H200") == 4.8e12
    assert memory_bandwidth("NVIDIA GH200 144G HBM3e") == 4.9e12
    assert memory_bandwidth("TPU7x") == 7.4e12
    assert peak_flops("cpu") is peak_flops(None) is memory_bandwidth("abacus") is None


@pytest.mark.parametrize(
    ("line", "narrow", "wide"),
    [
        ("flags\t\t: fpu avx avx2 fma avx512f amx_bf16 amx_int8", 2048, 64),
        ("flags\t\t: fpu avx avx2 fma avx512f", 256, 64),
        ("flags\t\t: fpu avx avx2 fma", 128, 32),
        ("Features\t: fp asimd evtstrm", 256, 64),
    ],
)
def test_a_hosts_bound_by_its_flags(tmp_path, line, narrow, wide):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"processor\t: 0\n{line}\n")
    assert host_peak_flops(4, root=tmp_path) == 4 * narrow * HIGHEST_CLOCK_HZ
    assert host_peak_flops(4, narrow=False, root=tmp_path) == 4 * wide * HIGHEST_CLOCK_HZ


def test_a_host_without_known_flags_has_no_bound(tmp_path):
    assert host_peak_flops(4, root=tmp_path) is None


def one_program(build, num_devices, size, **declaration):
    plan = make_plan(
        Workload(name="made", builds={"jit": build}, divides=False, **declaration),
        devices=[num_devices],
        sizes=[size],
        available=HOST,
    )
    programs = Programs(plan, Workload(name="made", builds={"jit": build}, divides=False, **declaration))
    (cell,) = workload_cells(plan)
    programs.workload(cell, lambda *_stage: None)
    return programs, cell


def test_narrow_numbers_have_a_higher_bound_and_branches_have_none():
    def bound(function, dtype=jnp.float32):
        programs, cell = one_program(lambda mesh, size: (function, (jnp.ones((size, size), dtype),)), 1, 64)
        made = programs.workload_of(cell)
        assert made is not None
        assert made.facts is not None
        return made.facts.peak_flops

    wide, narrow = bound(lambda x: x @ x), bound(lambda x: x @ x, jnp.bfloat16)
    assert wide is not None
    assert narrow is not None
    assert narrow > wide
    assert bound(lambda x: jax.lax.cond(x[0, 0] > 0, lambda y: y @ y @ y, lambda y: y, x)) is None


# Control and workload.


@pytest.mark.parametrize(
    ("returned", "quoted"),
    [
        (None, "None"),
        ("5", "'5'"),
        (10**400, "a larger integer than any float"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (-5, "-5"),
        (1 + 2j, r"\(1\+2j\)"),
    ],
)
def test_declared_work_that_is_no_amount(returned, quoted):
    def build(mesh, size):
        return doubled, (jnp.ones(size),)

    with pytest.raises(MeasureError, match=rf"work\(8\) returned {quoted}; it must return the flops"):
        one_program(build, 1, 8, work=lambda local_size: returned)
    for amount in (0, 40.0, np.float32(3), jnp.ones(()), 10**20):
        programs, cell = one_program(build, 1, 8, work=lambda local_size, amount=amount: amount)
        facts = programs.made[cell].facts
        assert facts is not None
        assert facts.work == amount


def test_a_program_that_is_not_compiled_is_refused():
    def build(mesh, size):
        return doubled, (jnp.ones(size),)

    with jax.disable_jit(), pytest.raises(MeasureError, match=r"jax_disable_jit is on.*switch it off"):
        one_program(build, 1, 8)
    one_program(build, 1, 8)


def test_a_given_control_with_other_work_is_refused():
    def build(mesh, size, repeats=1):
        def mean(x, v):
            for _ in range(repeats):
                v = jnp.tanh(x @ v).mean() * v
            return v

        x = jax.device_put(np.ones((size, 20), np.float32), NamedSharding(mesh, P("devices")))
        return jax.jit(mean), (x, jax.device_put(np.ones(20, np.float32), NamedSharding(mesh, P())))

    def alone(mesh, size, repeats=1):
        fn, args = build(mesh, size, repeats)
        body = fn.__wrapped__
        specs = P("devices"), P()
        return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)), args

    def made(local):
        programs, cell = one_program(build, 2, 4096, local=local)
        return programs.local(replace(cell, role="local"), lambda *_stage: None)

    assert made(alone)[1] == "hand-written"
    with pytest.raises(ControlRefused, match=r"the work differs: flops .*Give local=build_local the same work"):
        made(lambda mesh, size: alone(mesh, size, repeats=3))
    with pytest.raises(ControlRefused, match=r"the control still communicates \(all-reduce\)"):
        made(build)


def test_a_control_that_cannot_be_compared_passes(mesh_of):
    def until(x):
        return jax.lax.while_loop(lambda y: y.max() > 0.1, lambda y: y * 0.9, x)

    x = jnp.ones(64)
    refuse_unlike_control(jax.jit(until).lower(x).compile(), jax.jit(lambda x: until(x) @ x).lower(x).compile())


# Padding.


def test_an_array_that_was_padded_to_the_next_multiple():
    def padded(mesh, size):
        whole = -(-size // mesh.size) * mesh.size
        return jnp.sum, (jax.device_put(np.ones((whole, 3)), NamedSharding(mesh, P("devices"))),)

    def share(build, num_devices, size):
        programs, cell = one_program(build, num_devices, size)
        made = programs.workload_of(cell)
        assert made is not None
        assert made.facts is not None
        return made.facts.padded_share

    assert share(padded, 4, 10) == pytest.approx(2 / 12)
    assert share(padded, 4, 12) == 0
    assert share(padded, 1, 10) == 0
    # An axis that happens to be as long, but is not split, is no padding.
    assert share(lambda mesh, size: (jnp.sum, (jnp.ones((12, 3)),)), 4, 10) == 0

    def stacked(mesh, size):
        return jax.pmap(jnp.sum, devices=list(mesh.devices.flat)), (np.ones((mesh.size, -(-size // mesh.size))),)

    assert share(stacked, 4, 10) == pytest.approx(2 / 12)

    def inside(mesh, size):
        uneven = NamedSharding(mesh, P("devices"))
        return lambda x: jax.lax.with_sharding_constraint(2 * x, uneven).sum(), (np.ones(size),)

    assert share(inside, 4, 10) == pytest.approx(2 / 12)

    def left_open(mesh, size):
        free = NamedSharding(mesh, P(P.UNCONSTRAINED, "devices"))
        return lambda x: jax.lax.with_sharding_constraint(2 * x, free).sum(), (np.ones((4, size)),)

    assert share(left_open, 4, 10) == pytest.approx(2 / 12)
    assert share(inside, 4, 8) == 0


# What build takes, and what a plan may ask for.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def build(mesh): pass",
            r"build is called with \(mesh, size\), but it takes \(mesh\).*def build\(mesh, size\)",
        ),
        ("def build(mesh, size, more): pass", r"it takes \(mesh, size, more\): missing a required argument: 'more'"),
        ("def build(): pass", r"it takes \(\): too many positional arguments"),
        ("def build(*, mesh, size): pass", r"too many positional arguments"),
        (
            "import breakeven\n@breakeven.workload(local=lambda mesh: 1)\ndef build(mesh, size): pass",
            r"local <lambda> is called with \(mesh, size\)",
        ),
        (
            "import breakeven\n@breakeven.workload(work=lambda: 1)\ndef build(mesh, size): pass",
            r"work <lambda> is called with \(local_size\), but it takes \(\)",
        ),
        (
            "import breakeven\n@breakeven.workload(local='no')\ndef build(mesh, size): pass",
            r"local str must be a function of \(mesh, size\), got str",
        ),
    ],
)
def test_functions_that_do_not_take_what_they_are_given(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(MeasureError, match=message):
        resolve(f"{path}:build")


@pytest.mark.parametrize("text", ["*args", "mesh, size", "mesh, size, seed=0", "mesh, size=8, **more"])
def test_functions_that_take_more_pass(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(f"def build({text}): pass")
    assert resolve(f"{path}:build").strategies == ("as-written",)


def test_a_range_that_runs_backwards():
    with pytest.raises(MeasureError, match="the range runs backwards; write 256:4096:5"):
        parse_sizes("4096:256:5")
    assert parse_sizes("256:256:1") == (256,)


@pytest.mark.parametrize("seconds", [1e-3, 1000 * 3600.0])
def test_a_budget_that_is_none(seconds):
    made = Workload(name="made", builds={"jit": lambda mesh, size: ()})
    with pytest.raises(MeasureError, match=f"a budget of {seconds:,.10g} s is none: .* as in --budget 60s"):
        make_plan(made, sizes=[8], budget_s=seconds, available=HOST)
    assert make_plan(made, sizes=[8], budget_s=1.0, available=HOST).budget_s == 1.0


# In a sweep.


def test_a_refusal_costs_its_cell_and_what_is_moved_is_recorded(user_file, plan_of, tmp_path):
    name = user_file("""
        def build(mesh, size):
            def fn(x):
                if float(x[0, 0]) == 1:
                    return "done" if mesh.size == 2 else total(x)

            return fn, (np.ones((size, 4), np.float32),)

        total = jax.jit(lambda x: x.sum())
    """)
    read = store.read(sweep.run(plan_of(name, launches=1), tmp_path / "sweep.jsonl"))
    assert [(p.cell.num_devices, p.moved_bytes) for p in read.programs if p.cell.role == "workload"] == [(1, 8 * 16)]
    (failure,) = [one for one in read.failures if one.stage == "compile"]
    assert failure.cell is not None
    assert failure.cell.num_devices == 2
    assert failure.message.startswith("the function returned no array and no number (str)")
    assert failure.frames == ()
    assert {visit.round for visit in read.visits} == {0, 1}


# No false alarms.


@pytest.mark.parametrize("name", workloads.names())
def test_no_guard_fires_on_what_is_built_in(name):
    declared_here = workloads.builtin(name)
    plan = make_plan(declared_here, devices=[1, 2], available=HOST)
    plan = msgspec.structs.replace(plan, sizes=plan.sizes[:1])
    programs = Programs(plan, declared_here)
    for cell in workload_cells(plan):
        made, _ = programs.workload(cell, lambda *_stage: None)
        assert made.facts is not None
        assert made.facts.padded_share == 0
        assert made.facts.peak_flops is None or made.facts.peak_flops > 1e11
        assert (made.moved_bytes is None) == (cell.strategy != "pmap-unplaced" or cell.num_devices == 1)
    for cell in control_cells(plan):
        (programs.local if cell.role == "local" else programs.null)(cell, lambda *_stage: None)


def test_a_decorated_function_is_still_itself():
    @declared(path="weak")
    def build(mesh, size):
        return mesh, size

    assert build("mesh", 3) == ("mesh", 3)


def test_padding_says_nothing_of_a_plain_program():
    programs, cell = one_program(lambda mesh, size: (plain(doubled), (jnp.ones(size),)), 4, 10)
    made = programs.workload_of(cell)
    assert made is not None
    assert made.facts is None
    assert cell == Cell(role="workload", strategy="jit", num_devices=4, size=10)
