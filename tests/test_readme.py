"""What the README shows is what the program prints."""

import re
from pathlib import Path

import pytest
from breakeven.cli.app import app
from breakeven.cli.template import TEMPLATE
from typer.testing import CliRunner

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)[number]


def test_the_example_is_the_one_that_is_measured_by_the_tests():
    assert TEMPLATE in block("python")


@pytest.fixture(scope="module")
def printed():
    runner = CliRunner()
    return "".join(runner.invoke(app, [command, "data:issue-21411"]).stdout for command in ("explain", "predict"))


@pytest.mark.parametrize("line", block("text").splitlines())
def test_the_verdict_is_what_is_printed(printed, line):
    assert line in printed.splitlines()


def test_every_file_that_is_linked_is_there():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (Path(__file__).parents[1] / link).exists()] == []
