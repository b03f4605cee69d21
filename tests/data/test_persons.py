"""Who a record is about, from every kind of file: the right person at the right record, and nobody's name in an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from limbeck.data import arrays, folder, idx, open_source, parquet, table
from limbeck.data.limits import BYTES_VARIABLE, most_bytes
from limbeck.data.records import Records, as_records
from limbeck.data.units import unit_codes
from limbeck.errors import BadInput, DataUnreadable, TooLarge
from limbeck.privacy.schema import Schema
from schemas import GRAY, PEOPLE

SECRET = "Zq7Secret"
PATIENTS = dataclasses.replace(PEOPLE, records=40, unit="patient_id", units=10)
SCANS = dataclasses.replace(GRAY, records=40, unit="patient", units=10)
AWKWARD = [f"{SECRET}, Ann", " p2 ", "", "7", "007", f"{SECRET}, Ann", 'say "p"', "p2"]


def codes(ids: Any) -> list[int]:
    found: list[int] = unit_codes(list(ids), "X").tolist()
    return found


def csv_of(path: Path, ids: list[str], header: str = "patient_id,age,colour,size,height,buys") -> Path:
    lines = [header]
    for place, each in enumerate(ids):
        quoted = '"' + each.replace('"', '""') + '"'
        lines.append(f"{quoted},{place},red,S,1.5,{'yes' if place % 2 else 'no'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def no_secret(call: Callable[[], object], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match) as caught:
        call()
    assert SECRET not in str(caught.value)


# --- CSV ---


def test_csv_keeps_each_record_with_its_person(tmp_path: Path) -> None:
    records = table.read(csv_of(tmp_path / "a.csv", AWKWARD), PATIENTS)
    assert records.units is not None and records.units.dtype == np.int64
    assert records.units.tolist() == codes(AWKWARD) and len(set(records.units.tolist())) == 5
    assert np.allclose(records.x[:, 0], 2 * np.arange(8) / 100 - 1)  # the id is no number of the record


def test_a_csv_that_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CHUNK", 3 * PATIENTS.numbers)
    records = table.read(csv_of(tmp_path / "a.csv", AWKWARD), PATIENTS)
    assert records.units is not None and records.units.tolist() == codes(AWKWARD)


def test_a_short_row_of_a_csv_has_no_id(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,colour,size,height,buys,patient_id\n1,red,S,1.5,no,p1\n2,red,S,1.5,yes\n3,red,S,1.5,no,\n")
    records = table.read(path, PATIENTS)
    assert records.units is not None and records.units.tolist() == codes(["p1", "", ""])


@pytest.mark.parametrize("ids", [["", " ", "NaN"], ["p1"] * 3, ["a", "b", "c"], ["9" * 1_000_000, "9" * 999_999, "9"]])
def test_the_worst_ids_of_a_csv(tmp_path: Path, ids: list[str]) -> None:
    records = table.read(csv_of(tmp_path / "a.csv", ids), PATIENTS)
    assert records.units is not None and records.units.tolist() == codes(ids)


def test_a_table_without_the_persons_column(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", [SECRET], f"{SECRET}_id,age,colour,size,height,buys")
    no_secret(lambda: table.read(path, PATIENTS), DataUnreadable, "no column 'patient_id'.* it has 6 columns")
    pq.write_table(pa.table({SECRET: ["a"], "buys": ["no"]}), tmp_path / "a.parquet")
    no_secret(lambda: parquet.read(tmp_path / "a.parquet", PATIENTS), DataUnreadable, "'patient_id'.* it has 2 columns")


def test_without_persons_nothing_changes(tmp_path: Path) -> None:
    assert table.read(csv_of(tmp_path / "a.csv", AWKWARD), dataclasses.replace(PEOPLE, records=40)).units is None


# --- Parquet ---


def table_of(path: Path, ids: Any) -> Path:
    count = len(ids)
    columns = {"age": list(range(count)), "colour": ["red"] * count, "size": ["S"] * count, "height": [1.5] * count}
    pq.write_table(pa.table({**columns, "buys": ["no", "yes"] * (count // 2), "patient_id": ids}), path)
    return path


@pytest.mark.parametrize(
    ("ids", "same"),
    [
        (pa.array([7, 3, None, 7]), ["7", "3", "", "7"]),
        (pa.array([7, 3, None, 7], pa.uint8()), ["7", "3", "", "7"]),
        (pa.array([7.0, 3.0, float("nan"), None]), ["7", "3", "", ""]),
        (pa.array(["p1", " p1", "", None]), ["p1", "p1", "", ""]),
        (pa.array(["p1", "p2", None, "p1"]).dictionary_encode(), ["p1", "p2", "", "p1"]),
        (pa.array([7, 3, None, 7]).dictionary_encode(), ["7", "3", "", "7"]),
        (pa.array(["p1", "p2", None, "p1"], pa.large_string()), ["p1", "p2", "", "p1"]),
        (pa.array([b"p1", b"\xff", None, b"p1"]), ["p1", b"\xff", "", "p1"]),
        (pa.array([b"ab", b"\xff\xfe", b"\xff\xfd", None], pa.binary(2)), ["ab", b"\xff\xfe", b"\xff\xfd", ""]),
        (pa.array([None] * 4), ["", "", "", ""]),
        (pa.array([2**63, 1, 2, 1], pa.uint64()), [2**63, 1, 2, 1]),
    ],
)
def test_parquet_types_of_ids(tmp_path: Path, ids: Any, same: list[Any]) -> None:
    records = parquet.read(table_of(tmp_path / "a.parquet", ids), PATIENTS)
    assert records.units is not None and records.units.tolist() == codes(same)


def test_an_id_of_a_year_that_python_does_not_know_is_missing(tmp_path: Path) -> None:
    dates = pa.array([2**31 - 1, 0, 0, 2**31 - 1], pa.int32()).cast(pa.date32())
    records = parquet.read(table_of(tmp_path / "a.parquet", dates), PATIENTS)
    assert records.units is not None and records.units.tolist() == codes(["", "1970-01-01", "1970-01-01", ""])


def test_lists_are_no_ids(tmp_path: Path) -> None:
    path = table_of(tmp_path / "a.parquet", pa.array([[SECRET]] * 4))
    no_secret(lambda: parquet.read(path, PATIENTS), DataUnreadable, "lists or records in the column patient_id")


def pictures_of(path: Path, **columns: Any) -> Path:
    Image.new("L", (5, 4)).save(path.with_suffix(".png"))
    data = {"bytes": path.with_suffix(".png").read_bytes(), "path": None}
    pq.write_table(pa.table({"image": [data] * 4, **columns}), path)
    return path


def test_parquet_images_with_persons(tmp_path: Path) -> None:
    path = pictures_of(tmp_path / "a.parquet", label=[0, 1, 0, 1], patient=["p1", "p2", None, "p1 "])
    records = parquet.read(path, SCANS)
    assert records.units is not None and records.units.tolist() == codes(["p1", "p2", "", "p1"])
    assert parquet.read(path, dataclasses.replace(GRAY, records=4)).units is None
    for name, message in (("who", "no column 'who'.* it has 3 columns"), ("image", "no column 'image'")):
        with pytest.raises(DataUnreadable, match=message):
            parquet.read(path, dataclasses.replace(SCANS, unit=name))
    nested = pictures_of(tmp_path / "b.parquet", label=[0, 1, 0, 1], patient=[[SECRET]] * 4)
    no_secret(lambda: parquet.read(nested, SCANS), DataUnreadable, "lists or records in the column patient")


def test_the_person_is_never_taken_for_the_label(tmp_path: Path) -> None:
    """A label column is also looked for under other names; the person's is none of them."""
    path = pictures_of(tmp_path / "a.parquet", labels=[0, 1, 0, 1])
    with pytest.raises(DataUnreadable, match="no label column"):
        parquet.read(path, dataclasses.replace(SCANS, unit="labels"))


# --- .npz ---


def archive(path: Path, **entries: Any) -> Path:
    np.savez(path, **{"x": np.zeros((4, 4, 5), np.uint8), "y": np.array([0, 1, 0, 1]), **entries})
    return path


@pytest.mark.parametrize(
    ("ids", "same"),
    [
        (np.array([7, 3, 7, 7]), ["7", "3", "7", "7"]),
        (np.array([7, np.nan, 3, 7]), ["7", "", "3", "7"]),
        (np.array(["p1", " p1", "", "né"]), ["p1", "p1", "", "ne\u0301"]),
        (np.array([b"p1", b"p2", b"", b"p1 "]), ["p1", "p2", "", "p1"]),
        (np.array([True, False, True, True]), ["True", "False", "True", "True"]),
    ],
)
def test_npz_types_of_ids(tmp_path: Path, ids: Any, same: list[str]) -> None:
    records = arrays.read(archive(tmp_path / "a.npz", patient=ids), SCANS)
    assert records.units is not None and records.units.tolist() == codes(same)
    assert arrays.read(tmp_path / "a.npz", dataclasses.replace(GRAY, records=4)).units is None


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"who": np.arange(4)}, "no array patient .*patient=..."),
        ({"patient": np.arange(3)}, "4 records but 3 ids of persons"),
        ({"patient": np.zeros((4, 1))}, "shape .*one id per record"),
        ({"patient": np.array(SECRET)}, "one id per record"),
        ({"patient": np.zeros(4, complex)}, "as type complex128"),
        ({"patient": np.array([SECRET, 1, None, 2.0], dtype=object)}, "not a readable .npz"),
    ],
)
def test_bad_arrays_of_ids(tmp_path: Path, entries: dict[str, Any], message: str) -> None:
    path = archive(tmp_path / "a.npz", **entries)
    no_secret(lambda: arrays.read(path, SCANS), DataUnreadable, message)


def test_the_arrays_of_the_records_are_not_their_persons(tmp_path: Path) -> None:
    for unit in ("x", "y"):
        with pytest.raises(BadInput, match="an array of their own"):
            arrays.read(archive(tmp_path / "a.npz"), dataclasses.replace(SCANS, unit=unit))


def test_a_huge_array_of_ids_is_refused_by_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    ids = np.zeros(4, "<U1000000")
    np.savez_compressed(path, x=np.zeros((4, 4, 5), np.uint8), y=np.array([0, 1, 0, 1]), patient=ids)
    monkeypatch.setenv(BYTES_VARIABLE, "10000000")
    monkeypatch.setattr(arrays, "_values", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(TooLarge):
        arrays.read(path, SCANS)


def test_persons_take_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = csv_of(tmp_path / "a.csv", ["p1"] * 300)
    monkeypatch.setenv(BYTES_VARIABLE, str(300 * PEOPLE.numbers * 8 + 10))
    few = dataclasses.replace(PEOPLE, records=1)
    assert table.read(path, few).units is None
    with pytest.raises(TooLarge):
        table.read(path, dataclasses.replace(few, unit="patient_id", units=1))
    large = dataclasses.replace(PEOPLE, records=1000)
    assert most_bytes(dataclasses.replace(large, unit="p", units=9)) == most_bytes(large) + 16_000


# --- folders of images ---


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    """CLASS/PERSON/image.png; one person is in both classes, and one image is nobody's."""
    root = tmp_path / "ward"
    for place, name in enumerate(("cat/p1/a", "cat/p1/b", f"cat/{SECRET}/a", "dog/p1/a", "dog/p3/a", "dog/z")):
        path = root / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 5), place, np.uint8)).save(path)
    (root / "cat" / ".hidden").mkdir()
    return root


def test_folders_of_persons(ward: Path) -> None:
    records = folder.read(ward, SCANS)
    assert records.units is not None
    persons = dict(zip(records.x[:, 0, 0, 0].tolist(), records.units.tolist(), strict=True))
    assert persons == dict(enumerate(codes(["p1", "p1", SECRET, "p1", "p3", ""])))
    assert dict(zip(records.x[:, 0, 0, 0].tolist(), records.y.tolist(), strict=True))[3] == 1
    assert len(folder.read(ward, dataclasses.replace(GRAY, records=9))) == 1  # a level deeper is no record otherwise


def test_a_folder_without_persons_is_no_folder_of_one_person(class_folder: Path) -> None:
    with pytest.raises(DataUnreadable, match=r"no folder per patient .*CLASS/PERSON/image\.png"):
        folder.read(class_folder, SCANS)


@pytest.mark.parametrize("content", [b"no image", b""])
def test_an_image_that_cannot_be_read_is_counted_not_named(ward: Path, content: bytes) -> None:
    (ward / "cat" / SECRET / f"{SECRET}.png").write_bytes(content)
    source = open_source(str(ward), schema_path=_file(ward, SCANS))
    no_secret(source.load, DataUnreadable, r"Image \d of 4 in .*cat.* is not a readable image")
    Image.new("L", (9, 9)).save(ward / "cat" / SECRET / f"{SECRET}.png")
    no_secret(source.load, DataUnreadable, r"Image \d of 4 .* is 9 x 9 pixels")


def test_class_folders_of_another_name_are_not_named(ward: Path) -> None:
    (ward / SECRET).mkdir()
    no_secret(lambda: folder.read(ward, SCANS), DataUnreadable, "1 not named like a class")


def _file(beside: Path, schema: Schema) -> Path:
    path = beside.with_suffix(".toml")
    path.write_text(
        f'name = "{schema.name}"\nshape = {list(schema.shape)}\nclasses = ["cat", "dog"]\nrecords = {schema.records}\n'
        f'unit = "{schema.unit}"\nunits = {schema.units}\n'
    )
    return path


# --- IDX and what all readers share ---


def test_an_idx_file_has_no_persons(tmp_path: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(b"")
    with pytest.raises(DataUnreadable, match=r"cannot say who a record is about.*one person \(patient\).*\.npz"):
        idx.read(path, SCANS)


def test_persons_are_there_exactly_if_the_schema_says_so() -> None:
    x, y = np.zeros((2, 1, 4, 5)), np.array([0, 1])
    with pytest.raises(DataUnreadable, match=r"does not say who.*one person \(patient\)"):
        as_records(x, y, SCANS, "here")
    with pytest.raises(DataUnreadable, match="is one record"):
        as_records(x, y, GRAY, "here", np.array([1, 2]))
    with pytest.raises(DataUnreadable, match="2 records but 3 ids"):
        as_records(x, y, SCANS, "here", np.array([1, 2, 3]))


def test_records_that_are_chosen_keep_their_persons() -> None:
    records = Records(np.arange(4), np.array([0, 1, 0, 1]), np.array([9, 8, 9, 7]))
    for chosen in (np.array([3, 0]), np.array([True, False, False, True])):
        part = records.only(chosen)
        assert part.units is not None
        assert part.units.tolist() == records.units[chosen].tolist() and part.y.tolist() == records.y[chosen].tolist()  # type: ignore[index]
    assert Records(np.arange(4), np.arange(4)).only(np.array([1])).units is None


def test_other_label_columns_do_not_hide_the_person(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", ["p1", "p2"])
    schema = tmp_path / "a.toml"
    schema.write_text(
        'unit = "patient_id"\nunits = 2\nname = "people"\nshape = [1]\nclasses = ["no", "yes"]\nrecords = 2\nlow = -1\nhigh = 1\n'
        'label = "buys"\n[[columns]]\nname = "age"\nlow = 0\nhigh = 9\n'
    )
    assert open_source(str(path), schema_path=schema).load().units is not None
    with pytest.raises(BadInput, match="also the label"):
        open_source(str(path), schema_path=schema, label="patient_id")
