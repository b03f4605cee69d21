"""Malformed files that once ended as unforeseen errors: each is a sentence now, or is simply read."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz_files
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limbeck.data import open_source
from limbeck.data.draft import draft
from limbeck.errors import BadInput, DataUnreadable, LimbeckError
from limbeck.privacy.schema import Schema

X, Y = fuzz_files.npy(np.zeros((6, 4, 5), np.uint8)), fuzz_files.npy(np.arange(6) % 2)


def both(
    path: Path, gray_file: Path, kind: type[LimbeckError] | tuple[type[LimbeckError], ...] = DataUnreadable
) -> None:
    with pytest.raises(kind):
        draft(path)
    with pytest.raises(DataUnreadable):
        open_source(str(path), schema_path=gray_file).load()


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize(
    "members",
    [
        {"x": X, "y": Y},
        {"x.npy": X, "y": b"0101"},
        {"x.npy": b"text", "y.npy": Y},
        {"x.npy": X, "y.npy": fuzz_files.npy(np.zeros((6, 2), int))},
        {"x.npy": X, "y.npy": fuzz_files.npy(np.array(3))},
        {"x.npy": fuzz_files.headed("{'descr': '<f8', 'fortran_order': False, 'shape': (-6, 4, 5), }\n", b""), "y.npy": Y},
        {"x.npy": fuzz_files.headed(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({'1, ' * 70}), }}\n", b""), "y.npy": Y},
        {"x.npy": fuzz_files.headed("(" * 500, b""), "y.npy": Y},
    ],
)  # fmt: skip
def test_archives(tmp_path: Path, gray_file: Path, members: dict[str, bytes]) -> None:
    both(zipped(tmp_path / "own.npz", members), gray_file)


@pytest.mark.parametrize("method", [1, 6, 12, 14, 93, 99])
def test_unknown_ways_to_pack(tmp_path: Path, gray_file: Path, method: int) -> None:
    path = zipped(tmp_path / "own.npz", {"x.npy": X, "y.npy": Y})
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\1\2", 10), (b"PK\3\4", 8)):
        start = data.find(mark) + place
        data[start : start + 2] = struct.pack("<H", method)
    path.write_bytes(data)
    both(path, gray_file)


def test_names_of_members_and_fields_are_not_repeated(tmp_path: Path, gray_file: Path) -> None:
    fields = np.zeros(6, dtype=[("Ann Secret", "<f4")])
    for members in ({"Ann Secret.npy": X}, {"x.npy": fuzz_files.npy(fields), "y.npy": Y}):
        path = zipped(tmp_path / "own.npz", members)
        for read in (draft, lambda path: open_source(str(path), schema_path=gray_file).load()):
            with pytest.raises(DataUnreadable) as caught:
                read(path)
            assert "Secret" not in caught.value.message


@pytest.mark.parametrize("rank", [0, 9, 65, 255])
def test_idx_of_many_dimensions(tmp_path: Path, gray_file: Path, rank: int) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(struct.pack(f">HBB{rank}I", 0, 8, rank, *[1] * rank) + b"\0")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(fuzz_files.idx_bytes(np.zeros(1)))
    both(path, gray_file)


def test_idx_labels_of_two_dimensions(tmp_path: Path, gray_file: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(fuzz_files.idx_bytes(np.zeros((6, 4, 5))))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(fuzz_files.idx_bytes(np.zeros((6, 2))))
    both(path, gray_file)


def test_a_file_that_is_no_idx_is_not_quoted(tmp_path: Path, gray_file: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(b"Ann Secret")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"47,ill")
    with pytest.raises(DataUnreadable) as caught:
        open_source(str(path), schema_path=gray_file).load()
    assert "Ann" not in caught.value.message and b"Ann ".hex(" ") not in caught.value.message


# Parquet


@pytest.fixture
def people_file(tmp_path: Path) -> Path:
    path = tmp_path / "people.toml"
    path.write_text(
        'name = "people"\nshape = [2]\nclasses = ["no", "yes"]\nrecords = 4\nlow = -1\nhigh = 1\nlabel = "buys"\n'
        'augmentation = []\n[[columns]]\nname = "age"\nlow = 0\nhigh = 100\n'
        '[[columns]]\nname = "town"\ncategories = ["Bonn"]\n'
    )
    return path


def columns(**odd: Any) -> dict[str, Any]:
    return {"age": [1, 2, 3, 4], "town": ["Bonn"] * 4, "buys": ["no", "yes", "no", "yes"], **odd}


ODD_CELLS: tuple[Callable[[], Any], ...] = (
    lambda: pa.array([2**31 - 1, -(2**31), 0, None], pa.int32()).cast(pa.date32()),
    lambda: pa.array([2**62, 10**18 + 1, 0, None], pa.int64()).cast(pa.timestamp("ns")),
    lambda: pa.array([2**62, 1, 0, None], pa.int64()).cast(pa.timestamp("us", "Mars/Olympus")),
    lambda: pa.array([2**62, 1, 0, None], pa.int64()).cast(pa.duration("ns")),
    lambda: pa.array([1, 2, 3, None], pa.int64()).cast(pa.time64("ns")),
    lambda: pa.array([10**30] * 4, pa.decimal128(38, 0)),
    lambda: pa.array([1e308, -1e308, float("nan"), float("inf")]),
    lambda: pa.StringArray.from_buffers(4, pa.array(["a"] * 4).buffers()[1], pa.py_buffer(b"\xff\xc3a\xff")),
)


@pytest.mark.parametrize("make", ODD_CELLS)
@pytest.mark.parametrize("name", ["age", "town"])
def test_content_of_a_cell_never_raises(tmp_path: Path, people_file: Path, make: Callable[[], Any], name: str) -> None:
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table(columns(**{name: make()})), path)
    records = open_source(str(path), schema_path=people_file).load()
    assert records.y.tolist() == [0, 1, 0, 1] and np.isfinite(records.x).all()
    (tmp_path / "drafted.toml").write_text(draft(path, "buys"), encoding="utf-8")
    assert Schema.read(tmp_path / "drafted.toml").label == "buys"


def test_columns_of_one_name_and_lists(tmp_path: Path, people_file: Path) -> None:
    path = tmp_path / "own.parquet"
    values = columns()
    pq.write_table(pa.Table.from_arrays([pa.array(c) for c in [*values.values(), [0] * 4]], [*values, "age"]), path)
    with pytest.raises(DataUnreadable, match="two columns of the same name"):
        open_source(str(path), schema_path=people_file).load()
    with pytest.raises(DataUnreadable, match="two columns of the same name"):
        draft(path, "buys")
    pq.write_table(pa.table(columns(town=[["Bonn"]] * 4)), path)
    with pytest.raises(DataUnreadable, match="lists or records in the column town"):
        open_source(str(path), schema_path=people_file).load()
    assert "Left out: column town" in draft(path, "buys")


def test_a_footer_that_is_no_text(tmp_path: Path, people_file: Path) -> None:
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table(columns()), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"town", b"t\xff\xfen"))
    with pytest.raises(DataUnreadable):
        open_source(str(path), schema_path=people_file).load()
    with pytest.raises(DataUnreadable):
        draft(path, "buys")


@pytest.mark.parametrize("first", [True, False])
def test_the_label_may_stand_before_the_image(tmp_path: Path, class_folder: Path, gray_file: Path, first: bool) -> None:
    cells = [{"bytes": file.read_bytes(), "path": None} for file in sorted((class_folder / "cat").iterdir())]
    values = {"label": [1, 0, 1], "image": cells}
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table(values if first else dict(reversed(values.items()))), path)
    records = open_source(str(path), schema_path=gray_file).load()
    assert records.y.tolist() == [1, 0, 1] and records.x[:, 0, 0, 0].tolist() == [0, 10, 20]


# Drafts


@pytest.mark.parametrize("cell", ["1e308", "-1e308", "1e-320", "9" * 400, "1e17", "100000000000000016"])
def test_extreme_numbers_can_be_drafted(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"age,buys\n{cell},yes\n100000000000000000,no\n1,no\n")
    (tmp_path / "drafted.toml").write_text(draft(path, "buys"))
    assert len(open_source(str(path), schema_path=tmp_path / "drafted.toml").load()) == 3


def test_labels_of_thousands_of_digits(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"age,buys\n1,{'9' * 5000}\n2,1\n")
    assert draft(path, "buys")


def test_large_indices_are_not_quoted(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", x=np.zeros((2, 4)), y=np.array([0, 987_654_321]))
    with pytest.raises(BadInput, match="class indices") as caught:
        draft(tmp_path / "own.npz")
    assert "987" not in caught.value.message


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.npz", "pipe.parquet", "train-images-idx3-ubyte"])
def test_a_pipe_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    for look in (lambda path: draft(path, "label"), lambda path: open_source(str(path))):
        with pytest.raises(DataUnreadable, match="neither a plain file nor a folder"):
            look(tmp_path / name)
