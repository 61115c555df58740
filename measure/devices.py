"""Devices and cores: what there is, asked without starting an accelerator backend in this process."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .control_group import quota_cores, read_text
from .informant import Informant
from .workload import MeasureError

FORCE_FLAG = "--xla_force_host_platform_device_count"
_FLAG = re.compile(r"""-(?:"[^"]*"|'[^']*'|\S)*""")
_FLAGS_READ = re.compile(rf"(?:\s*{_FLAG.pattern})*")
MAX_FORCED = 256
"""Most host devices a sweep may force; each costs threads."""

MEASURING = "BREAKEVEN_MEASURING"
"""Set in the environment of a process that imports a workload's file; of one that measures, to its launch."""


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


CPU = Devices(platform="cpu", count=1, kind="cpu")
"""What is always there."""


def detect() -> Devices:
    """Ask JAX in a short child process: a TPU admits one process, and a GPU client takes memory.

    Raises
    ------
    MeasureError
        If the child finds no device.
    """
    with Informant(informing_environment()) as informant:
        return devices_of(informant)


def devices_of(informant: Informant, timeout_s: float = 120.0) -> Devices:
    """What an informant finds, its first answer; MeasureError where that is nothing."""
    try:
        line = informant.line(timeout_s)
    except TimeoutError:
        raise MeasureError(
            f"JAX found no device within {timeout_s:g} s; set JAX_PLATFORMS to the one you mean."
        ) from None
    if line is None:
        raise MeasureError(f"JAX cannot start: {informant.last_print()}")
    return Devices(**json.loads(line))


def informing_environment(platform_name: str | None = None) -> dict[str, str]:
    """Environment of an informant: it takes little of an accelerator's memory, and starts no sweep."""
    child = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", MEASURING: "1"}
    if "XLA_FLAGS" in os.environ:
        child["XLA_FLAGS"] = flags_of(os.environ["XLA_FLAGS"])
    if platform_name == "cpu":
        child["JAX_PLATFORMS"] = "cpu"
    return child


def refuse_nesting() -> None:
    """Raise MeasureError in a process that measures: its workload's file starts a sweep when it is imported."""
    if MEASURING in os.environ:
        raise MeasureError(
            "the workload's file starts a sweep when it is imported, and the processes that measure import it; "
            'put that call under: if __name__ == "__main__":'
        )


def forced_flags(flags: str, count: int) -> str:
    """``XLA_FLAGS`` with ``count`` forced host devices; every other flag that XLA reads stays as the user set it."""
    others = [flag for flag in _read(flags) if flag.partition("=")[0] != FORCE_FLAG]
    return " ".join([*others, f"{FORCE_FLAG}={count}"])


def flags_of(value: str) -> str:
    """The flags that a value of ``XLA_FLAGS`` stands for: XLA takes one without a dash for the name of a file of flags.

    Raises
    ------
    MeasureError
        If that file cannot be read.
    """
    if not value.strip() or value.lstrip().startswith("-"):
        return value
    try:
        return " ".join(_read(Path(value).read_text()))
    except (OSError, UnicodeDecodeError) as error:
        raise MeasureError(
            f"XLA_FLAGS={value}: XLA takes this for a file of flags, and it cannot be read ({error}); give the flags "
            "themselves, as in XLA_FLAGS=--xla_cpu_multi_thread_eigen=false, or a file that holds them."
        ) from None


def _read(flags: str) -> list[str]:
    """What XLA reads of its flags: all up to the first word that is none."""
    read = _FLAGS_READ.match(flags)
    assert read is not None  # it matches nothing too
    return _FLAG.findall(read[0])


def child_environment(
    platform_name: str, visible_devices: int, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Environment of a measuring process: its platform, its devices, and no compilation cache."""
    child = {**environment, "JAX_ENABLE_COMPILATION_CACHE": "false", MEASURING: "1"}
    if "XLA_FLAGS" in environment:
        child["XLA_FLAGS"] = flags_of(environment["XLA_FLAGS"])  # not a file's name: the record tells the flags
    if platform_name == "cpu":
        child["JAX_PLATFORMS"] = "cpu"
        child["XLA_FLAGS"] = forced_flags(child.get("XLA_FLAGS", ""), visible_devices)
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
