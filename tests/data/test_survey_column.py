"""What a column of a private table seems to be, and what its owner is told."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.data import rounding
from limbeck.data.survey_column import look
from limbeck.data.table import encode_rows
from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema


def column(cells: Sequence[object], name: str = "a") -> Column:
    found = look(name, [str(cell) for cell in cells]).column
    assert found is not None
    return found


def test_whole_numbers_and_decimals() -> None:
    whole = column([17, 23.0, "42"])
    assert (whole.low, whole.high, whole.integer, whole.digits, whole.missing) == (10, 50, True, None, False)
    assert column([0.5, 1.25, 3]).digits == 2 and column([1 / 3, 2]).digits is None
    assert column([0.29, 0.07, 1.15]).digits == 2 and column([12345678.01, 0.1]).digits == 2
    assert column([1e300, 0.5]).digits is None


@pytest.mark.parametrize("nothing", ["", "  ", "NA", "nan", "None", "<NA>", "null", "-nan"])
def test_empty_cells_are_missing_values_of_numbers_and_dates(nothing: str) -> None:
    assert column([1, 2, nothing]).integer and column([1, 2, nothing]).missing
    if nothing != "-nan":
        day = column(["2020-02-02", nothing, "2020-02-03"])
        assert day.kind == "date" and day.missing


def test_of_texts_only_empty_cells_are_missing() -> None:
    pain = column(["none", "some", "", "none"])
    assert pain.categories == ("none", "some") and pain.missing
    assert not column(["none", "some"]).missing


def test_dates_with_the_year_last() -> None:
    """They were a category each, or an identifier where all differ."""
    german = look("a", ["31.01.1990", "05.02.1991", "", "7.3.1993"] * 9)
    assert german.column is not None and german.column.missing
    assert (german.column.kind, german.column.format, german.column.low) == ("date", "day-month-year", "1990-01-01")
    american = column(["01/31/1990 17:30", "02/05/1991 08:00"])
    assert (american.kind, american.format) == ("time", "month-day-year")
    either = look("a", ["03.04.1990", "05.06.1991"])
    assert either.column is not None and either.column.format == "day-month-year"
    assert "is the format right" in either.says and "is the format right" not in german.says
    assert column(["31.01.1990", "01/31/1990"]).categories  # of two orders: no date
    assert column(["01.02", "03.04"]).kind == ""
    row = Schema(
        name="a",
        shape=(1,),
        classes=("0", "1"),
        records=1,
        low=-1,
        high=1,
        columns=(replace(american, low="1990-01-31T17:30:00"),),
    )
    assert encode_rows({"a": ["01/31/1990 17:30", "31/01/1990", "1992-01-01"]}, row).ravel().tolist() == [-1, -1, 1]


def test_a_format_belongs_to_its_kind() -> None:
    Column(name="a", kind="date", format="day-month-year", low="1990-01-01", high="1999-12-31")
    for wrong in ({"kind": "date", "format": "currency"}, {"kind": "", "format": "day-month-year"}):
        with pytest.raises(BadInput, match="format of column 'a'"):
            Column(name="a", low="1990-01-01", high="1999-12-31", **wrong)


def test_dates() -> None:
    day = column(["2019-05-17", "2021-01-01", "2019-05-17"])
    assert (day.kind, day.low, day.high) == ("date", "2019-01-01", "2021-12-31")
    assert column(["2019-05-17 00:00:00", "2021-01-01T00:00:00"]).kind == "date"
    stamp = column(["2019-05-17 10:00:00", "2019-06-01"])
    assert (stamp.kind, stamp.low, stamp.high) == ("time", "2019-01-01T00:00:00", "2019-12-31T23:59:59")
    assert column(["20190517", "20200101"]).integer
    assert column(["2019-05-17", "soon", "2019-05-17"]).categories


def test_a_value_that_many_records_have_is_proposed() -> None:
    numbers = [0] * 30 + list(range(1000, 1070))
    found = look("gain", [str(number) for number in numbers])
    assert found.column is not None and found.column.special == (0,) and "a fifth" in found.says
    assert column([-1.5] * 30 + [value / 7 for value in range(1, 60)]).special == (-1.5,)
    days = ["1900-01-01"] * 30 + [f"20{year:02}-03-0{day}" for year in range(20) for day in range(1, 5)]
    assert column(days).special == ("1900-01-01",)
    assert not column(numbers[25:]).special  # a fifth of them have it not
    assert not column([0] * 30 + list(range(70))).special  # not wide
    assert not column([0] * 30 + [1000, 2000, 3000]).special  # few values


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("a", ["", " ", "NA"], "has no value"),
        ("a", ["inf", "-inf"], "no finite number"),
        ("a", [f"u{place}" for place in range(20)], "identifier"),
        ("patient_id", [str(7 * place) for place in range(20)], "identifier"),
        ("a", [str(place) for place in range(1, 201)], "identifier"),
        ("a", [f"was seen on the ward {place}" for place in range(25)], "free text"),
        ("a", ["x" * 1001, "y"], "free text"),
        ("a", [f"u{place % 150}" for place in range(300)], "150 different texts"),
        ("a", [f"u{place % 1001}" for place in range(9000)], "1001 different texts"),
    ],
)
def test_what_is_left_out_and_why(name: str, cells: list[str], why: str) -> None:
    found = look(name, cells)
    assert found.column is None and why in found.says
    assert not any(cell in found.says for cell in cells if len(cell) > 3)


def test_what_is_kept_and_said() -> None:
    many = look("a", [f"c{place % 400}" for place in range(2000)])
    assert many.column is not None and len(many.column.categories) == 400 and "(400)" in many.says
    once = look("a", ["5", "5", ""])
    assert once.column == Column(name="a", categories=("5",), missing=True) and "Only one value" in once.says
    answer = look("a", ["True", "False", "True"])
    assert answer.column is not None and answer.column.categories == ("False", "True") and "yes or no" in answer.says
    assert column([f"u{place}" for place in range(19)]).categories  # so few rows say nothing
    assert column(np.random.default_rng(0).permutation(1000)[:300], "salary").integer


@given(st.lists(st.text(max_size=8) | st.floats().map(str) | st.integers().map(str) | st.dates().map(str), max_size=40))
def test_any_cells_can_be_looked_at(cells: list[str]) -> None:
    found = look("a", cells)
    assert found.says or found.column is not None


def test_examples() -> None:
    assert doctest.testmod(rounding).failed == 0
