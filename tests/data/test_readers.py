from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from limbeck.data import arrays, folder, idx, images, open_source, parquet
from limbeck.data.records import Array
from limbeck.errors import BadInput, DataNotFound, DataUnreadable
from limbeck.privacy.schema import Schema


def save_npz(path: Path, **entries: Any) -> Path:
    np.savez(path, **entries)
    return path


# --- .npz ---


@pytest.mark.parametrize("shape", [(2, 1, 4, 5), (2, 4, 5), (2, 4, 5, 1)])
def test_npz_shapes(tmp_path: Path, gray: Schema, shape: tuple[int, ...]) -> None:
    x = np.arange(40, dtype=np.uint8).reshape(shape)
    records = arrays.read(save_npz(tmp_path / "a.npz", x=x, y=np.array([0, 1])), gray)
    assert records.x.shape == (2, 1, 4, 5) and records.x.dtype == np.uint8 and records.y.dtype == np.int64
    np.testing.assert_array_equal(records.x.ravel(), np.arange(40))


def test_npz_channels_last(tmp_path: Path, colour: Schema) -> None:
    x = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3)).astype(np.uint8)
    records = arrays.read(save_npz(tmp_path / "a.npz", x=x, y=np.array(["dog", "cat"])), colour)
    np.testing.assert_array_equal(records.x[1, 2], x[1, :, :, 2])
    assert records.y.tolist() == [1, 0]


def test_non_finite_values_do_not_raise(tmp_path: Path, gray: Schema) -> None:
    x = np.full((2, 1, 4, 5), np.nan)
    x[1] = 1e300  # infinite as a float32
    records = arrays.read(save_npz(tmp_path / "a.npz", x=x, y=np.array([0, 1])), gray)
    assert records.x.dtype == np.float32 and np.isnan(records.x[0]).all() and np.isinf(records.x[1]).all()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"x": np.zeros((2, 1, 4, 4)), "y": np.array([0, 1])}, "records of shape"),
        ({"x": np.zeros((2, 1, 4, 5)), "y": np.array([0])}, "2 records but 1 labels"),
        ({"x": np.zeros((2, 1, 4, 5)), "y": np.array([0, 2])}, r"labels outside 0\.\.1"),
        ({"x": np.zeros((2, 1, 4, 5)), "y": np.array([0, -1])}, r"labels outside 0\.\.1"),
        ({"x": np.zeros((2, 1, 4, 5)), "y": np.array(["cat", "cow"])}, "not a class of the schema"),
        ({"x": np.zeros((2, 1, 4, 5)), "y": np.array([0.5, 1])}, "labels of type float64"),
        ({"x": np.zeros((2, 1, 4, 5)), "y": np.zeros((2, 2), int)}, "labels of shape"),
        ({"x": np.zeros((2, 1, 4, 5), complex), "y": np.array([0, 1])}, "values of type complex128"),
        ({"x": np.zeros((0, 1, 4, 5)), "y": np.zeros(0, int)}, "holds no record"),
        ({"x": np.array([None, "a"]), "y": np.array([0, 1])}, "not a readable .npz"),
        ({"images": np.zeros(3)}, "no array x and y"),
    ],
)
def test_bad_npz(tmp_path: Path, gray: Schema, entries: dict[str, Any], message: str) -> None:
    path = save_npz(tmp_path / "a.npz", **entries)
    with pytest.raises(DataUnreadable, match=message) as caught:
        arrays.read(path, gray)
    assert str(path) in caught.value.message and "cow" not in caught.value.message


def test_damaged_npz(tmp_path: Path, gray: Schema) -> None:
    path = save_npz(tmp_path / "a.npz", x=np.zeros((2, 1, 4, 5)), y=np.array([0, 1]))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataUnreadable):
        arrays.read(path, gray)
    with pytest.raises(DataNotFound):
        arrays.read(tmp_path / "none.npz", gray)
    np.save(tmp_path / "single.npy", np.zeros(3))
    with pytest.raises(DataUnreadable, match="single array"):
        arrays.read(tmp_path / "single.npy", gray)


# --- folders of images ---


def test_folder(class_folder: Path, gray: Schema) -> None:
    (class_folder / "cat" / "Thumbs.db").write_bytes(b"x")
    (class_folder / ".hidden").mkdir()
    records = folder.read(class_folder, gray)
    assert records.y.tolist() == [0, 0, 0, 1, 1]
    assert records.x[:, 0, 0, 0].tolist() == [0, 10, 20, 0, 10]


def test_folder_with_splits(tmp_path: Path, class_folder: Path, gray_file: Path) -> None:
    root = tmp_path / "both"
    root.mkdir()
    class_folder.rename(root / "train")
    assert len(open_source(str(root), schema_path=gray_file).load()) == 5
    with pytest.raises(DataNotFound, match="no test split"):
        open_source(f"{root}:test", schema_path=gray_file)
    (root / "train" / "dog").rename(root / "dog")
    (root / "test").mkdir()
    (root / "dog").rename(root / "test" / "dog")
    assert open_source(f"{root}:test", schema_path=gray_file).load().y.tolist() == [1, 1]


def test_gray_images_in_a_colour_set_become_colour(class_folder: Path, colour: Schema) -> None:
    assert folder.read(class_folder, colour).x.shape == (5, 3, 4, 5)


def test_bad_folders(tmp_path: Path, class_folder: Path, gray: Schema) -> None:
    with pytest.raises(DataUnreadable, match="holds no image"):
        (tmp_path / "empty").mkdir()
        folder.read(tmp_path / "empty", gray)
    wrong = class_folder / "cat" / "9.png"
    Image.fromarray(np.zeros((7, 6), np.uint8)).save(wrong)
    with pytest.raises(DataUnreadable, match=r"9\.png is 6 x 7 pixels, but the schema says 5 x 4"):
        folder.read(class_folder, gray)
    wrong.write_bytes(b"\x89PNG broken")
    with pytest.raises(DataUnreadable, match=r"9\.png is not a readable image"):
        folder.read(class_folder, gray)
    wrong.unlink()
    (class_folder / "cow").mkdir()
    with pytest.raises(DataUnreadable, match="1 not named like a class") as caught:
        folder.read(class_folder, gray)
    assert "cow" not in caught.value.message


def test_truncated_image(class_folder: Path, gray: Schema) -> None:
    file = class_folder / "cat" / "0.png"
    file.write_bytes(file.read_bytes()[:-25])
    with pytest.raises(DataUnreadable, match="not a readable image"):
        folder.read(class_folder, gray)


def test_deep_images_need_a_deep_range(tmp_path: Path, gray: Schema) -> None:
    file = tmp_path / "deep.png"
    Image.fromarray(np.full((4, 5), 40_000, dtype=np.uint16)).save(file)
    with pytest.raises(DataUnreadable, match="more than 8 bits"):
        images.decode(file, gray, str(file))
    deep = Schema(name="deep", shape=(1, 4, 5), classes=("a", "b"), records=2, high=65535, low=0.0)
    assert images.decode(file, deep, str(file)).max() == 40_000


# --- IDX ---


def save_idx(path: Path, array: Array) -> Path:
    data = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def idx_folder(tmp_path: Path) -> Path:
    root = tmp_path / "idx"
    root.mkdir()
    for prefix, ending, count in (("train", "", 3), ("t10k", ".gz", 2)):
        save_idx(root / f"{prefix}-images-idx3-ubyte{ending}", np.arange(count * 20).reshape(count, 4, 5))
        save_idx(root / f"{prefix}-labels-idx1-ubyte{ending}", np.arange(count) % 2)
    return root


def test_idx_splits_and_files(idx_folder: Path, gray_file: Path) -> None:
    train = open_source(str(idx_folder), schema_path=gray_file).load()
    test = open_source(f"{idx_folder}:test", schema_path=gray_file).load()
    single = open_source(str(idx_folder / "t10k-images-idx3-ubyte.gz"), schema_path=gray_file).load()
    assert train.y.tolist() == [0, 1, 0] and train.x[2, 0, 3, 4] == 59
    assert test.y.tolist() == single.y.tolist() == [0, 1]
    with pytest.raises(BadInput, match="holds labels"):
        open_source(str(idx_folder / "train-labels-idx1-ubyte"), schema_path=gray_file)


def test_bad_idx(idx_folder: Path, gray: Schema) -> None:
    file = idx_folder / "train-images-idx3-ubyte"
    whole = file.read_bytes()
    for content, message in (
        (whole[:-1], "its header announces"),
        (whole[:9], "ends inside its header"),
        (b"PK\3\4" + whole, "not an IDX file"),
        (b"", "not an IDX file"),
        (gzip.compress(whole)[:-9], "cannot be read"),
    ):
        file.write_bytes(content)
        with pytest.raises(DataUnreadable, match=message):
            idx.read(file, gray)
    save_idx(file, np.zeros((2, 4, 5)))
    with pytest.raises(DataUnreadable, match="2 records but 3 labels"):
        idx.read(file, gray)
    (idx_folder / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(DataNotFound, match="no labels file"):
        idx.read(file, gray)


def test_idx_folder_without_the_split(idx_folder: Path, gray_file: Path) -> None:
    (idx_folder / "t10k-images-idx3-ubyte.gz").unlink()
    with pytest.raises(DataNotFound, match="test split"):
        open_source(f"{idx_folder}:test", schema_path=gray_file)


# --- Parquet ---


def save_parquet(path: Path, cells: list[Any], labels: list[Any], name: str = "image") -> Path:
    pq.write_table(pa.table({name: cells, "label": labels}), path)
    return path


@pytest.fixture
def cells(class_folder: Path) -> list[dict[str, Any]]:
    return [{"bytes": file.read_bytes(), "path": None} for file in sorted((class_folder / "cat").iterdir())]


def test_parquet(tmp_path: Path, gray: Schema, cells: list[Any]) -> None:
    for name in ("image", "img"):
        records = parquet.read(save_parquet(tmp_path / "a.parquet", cells, [1, 0, 1], name), gray)
        assert records.y.tolist() == [1, 0, 1] and records.x[:, 0, 0, 0].tolist() == [0, 10, 20]
    records = parquet.read(save_parquet(tmp_path / "a.parquet", cells, ["dog", "cat", "dog"]), gray)
    assert records.y.tolist() == [1, 0, 1]


def test_parquet_folder(tmp_path: Path, gray_file: Path, cells: list[Any]) -> None:
    root = tmp_path / "set"
    root.mkdir()
    save_parquet(root / "train.parquet", cells, [1, 0, 1])
    save_parquet(root / "test.parquet", cells[:1], [0])
    assert len(open_source(str(root), schema_path=gray_file).load()) == 3
    assert len(open_source(f"{root}:test", schema_path=gray_file).load()) == 1


def test_bad_parquet(tmp_path: Path, gray: Schema, cells: list[Any]) -> None:
    path = tmp_path / "a.parquet"
    for content, labels, message in (
        (cells, [0, 1, 5], "labels outside"),
        (cells, [0, 1, None], "not a class|labels"),
        ([*cells[:2], {"bytes": b"junk", "path": None}], [0, 1, 0], "row 2 is not a readable image"),
        ([*cells[:2], {"bytes": None, "path": "x.png"}], [0, 1, 0], "row 2 holds no image bytes"),
    ):
        with pytest.raises(DataUnreadable, match=message):
            parquet.read(save_parquet(path, content, labels), gray)
    with pytest.raises(DataUnreadable, match="no column 'image'"):
        parquet.read(save_parquet(path, cells, [0, 1, 0], "picture"), gray)
    pq.write_table(pa.table({"image": cells}), path)
    with pytest.raises(DataUnreadable, match="no label column"):
        parquet.read(path, gray)
    path.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(DataUnreadable, match="not a readable Parquet"):
        parquet.read(path, gray)
    with pytest.raises(DataNotFound):
        parquet.read(tmp_path / "none.parquet", gray)
