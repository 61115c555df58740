import jax
import jax.numpy as jnp
import numpy as np
import pytest
from breakeven.measure.clock import time_queued
from breakeven.measure.prepare import prepare
from breakeven.measure.processes.meshes import from_host
from breakeven.measure.workload import MeasureError
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def split(mesh, array):
    return jax.device_put(array, NamedSharding(mesh, P("x0")))


def everywhere(mesh, array):
    return jax.device_put(array, NamedSharding(mesh, P()))


def mean_of_product(x, v):
    return jnp.mean(x @ v)


def test_a_plain_function_is_jitted_and_its_facts_are_read(mesh_of):
    mesh = mesh_of(4)
    args = split(mesh, jnp.ones((8, 20))), everywhere(mesh, jnp.ones(20))
    program = prepare((mean_of_product, args), work=12.0)
    assert float(program.call()) == 20.0
    assert program.facts is not None
    assert [c.kind for c in program.facts.collectives] == ["all-reduce"]
    assert program.facts.inputs_in_place
    assert program.facts.work == 12.0
    assert program.compile_s is not None
    assert 0 < program.compile_s < 60


def test_pieces_of_what_was_not_jitted_are_counted():
    layer, x = jax.jit(lambda x: jnp.tanh(x) * 2), jnp.ones(3)

    def layers(x):
        for _ in range(20):
            x = layer(x)
        return x

    assert prepare((layers, (x,))).pieces == 20
    assert prepare((lambda x, rate: (layers(x), rate), x, (1.0,))).pieces == 20
    # Jitted, or a wrapper around what is.
    assert prepare((jax.jit(layers), (x,))).pieces is prepare((lambda x: layer(x), (x,))).pieces is None


def test_what_can_be_lowered_is_used_as_it_is(mesh_of):
    mesh = mesh_of(2)
    fn = jax.jit(mean_of_product, out_shardings=NamedSharding(mesh, P()))
    program = prepare((fn, (split(mesh, jnp.ones((4, 3))), everywhere(mesh, jnp.ones(3)))))
    assert program.fn is fn


@pytest.mark.parametrize("left", [jnp.ones, np.ones])
def test_inputs_left_elsewhere_are_put_in_place_and_that_is_said(mesh_of, left):
    mesh = mesh_of(4)
    program = prepare((mean_of_product, (split(mesh, jnp.ones((8, 20))), left(20))))
    assert program.facts is not None
    assert not program.facts.inputs_in_place
    vector = program.args()[1]
    assert vector.sharding.is_equivalent_to(NamedSharding(mesh, P()), 1)


def test_inputs_of_an_unplaced_strategy_stay(mesh_of):
    mesh = mesh_of(4)
    vector = jnp.ones(20)
    program = prepare((mean_of_product, (split(mesh, jnp.ones((8, 20))), vector)), place=False)
    assert program.args()[1] is vector
    assert program.facts is not None
    assert not program.facts.inputs_in_place


@pytest.mark.parametrize(("shape", "spec"), [((4, 2), P("x0")), ((), P())])
def test_keys_are_placed_as_arrays_are(mesh_of, shape, spec):
    keys = jax.random.split(jax.random.key(3), shape)
    sharding = NamedSharding(mesh_of(4), spec)
    placed = from_host(keys, sharding)
    assert placed.sharding.is_equivalent_to(sharding, keys.ndim)
    assert bool((placed == jax.device_put(keys, sharding)).all())


def test_an_argument_that_is_not_used_or_none_needs_no_place(mesh_of):
    mesh = mesh_of(2)
    program = prepare((lambda tree, unused: tree["a"] * 2, ({"a": split(mesh, jnp.ones(4)), "b": None}, jnp.ones(3))))
    assert program.facts is not None
    assert program.facts.inputs_in_place
    np.testing.assert_array_equal(program.call(), np.full(4, 2.0))


def test_pmap_is_placed_as_it_splits(mesh_of):
    devices = list(mesh_of(4).devices.ravel())
    fn = jax.pmap(lambda x, v: (x @ v).sum(), in_axes=(0, None), devices=devices)
    args = (jnp.ones((4, 5, 3)), jnp.ones(3))
    program = prepare((fn, args))
    np.testing.assert_array_equal(program.call(), np.full(4, 15.0))
    assert len(program.args()[0].sharding.device_set) == 4
    assert program.facts is not None
    assert not program.facts.inputs_in_place


def momentum_step(state, x):
    loss = jnp.mean((x @ state["w"] - 1) ** 2)
    return {"w": state["w"] + 1, "n": state["n"] + 1}, loss


@pytest.mark.parametrize("donated", [(), (0,)])
def test_a_state_is_carried_donated_or_not(mesh_of, donated):
    mesh = mesh_of(2)
    state = {"w": everywhere(mesh, jnp.zeros(3)), "n": everywhere(mesh, jnp.array(0))}
    program = prepare((jax.jit(momentum_step, donate_argnums=donated), state, (split(mesh, jnp.ones((4, 3))),)))
    first, _ = program.call()
    assert float(first["w"][0]) == 2.0
    time_queued(program.call, jax.block_until_ready, calls=5, keep=False)
    assert program.carries
    # One call was made while preparing, one here, five queued.
    assert int(program.args()[0]["n"]) == 7
    assert first["w"].is_deleted() == bool(donated)
    assert program.compiled is not None


def test_the_latest_state_is_given_out_as_a_copy(mesh_of):
    state = {"w": jnp.zeros(3), "n": jnp.array(0)}
    program = prepare((jax.jit(momentum_step, donate_argnums=0), state, (jnp.ones((4, 3)),)))
    copied, _ = program.args()
    program.call()
    assert not copied["w"].is_deleted()
    other = prepare(program.with_function(jax.jit(momentum_step, donate_argnums=0)))
    assert int(other.args()[0]["n"]) == 3


def test_a_step_that_returns_its_state_alone():
    program = prepare((lambda state, by: state + by, jnp.zeros(2), (jnp.ones(2),)))
    np.testing.assert_array_equal(program.call(), np.full(2, 2.0))


def test_a_state_that_moves_at_the_first_call_is_compiled_for_where_it_comes_to_lie(mesh_of):
    mesh = mesh_of(2)
    fn = jax.jit(lambda state, x: state + x, out_shardings=NamedSharding(mesh, P("x0")))
    program = prepare((fn, everywhere(mesh, jnp.zeros(4)), (split(mesh, jnp.ones(4)),)))
    np.testing.assert_array_equal(program.call(), np.full(4, 3.0))
    assert program.compiled is not None
    assert program.compiled.input_shardings[0][0].spec == P("x0")


def test_a_state_that_never_settles():
    with pytest.raises(MeasureError, match="the state that step returns differs from the one it takes"):
        prepare((lambda state: jnp.concatenate([state, state]), jnp.zeros(2), ()))


def test_a_step_without_the_next_state():
    with pytest.raises(MeasureError, match="the first output of step must be the next state"):
        prepare((lambda state: jnp.mean(state["w"]), {"w": jnp.ones(2)}, ()))


def test_what_cannot_be_lowered_is_timed_with_its_program_unknown():
    def decides_in_python(x):
        return x + 1 if float(x.sum()) > 0 else x

    program = prepare((decides_in_python, (jnp.ones(3),)))
    assert program.facts is None
    assert program.compiled is None
    assert program.compile_s is None
    np.testing.assert_array_equal(program.call(), np.full(3, 2.0))
    assert not program.runs_alone


def test_a_state_carried_by_plain_python():
    def step(state, by):
        return (state + by if float(state[0]) >= 0 else state), 0.5

    program = prepare((step, jnp.zeros(1), (jnp.ones(1),)))
    program.call()
    assert float(program.args()[0][0]) == 2.0


def test_the_users_own_error_passes_through():
    def fn(x):
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        prepare((fn, (jnp.ones(3),)))


@pytest.mark.parametrize(
    ("built", "message"),
    [
        (None, "build returned nothing"),
        ((mean_of_product,), r"must return \(fn, args\) or \(step, state, rest\), got \(function\)"),
        ([1, 2], "got list"),
        ((mean_of_product, np.ones(3)), "args, the last that build returns, must be a tuple of arguments, got ndarray"),
        ((mean_of_product, 1, 2.0), "rest, the last that build returns, must be a tuple of arguments, got float"),
        ((lambda x: None, (1.0,)), "the function returned nothing"),
        ((lambda x: x / 0 * 0, (np.ones(3),)), "the function returned NaN"),
        ((lambda x: {"a": 1, "b": jnp.log(-x)}, (np.ones(3),)), "the function returned NaN"),
        ((jax.jit(lambda x: x + 1, donate_argnums=0), (jnp.ones(3),)), r"return \(step, state, rest\)"),
        ((jax.jit(lambda x, n: x * n, static_argnums=1), (jnp.ones(3), 2)), "fn takes static arguments; bind them"),
    ],
)
def test_what_cannot_be_measured_is_refused(built, message):
    with pytest.raises(MeasureError, match=message):
        prepare(built)


def test_nan_in_one_shard_is_found(mesh_of):
    mesh = mesh_of(4)
    values = np.ones(8)
    values[5] = np.nan
    with pytest.raises(MeasureError, match="NaN"):
        prepare((lambda x: x + 1, (split(mesh, values),)))


def test_whole_numbers_are_never_nan():
    assert prepare((lambda x: x + 1, (jnp.arange(3),))).facts is not None
