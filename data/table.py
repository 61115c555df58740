"""The record's other face: tidy pandas tables, one row a sample or one row a visit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..model.cell import Cell
from .rounds import timed_visits
from .store import Record

CELL_COLUMNS = ("role", "strategy", "num_devices", "size", "k", "payload_bytes", "pair")


def visits(record: Record) -> pd.DataFrame:
    """One row a visit.

    Returns
    -------
    DataFrame
        Columns ``sweep, launch, round, position, time, role, strategy, num_devices, size, k, payload_bytes, pair,
        latency_s, dispatch_s, queued_s, num_calls, complete``, the last five as in ``rounds.TimedVisit``;
        ``k`` and ``payload_bytes`` are 0 where they do not apply, ``pair`` is ``0-1`` or empty.
    """
    rows = [
        (v.sweep, v.launch, v.round, v.position, v.time, *cell_values(cell), *summary)
        for v, cell, *summary in timed_visits(record)
    ]
    columns = [
        *("sweep", "launch", "round", "position", "time"),
        *CELL_COLUMNS,
        *("latency_s", "dispatch_s", "queued_s", "num_calls", "complete"),
    ]
    return pd.DataFrame(rows, columns=columns)


def samples(record: Record) -> pd.DataFrame:
    """One row a call: the columns of ``visits`` up to ``pair``, then call, warmup, latency_s, dispatch_s."""
    cells = {(p.sweep, p.launch, p.program): p.cell for p in record.programs}
    repeats = [len(visit.latency_ns) for visit in record.visits]
    by_visit = pd.DataFrame(
        [
            (
                v.sweep,
                v.launch,
                v.round,
                v.position,
                v.time,
                *cell_values(cells[v.sweep, v.launch, v.program]),
                v.warmups,
            )
            for v in record.visits
        ],
        columns=["sweep", "launch", "round", "position", "time", *CELL_COLUMNS, "warmups"],
    )
    table = by_visit.loc[np.repeat(np.arange(len(by_visit)), repeats)].reset_index(drop=True)
    table["call"] = np.concatenate([np.arange(n) for n in repeats]) if repeats else np.array([], dtype=int)
    table["warmup"] = table["call"] < table.pop("warmups")
    table["latency_s"] = np.array([t for v in record.visits for t in v.latency_ns]) * 1e-9
    dispatch = [t for v in record.visits for t in (v.dispatch_ns or (np.nan,) * len(v.latency_ns))]
    table["dispatch_s"] = np.array(dispatch, dtype=float) * 1e-9
    return table


def cell_values(cell: Cell) -> tuple[str, str, int, int, int, int, str]:
    """A cell in the order of ``CELL_COLUMNS``."""
    pair = "" if cell.pair is None else "{}-{}".format(*cell.pair)
    return (cell.role, cell.strategy, cell.num_devices, cell.size, cell.k or 0, cell.payload_bytes or 0, pair)
