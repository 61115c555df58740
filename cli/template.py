"""The twenty lines of a user's own workload, as ``breakeven workloads`` prints them."""

TEMPLATE = '''\
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

import breakeven


@breakeven.workload(path="weak", unit="rows")
def build(mesh, size):
    """One data-parallel training step; `size` is the global number of rows."""
    axis = mesh.axis_names[0]
    x = jax.device_put(jnp.ones((size, 64)), NamedSharding(mesh, P(axis)))
    y = jax.device_put(jnp.ones((size, 1)), NamedSharding(mesh, P(axis)))
    weights = jax.device_put(jnp.zeros((64, 1)), NamedSharding(mesh, P()))

    def step(weights, x, y):
        gradient = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(weights)
        return weights - 0.01 * gradient

    return jax.jit(step, donate_argnums=0), weights, (x, y)
'''
