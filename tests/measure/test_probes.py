"""Chains and replays: the compiled program must hold exactly the collectives that were asked for."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import jax
import numpy as np
import pytest
from breakeven.measure.hlo import parse_collectives, summarize
from breakeven.measure.probes import UNROLLED, chain, replay
from breakeven.measure.workload import MeasureError
from breakeven.measure.workloads import builtin
from breakeven.model.program import Collective


def compile_probe(built: Any) -> Any:
    fn, args = built
    return fn.lower(*args).compile()


def collective(kind: str, *operand_bytes: int, count: int | None = 1, group: int | None = 8) -> Collective:
    return Collective(
        kind=kind,
        count=count,
        operands=len(operand_bytes),
        message_bytes=sum(operand_bytes),
        operand_bytes=operand_bytes,
        group_size=group,
    )


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"])
@pytest.mark.parametrize(("k", "payload_bytes"), [(1, 64), (4, 8), (16, 4096)])
def test_chain_holds_k_collectives_of_the_payload(kind: str, k: int, payload_bytes: int, mesh_of: Any) -> None:
    compiled = compile_probe(chain(mesh_of(8), kind, k, payload_bytes))
    found = parse_collectives(compiled.as_text())
    assert [(c.kind, c.count, c.message_bytes, c.group_size) for c in found] == [(kind, 1, payload_bytes, 8)] * k


@pytest.mark.parametrize("payload_bytes", [1, 3, 4, 1 << 20])
def test_chain_of_scalar_odd_and_large_all_reduces(payload_bytes: int, mesh_of: Any) -> None:
    found = parse_collectives(compile_probe(chain(mesh_of(2), "all-reduce", 4, payload_bytes)).as_text())
    assert [c.message_bytes for c in found] == [payload_bytes] * 4


def ancestors(text: str) -> list[int]:
    """For each all-reduce of the entry computation, how many all-reduces its operand depends on."""
    body = text[text.index("ENTRY") :]
    operands = {}
    for name, opcode, rest in re.findall(r"%([\w.\-]+) = \S+ ([\w\-]+)\((.*)", body):
        operands[name] = (opcode, re.findall(r"%([\w.\-]+)", rest.split("),")[0]))

    def above(name: str, seen: set[str]) -> set[str]:
        for operand in operands.get(name, ("", []))[1]:
            if operand not in seen:
                seen.add(operand)
                above(operand, seen)
        return seen

    reduces = [name for name, (opcode, _) in operands.items() if opcode == "all-reduce"]
    return sorted(len(above(name, set()) & set(reduces)) for name in reduces)


def test_each_collective_of_a_chain_waits_for_the_one_before(mesh_of: Any) -> None:
    assert ancestors(compile_probe(chain(mesh_of(4), "all-reduce", 6, 64)).as_text()) == [0, 1, 2, 3, 4, 5]


def test_chain_runs_and_computes_nothing(mesh_of: Any) -> None:
    fn, args = chain(mesh_of(4), "all-reduce", 4, 1 << 16)
    compiled = fn.lower(*args).compile()
    assert np.asarray(compiled(*args)).tolist() == [0.0] * 4
    # One operation an element and reduction, and a few for the token.
    assert compiled.cost_analysis()["flops"] < 4 * (1 << 14) + 100


def test_replay_repeats_the_inventory_in_order(mesh_of: Any) -> None:
    inventory = (
        collective("all-reduce", 16, 24, 4),
        collective("all-gather", 256),
        collective("all-reduce", 4, count=3, group=4),
        collective("collective-permute", 64, group=2),
    )
    found = parse_collectives(compile_probe(replay(mesh_of(8), inventory)).as_text())
    first, second, *rest, last = found
    assert Counter(first.operand_bytes) == Counter((16, 24, 4))
    assert (second.kind, second.message_bytes) == ("all-gather", 256)
    assert [(c.message_bytes, c.group_size) for c in rest] == [(4, 4)] * 3
    assert (last.kind, last.group_size) == ("collective-permute", 2)


def test_replay_of_many_is_a_loop(mesh_of: Any) -> None:
    many = UNROLLED + 68
    (found,) = parse_collectives(
        compile_probe(replay(mesh_of(4), (collective("all-reduce", 4, count=many, group=4),))).as_text()
    )
    assert found.count == many


@pytest.mark.parametrize("name", ["mean-all", "matmul-contract", "train-step", "sin-reduce"])
def test_replay_of_a_workload_has_its_inventory(name: str, mesh_of: Any) -> None:
    mesh = mesh_of(2)
    fn, *rest = builtin(name).builds["jit"](mesh, 64)
    args = (rest[0], *rest[1]) if len(rest) == 2 else rest[0]
    own = parse_collectives(fn.lower(*args).compile().as_text())

    def totals(found: tuple[Collective, ...]) -> Counter:
        sums: Counter = Counter()
        for item in found:
            assert item.count is not None
            sums[item.kind, tuple(sorted(item.operand_bytes)), item.group_size] += item.count
        return sums

    program = compile_probe(replay(mesh, own))
    assert totals(parse_collectives(program.as_text())) == totals(own)
    assert not summarize(program.as_text()).custom_calls


@pytest.mark.parametrize(
    ("inventory", "message"),
    [
        ((), "no collectives to replay"),
        ((collective("all-reduce", 4, count=None),), "how often it runs is unknown"),
        ((collective("collective-broadcast", 4),), "no program of ours sends it"),
        ((collective("all-reduce", 4, group=3),), "groups of 3 do not divide 8 devices"),
        ((collective("all-gather", 12),), "all-gather of 12 bytes: it must be a positive multiple of 8"),
        ((collective("all-reduce", 0),), "all-reduce of 0 bytes"),
    ],
)
def test_what_cannot_be_replayed_is_refused(inventory: tuple[Collective, ...], message: str, mesh_of: Any) -> None:
    with pytest.raises(MeasureError, match=message):
        replay(mesh_of(8), inventory)


def test_one_device_and_no_collective_are_refused(mesh_of: Any) -> None:
    with pytest.raises(MeasureError, match="at least 2 devices"):
        chain(mesh_of(1), "all-reduce", 1, 4)
    with pytest.raises(MeasureError, match="k must be at least 1, got 0"):
        chain(mesh_of(2), "all-reduce", 0, 4)


def test_arguments_lie_where_the_program_wants_them(mesh_of: Any) -> None:
    fn, args = chain(mesh_of(4), "all-reduce", 2, 64)
    wanted = jax.tree.leaves(fn.lower(*args).compile().input_shardings)
    for leaf, sharding in zip(jax.tree.leaves(args), wanted, strict=True):
        assert leaf.sharding.is_equivalent_to(sharding, leaf.ndim)
