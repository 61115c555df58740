"""What counts as another program, and what does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from breakeven.measure.fingerprint import digest, fingerprint
from breakeven.measure.prepare import prepare
from jax.sharding import NamedSharding, PartitionSpec

ARGS = (jnp.ones((4, 8)),)


def of(fn):
    return fingerprint(jax.jit(fn).lower(*ARGS))


def sines(x):
    return jnp.sin(jnp.sin(x)).sum()


def times(count):
    return lambda x: jax.lax.fori_loop(0, count, lambda _, y: jnp.sin(y), x)


def until(limit):
    return lambda x: jax.lax.while_loop(lambda y: jnp.max(y) > limit, jnp.sin, x)


def test_an_edit_is_another_program():
    programs = [
        sines,
        lambda x: jnp.sin(x).sum(),
        lambda x: jnp.sin(jnp.sin(x)),
        times(3),
        times(4),
        until(0.5),
        until(0.1),
    ]
    found = [of(program) for program in programs]
    assert len(set(found)) == len(found)
    assert all(len(one) == 16 for one in found)


def test_another_shape_type_or_sharding_is_another_program(mesh_of):
    mesh = mesh_of(2)
    split = jax.device_put(jnp.ones((4, 8)), NamedSharding(mesh, PartitionSpec("x0")))
    whole = jax.device_put(jnp.ones((4, 8)), NamedSharding(mesh, PartitionSpec()))
    args = [jnp.ones((4, 8)), jnp.ones((8, 4)), jnp.ones((4, 8), jnp.bfloat16), split, whole]
    assert len({fingerprint(jax.jit(sines).lower(one)) for one in args}) == len(args)


def test_names_places_and_the_order_of_lines_count_for_nothing():
    def renamed(values):
        inner = jnp.sin(values)

        return jnp.sum(jnp.sin(inner))

    assert of(renamed) == of(sines)
    one, other = (lambda x: (jnp.sin(x), jnp.cos(x))), (lambda x: (jnp.cos(x), jnp.sin(x)))
    assert of(one) == of(other)


@pytest.mark.parametrize("shape", [(), (4,), (200, 200)])
def test_data_drawn_anew_at_every_start_count_by_shape(shape):
    draws = [np.random.default_rng(seed).random(shape, np.float32) for seed in (1, 2)]
    one, other = [of(lambda x, data=data: x.sum() + jnp.sum(jnp.sin(data) * data)) for data in draws]
    assert one == other
    keys = [jax.random.key(seed) for seed in (1, 2)]
    # A process may mix its own number into a key.
    assert of(lambda x: x + jax.random.normal(jax.random.fold_in(keys[0], 0))) == of(
        lambda x: x + jax.random.normal(jax.random.fold_in(keys[1], 1))
    )
    assert of(lambda x: x + jax.random.normal(keys[0], (8,))) == of(lambda x: x + jax.random.normal(keys[1], (8,)))


def test_where_a_callback_lies_in_memory_counts_for_nothing():
    line = 'stablehlo.custom_call @{}(%0) {{backend_config = "{}", has_side_effect = true}} : tensor<f32>'
    assert digest(line.format("callback", 93824)) == digest(line.format("callback", 51516))
    assert digest(line.format("callback", 93824)) != digest(line.format("lapack", 93824))


def test_a_prepared_program_bears_it_and_plain_python_none(mesh_of):
    assert prepare((sines, ARGS)).fingerprint == of(sines)
    assert prepare((lambda x: x * float(x[0, 0]), ARGS)).fingerprint is None
    stepped = prepare((lambda s, x: (s + x, x.sum()), jnp.zeros((4, 8)), ARGS))
    assert stepped.fingerprint is not None
