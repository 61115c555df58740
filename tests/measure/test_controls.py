"""Null and local controls, on real compiled programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from breakeven.measure.controls import ControlRefused, accept_control, automatic_local, donated_arguments, null_program
from breakeven.measure.hlo import summarize
from breakeven.measure.stand_ins import keep_bodies
from breakeven.measure.workloads import builtin
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

NUM_DEVICES = 4
ROWS, WIDTH = 64, 32
Program = Callable[[Mesh], tuple[Any, tuple[Any, ...]]]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


def put(mesh: Mesh, array: Any, *spec: Any) -> jax.Array:
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def on_rows(function: Callable[[Any], Any]) -> Program:
    """A function of one matrix whose rows are split."""
    return lambda mesh: (function, (put(mesh, normal(ROWS, WIDTH), "x0"),))


def with_weights(function: Callable[[Any, Any], Any], *weight_spec: Any, rows: int = ROWS) -> Program:
    """A function of split rows and a square weight matrix."""
    return lambda mesh: (
        function,
        (put(mesh, normal(rows, WIDTH), "x0"), put(mesh, normal(WIDTH, WIDTH), *weight_spec)),
    )


def of_builtin(name: str) -> Program:
    def program(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
        fn, *rest = builtin(name).builds["jit"](mesh, 64)
        return fn, (rest[0], *rest[1]) if len(rest) == 2 else rest[0]

    return program


def normalised(x: Any) -> Any:
    """Batch norm: mean and variance run over the split rows."""
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)


def layers(x: Any, w: Any) -> Any:
    return lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=5)[0].mean()


def tensor_parallel(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """A column-split then a row-split product: one all-reduce between layers."""
    args = (put(mesh, normal(ROWS, WIDTH)), put(mesh, normal(WIDTH, 64), None, "x0"), put(mesh, normal(64, 16), "x0"))
    return lambda x, a, b: jax.nn.relu(x @ a) @ b, args


def attention_by_heads(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    def attend(q: Any, k: Any) -> Any:
        return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(jnp.einsum("hqd,hkd->hqk", q, k)), k)

    return attend, (put(mesh, normal(8, 16, 8), "x0"), put(mesh, normal(8, 16, 8), "x0"))


def with_constraint(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    split = NamedSharding(mesh, P("x0"))
    return on_rows(lambda x: lax.with_sharding_constraint(jnp.tanh(x), split).sum(0))(mesh)


def with_inner_shard_map(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """The user calls shard_map while the program is traced."""

    def total(x: Any) -> Any:
        body = jax.shard_map(lambda s: lax.psum(s.sum(0), "x0"), mesh=mesh, in_specs=P("x0"), out_specs=P())
        return body(x * 2)

    return on_rows(total)(mesh)


def made_by_shard_map(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    """The user called shard_map before."""
    body = jax.shard_map(lambda s: lax.psum(s.sum(0), "x0"), mesh=mesh, in_specs=P("x0"), out_specs=P())
    return on_rows(body)(mesh)


def with_inner_shardings(mesh: Mesh) -> tuple[Any, tuple[Any, ...]]:
    inner = jax.jit(lambda x: x * 2, in_shardings=NamedSharding(mesh, P("x0")))
    return on_rows(lambda x: inner(x).sum())(mesh)


def until_converged(x: Any) -> Any:
    return lax.while_loop(lambda x: jnp.abs(x).max() > 0.1, lambda x: x * 0.9, x)


def gradient_of_mean(x: Any, w: Any) -> Any:
    return jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


ACCEPTED = {
    "mean-all": of_builtin("mean-all"),
    "matmul": of_builtin("matmul"),
    "matmul-contract": of_builtin("matmul-contract"),
    "train-step": of_builtin("train-step"),
    "sin-reduce": of_builtin("sin-reduce"),
    "elementwise": on_rows(jnp.tanh),
    "maximum of all": on_rows(lambda x: x.max()),
    "log-sum-exp of all": on_rows(jax.nn.logsumexp),
    "softmax of rows": on_rows(jax.nn.softmax),
    "batch norm": on_rows(normalised),
    "sum of columns": on_rows(lambda x: x.sum(0)),
    "scan over layers": with_weights(layers),
    "gradient": with_weights(gradient_of_mean, rows=1024),
    "vmap of grad": with_weights(lambda x, w: jax.vmap(jax.grad(lambda r: jnp.sin(r @ w).sum()))(x)),
    "tensor parallel": tensor_parallel,
    "attention by heads": attention_by_heads,
    "sharding constraint": with_constraint,
    "inner shard_map": with_inner_shard_map,
}
REFUSED = {
    "product with itself": (on_rows(lambda x: x @ x.T), "output shards differ"),
    "fft over split rows": (on_rows(lambda x: jnp.fft.fft(x, axis=0)), "output shards differ|work differs"),
    "cumsum over split rows": (on_rows(lambda x: jnp.cumsum(x, axis=0)), "output shards differ|work differs"),
    "sort over split rows": (on_rows(lambda x: jnp.sort(x, axis=0)), "output shards differ|work differs"),
    # The division by the batch follows the all-reduce, and reads and writes the message once more.
    "gradient of few rows": (with_weights(gradient_of_mean), "work differs: bytes accessed"),
    "loop until converged": (on_rows(until_converged), "trip count is unknown"),
}
RAISED = {
    "shard_map made before": (made_by_shard_map, r"local=build_local"),
    "inner shardings": (with_inner_shardings, r"does not run on one device's shards"),
    "hard-coded batch": (on_rows(lambda x: x.reshape(ROWS, 4, 8).sum(0)), r"TypeError: cannot reshape"),
    "weights split": (with_weights(lambda x, w: jnp.tanh(x @ w).mean(), "x0"), r"dot_general"),
}


def lowered(mesh: Mesh, program: Program) -> tuple[Any, tuple[Any, ...], Any]:
    fn, args = program(mesh)
    jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
    return fn, args, jitted.lower(*args).compile()


@pytest.mark.parametrize("name", ACCEPTED)
def test_automatic_control_is_accepted(name: str, mesh_of: Any) -> None:
    mesh = mesh_of(NUM_DEVICES)
    fn, args, workload = lowered(mesh, ACCEPTED[name])
    control = automatic_local(fn, args, mesh, workload=workload).lower(*args).compile()
    accept_control(workload, control)
    assert not summarize(control.as_text()).collectives
    # A state that is carried on must be able to go in again.
    assert [out.shape for out in jax.tree.leaves(control.out_info)] == [
        out.shape for out in jax.tree.leaves(workload.out_info)
    ]


@pytest.mark.parametrize("name", REFUSED)
def test_control_that_does_other_work_is_refused(name: str, mesh_of: Any) -> None:
    mesh = mesh_of(NUM_DEVICES)
    program, reason = REFUSED[name]
    fn, args, workload = lowered(mesh, program)
    control = automatic_local(fn, args, mesh).lower(*args).compile()
    with pytest.raises(ControlRefused, match=reason):
        accept_control(workload, control)


@pytest.mark.parametrize("name", RAISED)
def test_code_that_does_not_run_on_shards_is_refused(name: str, mesh_of: Any) -> None:
    mesh = mesh_of(NUM_DEVICES)
    program, reason = RAISED[name]
    fn, args = program(mesh)
    with pytest.raises(ControlRefused, match=reason):
        automatic_local(fn, args, mesh)


@pytest.mark.parametrize("older", [False, True])
def test_a_body_that_was_kept_runs_on_shards(older: bool, mesh_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from jax.experimental import shard_map as module

    monkeypatch.setattr(jax, "shard_map", jax.shard_map)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        monkeypatch.setattr(module, "shard_map", module.shard_map)
    keep_bodies()
    mesh = mesh_of(NUM_DEVICES)

    def column_sums(s: Any) -> Any:
        return lax.psum(s.sum(0), "x0")

    if older:
        made = module.shard_map(column_sums, mesh, in_specs=P("x0"), out_specs=P())
    else:
        made = jax.shard_map(mesh=mesh, in_specs=P("x0"), out_specs=P())(column_sums)
    fn, args, workload = lowered(mesh, on_rows(lambda x: made(x * 2)))
    # Elsewhere it is what it was.
    np.testing.assert_allclose(jax.jit(fn)(*args), 2 * np.asarray(args[0]).sum(0), rtol=1e-5)
    assert summarize(workload.as_text()).collectives
    control = automatic_local(fn, args, mesh, workload=workload).lower(*args).compile()
    accept_control(workload, control)


def test_wrapped_function_keeps_its_wrapper(mesh_of: Any) -> None:
    """vmap and grad carry the inner function too; only jit may be taken off."""
    mesh = mesh_of(NUM_DEVICES)
    fn, args = on_rows(jax.vmap(lambda row: row.sum()))(mesh)
    assert automatic_local(fn, args, mesh).lower(*args).compile().out_info.shape == (ROWS // NUM_DEVICES,)


def test_collective_imported_by_name_is_found_and_refused(mesh_of: Any) -> None:
    mesh, psum = mesh_of(NUM_DEVICES), lax.psum

    def total(x: Any) -> Any:
        return jax.shard_map(lambda s: psum(s.sum(), "x0"), mesh=mesh, in_specs=P("x0"), out_specs=P())(x)

    fn, args, workload = lowered(mesh, on_rows(total))
    control = automatic_local(fn, args, mesh).lower(*args).compile()
    with pytest.raises(ControlRefused, match=r"still communicates \(all-reduce\)"):
        accept_control(workload, control)


def test_arguments_on_another_mesh_are_refused(mesh_of: Any) -> None:
    fn, args = on_rows(jnp.tanh)(mesh_of(NUM_DEVICES))
    with pytest.raises(ControlRefused, match=r"another mesh .* as pmap's do\. Give a control yourself"):
        automatic_local(fn, args, mesh_of(2, 2))


def test_other_trip_count_and_unknown_code_are_refused(mesh_of: Any) -> None:
    mesh = mesh_of(NUM_DEVICES)

    def repeated(times: int, x: Any) -> Any:
        return lax.fori_loop(0, times, lambda _, x: jnp.sin(x), x)

    _, _, five = lowered(mesh, on_rows(partial(repeated, 5)))
    _, _, six = lowered(mesh, on_rows(partial(repeated, 6)))
    with pytest.raises(ControlRefused, match=r"trip counts \(5,\) in the workload, \(6,\) in the control"):
        accept_control(five, six)

    def called_back(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    _, _, unknown = lowered(mesh_of(1), on_rows(called_back))
    with pytest.raises(ControlRefused, match="does not count the flops"):
        accept_control(unknown, unknown)


def test_less_work_is_refused(mesh_of: Any) -> None:
    mesh = mesh_of(NUM_DEVICES)
    _, _, full = lowered(mesh, with_weights(lambda x, w: jnp.tanh(x @ w)))
    _, _, half = lowered(mesh, with_weights(lambda x, w: jnp.tanh(x @ w + (x @ w.T))))
    with pytest.raises(ControlRefused, match="work differs: flops"):
        accept_control(full, half)


COLLECTIVES = {
    "psum": (lambda s: lax.psum(s, "x0"), P()),
    "pmean of a tree": (lambda s: lax.pmean({"a": s, "b": s[0]}, "x0"), P()),
    "size by psum": (lambda s: s * lax.psum(1, "x0"), P("x0")),
    "all_gather": (lambda s: lax.all_gather(s, "x0"), P()),
    "all_gather tiled": (lambda s: lax.all_gather(s, "x0", axis=1, tiled=True), P()),
    "psum_scatter": (lambda s: lax.psum_scatter(s[:NUM_DEVICES], "x0"), P("x0")),
    "psum_scatter tiled": (lambda s: lax.psum_scatter(s, "x0", scatter_dimension=1, tiled=True), P("x0")),
    "all_to_all": (lambda s: lax.all_to_all(s[:NUM_DEVICES], "x0", 0, 1), P("x0")),
    "all_to_all tiled": (lambda s: lax.all_to_all(s, "x0", 1, 0, tiled=True), P("x0")),
    "ppermute": (lambda s: lax.ppermute(s, "x0", [(0, 1), (1, 0)]), P("x0")),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_stand_in_has_the_shape_of_the_collective(name: str, mesh_of: Any) -> None:
    """The real collective, mapped over the mesh, is the oracle for shapes."""
    mesh = mesh_of(NUM_DEVICES)
    body, out_spec = COLLECTIVES[name]

    def program(x: Any) -> Any:
        return jax.shard_map(body, mesh=mesh, in_specs=P("x0"), out_specs=out_spec, check_vma=False)(x)

    fn, args, workload = lowered(mesh, on_rows(program))
    control = automatic_local(fn, args, mesh).lower(*args).compile()
    summary = summarize(control.as_text())
    assert not summary.collectives

    def shards(compiled: Any) -> list[tuple[int, ...]]:
        pairs = zip(jax.tree.leaves(compiled.out_info), jax.tree.leaves(compiled.output_shardings), strict=True)
        return [sharding.shard_shape(out.shape) for out, sharding in pairs]

    assert shards(control) == shards(workload)
    # The stand-ins are gone again.
    assert lax.psum.__module__.startswith("jax.")


@pytest.mark.parametrize("num_devices", [1, 2, 8])
def test_null_has_the_arguments_and_outputs_of_the_workload(num_devices: int, mesh_of: Any) -> None:
    mesh = mesh_of(num_devices)

    def program(x: Any, unused: Any) -> Any:
        return {"rows": jnp.tanh(x), "total": x.sum(), "keys": jax.random.split(jax.random.key(0), 4)}

    args = (put(mesh, normal(ROWS, WIDTH), "x0"), put(mesh, normal(3)))
    workload = jax.jit(program).lower(*args).compile()
    null = null_program(workload, args).lower(*args).compile()
    assert null.out_tree == workload.out_tree
    assert jax.tree.leaves(null.output_shardings) == jax.tree.leaves(workload.output_shardings)
    assert [(o.shape, o.dtype) for o in jax.tree.leaves(null.out_info)] == [
        (o.shape, o.dtype) for o in jax.tree.leaves(workload.out_info)
    ]
    assert (null.cost_analysis() or {}).get("flops", 0) == 0
    assert "parameter(1)" in null.as_text()
    outputs = null(*args)
    assert not np.asarray(outputs["rows"]).any()
    assert not summarize(null.as_text()).collectives


def test_null_of_a_donating_step_donates_and_hands_the_state_on(mesh_of: Any) -> None:
    mesh = mesh_of(2)
    step, state, rest = builtin("train-step").builds["jit"](mesh, 16)
    workload = step.lower(state, *rest).compile()
    assert donated_arguments(workload) == (0,)
    null = null_program(workload, (state, *rest)).lower(state, *rest).compile()
    assert donated_arguments(null) == (0,)
    # Only the loss, 4 bytes, is written: the state's buffers are the same.
    assert null.cost_analysis()["bytes accessed"] < 100
    # Copies: a view would keep the buffers from being donated.
    before = jax.tree.map(np.array, state)
    next_state, loss = null(state, *rest)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))
    assert loss == 0
    jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.asarray, next_state))
    null(next_state, *rest)
