"""Graphical models in a release: AIM, MST and PrivBayes give more rows, also under conditions, and need no label."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import working as work
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.table import decode_rows
from limbeck.errors import BadInput, BadSettings, NotAuthentic
from limbeck.methods import method_named
from limbeck.methods.graphical import network
from limbeck.methods.graphical.network import NetworkModel
from limbeck.nets.generators.graph_spec import GraphSpec
from limbeck.privacy.schema import NO_CLASSES, Column, Schema
from limbeck.progress import Silent
from limbeck.release.generator import load_generator
from limbeck.release.table_generator import TableGenerator
from limbeck.release.verification import verify
from people import SCHEMA, source

METHODS: dict[str, dict[str, Any]] = {
    "aim": {"R": 4, "M": 8, "T": 10, "bins": 5, "size": 0.01},
    "mst": {"T": 30, "bins": 5},
    "privbayes": {"k": 2, "bins": 5},
}
UNLABELLED = dataclasses.replace(SCHEMA, classes=NO_CLASSES, label="", class_sizes=None)
ALONE = Schema(
    name="one", shape=(1,), classes=NO_CLASSES, records=500, columns=(Column(name="n", low=0, high=9, integer=True),)
)


def released(name: str, out: Path, schema: Schema = SCHEMA, given: DataSource | None = None, **settings: Any) -> Path:
    method = method_named(name, {**METHODS[name], "sigma": 0.3, **settings}).resolved(schema)
    plan = work.make_plan(schema, method, None, 1e-5)
    asked = work.asked(data=None, ledger=str(out.with_suffix(".sqlite")), insecure_seed=7)
    return work.condense(asked, plan, given or source(), out, Silent()).release


def without_label(schema: Schema, x: np.ndarray) -> DataSource:
    return DataSource(schema, "here", lambda _: Records(x, np.zeros(len(x), dtype=np.int64)))


@pytest.fixture(scope="module", params=METHODS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Do not change it."""
    return released(request.param, tmp_path_factory.mktemp(request.param) / "set")


def table_of(folder: Path) -> TableGenerator:
    generator = load_generator(folder)
    assert isinstance(generator, TableGenerator)
    return generator


def test_a_release_has_the_model_and_more_rows_are_like_those_of_the_set(folder: Path) -> None:
    assert {"generator.safetensors", "generator.json"} <= set(verify(folder).files)
    assert json.loads((folder / "generator.json").read_text())["generator"]["kind"] == "graph"
    generator = table_of(folder)
    x, y = generator.sample(3000, seed=1)
    again, _ = generator.sample(3000, seed=1)
    assert np.array_equal(x, again)
    with np.load(folder / "set.npz") as made:
        rows, more = (decode_rows(each.reshape(len(each), -1), SCHEMA) for each in (made["x"], x))
        assert np.bincount(y, minlength=3) / 3000 == pytest.approx(
            np.bincount(made["y"], minlength=3) / len(made["y"]), abs=0.05
        )
    assert np.mean(rows["age"]) == pytest.approx(np.mean(more["age"]), abs=2)
    pairs = [np.mean((np.array(t["age"]) > 50) == (np.array(t["grade"]) == "high")) for t in (rows, more)]
    assert pairs[1] == pytest.approx(pairs[0], abs=0.05) and pairs[1] > 0.75


@pytest.mark.parametrize("most", [network.MOST_EXACT, 0])
def test_rows_keep_to_conditions_and_come_in_the_models_shares(
    folder: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "MOST_EXACT", most)
    generator, label = table_of(folder), SCHEMA.classes[1]
    x, y = generator.sample(400, label=label, where=["age>60"])
    assert set(y) == {1} and min(decode_rows(x, SCHEMA)["age"]) > 60
    plain, labels = generator.sample(20_000)
    old = np.array(decode_rows(plain, SCHEMA)["age"]) > 60
    x, y = generator.sample(4000, where=["age>60"])
    assert np.bincount(y, minlength=3) / 4000 == pytest.approx(
        np.bincount(labels[old], minlength=3) / old.sum(), abs=0.05
    )
    assert (np.array(decode_rows(x, SCHEMA)["grade"]) == "high").mean() == pytest.approx(
        (np.array(decode_rows(plain, SCHEMA)["grade"])[old] == "high").mean(), abs=0.05
    )
    shares = generator.model.column_shares()
    assert all(share.sum() == pytest.approx(1) for share in shares.values())


def test_what_nothing_keeps_to_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match="age"):
        table_of(folder).sample(10, where=["age>60", "age<20"])


@pytest.mark.parametrize("name", METHODS)
def test_a_table_without_a_label(name: str, tmp_path: Path) -> None:
    x = source().load().x
    out = released(name, tmp_path / "set", UNLABELLED, without_label(UNLABELLED, x))
    made, y = table_of(out).sample(2000)
    real, rows = decode_rows(x, SCHEMA), decode_rows(made, SCHEMA)
    assert set(y) == {0} and np.mean(rows["age"]) == pytest.approx(np.mean(real["age"]), abs=2)
    assert np.mean((np.array(rows["age"]) > 50) == (np.array(rows["grade"]) == "high")) > 0.75
    with pytest.raises(BadSettings, match="no label"):
        work.make_plan(UNLABELLED, method_named(name, {"per_class": 3}), 1.0, 1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_a_table_of_one_column_and_no_label(name: str, tmp_path: Path) -> None:
    x = np.full((500, 1), -1.0, dtype=np.float32)
    out = released(name, tmp_path / "set", ALONE, without_label(ALONE, x))
    rows = np.array(decode_rows(table_of(out).sample(300)[0], ALONE)["n"])
    assert (rows == 0).mean() > 0.9


@pytest.mark.parametrize(
    "weights",
    [
        {"tables": lambda tables: -tables},
        {"tables": lambda tables: tables * 2},
        {"tables": lambda tables: tables[:-1]},
        {"tables": lambda tables: tables * torch.nan},
        {"tables": lambda tables: tables.double()},
        {"edges": lambda edges: edges.flip(0)},
        {"more": lambda _: torch.zeros(1)},
    ],
)
def test_damaged_weights_are_refused(folder: Path, weights: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "set")
    path = tmp_path / "set" / "generator.safetensors"
    kept = load_file(path)
    for name, change in weights.items():
        kept[name] = change(kept.get(name)).contiguous()
    save_file(kept, path)
    with pytest.raises(NotAuthentic):
        load_generator(tmp_path / "set")


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": [[[0], [1]], [[1], []]]},
        {"steps": [[[0], []]]},
        {"steps": [[[0], []], [[0, 1], []]]},
        {"steps": [[[0, 0], []], [[1], []]]},
        {"steps": [[[0], []], [[], [0]], [[1], []]]},
        {"steps": [[[0], []], [[True], []]]},
        {"steps": [[0, []], [[1], []]]},
        {"edges": []},
        {"edges": [-1, 0]},
        {"kind": "mosaic"},
        {"more": 1},
    ],
)
def test_a_spec_that_says_something_else_is_refused(wrong: dict[str, Any]) -> None:
    good = {"kind": "graph", "edges": [3, 0], "steps": [[[1], []], [[0], [1]]]}
    assert GraphSpec.from_dict(good).to_dict() == good and not GraphSpec.from_dict(good).has_label
    with pytest.raises(BadInput):
        GraphSpec.from_dict(good | wrong)


def test_the_label_of_the_model_is_that_of_the_schema() -> None:
    spec = GraphSpec(edges=(0,), steps=(((0,), ()), ((1,), (0,))))
    with pytest.raises(BadInput, match="schema"):
        NetworkModel.of(spec, {}, ALONE)
