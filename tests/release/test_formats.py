from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from limbeck.data import images, parquet, table
from limbeck.data.records import Array
from limbeck.errors import BadInput, OutputFault
from limbeck.files import write_atomic
from limbeck.privacy.schema import Column, Schema
from limbeck.release import formats as writer
from schemas import COLOUR, PEOPLE


@pytest.fixture
def colour() -> Schema:
    return COLOUR


@pytest.fixture
def people() -> Schema:
    return PEOPLE


@pytest.fixture
def picture_set(colour: Schema) -> tuple[Array, Array]:
    x = np.random.default_rng(1).uniform(-1, 1, (4, *colour.shape)).astype(np.float32)
    return x, np.array([0, 1, 1, 0])


def test_npz_reads_back(tmp_path: Path, picture_set: tuple[Array, Array]) -> None:
    x, y = picture_set
    writer.write_npz(tmp_path / "a.npz", x, y)
    writer.write_npz(tmp_path / "b.npz", x, y)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as stored:
        assert stored.files == ["x", "y"] and stored["x"].dtype == np.float32 and stored["y"].dtype == np.int64
        np.testing.assert_array_equal(stored["x"], x)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == ["a.npz", "b.npz"]


def test_images_read_back(tmp_path: Path, colour: Schema, picture_set: tuple[Array, Array]) -> None:
    x, y = picture_set
    for name in ("a", "b"):
        writer.write_parquet(tmp_path / f"{name}.parquet", x, y, colour)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    records = parquet.read(tmp_path / "a.parquet", colour)
    assert records.y.tolist() == y.tolist()
    np.testing.assert_allclose(records.x / 127.5 - 1, x, atol=1 / 255 + 1e-6)
    features = json.loads(pq.read_schema(tmp_path / "a.parquet").metadata[b"huggingface"])["info"]["features"]
    assert features["label"] == {"_type": "ClassLabel", "names": ["cat", "dog"]}


def test_tables_read_back(tmp_path: Path, people: Schema) -> None:
    rows: dict[str, list[Any]] = {"age": [25, 99], "colour": ["red", "blue"], "size": ["L", "S"], "height": [1.25, 2.0]}
    x = table.encode_rows(rows, people)
    writer.write_parquet(tmp_path / "a.parquet", x, np.array([1, 0]), people)
    stored = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert stored == {**rows, "buys": ["yes", "no"]}
    records = parquet.read(tmp_path / "a.parquet", people)
    np.testing.assert_array_equal(records.x, x)
    assert records.y.tolist() == [1, 0]


def test_every_column_has_its_type_also_where_all_of_it_is_missing(tmp_path: Path) -> None:
    columns = (
        Column(name="born", kind="date", low="1900-01-01", high="2030-12-31", missing=True),
        Column(name="seen", kind="time", low="2024-01-01", high="2024-02-01", missing=True),
        Column(name="age", low=0, high=100, integer=True, missing=True),
        Column(name="price", low=0, high=10, digits=2, missing=True),
        Column(name="town", categories=("Bonn",), missing=True),
    )
    schema = Schema(name="t", shape=(10,), classes=("a", "b"), records=2, columns=columns)
    full: dict[str, Any] = {
        "born": date(1990, 5, 17), "seen": datetime(2024, 1, 5, 7, 30), "age": 41, "price": 1.25, "town": "Bonn",
    }  # fmt: skip
    kinds = ["date32[day]", "timestamp[ms]", "int64", "double", "string"]
    for rows in ([full, dict.fromkeys(full)], [dict.fromkeys(full)]):
        x = table.encode_rows({name: [row[name] for row in rows] for name in full}, schema)
        writer.write_parquet(tmp_path / "a.parquet", x, np.zeros(len(rows)), schema)
        stored = pq.read_table(tmp_path / "a.parquet")
        assert [str(field.type) for field in stored.schema][:-1] == kinds
        assert stored.drop_columns(["label"]).to_pylist() == rows
        np.testing.assert_array_equal(parquet.read(tmp_path / "a.parquet", schema).x, x)
    features = json.loads(stored.schema.metadata[b"huggingface"])["info"]["features"]
    assert [features[column.name]["dtype"] for column in columns[:2]] == ["date32", "timestamp[ms]"]


def test_plain_vectors(tmp_path: Path) -> None:
    schema = Schema(name="v", shape=(2,), classes=("a", "b"), records=2, low=0, high=10)
    writer.write_parquet(tmp_path / "a.parquet", np.array([[-1.0, 1.0]]), np.array([1]), schema)
    assert pq.read_table(tmp_path / "a.parquet").to_pydict() == {"x0": [0.0], "x1": [10.0], "label": ["b"]}


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_of_any_channels(channels: int) -> None:
    schema = Schema(name="c", shape=(channels, 3, 2), classes=("a", "b"), records=2, low=0, high=255)
    values = np.linspace(-1.2, 1.2, channels * 6).reshape(schema.shape)
    values[0, 0, 0] = np.nan
    decoded = images.decode(images.encode_png(values), schema, "picture")
    np.testing.assert_array_equal(decoded.ravel()[[0, -1]], [0, 255])


def test_bad_sets(tmp_path: Path, colour: Schema, picture_set: tuple[Array, Array]) -> None:
    x, y = picture_set
    with pytest.raises(BadInput, match="4 records and y of 3"):
        writer.write_npz(tmp_path / "a.npz", x, y[:3])
    with pytest.raises(BadInput, match="do not fit the schema"):
        writer.write_parquet(tmp_path / "a.parquet", x[:, :1], y, colour)
    with pytest.raises(BadInput, match=r"must lie in 0\.\.1"):
        writer.write_parquet(tmp_path / "a.parquet", x, y + 1, colour)
    with pytest.raises(BadInput, match="1 to 4 channels"):
        images.encode_png(np.zeros((5, 2, 2)))
    assert not list(tmp_path.glob("a.*"))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputFault, match="No space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old" and [file.name for file in tmp_path.glob("*a.npz*")] == ["a.npz"]
    with pytest.raises(OutputFault):
        write_atomic(tmp_path / "no" / "folder", b"")
    rows = vectors(10)
    with pytest.raises(OutputFault, match="No space left"):
        writer.write_parquet(path, *rows)
    assert path.read_bytes() == b"old" and [file.name for file in tmp_path.glob("*a.npz*")] == ["a.npz"]


def vectors(count: int) -> tuple[Array, Array, Schema]:
    schema = Schema(
        name="v", shape=(3,), classes=("a", "b"), records=9, low=-1.0, high=1.0, label="l", augmentation=(),
        columns=(Column(name="n", low=0, high=9, integer=True, missing=True), Column(name="k", low=0, high=1)),
    )  # fmt: skip
    x = np.random.default_rng(0).uniform(-1, 1, (count, 3)).astype(np.float32)
    return x, np.arange(count) % 2, schema


def test_a_long_table_is_written_in_parts_and_a_short_one_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, schema = vectors(10)
    sizes = writer.write_parquet(tmp_path / "whole.parquet", x, y, schema)
    content = pq.read_table(tmp_path / "whole.parquet")
    pq.write_table(content, tmp_path / "plain.parquet", compression="zstd")
    assert (tmp_path / "plain.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert sizes.file == (tmp_path / "whole.parquet").stat().st_size and sizes.memory > 0
    monkeypatch.setattr(writer, "AT_ONCE", 4)
    writer.write_parquet(tmp_path / "parts.parquet", x, y, schema)
    assert pq.ParquetFile(tmp_path / "parts.parquet").num_row_groups == 3
    assert pq.read_table(tmp_path / "parts.parquet").equals(content)
    writer.write_parquet(tmp_path / "none.parquet", x[:0], y[:0], schema)
    assert pq.read_table(tmp_path / "none.parquet").schema.equals(content.schema)
