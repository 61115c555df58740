"""What a column's name tells of what it holds, where nothing else does."""

from __future__ import annotations

import re

ELEMENTS = frozenset(
    {
        *("image", "images", "img", "imgs", "frame", "frames", "pixel", "pixels", "sample", "samples"),
        *("example", "examples", "item", "items", "element", "elements", "row", "rows", "record", "records"),
        *("token", "tokens", "tok", "seq", "seqs", "sequence", "sequences", "sentence", "sentences", "word", "words"),
        *("cell", "cells", "point", "points", "particle", "particles", "atom", "atoms", "neuron", "neurons"),
        *("flop", "flops", "kflops", "mflops", "gflops", "tflops", "pflops", "byte", "bytes"),
    }
)
"""Words for what a call works on, many at a time."""

_ONE_DEVICE = re.compile(r"\bper (?:gpu|device|dev|chip|core|tpu|rank|worker|replica|accelerator|process|proc|pe)\b")


def words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: ``Mcell_per_s`` has cell, per and s; ``stepTime`` step and time."""
    return tuple(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def of_one_device(name: str) -> bool:
    """Whether a name says that it is counted on one device: ``imgs_per_gpu``, ``tokens/s/device``."""
    return _ONE_DEVICE.search(" ".join(words(name.replace("/", " per ")))) is not None
