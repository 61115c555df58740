"""A short hash of a program as it was lowered, by which an edit between two launches is told."""

from __future__ import annotations

import hashlib
import re
from typing import Any

_ELIDED_FROM = 16
"""Elements from which a constant is not even printed."""
_VALUE = re.compile(r"(stablehlo\.constant ).*( : tensor<[^>]*>)$")
_NAMES = re.compile(
    r"%[\w#:]+|(?<!custom_call )@[\w.$-]+|jax\.\w+_info = \"[^\"]*\"|backend_config = (\"(?:[^\"\\]|\\.)*\"|\{[^}]*\})"
)
"""Values, functions and results are called as the user's code calls them; what a backend is told may hold addresses."""


def fingerprint(lowered: Any) -> str | None:
    """Hash what a program does, whatever its parts are called and wherever they stand in the source.

    Parameters
    ----------
    lowered : jax.stages.Lowered

    Returns
    -------
    str or None
        16 hexadecimal digits; None where the program has no StableHLO.

    Notes
    -----
    Two programs of the same operations on the same shapes, in any order, have one fingerprint, also with other numbers
    in them: constants count by shape, so that data drawn at random at every start, or a process's own number, make no
    other program. Only in the condition of a loop the numbers count, since they say how often it runs.
    """
    module = lowered.compiler_ir("stablehlo")
    if module is None:
        return None
    return digest(module.operation.get_asm(large_elements_limit=_ELIDED_FROM))


def digest(text: str) -> str:
    """Hash the text of a StableHLO module, which must not hold source locations."""
    lines = []
    in_condition = False
    for line in map(str.strip, text.splitlines()):
        in_condition = line == "cond {" or (in_condition and not line.startswith("} do"))
        lines.append(_NAMES.sub("", line if in_condition else _VALUE.sub(r"\1\2", line)))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]
