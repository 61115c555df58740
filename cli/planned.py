"""From the options of ``measure``, ``study`` and ``inspect`` to a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import options
from .output import bad_argument

if TYPE_CHECKING:
    from ..data.schema import Plan
    from ..measure.devices import Devices


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a user asked to be measured, as the command line gave it; None leaves the choice to the workload."""

    workload: str
    devices: str | None = None
    sizes: str | None = None
    sizes_per_device: str | None = None
    strategies: str | None = None
    launches: int = 6
    budget: str | None = None
    calls: int | None = None
    queue: int = 4
    warmups: int | None = None
    controls: bool = True
    probes: bool = True
    trace: bool = False
    sentinel: bool = True
    platform: str | None = None
    objective: str | None = None
    seed: int = 0
    timeout: str = "120s"
    processes: int = 1
    nodes: int = 1
    launched: bool = False


def plan_of(wish: Wish) -> Plan:
    """Check a wish and turn it into a plan.

    Raises
    ------
    MeasureError
        If the workload is unknown or cannot be measured as wished.
    """
    options.one_of("--platform", wish.platform, ("cpu", "gpu", "tpu"))
    options.one_of("--objective", wish.objective, ("time", "throughput"))
    if wish.sizes is not None and wish.sizes_per_device is not None:
        bad_argument("--sizes", "give global sizes (strong scaling) or --sizes-per-device (weak scaling), not both.")
    devices = None if wish.devices is None else options.device_counts("--devices", wish.devices)
    budget_s = None if wish.budget is None else options.seconds("--budget", wish.budget)
    step_timeout_s = options.timeout(wish.timeout)
    from ..measure.description import described
    from ..measure.planning import make_plan, parse_sizes

    workload, found = described(wish.workload, wish.platform)
    _check_platform(wish.platform, found)
    global_sizes = per_device = None
    if wish.sizes is not None:
        global_sizes = parse_sizes(wish.sizes, devices or workload.devices, divides=workload.divides)
    if wish.sizes_per_device is not None:
        per_device = parse_sizes(wish.sizes_per_device)
    return make_plan(
        workload,
        devices=devices,
        sizes=global_sizes,
        sizes_per_device=per_device,
        strategies=None if wish.strategies is None else options.names("--strategies", wish.strategies),
        launches=wish.launches,
        budget_s=budget_s,
        calls=wish.calls,
        warmups=wish.warmups,
        queued_calls=wish.queue,
        controls=wish.controls,
        probes=wish.probes,
        trace=wish.trace,
        sentinel=wish.sentinel,
        objective=wish.objective,
        seed=wish.seed,
        step_timeout_s=step_timeout_s,
        available=found,
        processes=wish.processes,
        nodes=wish.nodes,
        launched=wish.launched,
    )


def available(platform: str | None) -> Devices:
    """What there is to measure on; the CPU is always there, any other platform only when JAX finds it."""
    from ..measure.devices import CPU, detect

    found = CPU if platform == "cpu" else detect()
    _check_platform(platform, found)
    return found


def _check_platform(platform: str | None, found: Devices) -> None:
    if platform is not None and found.platform != platform:
        bad_argument("--platform", f"JAX finds no {platform} here, but {found.platform} ({found.kind}).")
