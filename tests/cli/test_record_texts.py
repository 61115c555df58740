"""Texts about records, plans and compiled programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from breakeven.cli.record_summary import counts, summarise
from breakeven.cli.render_plan import dry_run
from breakeven.cli.render_programs import inspect
from breakeven.cli.render_record import measured, show
from breakeven.data.schema import Failure, Launch, Plan, Program, Visit
from breakeven.data.simulated import simulated_lines
from breakeven.data.store import Record
from breakeven.measure.planning import DryRun
from breakeven.model.cell import Cell
from breakeven.model.program import Collective, ProgramFacts
from breakeven.model.rank import Identifiability
from msgspec.structs import replace


def without_rules(text: str) -> str:
    """A text without the lines drawn under its headers."""
    return "\n".join(line for line in text.splitlines() if set(line) != {" ", "─"})


PLAN = Plan(
    workload="mine.py:build",
    path="weak",
    objective="throughput",
    devices=(1, 2),
    sizes=(100,),
    strategies=("jit",),
    unit="rows",
    launches=2,
    budget_s=90.0,
    probes=False,
)
CELLS = [
    Cell(role="workload", strategy="jit", num_devices=1, size=100),
    Cell(role="workload", strategy="jit", num_devices=2, size=200),
    Cell(role="chain", strategy="jit", num_devices=2, size=200, k=4, payload_bytes=2**20),
]
ALL_REDUCE = Collective(kind="all-reduce", count=1, operands=1, message_bytes=4, operand_bytes=(4,), group_size=2)
REFUSED = Failure(
    sweep="s", launch="l", stage="control", error="ControlRefused", message="flops differ by 30 %", cell=CELLS[1]
)


@pytest.fixture
def record() -> Record:
    """Two launches of two rounds of three calls; the chain failed twice in a visit of the last."""
    samples = np.full((3, 2, 2, 3), 1.0) * np.array([32e-6, 66e-6, 91e-6])[:, None, None, None]
    lines = simulated_lines(PLAN, CELLS, samples, cores=2)
    last = [line.launch for line in lines if isinstance(line, Launch)][-1]
    failed = Failure(
        sweep=lines[0].sweep, launch=last, stage="visit", error="RuntimeError", message="no memory", cell=CELLS[2]
    )
    return Record.from_lines([*lines, failed, failed], source="sweep.jsonl")


def test_show(record):
    assert without_rules(show(summarise(record))) == (
        "sweep.jsonl: simulated\n"
        "36 calls in 12 visits of 3 cells, 2 launches\n"
        "\n"
        "plan\n"
        "  workload    mine.py:build\n"
        "  strategies  jit\n"
        "  devices     1, 2\n"
        "  sizes       100 rows per device (weak scaling)\n"
        "  objective   throughput\n"
        "  launches    2\n"
        "  budget      90 s\n"
        "  warm-ups    2 a visit, stored but left out\n"
        "  seed        0\n"
        "  left out    probes\n"
        "\n"
        "environment\n"
        "  platform         cpu\n"
        "  visible devices  1\n"
        "  cores            2\n"
        "\n"
        "cells: 2 workload and 1 chain\n"
        "  role       strategy   devices   global size   calls   median   compile\n"
        "  workload   jit              1           100      12    32 µs         -\n"
        "  workload   jit              2           200      12    66 µs         -\n"
        "  chain      jit              2           200      12        -         -   k = 4, 1 MiB, barred\n"
        "\n"
        "failures\n"
        "  visit chain/jit on 2 devices, size 200 k=4 1048576 B: RuntimeError: no memory (2 times)"
    )


def test_counts(record):
    found = counts(record)
    assert found == {"launches": 2, "cells": 3, "visits": 12, "samples": 36, "failures": 2}
    assert measured(Path("sweep.jsonl"), found) == (
        "sweep.jsonl: 36 calls of 3 cells in 2 launches, 2 failures ('breakeven show sweep.jsonl' lists them)\n"
        "next:  breakeven explain sweep.jsonl"
    )


def test_inspect():
    programs = [
        Program(
            sweep="s",
            launch="l",
            program=i,
            cell=cell,
            compile_s=0.2,
            facts=ProgramFacts(
                flops=flops, bytes_accessed=25640.0, collectives=collectives, inline=flops == 900.0, callbacks=i
            ),
        )
        for i, (cell, flops, collectives) in enumerate(
            [(CELLS[0], 900.0, ()), (CELLS[1], None, (ALL_REDUCE, ALL_REDUCE))]
        )
    ]
    assert without_rules(inspect(PLAN, programs[::-1], [REFUSED])) == (
        "mine.py:build on 1 and 2 devices, cpu; nothing was timed\n"
        "\n"
        "workload (jit), compiled in 400 ms; flops and bytes of one device\n"
        "  rows per device   devices     flops    bytes   collectives                            remarks\n"
        "              100         1       900   25,640   none                                   inline\n"
        "              100         2   unknown   25,640   2 x all-reduce of 4 B over 2 devices   1 callback\n"
        "\n"
        "could not be made\n"
        "  control workload/jit on 2 devices, size 200  ControlRefused: flops differ by 30 %"
    )


def test_program_that_cannot_be_lowered():
    program = Program(sweep="s", launch="l", program=0, cell=CELLS[0], facts=None)
    assert "unknown   unknown   unknown       cannot be lowered" in inspect(PLAN, [program], [])


def test_dry_run():
    found = DryRun(
        plan=PLAN,
        cells=tuple(CELLS),
        startup_s=2.5,
        round_s=0.012,
        calls=10,
        seconds=89.7,
        law="ring, per-device",
        identifiable=Identifiability(
            rank=3,
            num_parameters=4,
            identified={"c0": True, "dispatch": True, "alpha0": False, "alpha": False},
            ties=("alpha0 and alpha multiply the same column; another count above 1 would separate them",),
            tied=(("alpha0", "alpha"),),
        ),
        collectives=(ALL_REDUCE,),
        failures=(REFUSED,),
    )
    assert dry_run(found) == (
        "mine.py:build (jit) on 1 and 2 devices, cpu\n"
        "sizes: 100 rows per device (weak scaling), objective throughput\n"
        "\n"
        "about 90 s for 2 launches\n"
        "  start  2.5 s a launch, to start and compile\n"
        "  round  12 ms: 10 calls of every cell\n"
        "  cells  3: 2 workload and 1 chain\n"
        "\n"
        "collectives in the compiled program on 2 devices:\n"
        "  all-reduce of 4 B over 2 devices\n"
        "\n"
        "identifies 2 of 4 parameters of the law (ring, per-device)\n"
        "  c0, dispatch\n"
        "  not: alpha0 and alpha multiply the same column; another count above 1 would separate them\n"
        "\n"
        "could not be made\n"
        "  control workload/jit on 2 devices, size 200  ControlRefused: flops differ by 30 %"
    )


def test_show_of_several_processes():
    plan = replace(PLAN, processes=2, visible_devices=2)
    joint = {"processes": 2, "devices_per_process": 1, "barrier": "coordination service"}
    lines = []
    for line in simulated_lines(plan, CELLS, np.full((3, 2, 2, 3), 1e-4)):
        if isinstance(line, Launch):
            line = replace(line, **joint)
        elif isinstance(line, Visit) and line.program:
            line = replace(line, skew_ns=40_000)
        lines.append(line)
    text = show(summarise(Record.from_lines(lines, source="sweep.jsonl")))
    said = [" ".join(line.split()) for line in text.splitlines()]
    assert {"processes 2", "devices a process 1", "barrier coordination service"} <= set(said)
    assert said[said.index("skew: how far apart the processes began a call, median") + 1] == "2 devices 40 µs"


@pytest.mark.parametrize(
    ("name", "word"), [("sweep.jsonl", "sweep.jsonl"), ("r x.jsonl", "'r x.jsonl'"), ("-r.jsonl", "./-r.jsonl")]
)
def test_the_next_command_can_be_pasted(name, word):
    found = {"samples": 35, "cells": 7, "launches": 1, "failures": 0}
    assert measured(Path(name), found) == (
        f"{name}: 35 calls of 7 cells in 1 launches\nnext:  breakeven explain {word}"
    )
