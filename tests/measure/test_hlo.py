"""Reading compiled programs: live ones, and snippets in every syntax that XLA prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from breakeven.measure.hlo import INLINE_FLOPS, counted_cost, parse_collectives, program_facts, summarize
from breakeven.model.program import Collective

HEADER = "HloModule test, is_scheduled=true, num_partitions=8\n\n"


def entry(*lines: str, before: str = "") -> str:
    """A module whose entry holds these instructions."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"{HEADER}{before}\nENTRY %main (p: f32[16]) -> f32[16] {{\n  %p = f32[16]{{0}} parameter(0)\n{body}\n}}\n"


def all_reduce(groups: str) -> str:
    return entry(
        f"ROOT %sum = f32[16]{{0}} all-reduce(%p), channel_id=1, replica_groups={groups}, use_global_device_ids=true"
    )


@pytest.mark.parametrize(
    ("groups", "size"),
    [
        ("{{0,1,2,3,4,5,6,7}}", 8),
        ("{{0,1},{2,3},{4,5},{6,7}}", 2),
        ("{{0,1,2},{3}}", None),
        ("{}", 8),
        ("[1,8]<=[8]", 8),
        ("[2,4]<=[8]", 4),
        ("[4,2]<=[2,4]T(1,0)", 2),
        ("[1,8]<=[8]T(1,0)", 8),
        ("mesh['axis_0'=8,'axis_1'=1] {'axis_0'}", 8),
        ("mesh['axis_0'=2,'axis_1'=4] {'axis_1'}", 4),
        ("mesh['a'=2,'b'=2,'c'=2], device_ids=([2,4]T(1,0)) {'a','c'}", 4),
        ("mesh['a'=8] {'a':(2)4}", 4),
    ],
)
def test_group_size_in_every_syntax(groups: str, size: int | None) -> None:
    (found,) = parse_collectives(all_reduce(groups))
    expected = Collective(
        kind="all-reduce", count=1, operands=1, message_bytes=64, operand_bytes=(64,), group_size=size
    )
    assert found == expected


def test_group_size_is_unknown_where_nothing_says_it() -> None:
    text = all_reduce("{}").replace(", num_partitions=8", "")
    assert parse_collectives(text)[0].group_size is None


def test_permutation_joins_the_devices_it_moves_between() -> None:
    def permute(pairs: str) -> int | None:
        line = f"ROOT %shift = f32[16]{{0}} collective-permute(%p), channel_id=1, source_target_pairs={pairs}"
        (found,) = parse_collectives(entry(line))
        assert (found.kind, found.message_bytes) == ("collective-permute", 64)
        return found.group_size

    assert permute("{{0,1},{1,2},{2,3},{3,0}}") == 4
    assert permute("{{0,1},{1,0},{2,3},{3,2}}") == 2
    assert permute("{{3,4},{0,1},{1,2},{2,3}}") == 5


def test_tuple_with_index_comments_and_names_unlike_the_opcode() -> None:
    names = [f"%reduce.{i}" for i in range(7)]
    types = ["f32[]", "bf16[4]{0}", "pred[3]{0}", "c64[2]{0}", "f8e4m3fn[5]{0}", "s4[6]{0:E(4)}", "s4[6]{0}"]
    made = [f"{name} = {kind} copy(%p)" for name, kind in zip(names, types, strict=True)]
    commented = ", ".join(("/*index=5*/" if i == 5 else "") + text for i, text in enumerate(names))
    types_commented = ", ".join(("/*index=5*/" if i == 5 else "") + text for i, text in enumerate(types))
    line = f"%all-gather.3 = ({types_commented}) all-reduce({commented}), replica_groups=[1,8]<=[8], to_apply=%add"
    metadata = ', metadata={op_name="jit(f)/all-gather(x), body=%loop" stack_frame_id=1}'
    (found,) = parse_collectives(entry(*made, line + metadata))
    assert found.kind == "all-reduce"
    # Packed int4 takes half a byte each, loose int4 a whole one.
    assert found.operand_bytes == (4, 8, 3, 16, 5, 3, 6)
    assert (found.operands, found.message_bytes) == (7, 45)


def test_operands_printed_with_their_types() -> None:
    line = "ROOT sum = f32[16]{0} all-reduce(f32[16]{0:T(256)} p), replica_groups={{0,1}}, to_apply=add"
    (found,) = parse_collectives(f"{HEADER}ENTRY main {{\n  p = f32[16]{{0}} parameter(0)\n  {line}\n}}\n")
    assert (found.message_bytes, found.group_size) == (64, 2)


@pytest.mark.parametrize(
    ("lines", "kind", "message_bytes"),
    [
        (
            (
                "%s = f32[16]{0} all-reduce-start(%p), replica_groups={{0,1}}, to_apply=%add",
                "ROOT %d = f32[16]{0} all-reduce-done(%s)",
            ),
            "all-reduce",
            64,
        ),
        (
            (
                "%s = (f32[16]{0}, f32[128]{0}) all-gather-start(%p), replica_groups=[1,8]<=[8], dimensions={0}",
                "ROOT %d = f32[128]{0} all-gather-done(%s)",
            ),
            "all-gather",
            512,
        ),
        (
            (
                "%s = ((f32[16]{0}), f32[2]{0}, u32[]) reduce-scatter-start(%p), replica_groups=[1,8]<=[8]",
                "ROOT %d = f32[2]{0} reduce-scatter-done(%s)",
            ),
            "reduce-scatter",
            64,
        ),
        (
            (
                "%s = (f32[16]{0}, f32[16]{0}, u32[], u32[]) collective-permute-start(%p), "
                "source_target_pairs={{0,1},{1,0}}",
                "ROOT %d = f32[16]{0} collective-permute-done(%s)",
            ),
            "collective-permute",
            64,
        ),
    ],
)
def test_start_and_done_count_once(lines: tuple[str, ...], kind: str, message_bytes: int) -> None:
    (found,) = parse_collectives(entry(*lines))
    assert (found.kind, found.count, found.operands, found.message_bytes) == (kind, 1, 1, message_bytes)


def test_collective_wrapped_in_an_asynchronous_computation_counts_once() -> None:
    wrapped = (
        "%wrapped (q: f32[16]) -> f32[2] {\n  %q = f32[16]{0} parameter(0)\n"
        "  ROOT %rs = f32[2]{0} reduce-scatter(%q), replica_groups=[1,8]<=[8], dimensions={0}, to_apply=%add\n}\n"
    )
    lines = (
        "%s = ((f32[16]{0}), f32[2]{0}, u32[]) async-start(%p), calls=%wrapped",
        "%u = ((f32[16]{0}), f32[2]{0}, u32[]) async-update(%s), calls=%wrapped",
        "ROOT %d = f32[2]{0} async-done(%u), calls=%wrapped",
    )
    (found,) = parse_collectives(entry(*lines, before=wrapped))
    assert (found.kind, found.count, found.message_bytes) == ("reduce-scatter", 1, 64)


def loop(name: str, inner: str, body: str, trips: int | None) -> str:
    """A computation with one collective and, where ``inner`` is given, another loop inside."""
    config = "" if trips is None else f', backend_config={{"known_trip_count":{{"n":"{trips}"}}}}'
    loops = f"  %w = f32[16]{{0}} while(%q), condition=%cond, body=%{inner}{config}\n" if inner else ""
    return f"%{name} (q: f32[16]) -> f32[16] {{\n  %q = f32[16]{{0}} parameter(0)\n{loops}  {body}\n}}\n"


SUM = "ROOT %r = f32[16]{0} all-reduce(%q), replica_groups=[1,8]<=[8], to_apply=%add"
CONDITION = (
    "%cond (q: f32[16]) -> pred[] {\n  %q = f32[16]{0} parameter(0)\n"
    "  %m = f32[16]{0} all-reduce(%q), replica_groups=[1,8]<=[8], to_apply=%max\n  ROOT %t = pred[] constant(true)\n}\n"
)


@pytest.mark.parametrize(
    ("outer", "inner", "bodies", "conditions"),
    # The condition runs once more than the body; the inner loop is entered once a round of the outer.
    [(5, 3, [15, 5], [6, 20]), (None, 3, [None, None], [None, None]), (5, None, [None, 5], [6, None])],
)
def test_nested_loops_multiply(outer: int | None, inner: int | None, bodies: list, conditions: list) -> None:
    before = CONDITION + loop("leaf", "", SUM, None) + loop("nest", "leaf", SUM, inner)
    config = "" if outer is None else f', backend_config={{"known_trip_count":{{"n":"{outer}"}}}}'
    text = entry(f"ROOT %w = f32[16]{{0}} while(%p), condition=%cond, body=%nest{config}", before=before)
    counts = [c.count for c in parse_collectives(text)]
    assert sorted(counts, key=str) == sorted(bodies + conditions, key=str)
    assert summarize(text).trip_counts == (outer, inner)


@pytest.mark.parametrize(
    "branches",
    ["branch_computations={%leaf, %other}", "true_computation=%leaf, false_computation=%other"],
)
def test_collective_in_a_branch_has_an_unknown_count(branches: str) -> None:
    before = loop("leaf", "", SUM, None) + loop("other", "", "ROOT %c = f32[16]{0} copy(%q)", None)
    (found,) = parse_collectives(entry(f"ROOT %c = f32[16]{{0}} conditional(%p, %p, %p), {branches}", before=before))
    assert found.count is None


@pytest.mark.parametrize("attribute", ["calls=%leaf", "to_apply=%leaf", "called_computations={%leaf}"])
def test_called_computations_are_read(attribute: str) -> None:
    opcode = {"calls": "fusion", "to_apply": "call", "called_computations": "custom-call"}[attribute.split("=")[0]]
    text = entry(f"ROOT %c = f32[16]{{0}} {opcode}(%p), kind=kLoop, {attribute}", before=loop("leaf", "", SUM, None))
    assert [c.count for c in parse_collectives(text)] == [1]


def test_send_recv_callbacks_and_custom_calls() -> None:
    text = entry(
        "%s = (f32[16]{0}, u32[], token[]) send(%p, %t), channel_id=1",
        "%sd = token[] send-done(%s), channel_id=1",
        "%r = (f32[16]{0}, u32[], token[]) recv(%t), channel_id=2",
        "%rd = (f32[16]{0}, token[]) recv-done(%r), channel_id=2",
        "%h = (f32[16]{0}, u32[], token[]) send(%p, %t), channel_id=3, is_host_transfer=true",
        "%i = (f32[16]{0}, token[]) infeed(%t)",
        '%c = (f32[16]{0}) custom-call(%p), custom_call_target="xla_ffi_python_cpu_callback", api_version=4',
        '%k = (f32[16]{0}, s32[16]{0}) custom-call(%p), custom_call_target="TopK", called_computations={%gt}',
        '%l = f32[16]{0} custom-call(%p), custom_call_target="lapack_spotrf_ffi"',
        '%x = f32[16]{0} custom-call(%p), custom_call_target="tpu_custom_call"',
        '%y = f32[16]{0} custom-call(%p), custom_call_target="tpu_custom_call"',
        'ROOT %z = f32[16]{0} custom-call(%p), custom_call_target="my_kernel"',
    )
    summary = summarize(text)
    assert summary.point_to_point == 2
    assert summary.callbacks == 3
    assert summary.custom_calls == ("tpu_custom_call", "my_kernel")
    assert summary.collectives == ()


@pytest.mark.parametrize("text", ["", "HloModule empty\n", entry("ROOT %x = f32[16]{0} <something new>")])
def test_what_cannot_be_read_does_not_rule_out_communication(text: str) -> None:
    assert summarize(text).custom_calls == ("unreadable HLO",)


# From here on: programs that XLA compiled here.


def compiled(mesh: Any, body: Callable[..., Any], shape: tuple[int, ...], dtype: Any = "float32") -> Any:
    """``body`` mapped over the mesh; ``shape`` is one device's part."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    x = jax.device_put(
        np.ones((mesh.devices.size * shape[0], *shape[1:]), dtype), NamedSharding(mesh, P(mesh.axis_names))
    )
    spec = P(mesh.axis_names)
    mapped = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(mapped).lower(x).compile(), (x,)


LIVE = {
    "all-reduce": ("psum", {}, 4 * 16 * 6, 8),
    "all-gather": ("all_gather", {"tiled": True}, 8 * 4 * 16 * 6, 8),
    "reduce-scatter": ("psum_scatter", {"tiled": True}, 4 * 16 * 6, 8),
    "all-to-all": ("all_to_all", {"split_axis": 0, "concat_axis": 0, "tiled": True}, 4 * 16 * 6, 8),
    "collective-permute": ("ppermute", {"perm": [(i, (i + 1) % 8) for i in range(8)]}, 4 * 16 * 6, 8),
}


@pytest.mark.parametrize("kind", LIVE)
def test_live_collective(kind: str, mesh_of: Any) -> None:
    import jax

    name, options, message_bytes, group = LIVE[kind]
    program, _ = compiled(mesh_of(8), lambda x: getattr(jax.lax, name)(x, "x0", **options), (16, 6))
    (found,) = parse_collectives(program.as_text())
    assert (found.kind, found.count, found.message_bytes, found.group_size) == (kind, 1, message_bytes, group)


def test_live_groups_of_a_grid(mesh_of: Any) -> None:
    import jax

    program, _ = compiled(
        mesh_of(2, 4), lambda x: (jax.lax.psum(x, "x0") * x.sum(), jax.lax.psum(x + 1, "x1"))[1], (4,)
    )
    assert [c.group_size for c in parse_collectives(program.as_text())] == [4]


def test_live_partitioned_sum_over_a_grid(mesh_of: Any) -> None:
    """The compiler's own all-reduces, in the mesh syntax of replica groups."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh_of(2, 4), P("x0", "x1")))
    program = jax.jit(lambda x: (x.sum(0), x.sum(1))).lower(x).compile()
    found = {(c.message_bytes, c.group_size) for c in program_facts(program, (x,)).collectives}
    # A column sum is 2 numbers on each device, over 2 devices; a row sum 4 numbers over 4.
    assert found == {(4 * 2, 2), (4 * 4, 4)} or found == {(4 * 2, 4), (4 * 4, 2)}


def test_live_bf16_is_reduced_as_float32_on_a_cpu(mesh_of: Any) -> None:
    import jax

    program, _ = compiled(mesh_of(8), lambda x: jax.lax.psum(x, "x0"), (16,), jax.numpy.bfloat16)
    assert parse_collectives(program.as_text())[0].message_bytes == 16 * 4


def test_live_nested_loops_and_their_cost(mesh_of: Any) -> None:
    import jax

    def nested(x: Any) -> Any:
        def inner(j: Any, x: Any) -> Any:
            return jax.lax.psum(x, "x0") + j

        return jax.lax.fori_loop(0, 5, lambda i, x: jax.lax.fori_loop(0, 3, inner, x), x)

    program, args = compiled(mesh_of(8), nested, (4,))
    facts = program_facts(program, args)
    assert [c.count for c in facts.collectives] == [15]
    assert not facts.unknown_trip_counts
    # XLA counted each body once, so the count is not the program's.
    assert facts.flops is None
    assert facts.bytes_accessed is None
    assert program_facts(program, args, work=42.0).compute_work == 42.0


def test_live_loop_until_converged_is_unknown(mesh_of: Any) -> None:
    import jax

    def converge(x: Any) -> Any:
        return jax.lax.while_loop(lambda x: x[0] < 5, lambda x: jax.lax.psum(x, "x0") + 1, x)

    facts = program_facts(*compiled(mesh_of(8), converge, (4,)))
    assert [c.count for c in facts.collectives] == [None]
    assert facts.unknown_trip_counts
    assert facts.flops is None


def test_live_callback_cannot_be_ruled_out(mesh_of: Any) -> None:
    import jax
    import numpy as np

    def call(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    facts = program_facts(*compiled(mesh_of(2), call, (4,)))
    assert facts.callbacks == 1
    assert not facts.can_rule_out_communication


@pytest.mark.parametrize("operation", ["matmul", "fft", "sort", "top_k", "cholesky", "conv", "random"])
def test_live_local_kernels_do_not_count_as_unknown(operation: str, mesh_of: Any) -> None:
    import jax
    import jax.numpy as jnp

    bodies = {
        "matmul": lambda x: x @ x.T,
        "fft": lambda x: jnp.abs(jnp.fft.fft(x)),
        "sort": lambda x: jnp.sort(x),
        "top_k": lambda x: jax.lax.top_k(x, 2)[0],
        "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(16)),
        "conv": lambda x: jax.lax.conv(x[None, None], x[None, None, :3, :3], (1, 1), "SAME")[0, 0],
        "random": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    }
    facts = program_facts(*compiled(mesh_of(2), bodies[operation], (16, 16)))
    assert facts.custom_calls == ()
    assert facts.can_rule_out_communication
    assert not program_facts(
        *compiled(mesh_of(2), bodies[operation], (16, 16)), in_place=False
    ).can_rule_out_communication


def test_matmul_flops_are_those_of_one_device(mesh_of: Any) -> None:
    program, args = compiled(mesh_of(4), lambda x: x @ x.T, (16, 32))
    facts = program_facts(program, args)
    assert facts.flops == 2 * 16 * 32 * 16
    assert facts.num_arguments == 1
    assert counted_cost(program) == (facts.flops, facts.bytes_accessed)


@pytest.mark.parametrize(
    ("num_devices", "elements", "inline"),
    [(1, INLINE_FLOPS - 1, True), (1, INLINE_FLOPS, False), (2, 10, False)],
)
def test_inline_regime_needs_one_device_and_few_flops(
    num_devices: int, elements: float, inline: bool, mesh_of: Any
) -> None:
    facts = program_facts(*compiled(mesh_of(num_devices), lambda x: x + 1, (int(elements),)))
    assert facts.flops == elements
    assert facts.inline is inline


def test_program_without_analysis_is_unknown() -> None:
    class Unknown:
        def cost_analysis(self) -> None:
            return None

    assert counted_cost(Unknown()) == (None, None)
