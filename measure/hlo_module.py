"""A compiled program's HLO text, split into computations and instructions, and walked as it runs.

The text is that of ``compiled.as_text()``: one block a computation, one line an instruction.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of HLO, split: ``%name = type opcode(operands), attributes``."""

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str

    @property
    def collective_kind(self) -> str | None:
        """Which of ``KINDS`` it is or starts, if any."""
        kind = self.opcode.removesuffix("-start")
        return kind if kind in KINDS else None

    @property
    def trip_count(self) -> int | None:
        """Rounds of a ``while``; None where the compiler does not know."""
        found = first_group(r'"known_trip_count":\s*\{\s*"n":\s*"?(\d+)', self.attributes)
        return int(found) if found else None


@dataclass(frozen=True)
class Module:
    """Computations by name, each with its instructions in order.

    ``num_devices`` is None where the text does not say it; ``readable`` is False where an instruction or the entry
    was not understood.
    """

    entry: str
    num_devices: int | None
    computations: dict[str, list[Instruction]]
    readable: bool

    @classmethod
    def parse(cls, text: str) -> Module:
        """Read the text of one module."""
        text = re.sub(r"/\*.*?\*/", "", text)
        header = text.lstrip().partition("\n")[0]
        counts = [int(n) for n in re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", header)]
        computations: dict[str, list[Instruction]] = {}
        entry = name = ""
        readable = True
        for line in text.splitlines():
            if line.startswith(("HloModule", "}")):
                name = ""
            elif opening := re.match(r"(ENTRY )?%?([\w.\-]+)\b.*\{\s*$", line):
                name = opening[2]
                computations[name] = []
                entry = name if opening[1] else entry
            elif name and (instruction := _parse_instruction(line)):
                computations[name].append(instruction)
            elif name and " = " in line:
                readable = False
        return cls(entry, math.prod(counts) if counts else None, computations, readable and bool(entry))

    def type_of(self, operand: str, computation: str) -> str:
        """Type of an operand: printed with it, or that of the instruction which it names."""
        if "[" in operand:
            return operand
        return next((other.type for other in self.computations[computation] if other.name == operand), "")

    def walk(self) -> Iterator[tuple[Instruction, str, int | None]]:
        """Yield every instruction reached from the entry, its computation, and how often a call runs it."""
        yield from self._walk(self.entry, 1)

    def _walk(self, computation: str, count: int | None) -> Iterator[tuple[Instruction, str, int | None]]:
        for instruction in self.computations.get(computation, ()):
            if instruction.opcode.endswith(("-done", "-update")):
                continue
            yield instruction, computation, count
            if instruction.collective_kind:
                continue  # what it calls is its reduction, or the wrapped form of itself
            for called, times in _called(instruction):
                yield from self._walk(called, None if count is None or times is None else count * times)


def _parse_instruction(line: str) -> Instruction | None:
    """Split one line; None where it is not an instruction."""
    opening = re.match(r"\s+(?:ROOT )?%?([\w.\-]+) = ", line)
    if not opening:
        return None
    rest = line[opening.end() :]
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.find(" ")
    opcode = re.match(r"\s*([a-z][\w\-]*)\(", rest[end:])
    if not opcode:
        return None
    start = end + opcode.end() - 1
    stop = _closing(rest, start)
    operands = tuple(part.strip().removeprefix("%") for part in _split(rest[start + 1 : stop]))
    # Source locations may quote anything, so they go first.
    attributes = re.sub(r'metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}', "", rest[stop + 1 :])
    return Instruction(opening[1], rest[:end], opcode[1], operands, attributes)


def _closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at ``start``; the end of the text where none does."""
    depth = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[()]', text[start:]):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return start + found.start()
    return len(text)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, last = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[last:index])
            last = index + 1
    return [part for part in (*parts, text[last:]) if part.strip()]


def _called(instruction: Instruction) -> list[tuple[str, int | None]]:
    """Computations that an instruction runs, and how often it runs each; None: unknown."""
    attributes, trips = instruction.attributes, 1
    if instruction.opcode == "while":
        trips = instruction.trip_count
        body, condition = (first_group(rf"\b{key}=%?([\w.\-]+)", attributes) or "" for key in ("body", "condition"))
        return [(condition, None if trips is None else trips + 1), (body, trips)]
    if instruction.opcode == "conditional":
        single = re.findall(r"\b(?:true|false)_computation=%?([\w.\-]+)", attributes)
        several = first_group(r"\bbranch_computations=\{([^}]*)\}", attributes) or ""
        return [(name, None) for name in (*single, *re.findall(r"[\w.\-]+", several))]
    names = re.findall(r"\b(?:calls|to_apply)=%?([\w.\-]+)", attributes)
    several = first_group(r"\b(?:called_computations|calls)=\{([^}]*)\}", attributes) or ""
    return [(name, 1) for name in (*names, *re.findall(r"[\w.\-]+", several))]


def array_bytes(type_text: str) -> list[int]:
    """Bytes of each array in a type such as ``(f32[8,4]{1,0}, s4[16]{0:E(4)})``.

    Elements below one byte take a whole one, unless the layout packs them (``E(bits)``), as in XLA itself.
    """
    sizes = []
    for name, dimensions, layout in re.findall(r"\b([a-z]\w*)\[([^\]]*)\](\{[^}]*\})?", type_text):
        bits = 8 if name == "pred" else int(first_group(r"(?:bf|[sufc])(\d+)", name) or 0)
        packed = first_group(r"E\((\d+)\)", layout)
        bits = int(packed) if packed else 8 * math.ceil(bits / 8)
        elements = math.prod(int(size.replace("<=", "")) for size in dimensions.split(",") if size.strip())
        sizes.append(math.ceil(elements * bits / 8))
    return sizes


def first_group(pattern: str, text: str) -> str | None:
    """The first group of a pattern's first match, if there is one."""
    found = re.search(pattern, text)
    return found[1] if found else None
