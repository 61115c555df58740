"""Meshes over the forced host devices."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from breakeven.data.schema import Plan


@pytest.fixture
def mesh_of() -> Callable[..., Any]:
    """``mesh_of(n)``: the first n devices in a row; ``mesh_of(2, 4)``: in a grid with axes x0 and x1."""
    import jax
    import numpy as np

    def make(*shape: int) -> Any:
        devices = np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape)
        return jax.sharding.Mesh(devices, tuple(f"x{i}" for i in range(len(shape))))

    return make


USER_FILE = """
import os, sys, time
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

def placed(mesh, size):
    rows = jax.device_put(jnp.ones((size, 4)), NamedSharding(mesh, P(mesh.axis_names[0])))
    return rows, jax.device_put(jnp.ones(4), NamedSharding(mesh, P()))

def mean(x, v):
    return jnp.mean(x @ v)

def build(mesh, size):
    return mean, placed(mesh, size)
"""
"""The global mean of a product: one all-reduce of 4 bytes."""


@pytest.fixture
def user_file(tmp_path: Path) -> Callable[[str], str]:
    """``user_file(more)``: the name of ``build`` in a file with one all-reduce, after which ``more`` is written."""

    def write(more: str = "") -> str:
        path = tmp_path / "mine.py"
        path.write_text(USER_FILE + textwrap.dedent(more))
        return f"{path}:build"

    return write


@pytest.fixture
def plan_of() -> Callable[..., Plan]:
    """A small plan for a user's file: the workload alone on 1 and 2 devices, two rounds, two launches."""

    def make(workload: str, **options: Any) -> Plan:
        small: dict[str, Any] = {
            "path": "weak",
            "objective": "throughput",
            "devices": (1, 2),
            "sizes": (8,),
            "strategies": ("as-written",),
            "visible_devices": 2,
            "launches": 2,
            "rounds": 2,
            "calls": 3,
            "controls": False,
            "probes": False,
            "step_timeout_s": 60.0,
        }
        return Plan(workload=workload, **small | options)

    return make
