"""Devices and cores: what there is, asked without starting an accelerator backend in this process."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .control_group import quota_cores, read_text
from .workload import MeasureError

FORCE_FLAG = "--xla_force_host_platform_device_count"
MAX_FORCED = 256
"""Most host devices a sweep may force; each costs threads."""

MEASURING = "BREAKEVEN_MEASURING"
"""Set in the environment of a process that measures, to its launch."""

_ASK = (
    "import json, jax; d = jax.devices(); "
    "print(json.dumps({'platform': d[0].platform, 'count': len(d), 'kind': d[0].device_kind}))"
)


@dataclass(frozen=True, kw_only=True)
class Devices:
    """What JAX finds: on a ``cpu`` host any number can be forced, elsewhere ``count`` is what exists."""

    platform: str
    count: int
    kind: str

    @property
    def forced(self) -> bool:
        """Whether devices are forced host devices, in any number."""
        return self.platform == "cpu"


def detect(timeout_s: float = 120.0) -> Devices:
    """Ask JAX in a short child process: a TPU admits one process, and a GPU client takes memory.

    Raises
    ------
    MeasureError
        If the child finds no device.
    """
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK], capture_output=True, text=True, timeout=timeout_s, env=environment
        )
    except subprocess.TimeoutExpired:
        raise MeasureError(
            f"JAX found no device within {timeout_s:g} s; set JAX_PLATFORMS to the one you mean."
        ) from None
    if asked.returncode != 0:
        last = (asked.stderr.strip().splitlines() or ["no message"])[-1]
        raise MeasureError(f"JAX cannot start: {last}")
    return Devices(**json.loads(asked.stdout.splitlines()[-1]))


def refuse_nesting() -> None:
    """Raise MeasureError in a process that measures: its workload's file starts a sweep when it is imported."""
    if MEASURING in os.environ:
        raise MeasureError(
            "the workload's file starts a sweep when it is imported, and the processes that measure import it; "
            'put that call under: if __name__ == "__main__":'
        )


def forced_flags(flags: str, count: int) -> str:
    """``XLA_FLAGS`` with ``count`` forced host devices; every other flag stays as the user set it."""
    others = [flag for flag in flags.split() if flag.partition("=")[0] != FORCE_FLAG]
    return " ".join([*others, f"{FORCE_FLAG}={count}"])


def child_environment(
    platform_name: str, visible_devices: int, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Environment of a measuring process: its platform, its devices, and no compilation cache."""
    child = {**environment, "JAX_ENABLE_COMPILATION_CACHE": "false", MEASURING: "1"}
    if platform_name == "cpu":
        child["JAX_PLATFORMS"] = "cpu"
        child["XLA_FLAGS"] = forced_flags(environment.get("XLA_FLAGS", ""), visible_devices)
        child.pop("JAX_NUM_CPU_DEVICES", None)  # it would win over the flag
    elif environment.get("JAX_PLATFORMS") == "cpu":
        del child["JAX_PLATFORMS"]  # fits run on the CPU; measurements where the devices are
    return child


def available_cores(root: Path = Path("/")) -> int:
    """Cores this process may use: its affinity, cut by a control group's quota (rounded up)."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        cores = os.cpu_count() or 1
    quota = quota_cores(root)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def cpu_model() -> str | None:
    """Name of the processor, or None."""
    found = re.search(r"^model name\s*:\s*(.+)$", read_text(Path("/proc/cpuinfo")), re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or None
