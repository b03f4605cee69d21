"""A table may have no label, and targets beside or in place of one. What an absent entry meant before, it means still."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.schemas import PEOPLE

from limbeck.data import open_source
from limbeck.errors import BadInput, BadSettings
from limbeck.methods import METHODS, method_named
from limbeck.privacy.schema import NO_CLASSES, Schema
from limbeck.runs.planning import make_plan

COLUMNS = [{"name": "age", "low": 0, "high": 99, "integer": True}, {"name": "sex", "categories": ["f", "m"]}]
PLAIN: dict[str, Any] = {"name": "plain", "shape": [3], "records": 200, "low": -1, "high": 1, "columns": COLUMNS}


def test_a_table_without_a_label_is_written_without_one() -> None:
    schema = Schema.from_dict({**PLAIN, "targets": ["age"]})
    assert not schema.has_label and schema.classes == NO_CLASSES and schema.order == ("age", "sex")
    written = json.loads(json.dumps(schema.to_dict()))
    assert not {"classes", "label", "label_at"} & set(written) and written["targets"] == ["age"]
    assert Schema.from_dict(written) == schema == replace(schema)


def test_what_was_written_before_stays_as_it_was() -> None:
    written = PEOPLE.to_dict()
    assert list(written)[:4] == ["name", "shape", "classes", "records"] and written["label"] == "buys"
    assert not {"targets", "label_at", "units"} & set(written)
    assert PEOPLE.has_label and PEOPLE.order == ("age", "colour", "size", "height", "buys")


def test_the_label_has_a_place_among_the_columns() -> None:
    schema = replace(PEOPLE, label_at=1)
    assert schema.order == ("age", "buys", "colour", "size", "height")
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"label": "price"}, "name that in targets"),
        ({"classes": []}, "at least 2 classes"),
        ({"classes": ["a"]}, "at least 2 classes"),
        ({"class_sizes": [200]}, "is for classes"),
        ({"targets": ["height"]}, "targets must list names of columns, each once, got 'height'"),
        ({"targets": ["age", "age"]}, "each once"),
        ({"targets": "age"}, "a list of texts"),
        ({"label_at": 0}, "label_at"),
        ({"classes": ["a", "b"], "label_at": 3}, "at most 2"),
        ({"classes": ["a", "b"], "label_at": True}, "label_at"),
        ({"columns": [], "shape": [3]}, "no entry classes"),
        ({"columns": [], "shape": [1, 2, 2]}, "no entry classes"),
    ],
)
def test_what_cannot_be_meant_is_refused(entries: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Schema.from_dict({**PLAIN, **entries})


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"mosaic", "aim", "mst", "privbayes"}))
def test_methods_that_need_classes_say_so(name: str) -> None:
    epsilon = 1.0 if METHODS[name].private else None
    with pytest.raises(BadSettings, match="has no label"):
        make_plan(Schema.from_dict(PLAIN), method_named(name, {}), epsilon, 1e-5)


def test_readers_give_every_record_the_one_class(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = tmp_path / "plain.toml"
    schema.write_text(
        'name = "plain"\nshape = [3]\nrecords = 2\nlow = -1\nhigh = 1\n'
        '[[columns]]\nname = "age"\nlow = 0\nhigh = 99\n[[columns]]\nname = "sex"\ncategories = ["f", "m"]\n'
    )
    (tmp_path / "a.csv").write_text("sex,age,label\nf,99,9\nm,0,8\n")
    pq.write_table(pa.table({"sex": ["f", "m"], "age": [99, 0]}), tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", x=np.array([[1, 1, 0], [-1, 0, 1]], dtype=np.float32))
    for file in ("a.csv", "a.parquet", "a.npz"):
        records = open_source(str(tmp_path / file), schema_path=schema).load()
        assert records.x.tolist() == [[1, 1, 0], [-1, 0, 1]] and records.y.tolist() == [0, 0]
    with pytest.raises(BadInput, match="names the label 'sex' but no classes"):
        open_source(str(tmp_path / "a.csv"), schema_path=schema, label="sex")
