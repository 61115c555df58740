"""A network whose latency and bandwidth are known: hosts in namespaces of their own, joined by a switch that delays.

Needs root, ``/dev/net/tun``, ``ip`` (iproute2) and a C compiler. What a run leaves behind when it is killed, the next
one removes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SWITCH = Path(__file__).with_name("switch.c")
COMPILER = "cc"
NAMESPACES = Path("/run/netns")
FILES = Path("/etc/netns")
"""``ip netns exec NAME`` puts the files in NAME here in the place of those in ``/etc``."""

FRAME_BYTES = 60_000
PAYLOAD_SHARE = (FRAME_BYTES - 20 - 32) / (FRAME_BYTES + 14)
"""Of the bytes on the wire, in full frames: 20 are IP's and 32 TCP's (with time stamps), and Ethernet adds 14."""

_SETTINGS = {
    # Bandwidth and delay alone shall decide: windows that never fill, no start anew after a pause, no memory of
    # earlier connections, and a plain congestion control that meets no loss.
    "tcp_rmem": "4096 16777216 33554432",
    "tcp_wmem": "4096 8388608 16777216",
    "tcp_slow_start_after_idle": "0",
    "tcp_no_metrics_save": "1",
    "tcp_congestion_control": "reno",
}
_FIRST_WINDOW = 500
_counter = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Host:
    """A namespace with one interface; ``address`` is also what the host's own name resolves to."""

    namespace: str
    address: str

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs ``arguments`` there."""
        return ["ip", "netns", "exec", self.namespace, *arguments]


def unavailable() -> str | None:
    """Why no such network can be made here; None where it can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun is missing or closed"
    if shutil.which("ip") is None:
        return "ip (iproute2) is not installed"
    if shutil.which(COMPILER) is None:
        return "cc, a C compiler for the switch, is not installed"
    try:
        with network(2, round_trip_s=1e-3, bytes_per_s=1e8):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no namespace or device can be made: {getattr(error, 'stderr', None) or error}"


@contextlib.contextmanager
def network(num_hosts: int, *, round_trip_s: float, bytes_per_s: float) -> Iterator[tuple[Host, ...]]:
    """Make hosts between which a message costs what is imposed; inside the block they exist.

    Parameters
    ----------
    num_hosts : int
    round_trip_s : float, seconds
        Half of it is the delay of every frame.
    bytes_per_s : float
        At which a host's frames leave it, headers included.

    Raises
    ------
    subprocess.CalledProcessError
        If ``ip`` fails; ``stderr`` says why.
    """
    _remove_leftovers()
    run = f"{os.getpid()}-{next(_counter)}"
    hosts = tuple(Host(namespace=f"truth-{run}-{i}", address=f"10.78.0.{i + 1}") for i in range(num_hosts))
    devices = [f"t{run}-{i}" for i in range(num_hosts)]
    with contextlib.ExitStack() as undo:
        for host in hosts:
            undo.callback(_remove, host.namespace)
        undo.enter_context(_switch(devices, round_trip_s / 2, bytes_per_s))
        for host, device in zip(hosts, devices, strict=True):
            _make(host, device, hosts)
        yield hosts


@contextlib.contextmanager
def _switch(devices: list[str], delay_s: float, bytes_per_s: float) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "switch"
        subprocess.run([COMPILER, "-O2", "-o", program, SWITCH], check=True, capture_output=True, text=True)
        command = [program, str(round(delay_s * 1e9)), repr(1e9 / bytes_per_s), *devices]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                _, said = process.communicate()
                raise subprocess.CalledProcessError(process.wait(), command, stderr=said)
            yield
        finally:
            process.kill()
            process.communicate()


def _make(host: Host, device: str, hosts: tuple[Host, ...]) -> None:
    """One namespace: its device, its settings, and where the others are."""
    files = FILES / host.namespace
    files.mkdir(parents=True)
    # gloo listens where the host's own name points to.
    (files / "hosts").write_text(f"127.0.0.1 localhost\n{host.address} {socket.gethostname()}\n")
    _ip(f"netns add {host.namespace}", f"link set {device} netns {host.namespace} name wire")
    subnet = "10.78.0.0/24"
    _ip(
        "link set lo up",
        f"link set wire address {_hardware(hosts.index(host))} mtu {FRAME_BYTES} txqueuelen 4000 up",
        f"address add {host.address}/24 dev wire",
        f"route change {subnet} dev wire proto kernel scope link src {host.address} "
        f"initcwnd {_FIRST_WINDOW} initrwnd {_FIRST_WINDOW}",
        *(
            f"neighbour replace {other.address} lladdr {_hardware(i)} dev wire nud permanent"
            for i, other in enumerate(hosts)
            if other != host
        ),
        namespace=host.namespace,
    )
    settings = "; ".join(f"echo '{value}' > /proc/sys/net/ipv4/{name}" for name, value in _SETTINGS.items())
    subprocess.run(host.command("sh", "-ec", settings), check=True, capture_output=True, text=True)


def _hardware(port: int) -> str:
    """Address of the device at a port of the switch, which reads the last byte."""
    return f"02:00:00:00:00:{port:02x}"


def _ip(*commands: str, namespace: str | None = None) -> None:
    inside = [] if namespace is None else ["-n", namespace]
    text = "\n".join(commands)
    subprocess.run(["ip", *inside, "-batch", "-"], input=text, check=True, capture_output=True, text=True)


def _remove_leftovers() -> None:
    """Remove the namespaces of runs whose process is gone."""
    for path in (*NAMESPACES.glob("truth-*"), *FILES.glob("truth-*")):
        found = re.match(r"truth-(\d+)-", path.name)
        if found and not Path("/proc", found[1]).exists():
            _remove(path.name)


def _remove(namespace: str) -> None:
    """End what runs there, and take it away; what is not there needs nothing."""
    if (NAMESPACES / namespace).exists():
        listed = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False)
        for process in map(int, listed.stdout.split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
    shutil.rmtree(FILES / namespace, ignore_errors=True)
