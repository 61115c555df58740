"""Launch tables made by hand, with known causes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.fit.launches import LaunchTable
from breakeven.model.cell import Cell
from breakeven.model.program import Collective, ProgramFacts

Truth = Callable[[int, int], tuple[float, float, float]]


def table_of(
    truth: Truth,
    *,
    devices: Sequence[int] = (1, 2, 4, 8),
    sizes: Sequence[int] = (1000,),
    path: str = "weak",
    launches: int = 6,
    seed: int = 0,
    cell_sd: float = 0.02,
    launch_sd: float = 0.05,
    roles: Sequence[str] = ("workload", "local", "null"),
    extra: Mapping[Cell, float] | None = None,
    facts: Mapping[Cell, ProgramFacts] | None = None,
    strategies: tuple[str, ...] = ("jit",),
    cores: int | None = None,
    **fields,
) -> LaunchTable:
    """Times of a sweep whose causes are known.

    ``truth(n, axis size)`` gives seconds of (dispatch, communication, compute); each launch is slower or faster as a
    whole (``launch_sd``, relative) and in each cell (``cell_sd``). ``extra``: further cells and their seconds.
    """
    plan = Plan(
        workload="made",
        path=path,
        objective="throughput" if path == "weak" else "time",
        devices=tuple(devices),
        sizes=tuple(sizes),
        strategies=strategies,
        visible_devices=max(devices),
    )
    times = {}
    for size in sizes:
        for n in devices:
            dispatch, communication, compute = truth(n, size)
            by_role = {"null": dispatch, "local": dispatch + compute, "workload": dispatch + compute + communication}
            for role in roles:
                cell = Cell(role=role, strategy=strategies[0], num_devices=n, size=plan.global_size(n, size))
                times[cell] = by_role[role]
    times |= extra or {}
    cells = tuple(sorted(times, key=lambda cell: cell.sort_key))
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, cell_sd, (len(cells), launches)) + rng.normal(0, launch_sd, launches)
    return LaunchTable(
        plan=plan,
        cells=cells,
        latency_s=np.array([times[cell] for cell in cells])[:, None] * np.exp(noise),
        facts=facts or {},
        visible_devices=max(devices),
        cores=cores,
        platform="cpu",
        **fields,
    )


def all_reduce(message_bytes: int = 4, *, count: int | None = 1, operands: Sequence[int] | None = None) -> Collective:
    """One all-reduce instruction, of one operand unless several are given."""
    operands = tuple(operands or (message_bytes,))
    return Collective(
        kind="all-reduce",
        count=count,
        operands=len(operands),
        message_bytes=sum(operands),
        operand_bytes=operands,
        group_size=None,
    )


@pytest.fixture(scope="session")
def make_table():
    """The function ``table_of``."""
    return table_of


@pytest.fixture(scope="session")
def make_all_reduce():
    """The function ``all_reduce``."""
    return all_reduce
