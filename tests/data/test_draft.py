from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limbeck.data import open_source, rounding
from limbeck.data.draft import draft
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
    assert schema.unconfirmed == ("classes", "records", "shape", "low", "high")
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
