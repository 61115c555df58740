"""What the tests of readers share."""

import pytest
from breakeven.fit.launches import from_record


@pytest.fixture
def sheet(tmp_path):
    """Write a text into a file and return its path."""

    def write(text):
        path = tmp_path / "sheet.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def times():
    """Seconds of a record by count."""

    def by_count(record):
        table = from_record(record)
        return {cell.num_devices: float(t[0]) for cell, t in zip(table.cells, table.latency_s, strict=True)}

    return by_count
