"""Eight forced host devices for every test that imports jax, set before any does; processes; records of links."""

import os
import signal
import subprocess
from itertools import combinations

import numpy as np
import pytest
from breakeven.data.schema import Plan
from breakeven.data.simulated import simulated_lines
from breakeven.data.store import Record
from breakeven.model.cell import Cell
from hypothesis import settings

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

# A shell that starts the tests in the background has them ignore Ctrl-C, and nohup has them ignore the end of the
# terminal; so would the processes they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# How long an example takes says nothing where two workers share two cores.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def spawn():
    """``spawn(command, variables, **options)``: a process whose words are read; ended when the test is over."""
    started = []

    def start(command, variables, **options):
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, env=os.environ | variables, stdout=pipe, stderr=pipe, text=True, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def record_of_links(factors, *, launches=6, noise=0.03, seed=0, payloads=(4, 1 << 20)):
    """A record of pairs whose truth is known: a message of V bytes takes factor * (20 µs + V / (10 GB/s)).

    ``factors`` holds every measured pair's factor. Each launch is off by 5 % as a whole, and in it each link by
    ``noise``; a call costs 50 µs beside its messages, on which no estimate may depend.
    """
    count = 1 + max(max(pair) for pair in factors)
    plan = Plan(
        workload="links",
        path="strong",
        objective="time",
        devices=(count,),
        sizes=payloads,
        strategies=("ppermute",),
        unit="B",
        visible_devices=count,
        controls=False,
        probes=False,
        pairs=True,
    )
    rng = np.random.default_rng(seed)
    whole = np.exp(rng.normal(0, 0.05, launches))
    cells, times = [], []
    for pair, factor in factors.items():
        for payload in payloads:
            message = factor * (20e-6 + payload / 10e9) * np.exp(rng.normal(0, noise, launches))
            for k in (2, 8):
                at = {"num_devices": count, "size": payload, "payload_bytes": payload}
                cells.append(Cell(role="pair", strategy="ppermute", k=k, pair=pair, **at))
                times.append(whole * (50e-6 + k * message))
    samples = np.array(times)[:, :, None, None]
    return Record.from_lines(simulated_lines(plan, cells, samples), source="links.jsonl")


def link_factors(count, *, devices=None, links=None):
    """Factor of every pair: those of its two devices and of the link, multiplied."""
    return {
        (i, j): (devices or {}).get(i, 1.0) * (devices or {}).get(j, 1.0) * (links or {}).get((i, j), 1.0)
        for i, j in combinations(range(count), 2)
    }


@pytest.fixture(scope="session")
def links_record():
    """``links_record(count, devices={3: 2.0}, links={(0, 1): 2.0}, left_out=(...), **noise)``."""

    def make(count, *, devices=None, links=None, left_out=(), **noise):
        factors = link_factors(count, devices=devices, links=links)
        return record_of_links({pair: f for pair, f in factors.items() if pair not in left_out}, **noise)

    return make
