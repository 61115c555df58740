"""Local stand-ins for the collectives of ``jax.lax``, put in their place while a control is traced."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

_left_out = False
"""Whether communication is left out just now."""


def keep_bodies() -> None:
    """Have ``jax.shard_map`` remember what it maps, so that a control can call that on shards.

    For the start of a measuring process, before the user's code takes the name: what ``jax.shard_map`` has made
    otherwise cannot run on the shards of another.
    """
    import jax

    jax.shard_map = _remembering(jax.shard_map)
    with warnings.catch_warnings(), contextlib.suppress(ImportError, AttributeError):
        warnings.simplefilter("ignore")
        from jax.experimental import shard_map as older

        older.shard_map = _remembering(older.shard_map)


def _remembering(shard_map: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(shard_map)
    def remembering(*function: Callable[..., Any], **specs: Any) -> Callable[..., Any]:
        mapped = shard_map(*function, **specs)
        if not function:
            return lambda body: remembering(body, **specs)

        @functools.wraps(mapped)
        def call(*args: Any) -> Any:
            return (function[0] if _left_out else mapped)(*args)

        return call

    return remembering


@contextlib.contextmanager
def without_communication() -> Iterator[None]:
    """Within it ``jax.lax`` has no collectives: each returns a local array of the shape of the real result."""
    import jax

    global _left_out
    modules = {jax.lax: _local_collectives(), jax: {"shard_map": _local_shard_map}}
    before, _left_out = _left_out, True
    saved = {module: {name: getattr(module, name) for name in names} for module, names in modules.items()}
    try:
        for module, replacements in modules.items():
            for name, replacement in replacements.items():
                setattr(module, name, replacement)
        yield
    finally:
        _left_out = before
        for module, originals in saved.items():
            for name, original in originals.items():
                setattr(module, name, original)


def _local_shard_map(f: Callable[..., Any] | None = None, /, **_specs: Any) -> Callable[..., Any]:
    """The body itself: under the control's own ``shard_map`` its arguments are shards already."""
    return (lambda body: body) if f is None else f


def _local_collectives() -> dict[str, Callable[..., Any]]:
    """Local stand-ins by name: same result shape and dtype, no communication."""
    import jax
    import jax.numpy as jnp

    def size(axis_name: Any, groups: Any = None) -> int:
        return len(groups[0]) if groups else jax.lax.axis_size(axis_name)

    def reduced(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
        count = size(axis_name, axis_index_groups)
        # psum(1, axis) is the idiom for the number of devices, and static.
        return jax.tree.map(lambda leaf: leaf * count if isinstance(leaf, int | float) else leaf, x)

    def chosen(x: Any, *_where: Any, **_options: Any) -> Any:
        return x

    def gathered(x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False) -> Any:
        join = jnp.concatenate if tiled else jnp.stack
        return jax.tree.map(lambda leaf: join([leaf] * size(axis_name, axis_index_groups), axis), x)

    def scattered(
        x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
    ) -> Any:
        count = size(axis_name, axis_index_groups)

        def part(leaf: Any) -> Any:
            block = jax.lax.slice_in_dim(leaf, 0, leaf.shape[scatter_dimension] // count, axis=scatter_dimension)
            return block if tiled else jnp.squeeze(block, scatter_dimension)

        return jax.tree.map(part, x)

    def exchanged(
        x: Any,
        axis_name: Any,
        split_axis: int,
        concat_axis: int,
        *,
        axis_index_groups: Any = None,
        tiled: bool = False,
    ) -> Any:
        count = size(axis_name, axis_index_groups)
        if tiled:
            return jax.tree.map(lambda leaf: jnp.concatenate(jnp.split(leaf, count, split_axis), concat_axis), x)
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, split_axis, concat_axis), x)

    return {
        **dict.fromkeys(("psum", "pmean"), reduced),
        **dict.fromkeys(("pmax", "pmin", "ppermute", "pshuffle", "pbroadcast", "with_sharding_constraint"), chosen),
        "all_gather": gathered,
        "psum_scatter": scattered,
        "all_to_all": exchanged,
    }
