"""A small table of one's own, and releases of it whose rows are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data.table import encode_rows
from limbeck.privacy.schema import Column, Schema
from limbeck.release.reader import Release

SCHEMA = Schema(
    name="shop",
    shape=(6,),
    classes=("no", "yes"),
    records=300,
    low=-1,
    high=1,
    label="buys",
    augmentation=(),
    columns=(
        Column(name="age", low=0, high=100, integer=True),
        Column(name="town", categories=("north", "south", "isle")),
        Column(name="income", low=0, high=1000, missing=True),
    ),
)
TOML = """name = "shop"
shape = [6]
classes = ["no", "yes"]
records = 300
low = -1
high = 1
label = "buys"
augmentation = []

[[columns]]
name = "age"
low = 0
high = 100
integer = true

[[columns]]
name = "town"
categories = ["north", "south", "isle"]

[[columns]]
name = "income"
low = 0
high = 1000
missing = true
"""


def columns(count: int, seed: int) -> dict[str, list[Any]]:
    """Older people of the south buy; one of a hundred lives on the isle, and one of five says no income."""
    random = np.random.default_rng(seed)
    age, town = random.integers(18, 90, count), random.choice(["north", "south", "isle"], count, p=[0.49, 0.5, 0.01])
    income = [
        None if empty else float(round(value)) for empty, value in zip(random.random(count) < 0.2, age * 8, strict=True)
    ]
    buys = np.where((age > 50) & (town == "south"), "yes", "no")
    return {"age": age.tolist(), "town": town.tolist(), "income": income, "buys": buys.tolist()}


def write_csv(path: Path, count: int, seed: int) -> Path:
    """With its schema beside it."""
    found = columns(count, seed)
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in zip(*found.values(), strict=True)]
    path.write_text("\n".join([",".join(found), *lines]) + "\n")
    path.with_name(f"{path.name}.limbeck.toml").write_text(TOML)
    return path


def rows_of(found: dict[str, list[Any]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Encoded rows and their classes."""
    y = np.array([SCHEMA.classes.index(name) for name in found["buys"]])
    return encode_rows(found, SCHEMA), y


def released(release: Release, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Callable[[Path], Release]:
    """A reader that finds other rows in a release."""
    other = Release(x.astype(np.float32), y, release.certificate, release.schema)
    return lambda folder: other
