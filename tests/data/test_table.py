from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.data import table
from limbeck.data.named import NAMED
from limbeck.errors import BadInput, DataNotFound, DataUnreadable
from limbeck.privacy.schema import Column, Schema


def save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_are_encoded_by_the_schema(tmp_path: Path, people: Schema) -> None:
    path = save(tmp_path / "a.csv", "buys,age,size,colour,height,note\nyes, 25,M,green,1.5,x\nno,100,L,red,2,y\n")
    records = table.read(path, people)
    assert records.x.dtype == np.float32 and records.y.tolist() == [1, 0]
    np.testing.assert_allclose(records.x[0], [-0.5, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(records.x[1], [1, 0, 0, 1, 1, 1])


def test_odd_cells_are_clamped_silently(tmp_path: Path, people: Schema) -> None:
    rows = ["yes,999,M,pink,nan", "yes,-4,,,", "no,old,XXL,red,inf", "no,12"]
    x = table.read(save(tmp_path / "a.csv", "buys,age,size,colour,height\n" + "\n".join(rows)), people).x
    assert np.isfinite(x).all() and np.abs(x).max() <= 1
    np.testing.assert_allclose(x[0], [1, 0, 0, 0, 0, -1])
    np.testing.assert_allclose(x[1], [-1, 0, 0, 0, -1, -1])
    np.testing.assert_allclose(x[2], [-1, 0, 0, 1, -1, 1])
    np.testing.assert_allclose(x[3, 1:], [0, 0, 0, -1, -1])


def test_bytes_that_are_no_text_do_not_raise(tmp_path: Path, people: Schema) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfbuys,age,size,colour,height\r\nyes,\xff\xfe,M,\xc3,1\r\n")
    assert len(table.read(path, people)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("buys,age,size,colour\nyes,1,M,red\n", "no column height"),
        ("age,size,colour,height\n1,M,red,1\n", "no column buys"),
        ("buys,age,size,colour,height\nmaybe,1,M,red,1\n", "not a class of the schema"),
        ("buys,age,size,colour,height\n", "holds no record"),
        ("buys,buys,age\n", "distinct column names"),
        ("", "needs a header line"),
    ],
)
def test_bad_tables(tmp_path: Path, people: Schema, text: str, message: str) -> None:
    path = save(tmp_path / "a.csv", text)
    with pytest.raises(DataUnreadable, match=message) as caught:
        table.read(path, people)
    assert str(path) in caught.value.message and "maybe" not in caught.value.message


def test_schema_must_fit_a_table(tmp_path: Path, gray: Schema, people: Schema) -> None:
    path = save(tmp_path / "a.csv", "age,label\n1,cat\n")
    with pytest.raises(BadInput, match="lists no columns"):
        table.read(path, gray)
    with pytest.raises(DataNotFound):
        table.read(tmp_path / "none.csv", people)
    with pytest.raises(BadInput, match="cannot be decoded"):
        table.decode_rows(np.zeros((2, 5)), people)


@pytest.mark.parametrize("name", ["adult", "adult-ordinal"])
@given(data=st.data())
def test_decode_undoes_encode(name: str, data: st.DataObject) -> None:
    schema = NAMED[name].schema
    rows = {
        column.name: [
            data.draw(st.sampled_from(column.categories))
            if column.categories
            else data.draw(st.integers(int(column.low or 0), int(column.high or 0)))
        ]
        for column in schema.columns
    }
    decoded = table.decode_rows(table.encode_rows(rows, schema), schema)
    assert {key: value.tolist() for key, value in decoded.items()} == rows


@given(st.lists(st.floats(allow_nan=True, width=32), min_size=6, max_size=6))
def test_every_vector_decodes_within_the_ranges(row: list[float]) -> None:
    schema = NAMED["adult-ordinal"].schema
    decoded = table.decode_rows(np.array([[*row, *row, *row[:2]]]), schema)
    for column in schema.columns:
        value = decoded[column.name][0]
        assert value in column.categories if column.categories else column.low <= value <= column.high


def round_trip(column: Column, cells: list[Any]) -> list[Any]:
    """What cells come back as, through the single precision that records are kept in."""
    schema = Schema(name="one", shape=(column.width,), classes=("a", "b"), records=9, columns=(column,))
    encoded = table.encode_rows({column.name: cells}, schema)
    assert encoded.dtype == np.float32 and np.abs(encoded).max() <= 1
    return list(table.decode_rows(encoded, schema)[column.name].tolist())


def test_decimals_come_back_with_their_digits() -> None:
    cells = [0.07, 12.5, 99.99, 0.0, 1000.0]
    assert round_trip(Column(name="price", low=0, high=1000, digits=2), cells) == cells
    assert round_trip(Column(name="price", low=0.07, high=0.29, digits=2), [0, 0.07, 0.118, 1]) == [
        0.07,
        0.07,
        0.12,
        0.29,
    ]
    assert round_trip(Column(name="price", low=0.005, high=0.994, digits=2), [0.0, 2.0]) == [0.01, 0.99]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e9), st.floats(0, 1), st.booleans())
def test_special_values_come_back_exactly(low: float, spread: float, share: float, integer: bool) -> None:
    high = low + spread
    point = min(max(low + share * spread, low), high)
    if integer:
        low, high = np.floor(low), np.floor(low) + np.ceil(spread) + 1
        point = float(np.clip(np.rint(low + share * (high - low)), low, high))
    column = Column(name="a", low=low, high=high, special=(point,), integer=integer)
    assert round_trip(column, [point]) == [point]


def test_dates_come_back_as_dates() -> None:
    born = Column(name="born", kind="date", low="1900-01-01", high="2030-12-31")
    days = [date(1900, 1, 1), date(1969, 12, 31), date(2000, 2, 29), date(2030, 12, 31)]
    assert round_trip(born, days) == days
    assert round_trip(born, [str(day) for day in days]) == days
    assert round_trip(born, [datetime(2000, 2, 29, 23, 59), "2000-02-29T10:00:00Z"]) == [date(2000, 2, 29)] * 2
    assert round_trip(born, ["1812-06-24", "soon", None, 7]) == [date(1900, 1, 1)] * 4
    seen = Column(name="seen", kind="time", low="2024-01-01", high="2024-12-31T23:59:59")
    stamps = [datetime(2024, 1, 1), datetime(2024, 7, 1, 12, 30, 15), datetime(2024, 12, 31, 23, 59, 59)]
    for made, stamp in zip(round_trip(seen, stamps), stamps, strict=True):
        assert abs((made - stamp).total_seconds()) <= 2  # a year has more seconds than single precision has numbers


def test_what_the_schema_does_not_know_is_missing_where_that_may_be() -> None:
    nothing = [None, "", " ", float("nan"), "nan", "n/a"]
    number = Column(name="a", low=-1, high=1, special=(0,), missing=True)
    assert round_trip(number, [*nothing, 0, 2]) == [None] * 6 + [0, 1]
    day = Column(name="a", kind="date", low="2000-01-01", high="2001-01-01", missing=True)
    assert round_trip(day, [*nothing, "2000-05-05"]) == [None] * 6 + [date(2000, 5, 5)]
    for ordinal in (False, True):
        kind = Column(name="a", categories=("x", "y"), ordinal=ordinal, missing=True)
        assert round_trip(kind, [*nothing, "y", "z"]) == [None] * 6 + ["y", None]


ANYTHING = (
    st.none() | st.text() | st.floats() | st.integers() | st.dates() | st.datetimes() | st.binary() | st.booleans()
)


@given(st.lists(ANYTHING, min_size=1, max_size=20), st.booleans())
def test_no_cell_raises_in_a_column_of_any_kind(cells: list[Any], missing: bool) -> None:
    for column in (
        Column(name="a", kind="date", low="1990-01-01", high="2020-12-31", special=("2000-01-01",), missing=missing),
        Column(name="a", kind="time", low="1990-01-01", high="2020-12-31T12:00:00", missing=missing),
        Column(name="a", low=-5, high=5, digits=3, special=(0,), missing=missing),
    ):
        made = round_trip(column, cells)
        assert all(value is None for value in made if not isinstance(value, float | date)) and (
            missing or None not in made
        )
