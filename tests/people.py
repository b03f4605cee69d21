"""A small table with every kind of column, and a release of mosaic made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import working as work
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.table import encode_rows
from limbeck.methods import method_named
from limbeck.privacy.schema import Column, Schema
from limbeck.progress import Silent

COLUMNS = (
    Column(name="age", low=17, high=90, integer=True),
    Column(name="gain", low=0, high=99_999, integer=True, missing=True),
    Column(name="price", low=-2.5, high=100),
    Column(name="city", categories=("Rome", "Oslo", "missing"), missing=True),
    Column(name="grade", categories=("low", "middle", "high", "top"), ordinal=True),
)
SCHEMA = Schema(
    name="people", shape=(sum(column.width for column in COLUMNS),), classes=("no", "yes", "<=1"), records=900, low=-1.0,
    high=1.0, columns=COLUMNS, label="paid", augmentation=(),
)  # fmt: skip
SMALL = {"T": 60, "components": 30, "rows": 600, "sigma": 0.5, "bins": 8, "search": 0}


def source(schema: Schema = SCHEMA) -> DataSource:
    random = np.random.default_rng(5)
    count = 900
    age = random.integers(17, 91, count)
    gain = np.where(random.random(count) < 0.8, 0, random.integers(5000, 99_999, count))
    columns: dict[str, list[Any]] = {
        "age": age.tolist(),
        "gain": [None if gap else int(value) for gap, value in zip(random.random(count) < 0.2, gain, strict=True)],
        "price": random.uniform(0, 60, count).tolist(),
        "city": [
            None if gap else "Rome" if old else "Oslo"
            for gap, old in zip(random.random(count) < 0.1, age > 50, strict=True)
        ],
        "grade": np.where(age > 50, "high", "low").tolist(),
    }
    x, y = encode_rows(columns, SCHEMA), ((age > 50) ^ (gain > 0)).astype(np.int64)
    return DataSource(schema, "here", lambda _: Records(x, y))


def released(root: Path, name: str = "people", **settings: Any) -> Path:
    """A release in root/name, paid by root/name.sqlite."""
    plan = work.make_plan(SCHEMA, method_named("mosaic", {**SMALL, **settings}), None, 1e-5)
    asked = work.asked(data=None, ledger=str(root / f"{name}.sqlite"), insecure_seed=7)
    return work.condense(asked, plan, source(), root / name, Silent()).release
