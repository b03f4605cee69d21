"""The genuine benchmark sets, where they are: `LIMBECK_DATA`, `shared/data` beside the project, or the cache."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from limbeck.data import csv_file, fetch, open_source, table

BESIDE = Path(os.environ.get("LIMBECK_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
CACHE = fetch.cache_folder()  # taken before the tests get a cache of their own


@pytest.fixture
def genuine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMBECK_CACHE", str(CACHE))
    monkeypatch.setenv("LIMBECK_DATA", str(BESIDE))


@pytest.mark.usefixtures("genuine")
@pytest.mark.parametrize(
    "spec",
    [
        *("mnist", "mnist:test", "fashion-mnist", "fashion-mnist:test"),
        *("cifar10:test", "adult", "adult:test", "adult-ordinal:test"),
    ],
)
def test_genuine_sets(spec: str) -> None:
    if fetch.find(spec.split(":")[0]) is None:
        pytest.skip("the set is not on this machine")
    opened = open_source(spec)
    records = opened.load()
    assert records.x.shape == (opened.schema.records, *opened.schema.shape)
    assert tuple(np.bincount(records.y)) == opened.schema.class_sizes
    assert records.x.min() >= opened.schema.low and records.x.max() <= opened.schema.high


@pytest.mark.usefixtures("genuine")
@pytest.mark.parametrize("name", ["adult", "adult-ordinal"])
def test_adult_survives_the_round_trip(name: str) -> None:
    folder = fetch.find(name)
    if folder is None:
        pytest.skip("the set is not on this machine")
    opened = open_source(f"{name}:test")
    raw = csv_file.read_columns(folder / "test.csv")
    decoded = table.decode_rows(opened.load().x, opened.schema)
    for column in opened.schema.columns:
        assert [str(value) for value in decoded[column.name]] == raw[column.name]
