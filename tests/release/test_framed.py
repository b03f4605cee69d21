"""Frames in, frames out: the same kind, the same types, the same order, and the same values where the schema holds them."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frames import COLUMNS, SCHEMA, rows
from limbeck.data.frames import form_of, frame_source
from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema
from limbeck.release.framed import framed, to_arrow, to_pandas, to_polars, to_torch

# Types that each column may have, by the name of the column.
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "float32", "float64")
PANDAS: dict[str, tuple[Any, ...]] = {
    "ill": ("int64", "Int8", "bool", "boolean", "category", "string", "str", object, "float64"),
    "age": (*INTEGERS, "Int64", "UInt8", "Float64", "string", "int64[pyarrow]"),
    "visits": ("Int64", "Int8", "UInt16", "Float64", "float64", "string", "int64[pyarrow]", "double[pyarrow]"),
    "town": ("category", "string", "str", object, "string[pyarrow]"),
    "grade": ("category", "string", object),
    "ok": ("bool", "boolean", "category", object, "bool[pyarrow]"),
    "born": ("datetime64[ns]", "datetime64[s]", object, "date32[pyarrow]", "datetime64[us, Europe/Berlin]"),
    "seen": ("datetime64[ns]", "datetime64[us, UTC]", "datetime64[ms]", "timestamp[us][pyarrow]"),
    "price": (object, "float64", "Float32", "string"),
    "zip": ("category", "string", object),
}


def arrow_types() -> dict[str, tuple[Any, ...]]:
    words = (
        pa.string(),
        pa.large_string(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.uint32(), pa.large_string()),
    )
    return {
        "ill": (pa.int64(), pa.int8(), pa.float64(), pa.bool_()),
        "age": (pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.decimal128(6, 0)),
        "visits": (pa.int8(), pa.int64(), pa.float64()),
        "town": words,
        "grade": (*words, pa.dictionary(pa.int8(), pa.string(), ordered=True)),
        "ok": (pa.bool_(),),
        "born": (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin")),
        "seen": (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "Asia/Tokyo")),
        "price": (pa.decimal128(10, 2), pa.float64(), pa.decimal256(20, 3)),
        "zip": words,
    }


def back(frame: Any, schema: Schema = SCHEMA) -> Any:
    """Through the vault's encoding and out again."""
    found = frame_source(frame, schema).load()
    return framed(found.x, found.y, schema, form_of(frame))


def chosen(kinds: dict[str, tuple[Any, ...]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: st.sampled_from(each) for name, each in kinds.items()})


def pandas_frame(kinds: dict[str, Any], count: int = 12) -> Any:
    pd = pytest.importorskip("pandas")
    columns = {}
    for name, values in rows(count).items():
        dtype = kinds[name]
        if name in ("born", "seen") and ", " in str(dtype):
            zone = str(dtype).split(", ")[1].rstrip("]")
            moments = pd.Series(pd.to_datetime(pd.Series(values))).dt.tz_localize(zone)
            columns[name] = moments.astype(dtype)
        elif name in ("born", "seen") and dtype is not object and "pyarrow" not in str(dtype):
            columns[name] = pd.to_datetime(pd.Series(values)).astype(dtype)
        elif name == "price" and dtype is not object:
            texts = str(dtype) in ("string", "str")
            columns[name] = pd.Series([f"{value:.2f}" if texts else float(value) for value in values]).astype(dtype)
        elif name in ("age", "visits", "ill") and (dtype is object or dtype in ("string", "str", "category")):
            columns[name] = pd.Series([None if value is None else str(value) for value in values]).astype(dtype)
        else:
            columns[name] = pd.Series(values, dtype=object).astype(dtype)
    return pd.DataFrame(columns)


@settings(max_examples=40, deadline=None)
@given(chosen(PANDAS))
def test_a_pandas_frame_comes_back_as_it_went_in(kinds: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    frame = pandas_frame(kinds)
    found = back(frame)
    for name in ("town", "grade", "zip"):  # the declared categories, whichever occur
        if kinds[name] == "category":
            assert set(found[name].cat.categories) == set(next(c.categories for c in COLUMNS if c.name == name))
            frame[name] = frame[name].astype(found[name].dtype)
    pd.testing.assert_frame_equal(found, frame)


@settings(max_examples=40, deadline=None)
@given(chosen(arrow_types()))
def test_an_arrow_table_comes_back_as_it_went_in(kinds: dict[str, Any]) -> None:
    arrays = {}
    for name, values in rows(12).items():
        array = pa.array(values)
        if getattr(kinds[name], "tz", None) is not None:
            array = pa.compute.assume_timezone(array.cast(pa.timestamp("us")), kinds[name].tz)
        elif pa.types.is_decimal(array.type) and pa.types.is_floating(kinds[name]):
            array = pa.array([float(value) for value in values])
        elif pa.types.is_integer(array.type) and pa.types.is_decimal(kinds[name]):
            array = pa.array([Decimal(value) for value in values])
        arrays[name] = array.cast(kinds[name])
    table = pa.table(arrays)
    found = back(table)
    assert found.schema.equals(table.schema) and found.to_pylist() == table.to_pylist()


def polars_types(pl: Any) -> dict[str, tuple[Any, ...]]:
    return {
        "ill": (pl.Int64, pl.UInt8, pl.Boolean, pl.Float64),
        "age": (pl.Int8, pl.UInt16, pl.Int64, pl.Float32),
        "visits": (pl.Int8, pl.Int64, pl.Float64),
        "town": (pl.String, pl.Categorical, pl.Enum(["south", "north", "isle"])),
        "grade": (pl.String, pl.Enum(["low", "middle", "high"])),
        "ok": (pl.Boolean,),
        "born": (pl.Date, pl.Datetime("us"), pl.Datetime("ms")),
        "seen": (pl.Datetime("us"), pl.Datetime("ns"), pl.Datetime("us", "UTC")),
        "price": (pl.Decimal(10, 2), pl.Float64),
        "zip": (pl.String, pl.Categorical),
    }


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_polars_frame_comes_back_as_it_went_in(data: st.DataObject) -> None:
    pl = pytest.importorskip("polars")
    kinds = data.draw(chosen(polars_types(pl)))
    series = [pl.Series(name, values).cast(kinds[name]) for name, values in rows(12).items()]
    frame = pl.DataFrame(series)
    found = back(frame)
    assert found.schema == frame.schema and found.to_dicts() == frame.to_dicts()


def test_columns_that_the_schema_does_not_list_stay_out() -> None:
    table = pa.table({"secret": list(range(12)), **rows(12)})
    assert back(table).column_names == list(rows(1))


def test_categories_that_only_the_records_have_stay_out() -> None:
    """A dtype may list what a single record says. What comes back lists what the schema declares."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = rows(12) | {"town": ["isle", "north", "Zq7Secret"] * 4}
    frame = pd.DataFrame(
        table | {"town": pd.Categorical(table["town"], ordered=True), "age": pd.Categorical(table["age"])}
    )
    found = back(frame)
    assert found["town"].cat.categories.tolist() == ["isle", "north", "south"] and found["town"].cat.ordered
    assert found["age"].dtype == "int64"  # categories of numbers are the records' own
    polars = pl.DataFrame(table).with_columns(pl.col("town").cast(pl.Enum(["isle", "north", "Zq7Secret"])))
    assert back(polars).schema["town"] == pl.Enum(["isle", "north", "south"])
    named = pa.table(table).set_column(3, "town", pa.array(table["town"]).dictionary_encode())
    assert back(named).column("town").chunk(0).dictionary.to_pylist() == ["isle", "north", "south"]


def test_gaps_where_a_type_has_none() -> None:
    """The schema allows them, the frame's own type does not: the next wider type that does."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows(12)).fillna({"visits": 3.0}).astype({"visits": "int16", "town": "string"})
    records = frame_source(frame, SCHEMA).load()
    x = records.x.copy()
    x[0, 1:3] = 0, 1  # visits of the first row are missing
    found = framed(x, records.y, SCHEMA, form_of(frame))
    assert found["visits"].dtype == pd.Int16Dtype() and found["visits"].isna().tolist() == [True] + [False] * 11


def test_values_that_a_type_cannot_hold() -> None:
    schema = Schema(
        name="wide", shape=(1,), classes=("a", "b"), records=4, columns=(Column(name="n", low=0, high=1000, integer=True),),
        label="y", low=-1, high=1, augmentation=(),
    )  # fmt: skip
    table = pa.table({"n": pa.array([1, 2], pa.uint8()), "y": ["a", "b"]})
    x = np.array([[1.0], [-1.0]], dtype=np.float32)
    assert framed(x, np.array([0, 1]), schema, form_of(table)).column("n").to_pylist() == [1000, 0]


def test_a_release_without_a_frame_has_the_types_of_its_schema() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    records = frame_source(pa.table(rows(12)), SCHEMA).load()
    found = to_pandas(records.x, records.y, SCHEMA)
    assert [str(dtype) for dtype in found.dtypes] == [
        "int64", "Int64", "category", "category", "category", "datetime64[s]", "datetime64[s]", "float64", "category", "category",
    ]  # fmt: skip
    assert found["grade"].cat.ordered and not found["town"].cat.ordered
    assert found["ill"].cat.categories.tolist() == ["0", "1"] and pd.isna(found["visits"][0])
    polars = to_polars(records.x, records.y, SCHEMA)
    assert polars.schema["town"] == pl.Enum(["isle", "north", "south"]) and polars.schema["born"] == pl.Date
    assert to_arrow(records.x, records.y, SCHEMA).schema.field("town").type == pa.string()
    x, y = to_torch(records.x, records.y)[3]
    assert x.tolist() == records.x[3].tolist() and int(y) == 1


def test_the_same_rows_whatever_kind_is_asked_for() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    table = pa.table(rows(12))
    records = frame_source(table, SCHEMA).load()
    form = form_of(table)
    arrow = to_arrow(records.x, records.y, SCHEMA, form)
    assert to_polars(records.x, records.y, SCHEMA, form).columns == arrow.column_names
    assert to_pandas(records.x, records.y, SCHEMA, form).columns.tolist() == arrow.column_names


def test_pictures_are_no_frame() -> None:
    schema = Schema(name="scans", shape=(1, 2, 2), classes=("a", "b"), records=4, low=0, high=255)
    with pytest.raises(BadInput, match="holds pictures"):
        to_arrow(np.zeros((1, 1, 2, 2), np.float32), np.zeros(1, np.int64), schema)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_library_that_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pa.array(
        pytest.importorskip("pandas").Series([1])
    )  # Arrow looks for pandas once, and would stumble over the None below
    monkeypatch.setitem(sys.modules, name, None)
    ways = {"pandas": to_pandas, "polars": to_polars}
    with pytest.raises(BadInput, match=rf"{name} is not installed.*limbeck\[frames\].*to_arrow"):
        ways[name](np.zeros((1, SCHEMA.numbers), np.float32), np.zeros(1, np.int64), SCHEMA)


def test_objects_are_what_the_schema_says() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in rows(12).items()})
    found = back(frame)
    assert set(found.dtypes) == {np.dtype(object)}
    first = found.iloc[0].to_dict()
    assert first["ok"] is True and first["price"] == Decimal("0.25") and first["visits"] is None
    assert first["born"] == datetime.date(1990, 2, 28)
