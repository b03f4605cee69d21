from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.data import table
from limbeck.data.named import NAMED
from limbeck.errors import BadInput, DataNotFound, DataUnreadable
from limbeck.privacy.schema import Schema


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
