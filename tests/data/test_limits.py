"""What a file would take is known from its header, and refused before it is unpacked."""

from __future__ import annotations

import doctest
import gzip
import struct
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import fuzz_files
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from limbeck.data import limits, open_source
from limbeck.data.draft import draft
from limbeck.errors import BadInput, DataUnreadable, LimbeckError, TooLarge

SCHEMA = 'name = "tiny"\nshape = [1, 4, 5]\nclasses = ["cat", "dog"]\nrecords = {records}\n'
TABLE = (
    'name = "people"\nshape = [1]\nclasses = ["no", "yes"]\nrecords = {records}\nlow = -1\nhigh = 1\nlabel = "buys"\n'
    'augmentation = []\n[[columns]]\nname = "town"\ncategories = ["Bonn"]\n'
)


@pytest.fixture
def schema(tmp_path: Path) -> Any:
    def write(records: int, text: str = SCHEMA) -> Path:
        path = tmp_path / "schema.toml"
        path.write_text(text.format(records=records))
        return path

    return write


def refused(path: Path, schema: Path, label: str | None = None, kind: type[LimbeckError] = TooLarge) -> None:
    """Both ways to read it end with a sentence, at once, and without the memory that it asks for."""
    began = time.process_time()
    with pytest.raises(kind) as caught:
        draft(path, label)
    assert caught.value.exit_code == kind.exit_code
    with pytest.raises((kind, DataUnreadable)):
        open_source(str(path), schema_path=schema).load()
    assert time.process_time() - began < 2


@pytest.mark.parametrize("declared", [6, 200_000_000])
def test_gzipped_idx(tmp_path: Path, schema: Any, declared: int) -> None:
    count = 200_000_000  # 4 GB of zeros in 4 MB
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(struct.pack(">HBB3I", 0, 8, 3, count, 4, 5)) + fuzz_files.zeros(count * 20))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, count))
    if declared == 6:
        refused(path, schema(declared))
    else:  # the owner declares so many: what is missing is the labels
        began = time.process_time()
        with pytest.raises(TooLarge):
            draft(path)
        assert time.process_time() - began < 2


def test_a_gzip_file_that_goes_on_after_its_numbers(tmp_path: Path, schema: Any) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(struct.pack(">HBB3I", 0, 8, 3, 6, 4, 5)) + fuzz_files.zeros(1 << 31))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 6) + bytes(6))
    refused(path, schema(6), kind=DataUnreadable)


@pytest.mark.parametrize("count", [10**9, 10**18, 2**62])
def test_an_announced_shape(tmp_path: Path, schema: Any, count: int) -> None:
    path = tmp_path / "own.npz"
    body = bytes(1000)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count}, 4, 5), }}\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", fuzz_files.headed(header, body))
        archive.writestr("y.npy", fuzz_files.npy(np.arange(6) % 2))
    refused(path, schema(6), kind=DataUnreadable)


def test_an_archive_of_zeros(tmp_path: Path, schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMBECK_MOST_BYTES", "30000000")
    path = tmp_path / "own.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 4, 5), }\n"
        with archive.open("x.npy", "w", force_zip64=True) as file:
            file.write(fuzz_files.headed(header, b""))
            for _ in range(20):
                file.write(bytes(1_000_000))
        archive.writestr("y.npy", fuzz_files.npy(np.zeros(1_000_000, np.uint8)))
    refused(path, schema(6))


def test_long_texts_in_a_dictionary_are_unpacked_once(tmp_path: Path, schema: Any) -> None:
    """300,000 rows of a text of a megabyte: 300 GB, or one text."""
    path = tmp_path / "own.parquet"
    places = pa.array(np.zeros(300_000, np.int32))
    for long in ("x" * 1_000_000, "1" * 1_000_000, b"\xff" * 1_000_000):
        town = pa.DictionaryArray.from_arrays(places, pa.array([long]))
        buys = pa.DictionaryArray.from_arrays(places, pa.array(["yes"]))
        pq.write_table(pa.table({"town": town, "age": town, "buys": buys}), path)
        began = time.process_time()
        read_whole(path, schema)
        assert time.process_time() - began < 10


def read_whole(path: Path, schema: Any) -> None:
    assert len(open_source(str(path), schema_path=schema(300_000, TABLE)).load()) == 300_000
    with pytest.raises(BadInput, match="has 1 class"):
        draft(path, "buys")


def test_far_more_rows_than_declared(tmp_path: Path, schema: Any) -> None:
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"town": ["Bonn"] * 5000, "buys": ["yes"] * 5000}), path)
    with pytest.raises(DataUnreadable, match="announces 5000 records, far more than the 40"):
        open_source(str(path), schema_path=schema(40, TABLE)).load()
    pq.write_table(pa.table({"town": ["Bonn"] * 300, "buys": ["yes"] * 300}), path)
    assert len(open_source(str(path), schema_path=schema(40, TABLE)).load()) == 300


def test_numbers_that_repeat(tmp_path: Path, schema: Any) -> None:
    """A column of one number in 50 million rows is a few kilobytes, and billions of bytes of texts."""
    path = tmp_path / "own.parquet"
    with pq.ParquetWriter(path, pa.schema({"town": pa.int8(), "buys": pa.int8()})) as writer:
        piece = pa.table({"town": np.zeros(10_000_000, np.int8), "buys": np.zeros(10_000_000, np.int8)})
        for _ in range(5):
            writer.write_table(piece)
    refused(path, schema(40, TABLE), "buys")


def test_a_million_columns(tmp_path: Path, schema: Any) -> None:
    path = tmp_path / "own.csv"
    path.write_text(",".join(f"c{place}" for place in range(1_000_000)) + "\n" + "1," * 999_999 + "1\n")
    began = time.process_time()
    with pytest.raises(TooLarge, match="1000000 columns; the limit is 50000"):
        draft(path, "c1")
    assert time.process_time() - began < 1
    with pytest.raises(TooLarge):
        open_source(str(path), schema_path=schema(40, TABLE)).load()


def test_a_wide_header_over_short_rows(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(",".join(f"c{place}" for place in range(40_000)) + "\n" + "1\n" * 40_000)
    with pytest.raises(DataUnreadable, match="much shorter than its header line"):
        draft(path, "c1")


def test_a_long_text_in_a_column_that_nobody_asked_for(tmp_path: Path, schema: Any) -> None:
    path = tmp_path / "own.csv"
    path.write_text("town,note,buys\nBonn," + "x" * 200_000 + ",yes\nBonn,y,no\n")
    assert open_source(str(path), schema_path=schema(40, TABLE)).load().y.tolist() == [1, 0]
    assert "Left out: column note" in draft(path, "buys")
    path.write_text("town,note,buys\nBonn," + "x" * (limits.MOST_LINE + 10) + ",yes\n")
    with pytest.raises(TooLarge, match="a line of more than"):
        draft(path, "buys")


def test_one_long_label_does_not_lengthen_all_others(tmp_path: Path, schema: Any) -> None:
    path = tmp_path / "own.csv"
    path.write_text("town,buys\n" + "Bonn,yes\n" * 8000 + "Bonn," + "x" * 1_000_000 + "\n")
    with pytest.raises(DataUnreadable, match="not a class"):
        open_source(str(path), schema_path=schema(8000, TABLE)).load()


@pytest.mark.parametrize("sides", [(12_000, 12_000), (60_000, 60_000), (2**31 - 1, 2**31 - 1)])
def test_a_picture_that_announces_many_pixels(
    class_folder: Path, schema: Any, sides: tuple[int, int], capsys: Any
) -> None:
    small = (class_folder / "cat" / "0.png").read_bytes()
    (class_folder / "cat" / "0.png").write_bytes(fuzz_files.resized_png(small, *sides))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(class_folder, schema(6))


def test_formats_that_run_other_programs_are_not_tried(class_folder: Path, schema: Any) -> None:
    Image.new("L", (5, 4)).save(class_folder / "cat" / "0.eps", format="EPS")
    (class_folder / "cat" / "0.eps").rename(class_folder / "cat" / "0.png")
    with pytest.raises(DataUnreadable, match="not a readable image"):
        open_source(str(class_folder), schema_path=schema(6)).load()


def test_the_limit_can_be_raised_and_lowered(tmp_path: Path, schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, x=np.zeros((1000, 4, 5), np.uint8), y=np.arange(1000) % 2)
    assert len(open_source(str(path), schema_path=schema(6)).load()) == 1000
    monkeypatch.setenv("LIMBECK_MOST_BYTES", "20000")
    with pytest.raises(TooLarge, match="set LIMBECK_MOST_BYTES=65536 and run the command again"):
        draft(path)
    with pytest.raises(TooLarge):
        open_source(str(path), schema_path=schema(6)).load()
    assert len(open_source(str(path), schema_path=schema(1000)).load()) == 1000  # the owner declared it
    for text in ("lots", "-1", "0", "1e9", "nan", "9" * 30):
        monkeypatch.setenv("LIMBECK_MOST_BYTES", text)
        with pytest.raises(BadInput, match="LIMBECK_MOST_BYTES"):
            draft(path)


def test_examples() -> None:
    assert doctest.testmod(limits).failed == 0
