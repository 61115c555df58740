"""Help teaches, and costs nothing: no command's help imports what computes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from breakeven.cli.app import app

import breakeven

COMMANDS = (
    "study",
    "measure",
    "inspect",
    "merge",
    "fit",
    "explain",
    "diagnose",
    "predict",
    "compare",
    "next",
    "power",
    "probe",
    "figures",
    "show",
    "workloads",
)
HEAVY = ("jax", "pandas", "scipy", "statsmodels", "matplotlib", "numpy", "msgspec", "rich", "pydantic")


def test_these_are_the_commands():
    assert tuple(command.name for command in app.registered_commands) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command, run_cli):
    code, out, err = run_cli(command, "--help")
    assert (code, err) == (0, "")
    assert f"  breakeven {command}" in out
    assert "Example:" in out


def test_help_lists_the_commands(run_cli):
    code, out, _ = run_cli("--help")
    assert code == 0
    assert all(f"\n  {command} " in out for command in COMMANDS)
    assert "..." not in out.partition("Commands:")[2], "a summary was cut"


@pytest.mark.parametrize("arguments", [["--help"], ["study", "--help"], ["predict", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys; from breakeven.cli.app import main\n"
        "try: main()\n"
        f"except SystemExit: print('loaded:', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_version_as_a_module():
    version = breakeven.__version__  # pyright: ignore[reportAttributeAccessIssue]
    done = subprocess.run([sys.executable, "-m", "breakeven.cli", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"breakeven {version}\n")


def test_unknown_command(run_cli):
    code, out, err = run_cli("optimise")
    assert (code, out) == (2, "")
    assert "No such command 'optimise'" in err
