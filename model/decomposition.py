"""Time by cause for given parameters: dispatch (c0 + entry + dispatch), compute and communication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .cell import Cell
from .law import ONE_PROCESS, Design, Law, Spread, cause_of, terms
from .program import ProgramFacts

CAUSES = ("dispatch", "communication", "compute")


class NotPredictable(ValueError):
    """The law has no number for a cell; the message says why."""


def by_cause(design: Design, values: np.ndarray) -> dict[str, np.ndarray]:
    """Split the times of a design's cells.

    Parameters
    ----------
    design : Design of C cells and P parameters
    values : ndarray, shape (..., P), SI units

    Returns
    -------
    dict from cause to ndarray, shape (..., C), seconds
        They add up to ``values @ design.matrix.T``.
    """
    values = np.asarray(values, dtype=float)
    causes = np.array(design.causes)
    return {
        cause: values[..., causes == cause] @ design.matrix[:, causes == cause].T if design.names else np.zeros(())
        for cause in CAUSES
    }


def at(
    law: Law,
    names: Sequence[str],
    values: np.ndarray,
    cell: Cell,
    facts: ProgramFacts | None,
    *,
    cores: int | None,
    spread: Spread = ONE_PROCESS,
) -> dict[str, np.ndarray]:
    """Split the time of one more cell, measured or not.

    Parameters
    ----------
    law : Law
    names : names of the P parameters, as in the fitted ``Design``
    values : ndarray, shape (..., P), SI units
    cell, facts : where; the facts of its program (``unmeasured.facts_at`` finds them)
    cores, spread : as for ``design``

    Returns
    -------
    dict from cause to ndarray, shape (...), seconds
        Free compute times are interpolated over the per-device size, free collective times over the payload at the
        same count, both in log-log; outside the outermost two points set the slope.

    Raises
    ------
    NotPredictable
        If the cell needs a parameter that nothing measured determines, or the law is not defined there.
    """
    values = np.asarray(values, dtype=float)
    try:
        row = terms(law, cell, facts, cores=cores, spread=spread)
    except ValueError as error:
        raise NotPredictable(f"{cell}: {error}.") from error
    total = {cause: np.zeros(values.shape[:-1]) for cause in CAUSES}
    columns = {name: j for j, name in enumerate(names)}
    for name, coefficient in row.items():
        if coefficient:
            unit = values[..., columns[name]] if name in columns else _interpolated(name, columns, values, cell)
            total[cause_of(name)] = total[cause_of(name)] + coefficient * unit
    return total


def _interpolated(name: str, columns: Mapping[str, int], values: np.ndarray, cell: Cell) -> np.ndarray:
    """Time of a free column that was not measured, from the measured ones of its family."""
    if "[" not in name:
        raise NotPredictable(f"{name} of {cell} was not measured in any cell.")
    family, place = _family(name)
    known = sorted((_family(other)[1], j) for other, j in columns.items() if _family(other)[0] == family)
    if len(known) < 2:
        raise NotPredictable(f"{name} of {cell} was not measured, and too few like it were to interpolate.")
    places = np.array([x for x, _ in known])
    return interpolate(places, values[..., [j for _, j in known]], place)


def _family(name: str) -> tuple[tuple[str, ...], float]:
    """Split a name of a free column into what must agree and the place on the axis to interpolate over."""
    if "[" not in name:
        return (name,), 0.0
    stem, inside = name[:-1].split("[", 1)
    parts = inside.split(", ")
    if stem == "compute":
        return (stem,), float(parts[0])
    devices, message_bytes, *kind = parts
    return (stem, devices, *kind), float(message_bytes)


def interpolate(places: np.ndarray, values: np.ndarray, place: float) -> np.ndarray:
    """Interpolate in log-log, or linearly where a value is not positive.

    Parameters
    ----------
    places : ndarray, shape (K,), positive and ascending, K >= 2
    values : ndarray, shape (..., K)
    place : float, positive; outside, the line through the outermost two points goes on

    Returns
    -------
    ndarray, shape (...)
    """
    right = int(np.clip(np.searchsorted(places, place), 1, len(places) - 1))
    low, high = values[..., right - 1], values[..., right]
    x0, x1 = places[right - 1], places[right]
    positive = (low > 0) & (high > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        power = low * (high / low) ** (np.log(place / x0) / np.log(x1 / x0))
    return np.where(positive, power, low + (high - low) * (place - x0) / (x1 - x0))
