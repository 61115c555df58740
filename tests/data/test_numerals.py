"""Decimal marks and marks between thousands, told from the whole column."""

import pytest
from breakeven.data.numerals import Ambiguous, Marks, marks
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError

COLUMNS = "devices=cores,latency_s=us/1e6"


@pytest.mark.parametrize(
    ("texts", "decimal_comma", "found"),
    [
        (["812.5", "3", "1e-3"], True, Marks()),
        (["812,5", "3"], True, Marks(",")),
        (["1,024", "3"], False, Marks()),
        (["1,234.5", "812.5", "1,234"], False, Marks(".", ",")),
        (["1,234,567", "12"], True, Marks(".", ",")),
        (["1.234,5", "812,5", "1.234"], False, Marks(",", ".")),
        (["3", "1,234", "812.5"], True, Ambiguous(1, 2)),
        (["1.234,5", "812.5"], True, Ambiguous(0, 1)),
        (["1,234.5", "1,23"], False, Ambiguous(0, 1)),
        (["1,234.5", "2.345,6"], False, Ambiguous(0, 1)),
        (["a, b", "10.1.2.3", "v1,234.5"], True, Marks()),
    ],
)
def test_marks_are_those_that_explain_all_values(texts, decimal_comma, found):
    assert marks(texts, decimal_comma=decimal_comma) == found


@pytest.mark.parametrize(("text", "plain"), [("1,234.5", "1234.5"), ("12", "12"), ("1,23", "1,23"), ("n/a", "n/a")])
def test_only_numbers_that_are_written_so_are_rewritten(text, plain):
    assert Marks(".", ",").plain(text) == plain


def test_thousands_are_read_where_one_value_shows_both_marks(sheet, times):
    path = sheet('cores,us\n1,"1,234.5"\n2,"1,100"\n4,812\n')
    assert times(read_csv(path, columns=COLUMNS)) == pytest.approx({1: 1234.5e-6, 2: 1100e-6, 4: 812e-6})


def test_a_column_with_two_decimal_marks_is_refused_with_the_lines(sheet):
    """1,234 is 1.234 beside semicolons, and 1234 beside 812.5."""
    path = sheet("cores;us\n1;1,234\n2;812.5\n4;655.1\n")
    with pytest.raises(RecordError, match=r"column 'us': line 2 holds '1,234' and line 3 '812.5', .* the same one"):
        read_csv(path, columns=COLUMNS)


def test_a_column_with_decimal_commas_that_nobody_named_is_no_text(sheet, times):
    path = sheet("cores;us;loss\n1;40,5;0,51\n2;30,5;0,49\n")
    assert times(read_csv(path, columns=COLUMNS)) == pytest.approx({1: 40.5e-6, 2: 30.5e-6})
