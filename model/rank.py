"""What a design can tell apart: its rank, the parameters it determines, and the ties between the others, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .law import Design

TOLERANCE = 1e-4
"""Relative to the largest singular value of the scaled matrix: a direction 10,000 times weaker than the strongest
would need 10,000 times less noise, which no timing has."""

SEPARATORS = {
    "null": "a null control (the same arguments and outputs, no work)",
    "local": "a local control (the same work without communication)",
    "payload": "chains of collectives at other payloads",
    "chain": "chains of collectives of different length",
    "count above 1": "another device count above 1",
    "count": "another device count",
    "process": "several devices in each process",
    "one device": "a run on one device",
    "size": "another size",
    "work": "another size, or a known amount of work",
}


@dataclass(frozen=True)
class Identifiability:
    """What a design determines.

    Attributes
    ----------
    rank, num_parameters : of the matrix with scaled columns; all is determined when they are equal
    identified : by parameter, whether it alone is determined
    ties : one sentence for each missing rank: which parameters multiply the same column, and what separates them
    tied : the same as names, the parameter and those it hides among
    """

    rank: int
    num_parameters: int
    identified: Mapping[str, bool]
    ties: tuple[str, ...]
    tied: tuple[tuple[str, ...], ...]

    def reason(self, name: str) -> str | None:
        """Why a parameter is not identified and the cheapest run that would change it; None where it is identified."""
        if self.identified.get(name, False):
            return None
        sentences = [text for names, text in zip(self.tied, self.ties, strict=True) if name in names]
        return "; ".join(sentences) if sentences else f"no cell depends on {name}"


def identify(design: Design, *, tolerance: float = TOLERANCE) -> Identifiability:
    """Say which parameters a design determines.

    A parameter is identified when its unit vector is orthogonal to the null space of the matrix; its columns are
    scaled to unit length first, so units play no part.
    """
    scaled = _scale(design.matrix)
    num_parameters = scaled.shape[1]
    if not num_parameters:
        return Identifiability(0, 0, {}, (), ())
    _, singular, vectors = np.linalg.svd(scaled, full_matrices=True)
    rank = int(np.sum(singular > tolerance * singular[0]))
    null_space = vectors[rank:]
    # A component of the null space that is itself below the tolerance is rounding.
    free = np.sqrt(np.sum(null_space**2, axis=0)) > tolerance
    tied = _ties(scaled, design.names, rank, tolerance)
    return Identifiability(
        rank=rank,
        num_parameters=num_parameters,
        identified={name: not bool(is_free) for name, is_free in zip(design.names, free, strict=True)},
        ties=tuple(_sentence(names, design) for names in tied),
        tied=tied,
    )


def same_predictions(first: Design, second: Design, *, tolerance: float = TOLERANCE) -> bool:
    """Whether two laws' designs over the same cells span the same times, so that no fit can prefer one.

    Ring and linear all-reduces do so where bytes do not matter. Bounds at 0 are not considered.
    """
    a, b = _scale(first.matrix), _scale(second.matrix)
    rank = _rank(a, tolerance)
    return rank == _rank(b, tolerance) == _rank(np.hstack([a, b]), tolerance)


def _ties(scaled: np.ndarray, names: tuple[str, ...], rank: int, tolerance: float) -> tuple[tuple[str, ...], ...]:
    """Fundamental circuits: walk the columns and note which earlier ones each dependent column is a sum of."""
    basis: list[int] = []
    ties = []
    for j in range(len(names)):
        if len(basis) < rank and _rank(scaled[:, [*basis, j]], tolerance) > len(basis):
            basis.append(j)
            continue
        weights = np.linalg.lstsq(scaled[:, basis], scaled[:, j], rcond=None)[0]
        partners = [names[i] for i, weight in zip(basis, weights, strict=True) if abs(weight) > tolerance]
        ties.append((names[j], *partners))
    return tuple(ties)


def _sentence(tie: tuple[str, ...], design: Design) -> str:
    tied, *partners = tie
    if not partners:
        return f"no cell depends on {tied}"
    if len(partners) == 1:
        start = f"{partners[0]} and {tied} multiply the same column"
    else:
        start = f"{tied} cannot be told from {_together(partners)}, which make up the same column"
    return f"{start}; {_separator(tie, design)} would separate them"


def _together(names: list[str]) -> str:
    """Join names, the free compute and collective times of many cells as one."""
    free = {"compute[": "the compute times", "collective[": "the collective times"}
    short: list[str] = []
    for name in names:
        word = next((word for stem, word in free.items() if name.startswith(stem)), name)
        if word not in short or len(names) == 1:
            short.append(word)
    return short[0] if len(short) == 1 else f"{', '.join(short[:-1])} and {short[-1]}"


def _separator(tie: tuple[str, ...], design: Design) -> str:
    """Cheapest additional run that takes this tie apart, in words."""
    stems = {name.split("[", 1)[0] for name in tie}
    causes = {cause for name, cause in zip(design.names, design.causes, strict=True) if name in tie}
    communication = {"alpha0", "alpha", "beta", "collective"} & stems
    if communication and len(causes) > 1:
        key = "chain" if "c0_probe" in stems else "local"
    elif communication:
        key = "payload" if "beta" in stems else "count above 1"
    elif {"floor", "compute"} & stems and "dispatch" in causes:
        key = "null"
    elif "gamma" in stems:
        key = "work" if stems == {"floor", "gamma"} else "size"
    elif "entry" in stems and "dispatch" not in stems:
        key = "one device"
    else:
        key = "process" if "dispatch" in stems and _one_device_a_process(design) else "count"
    return SEPARATORS[key]


def _one_device_a_process(design: Design) -> bool:
    """Whether some cell has several devices and each of their processes but one to feed."""
    if not {"entry", "dispatch"} <= set(design.names):
        return False
    entry, dispatch = (design.matrix[:, design.names.index(name)] for name in ("entry", "dispatch"))
    return bool(np.any((entry > 0) & (dispatch == 1)))


def _rank(matrix: np.ndarray, tolerance: float) -> int:
    singular = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(singular > tolerance * singular[0])) if singular.size else 0


def _scale(matrix: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(norms > 0, norms, 1.0)
