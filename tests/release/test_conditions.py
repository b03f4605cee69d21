"""Conditions on rows: read as they are meant, refused in a sentence, and the same for drawing and for checking."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from limbeck.data.table import encode_rows
from limbeck.errors import BadInput
from limbeck.methods.mosaic.limits import Limit
from limbeck.privacy.schema import Column, Schema
from limbeck.release.conditions import read_conditions
from people import SCHEMA

ROWS = {
    "age": [17, 30, 60, 90],
    "gain": [None, 0, 5000, 99_999],
    "price": [-2.5, 0.0, 3.5, 100.0],
    "city": ["Rome", None, "Oslo", "missing"],
    "grade": ["low", "middle", "high", "top"],
}
Y = np.array([0, 1, 2, 1])


def held(*where: str, label: str | None = None) -> list[int]:
    """Which of the four rows keep to it."""
    conditions = read_conditions(where, SCHEMA, label)
    return np.flatnonzero(conditions.hold(encode_rows(ROWS, SCHEMA), Y)).tolist()


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("age>30", [2, 3]),
        ("age >= 30", [1, 2, 3]),
        (" age<30.5 ", [0, 1]),
        ("age<=17", [0]),
        ("age = 60", [2]),
        ("age==60", [2]),
        ("age != 6e1", [0, 1, 3]),
        ("age=60.5", []),
        ("gain>=0", [1, 2, 3]),
        ("gain!=0", [2, 3]),  # a gap is no number that differs
        ("gain = missing", [0]),
        ("gain != missing", [1, 2, 3]),
        ("price<3.5", [0, 1]),
        ("price<=-2.5", [0]),
        ("price>=100", [3]),
        ("city=Rome", [0]),
        ("city != Rome", [2, 3]),
        ("city = missing", [1]),
        ('city = "missing"', [3]),
        ("city != 'missing'", [0, 2]),
        ("grade>low", [1, 2, 3]),
        ("grade <= middle", [0, 1]),
        ("grade != high", [0, 1, 3]),
        ("paid = yes", [1, 3]),
        ("paid != yes", [0, 2]),
        ("paid = <=1", [2]),
        ("paid=<=1", [2]),
    ],
)
def test_every_operator_on_every_kind_of_column(where: str, rows: list[int]) -> None:
    assert held(where) == rows


def test_all_of_them_count() -> None:
    assert held("age>17", "age<90", "city != Oslo") == []
    assert held("age>17", "paid=yes") == [1, 3] and held("age>17", "paid=yes", "gain>0") == [3]
    assert held("age>17", label="yes") == [1, 3] and held("paid != yes", label="yes") == []
    assert held() == [0, 1, 2, 3] and not read_conditions((), SCHEMA)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("", "A condition is COLUMN OPERATOR VALUE"),
        ("age", "A condition is COLUMN OPERATOR VALUE"),
        ("> 60", "A condition is COLUMN OPERATOR VALUE"),
        ("age ! 60", "A condition is COLUMN OPERATOR VALUE"),
        ("age ~ 60", "A condition is COLUMN OPERATOR VALUE"),
        ("agee>60", "There is no column 'agee'. The columns are: age, gain, price, city, grade, paid."),
        ("AGE>60", "There is no column 'AGE'"),
        ("age>", "compared with ''"),
        ("age>old", "'age' is a number, and in 'age>old' it is compared with 'old'"),
        ("age>nan", "compared with 'nan'"),
        ("age>inf", "compared with 'inf'"),
        ("age><3", "compared with '<3'"),
        ("age=missing", "does not say that 'age' may be missing"),
        ("gain>missing", "ask for gain = or != missing"),
        ("city>Rome", "have no order"),
        ("paid<yes", "have no order"),
        ("city=Lima", "'city' is never 'Lima'. Its values are: Rome, Oslo, missing, or missing."),
        ("grade>best", "'grade' is never 'best'"),
        ("paid=maybe", "'paid' is never 'maybe'. Its values are: no, yes, <=1."),
        ("age>90", "By the schema 'age' lies in 17 ... 90, so no row keeps to 'age>90'"),
        ("age<=16", "no row keeps to"),
        ("price=101", "no row keeps to"),
    ],
)
def test_what_cannot_be_meant_is_refused(where: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_conditions([where], SCHEMA)
    assert words in refused.value.message and refused.value.exit_code == 2


def test_images_and_a_bare_text_are_refused() -> None:
    image = Schema(name="scans", shape=(1, 8, 8), classes=("a", "b"), records=10, low=0, high=255)
    with pytest.raises(BadInput, match=r"no columns to ask about\. Choose a class with --class"):
        read_conditions(["age>6"], image)
    for wrong in ("age>60", [60], [None]):
        with pytest.raises(BadInput, match="takes a list"):
            read_conditions(wrong, SCHEMA)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no class 'maybe'; its classes are: no, yes"):
        read_conditions([], SCHEMA, "maybe")


def test_white_space_around_a_name_may_be_left_out() -> None:
    columns = (Column(name=" lead ", low=0, high=9, integer=True), Column(name="le", low=0, high=9))
    schema = dataclasses.replace(SCHEMA, columns=columns, shape=(2,))
    for text in ("lead>=4", " lead  >= 4", "  lead >=4 "):
        (found,) = read_conditions([text], schema).columns
        assert found.column.name == " lead " and found.number == 4
    twins = tuple(Column(name=name, low=0, high=9, integer=True) for name in (" lead ", "lead"))
    (found,) = read_conditions(["lead>=4"], dataclasses.replace(schema, columns=twins)).columns
    assert found.column.name == "lead"


def test_names_may_hold_operators() -> None:
    columns = (Column(name="a", low=0, high=9), Column(name="a=b", low=0, high=9), Column(name="a>1", low=0, high=9))
    schema = dataclasses.replace(SCHEMA, columns=columns, shape=(3,))
    for text, name in (("a=b>3", "a=b"), ("a>1=2", "a>1"), ("a>1", "a"), ("a = 1", "a")):
        (found,) = read_conditions([text], schema).columns
        assert found.column.name == name


def test_a_table_without_names_has_x0_and_x1() -> None:
    schema = Schema(name="own", shape=(2,), classes=("a", "b"), records=10, low=0, high=10)
    conditions = read_conditions(["x1 >= 5", "label=b"], schema)
    x = np.array([[0, 0.1], [0, -0.1], [0, 0.1]], dtype=np.float32)
    assert conditions.hold(x, np.array([1, 1, 0])).tolist() == [True, False, False]
    assert conditions.limits() == {1: Limit(low=5.0, gaps=False)}


def test_limits_of_one_column_go_together() -> None:
    found = read_conditions(["age>60", "age<=70.5", "age != 65", "gain = missing", "grade>low"], SCHEMA).limits()
    assert found == {
        0: Limit(low=61, high=70.5, without=frozenset([65.0]), gaps=False),
        1: Limit(values=False),
        4: Limit(low=1, gaps=False),
    }


DATED = Schema(
    name="visits",
    shape=(4,),
    classes=("a", "b"),
    records=100,
    low=-1.0,
    high=1.0,
    columns=(
        Column(name="day", kind="date", low="2020-01-01", high="2020-12-31", missing=True),
        Column(name="at", kind="time", low="2020-01-01T00:00:00", high="2020-01-02T00:00:00"),
        Column(name="paid", low=0, high=10, digits=2),
    ),
    augmentation=(),
)


def test_dates_time_stamps_and_digits_are_compared_as_they_are_shown() -> None:
    cells = {
        "day": ["2020-03-01", "2020-03-02", None],
        "at": ["2020-01-01T00:01:00", "2020-01-01T12:00:00", "2020-01-02T00:00:00"],
        "paid": [0.07, 5.0, 10.0],
    }
    x, y = encode_rows(cells, DATED), np.zeros(3, dtype=np.int64)
    for where, expected in (
        ("day >= 2020-03-02", [False, True, False]),
        ("day != 2020-03-02", [True, False, False]),
        ("day = missing", [False, False, True]),
        ("at < 2020-01-01T12:00:00", [True, False, False]),
        ("paid = 0.07", [True, False, False]),
        ("paid > 5", [False, False, True]),
    ):
        assert read_conditions([where], DATED).hold(x, y).tolist() == expected, where


def test_no_row_at_all_keeps_to_anything() -> None:
    none = np.zeros((0, sum(column.width for column in SCHEMA.columns)), dtype=np.float32)
    for where in ("city = Rome", "gain > 5", "age != 30", "gain = missing"):
        assert read_conditions([where], SCHEMA).hold(none, np.zeros(0, dtype=np.int64)).tolist() == []


@pytest.mark.parametrize(
    ("where", "said"),
    [("day > soon", "of the kind date, such as 2020-01-01"), ("day < 2019-01-01", "2020-01-01 ... 2020-12-31")],
)
def test_what_is_no_date_or_outside_of_the_range_is_refused(where: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        read_conditions([where], DATED)
