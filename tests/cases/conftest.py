"""Public cases: numbers that people stated in the open, each file with its source, asked as its owner would ask."""

from pathlib import Path

import pytest
from breakeven.data.catalog import open_record
from breakeven.fit.launches import from_record
from breakeven.fit.report import answer

DATA = Path(__file__).parent / "data"


@pytest.fixture
def data():
    """The folder of the inputs."""
    return DATA


@pytest.fixture
def table():
    """Read a case's CSV file into the table that the fits start from."""

    def read(name, columns, *, scaling=None, where=None):
        return from_record(open_record(str(DATA / name), columns=columns, scaling=scaling, where=where))

    return read


@pytest.fixture
def ask(table):
    """The whole answer to a case's CSV file."""

    def asked(name, columns, *, scaling=None, where=None, **question):
        return answer(table(name, columns, scaling=scaling, where=where), **question)

    return asked
