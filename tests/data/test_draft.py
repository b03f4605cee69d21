from __future__ import annotations

import doctest
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limbeck.data import open_source, rounding
from limbeck.data.draft import draft, draft_of
from limbeck.data.surveyed import Wanted
from limbeck.errors import BadInput, DataNotFound, DataUnreadable
from limbeck.privacy.schema import Schema


def drafted(path: Path, tmp_path: Path, label: str | None = None) -> tuple[Schema, str]:
    """The schema of a draft; the records must be readable by it, and no plan may be made from it."""
    text = draft(path, label)
    file = tmp_path / "drafted.toml"
    file.write_text(text, encoding="utf-8")
    schema = Schema.read(file)
    assert len(open_source(str(path), schema_path=file).load()) > 0
    assert schema.class_sizes is None and "# class_sizes = [" in text
    with pytest.raises(BadInput, match="not confirmed"):
        schema.require_confirmed()
    return schema, text


def test_folder(class_folder: Path, tmp_path: Path) -> None:
    schema, text = drafted(class_folder, tmp_path)
    assert schema.name == "pets" and schema.classes == ("cat", "dog") and schema.shape == (1, 4, 5)
    assert schema.unconfirmed == ("classes", "records", "shape", "low", "high", "augmentation")  # grey
    assert "# class_sizes = [3, 2]" in text


@pytest.mark.parametrize(
    ("shape", "expected"), [((3, 8, 9), (3, 8, 9)), ((8, 9, 3), (3, 8, 9)), ((8, 9), (1, 8, 9)), ((7,), (7,))]
)
def test_npz(tmp_path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    path = tmp_path / "a.npz"
    x = np.random.default_rng(0).uniform(-0.93, 0.42, (123, *shape))
    x.flat[0] = np.nan
    np.savez(path, x=x, y=np.arange(123) % 3)
    schema, _ = drafted(path, tmp_path)
    assert schema.shape == expected and schema.classes == ("0", "1", "2") and schema.records == 120
    assert (schema.low, schema.high) == (-1.0, 1.0)


def test_parquet_takes_the_class_names_of_the_file(tmp_path: Path, class_folder: Path) -> None:
    data = (class_folder / "cat" / "0.png").read_bytes()
    path = tmp_path / "a.parquet"
    features = '{"info": {"features": {"label": {"names": ["cat", "dog", "owl"], "_type": "ClassLabel"}}}}'
    content = pa.table({"image": [{"bytes": data, "path": None}] * 2, "label": [0, 1]})
    pq.write_table(content.replace_schema_metadata({"huggingface": features}), path)
    schema, _ = drafted(path, tmp_path)
    assert schema.classes == ("cat", "dog", "owl") and schema.high == 255


def people_rows() -> list[dict[str, Any]]:
    towns = ("Bonn", 'Say "hi"\\', "Köln")
    return [
        {"id": f"u{i}", "age": 17 + i % 70, "score": i / 7, "town": towns[i % 3], "buys": i % 11} for i in range(150)
    ]


def test_csv(tmp_path: Path) -> None:
    rows = people_rows()
    lines = [",".join(rows[0])]
    lines += [",".join('"' + str(cell).replace('"', '""') + '"' for cell in row.values()) for row in rows]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    schema, text = drafted(path, tmp_path, "buys")
    age, score, town = schema.columns
    assert (age.low, age.high, age.integer) == (10, 90, True)
    assert (score.low, score.high, score.integer) == (0, 30, False)
    assert town.categories == ("Bonn", "Köln", 'Say "hi"\\')
    assert schema.classes == tuple(str(i) for i in range(11)) and schema.label == "buys"
    assert "Left out: column id" in text
    assert "columns.age" in schema.unconfirmed and "u149" not in text


def test_table_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.Table.from_pylist(people_rows()), path)
    schema, _ = drafted(path, tmp_path, "buys")
    assert [column.name for column in schema.columns] == ["age", "score", "town"]


def test_bad_drafts(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,x\n2,x\n")
    with pytest.raises(BadInput, match="say which column") as caught:
        draft(path)
    assert caught.value.next_command == f"limbeck schema draft {path} --label COLUMN"
    with pytest.raises(BadInput, match="no column 'c'"):
        draft(path, "c")
    with pytest.raises(BadInput, match="has 1 class"):
        draft(path, "b")
    with pytest.raises(DataNotFound):
        draft(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataUnreadable, match="holds no image"):
        draft(tmp_path / "empty")
    (tmp_path / "a.doc").write_text("")
    with pytest.raises(BadInput, match="no known kind"):
        draft(tmp_path / "a.doc")


@pytest.mark.parametrize(
    ("labels", "what"),
    [
        (np.array([-1, 1] * 5), "negative"),
        (np.array([0.0, 1.0] * 5), "with a point"),
        (np.array([True, False] * 5), "truth"),
    ],
)
def test_labels_that_no_run_would_take_are_refused_in_the_draft(tmp_path: Path, labels: Any, what: str) -> None:
    """Minus one and one were "0 class"; truth values were drafted, and refused by the run."""
    np.savez(tmp_path / "a.npz", x=np.zeros((10, 8, 8), dtype=np.uint8), y=labels)
    with pytest.raises(BadInput, match=f"The labels are .*{what}.*class indices"):
        draft(tmp_path / "a.npz")


def test_rows_without_a_label_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,0\n2\n3,1\n4,\n")
    assert any("2 of 4 rows have no label" in remark for remark in draft_of(path, Wanted(label="y")).remarks)
    path.write_text("a,y\n1,0\n2,1\n")
    assert not draft_of(path, Wanted(label="y")).remarks
    path.write_text("a,y\n1,\n2,\n")
    with pytest.raises(BadInput, match="no label that could be a class"):
        draft(path, "y")


def test_pictures_that_no_sub_folder_gives_a_class_are_counted(tmp_path: Path, class_folder: Path) -> None:
    some = next(class_folder.rglob("*.png"))
    (tmp_path / "flat").mkdir()
    for name in ("a.png", "b.png"):
        (tmp_path / "flat" / name).write_bytes(some.read_bytes())
    with pytest.raises(DataUnreadable, match=r"holds no image.*; 2 lie in it without a sub-folder"):
        draft(tmp_path / "flat")


def test_a_damaged_picture_can_be_found_by_its_place(tmp_path: Path, class_folder: Path) -> None:
    """Its name is not said: no schema says yet that the names of folders are public."""
    last = sorted(class_folder.rglob("*.png"))[-1]
    last.write_bytes(b"no picture")
    count = len(list(class_folder.rglob("*.png")))
    with pytest.raises(
        DataUnreadable, match=rf"Picture {count} of {count} in .*, in the order of their folders and names"
    ):
        draft(class_folder)


def test_a_table_of_nothing_but_identifiers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,note,ill\n" + "".join(f"Zq{place},,{'ny'[place % 2]}\n" for place in range(30)))
    with pytest.raises(BadInput, match="no column is left beside the label; the 2 others") as caught:
        draft(path, "ill")
    assert "Zq" not in caught.value.message


def test_every_entry_that_was_read_off_the_records_waits_for_the_owner(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"Zq{place}",
            "born": f"19{50 + place % 40}-0{1 + place % 9}-11",
            "gain": 0 if place % 2 else place / 4,
            "town": ("Bonn", "", "Ulm")[place % 3],
            "clinic": "north",
            "tags": [place],
            "ill": "ny"[place % 2],
        }
        for place in range(150)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    schema, text = drafted(tmp_path / "a.parquet", tmp_path, "ill")
    born, gain, town, clinic = schema.columns
    assert (born.kind, born.low, born.high) == ("date", "1950-01-01", "1989-12-31")
    assert (gain.special, gain.digits, gain.integer) == ((0,), 1, False)
    assert town.missing and town.categories == ("Bonn", "Ulm") and clinic.categories == ("north",)
    waiting = tuple(f"columns.{name}" for name in ("born", "gain", "town", "clinic"))
    assert schema.unconfirmed == ("classes", "records", *waiting)
    assert "# Left out: column id has" in text and "# Left out: column tags holds lists or records." in text
    assert "# Only one value occurs." in text and "# More than a fifth of the records" in text and "Zq" not in text


def test_rounding_examples() -> None:
    assert doctest.testmod(rounding).failed == 0
    assert rounding.round_range(np.array([5.0])) == (5.0, 6.0)
    assert rounding.round_range(np.array([0.0])) == (0.0, 1.0)
    assert rounding.round_range(np.array([np.nan])) == (0.0, 1.0)


def test_the_name_of_a_draft(tmp_path: Path) -> None:
    folder = tmp_path / "clinic"
    folder.mkdir()
    np.savez(folder / "train.npz", x=np.zeros((4, 3)), y=np.array([0, 1, 0, 1]))
    assert 'name = "clinic"' in draft(folder / "train.npz") and 'name = "clinic"' in draft(folder)


# --- persons ---


def visits(tmp_path: Path, name: str = "patient_id", text: str = "p{}") -> Path:
    """Six visits of four people; one has no id."""
    path = tmp_path / "visits.csv"
    people = [text.format(number) for number in (1, 1, 2, 3, 1)] + [""]
    lines = [f"{name},age,ill", *(f"{each},{20 + place},{'ny'[place % 2]}" for place, each in enumerate(people))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_unit_is_drafted_where_it_is_asked_for(tmp_path: Path) -> None:
    text = draft(visits(tmp_path), "ill", "patient_id")
    file = tmp_path / "a.toml"
    file.write_text(text)
    schema = Schema.read(file)
    assert (schema.unit, schema.units, schema.unit_records) == ("patient_id", 4, None)
    assert "units" in schema.unconfirmed and [column.name for column in schema.columns] == ["age"]
    assert "# unit_records = " in text and "at most: 3." in text and "p1" not in text and "Does " not in text
    records = open_source(str(tmp_path / "visits.csv"), schema_path=file).load()
    assert records.units is not None and len(set(records.units.tolist())) == 4
    with pytest.raises(BadInput, match="units"):
        schema.require_confirmed()


@pytest.mark.parametrize("name", ["patient_id", "id", "ID", "userId", "customer number", "Subject", "client-id", "mrn"])
def test_a_column_that_looks_like_a_person_is_mentioned_never_chosen(tmp_path: Path, name: str) -> None:
    text = draft(visits(tmp_path, name), "ill")
    assert f"# Does {name} say who a record is about?" in text and "--unit" in text
    schema = Schema.from_dict(tomllib.loads(text))
    assert not schema.by_person and name in [column.name for column in schema.columns]


@pytest.mark.parametrize(("name", "text"), [("age2", "p{}"), ("width", "{}"), ("idea", "p{}"), ("patient_id", "only")])
def test_other_columns_are_not_mentioned(tmp_path: Path, name: str, text: str) -> None:
    assert "# Does " not in draft(visits(tmp_path, name, text), "ill")


def test_ids_that_never_repeat_are_not_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,ill\n" + "".join(f"{place},{'ny'[place % 2]}\n" for place in range(9)))
    assert "# Does " not in draft(path, "ill")
    path.write_text("user_type,ill\n" + "".join(f"t{place % 2},{'ny'[place % 3 % 2]}\n" for place in range(2001)))
    assert "# Does " not in draft(path, "ill")  # a property of a thousand people each


def test_a_name_in_a_comment_stays_in_it(tmp_path: Path) -> None:
    text = draft(visits(tmp_path, '"patient\nunit = 3"'), "ill")
    assert not Schema.from_dict(tomllib.loads(text)).by_person


def test_persons_of_parquet_npz_and_folders(tmp_path: Path, class_folder: Path) -> None:
    data = (class_folder / "cat" / "0.png").read_bytes()
    who = ["p1", "p1", None, "p2"]
    content = pa.table({"image": [{"bytes": data, "path": None}] * 4, "label": [0, 1, 0, 1], "patient": who})
    pq.write_table(content, tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 3)), y=np.array([0, 1, 0, 1]), patient=np.array([3, 3, 4, 5]))
    table = pa.table({"patient": who, "age": [1, 2, 3, 4], "label": ["n", "y", "n", "y"]})
    pq.write_table(table, tmp_path / "t.parquet")
    for place, each in enumerate(("p1", "p1", "p2", "p3")):
        (tmp_path / "w" / "ab"[place % 2] / each).mkdir(parents=True, exist_ok=True)
        (tmp_path / "w" / "ab"[place % 2] / each / f"{place}.png").write_bytes(data)
    for path, label in (("a.parquet", None), ("a.npz", None), ("t.parquet", "label"), ("w", None)):
        file = tmp_path / "drafted.toml"
        file.write_text(draft(tmp_path / path, label, "patient"))
        schema = Schema.read(file)
        assert (schema.unit, schema.units, schema.records) == ("patient", 3, 4), path
        records = open_source(str(tmp_path / path), schema_path=file).load()
        assert records.units is not None and len(set(records.units.tolist())) == 3, path
    assert "# Does patient say" in draft(tmp_path / "a.parquet") and "# Does patient say" in draft(
        tmp_path / "t.parquet", "label"
    )
    with pytest.raises(DataUnreadable, match=r"holds no image.* --unit person"):
        draft(tmp_path / "w")


def test_bad_units_of_a_draft(tmp_path: Path) -> None:
    path = visits(tmp_path)
    with pytest.raises(BadInput, match=r"no column .who. with one value per row .* among its 3 columns"):
        draft(path, "ill", "who")
    with pytest.raises(BadInput, match="both 'ill'"):
        draft(path, "ill", "ill")
    assert draft(path, "ill", "record") == draft(path, "ill")
    pq.write_table(
        pa.table({"image": [{"bytes": b"", "path": ""}], "label": [0], "who": [["x"]]}), tmp_path / "a.parquet"
    )
    for unit in ("none", "who"):
        with pytest.raises(BadInput, match=f"no column '{unit}' with one value"):
            draft(tmp_path / "a.parquet", None, unit)
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 3)), y=np.array([0, 1, 0, 1]))
    with pytest.raises(DataUnreadable, match="no array who"):
        draft(tmp_path / "a.npz", None, "who")
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"")
    with pytest.raises(BadInput, match="leave --unit out"):
        draft(tmp_path / "train-images-idx3-ubyte", None, "who")


def test_other_separators_and_encodings_are_noticed(tmp_path: Path) -> None:
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        path = tmp_path / "export.csv"
        path.write_text(f"age{mark}ill\n" + f"3{mark}yes\n4{mark}no\n" * 9)
        with pytest.raises(BadInput, match=f"this one has {word}; save it with commas"):
            draft(path, "ill")
    path.write_bytes(b"age,town,ill\n" + "3,Köln,yes\n4,Bonn,no\n".encode("latin-1") * 9)
    assert any("no UTF-8" in said for said in draft_of(path, Wanted(label="ill")).aloud)
