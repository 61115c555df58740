"""The built-in workloads: what XLA makes of them, and whether their controls are what they say."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax
import numpy as np
import pytest
from breakeven.measure.controls import accept_control
from breakeven.measure.hlo import program_facts, summarize
from breakeven.measure.workload import MeasureError, Workload
from breakeven.measure.workloads import builtin, names

EVERY = [(name, strategy) for name in names() for strategy in builtin(name).strategies]


def arguments(built: tuple[Any, ...]) -> tuple[Any, ...]:
    return built[1] if len(built) == 2 else (built[1], *built[2])


def compile_build(build: Any, mesh: Any, size: int) -> tuple[Any, tuple[Any, ...]]:
    built = build(mesh, size)
    args = arguments(built)
    return built[0].lower(*args).compile(), args


def smallest(workload: Workload, num_devices: int) -> int:
    """The smallest default size, global."""
    return workload.sizes[0] * (num_devices if workload.path == "weak" else 1)


def test_names_in_order_and_an_unknown_one() -> None:
    assert names() == ("issue-21411", "mean-all", "matmul", "matmul-contract", "train-step", "sin-reduce")
    assert [builtin(name).name for name in names()] == list(names())
    with pytest.raises(MeasureError, match=r"unknown built-in workload 'matmull'\. Built in: issue-21411, mean-all"):
        builtin("matmull")


def test_the_registry_does_not_import_jax() -> None:
    code = (
        "import sys; from breakeven.measure import workloads as w; [w.builtin(n) for n in w.names()]; "
        "sys.exit('jax' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_paths_and_the_issue_s_strategies() -> None:
    paths = {name: builtin(name).path for name in names()}
    assert [name for name in names() if paths[name] == "weak"] == ["issue-21411", "mean-all", "train-step"]
    assert [name for name in names() if paths[name] == "strong"] == ["matmul", "matmul-contract", "sin-reduce"]
    assert builtin("issue-21411").strategies == ("jit", "shard_map", "pmap", "pmap-unplaced")
    assert builtin("issue-21411").unplaced == {"pmap-unplaced"}
    for name in names():
        workload = builtin(name)
        if workload.path == "strong":
            assert all(size % n == 0 for size in workload.sizes for n in workload.devices)


def expected_collectives(name: str, num_devices: int, size: int) -> list[tuple[int, tuple[int, ...]]]:
    """Count and operand bytes of each all-reduce."""
    if num_devices == 1:
        return []
    # Three weight matrices and the loss.
    gradients = sorted([4 * 64 * 128, 4 * 128 * 128, 4 * 128 * 16, 4])
    return {
        "issue-21411": [],
        "mean-all": [(1, (4,))],
        "matmul": [],
        "matmul-contract": [(1, (4 * size * size,))],
        "train-step": [(1, tuple(gradients))],
        "sin-reduce": [(20, (4,))],
    }[name]


@pytest.mark.parametrize("num_devices", [1, 2, 8])
@pytest.mark.parametrize(("name", "strategy"), EVERY)
def test_collectives_of_the_compiled_program(name: str, strategy: str, num_devices: int, mesh_of: Any) -> None:
    workload = builtin(name)
    size = smallest(workload, num_devices)
    compiled, args = compile_build(workload.builds[strategy], mesh_of(num_devices), size)
    facts = program_facts(compiled, args)
    found = [(c.count, tuple(sorted(c.operand_bytes))) for c in facts.collectives]
    assert found == expected_collectives(name, num_devices, size)
    assert all((c.kind, c.group_size) == ("all-reduce", num_devices) for c in facts.collectives)
    assert (facts.point_to_point, facts.callbacks, facts.custom_calls) == (0, 0, ())


@pytest.mark.parametrize("size", builtin("matmul-contract").sizes)
@pytest.mark.parametrize("num_devices", [2, 4, 8])
def test_payload_of_matmul_contract_is_the_result(size: int, num_devices: int, mesh_of: Any) -> None:
    compiled, args = compile_build(builtin("matmul-contract").builds["jit"], mesh_of(num_devices), size)
    (found,) = program_facts(compiled, args).collectives
    assert (found.operands, found.message_bytes) == (1, 4 * size**2)


@pytest.mark.parametrize("num_devices", [1, 2, 8])
@pytest.mark.parametrize("name", names())
def test_hand_written_control_is_accepted(name: str, num_devices: int, mesh_of: Any) -> None:
    workload = builtin(name)
    mesh, size = mesh_of(num_devices), smallest(workload, num_devices)
    compiled, args = compile_build(workload.builds[workload.strategies[0]], mesh, size)
    assert workload.local is not None
    control, control_args = compile_build(workload.local, mesh, size)
    accept_control(compiled, control)
    assert not summarize(control.as_text()).collectives
    jax.tree.map(np.testing.assert_array_equal, args, control_args)
    assert control.input_shardings == compiled.input_shardings


@pytest.mark.parametrize("name", names())
def test_arguments_lie_in_place_unless_said_otherwise(name: str, mesh_of: Any) -> None:
    workload = builtin(name)
    for strategy, build in workload.builds.items():
        compiled, args = compile_build(build, mesh_of(2), smallest(workload, 2))
        wanted = jax.tree.leaves(compiled.input_shardings[0])
        in_place = [
            leaf.sharding.is_equivalent_to(sharding, leaf.ndim)
            for leaf, sharding in zip(jax.tree.leaves(args), wanted, strict=True)
        ]
        assert all(in_place) == (strategy not in workload.unplaced)


def test_the_issue_s_strategies_agree(mesh_of: Any) -> None:
    workload = builtin("issue-21411")
    results = {}
    for strategy, build in workload.builds.items():
        fn, args = build(mesh_of(4), 40)
        results[strategy] = np.asarray(fn(*args)).ravel()
    rows, var = (np.asarray(array, np.float64) for array in workload.builds["jit"](mesh_of(1), 40)[1])
    for result in results.values():
        # Twenty float32 products and sums of numbers near 1.
        np.testing.assert_allclose(result, (rows @ var).mean(axis=1), atol=1e-5)


@pytest.mark.parametrize("name", ["mean-all", "matmul", "matmul-contract", "sin-reduce"])
def test_result_does_not_depend_on_the_number_of_devices(name: str, mesh_of: Any) -> None:
    build = builtin(name).builds["jit"]

    def result(num_devices: int) -> np.ndarray:
        fn, args = build(mesh_of(num_devices), 64)
        return np.asarray(fn(*args))

    # The sums run in another order.
    np.testing.assert_allclose(result(2), result(1), rtol=1e-3, atol=1e-4)


def test_train_step_learns_and_carries_its_state(mesh_of: Any) -> None:
    step, state, rest = builtin("train-step").builds["jit"](mesh_of(2), 32)
    losses = []
    for _ in range(20):
        before = state
        state, loss = step(state, *rest)
        losses.append(float(loss))
    assert losses[-1] < 0.9 * losses[0]
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    assert jax.tree.structure(state) == jax.tree.structure(before)


@pytest.mark.parametrize("size", builtin("sin-reduce").sizes)
def test_sin_reduce_stays_in_one_regime_on_one_core(size: int, mesh_of: Any) -> None:
    compiled, args = compile_build(builtin("sin-reduce").builds["jit"], mesh_of(1), size)
    work = builtin("sin-reduce").work
    assert work is not None
    facts = program_facts(compiled, args, work=work(size))
    assert facts.inline is False
    assert facts.compute_work == 20 * 40 * size
    # XLA's mark of an operation that it splits over cores.
    assert '"outer_dimension_partitions":["' not in compiled.as_text()
    assert summarize(compiled.as_text() or "").trip_counts == (20, 40)
    settled = np.asarray(compiled(*args))
    assert 0.8 < settled.min() <= settled.max() < 1.3
