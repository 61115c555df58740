"""Imports run one way: a room knows only those below it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BELOW = {
    "model": set(),
    "data": {"model"},
    "measure": {"model", "data"},
    "fit": {"model", "data"},
    "study": {"model", "data", "measure", "fit"},
    "figures": {"model", "data", "measure", "fit", "study"},
    "cli": {"model", "data", "measure", "fit", "study", "figures"},
}


def imported_rooms(path: Path) -> set[str]:
    """Rooms named in a module's imports, relative or through the package."""
    depth = len(path.relative_to(ROOT).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = (node.module or "").split(".")
            if node.level == depth:
                found |= {names[0]} if names[0] else {alias.name for alias in node.names}
            elif node.level == 0 and names[0] == "breakeven":
                found |= {names[1]} if len(names) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("breakeven.")}
    return found & BELOW.keys()


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_only_from_below(room):
    modules = sorted((ROOT / room).rglob("*.py"))
    assert modules
    above = {str(path): imported_rooms(path) - BELOW[room] - {room} for path in modules}
    assert {path: rooms for path, rooms in above.items() if rooms} == {}


def test_the_check_sees_relative_imports():
    assert imported_rooms(ROOT / "study" / "loop.py") == {"data", "fit", "measure"}
