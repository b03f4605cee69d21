"""Records to rehearse on: as many, of the same shape, range, classes and class shares as a schema says, and nobody's.

Pictures come from a public set of the same kind, brought to the shape. What is at hand is used, nothing is fetched, and
scikit-learn's digits are always there. Rows of a table are drawn: each class has means of its own in every column, and the
columns move together. Guarantee: made of the schema and of public records alone; no record of the schema's owner is opened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.data.fetch import find
from limbeck.data.records import Array, Records
from limbeck.data.source import DataSource, open_source
from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema

COLOUR = ("cifar10", "fashion-mnist", "mnist", "digits")
GREY = ("fashion-mnist", "mnist", "digits")
TEST_RECORDS = 1000  # over all classes, besides the records themselves
MOST_NUMBERS = 2 * 10**9  # of all records; more does not fit into memory
TURNS = 4  # of a picture, to make more classes than the public set has; then once more in negative
APART, TOGETHER = (
    0.55,
    0.6,
)  # of drawn columns: how far classes lie apart, and the share that all columns have in common


@dataclass(frozen=True)
class StandIn:
    """train, test: sources of the stand-in records. words: what they are."""

    train: DataSource
    test: DataSource
    words: str


def stand_in(schema: Schema, seed: int = 0, root: Path | None = None) -> StandIn:
    """schema: of the owner's data; it is kept but for its name. root: a folder that holds the named sets."""
    if schema.records * schema.numbers > MOST_NUMBERS:
        raise BadInput(
            f"{schema.records} records of {schema.numbers} numbers are too many to rehearse with in memory; rehearse with a "
            "schema that says fewer records."
        )
    schema = replace(schema, name=f"rehearsal of {schema.name}")
    rng = np.random.default_rng(seed)
    sizes = np.array(schema.class_sizes or _even(schema.records, len(schema.classes)))
    tests = np.maximum(1, np.round(sizes * TEST_RECORDS / sizes.sum())).astype(np.int64)
    if schema.is_image:
        name = next(each for each in (COLOUR if schema.shape[0] > 1 else GREY) if find(each, root) is not None)
        train, test = (
            _pictures(schema, name, "train", sizes, rng, root),
            _pictures(schema, name, "test", tests, rng, root),
        )
        words = f"pictures of the public set '{name}', brought to {'x'.join(map(str, schema.shape))}"
    else:
        centres = rng.normal(size=(len(schema.classes), len(_columns(schema))))
        train, test = _rows(schema, sizes, centres, rng), _rows(schema, tests, centres, rng)
        words = "rows drawn at random from the schema, with classes that differ a little in every column"
    return StandIn(_source(schema, train, rng), _source(schema, test, rng), words)


def _even(records: int, classes: int) -> tuple[int, ...]:
    return tuple(max(1, records // classes + (index < records % classes)) for index in range(classes))


def _source(schema: Schema, records: Records, rng: np.random.Generator) -> DataSource:
    units = None
    if schema.by_person:
        units = rng.integers(0, schema.units or len(records), size=len(records), dtype=np.int64)
    return DataSource(schema, "stand-in records", lambda _: Records(records.x, records.y, units))


def _pictures(
    schema: Schema, name: str, split: str, sizes: NDArray[np.int64], rng: np.random.Generator, root: Path | None
) -> Records:
    source = open_source(name, split=split, root=root)
    found, top = source.load(), source.schema.high
    kinds = len(source.schema.classes)
    parts = []
    for label, size in enumerate(sizes.tolist()):
        own = rng.permutation(np.flatnonzero(found.y == label % kinds))
        again = rng.choice(own, size=max(size - len(own), 0))
        pictures = found.x[np.concatenate([own[:size], again])].astype(np.float32) / top
        pictures[len(own) :] = _shifted(pictures[len(own) :], rng)
        turn = label // kinds
        pictures = np.rot90(pictures, turn % TURNS, axes=(2, 3))
        parts.append(_fitted(1 - pictures if turn // TURNS % 2 else pictures, schema))
    labels = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    order = rng.permutation(len(labels))
    return Records(np.concatenate(parts)[order], labels[order])


def _shifted(pictures: Array, rng: np.random.Generator) -> Array:
    """Records beyond those that the public set has are others of its own, moved a little."""
    moves = rng.integers(-2, 3, size=(len(pictures), 2))
    moved = [np.roll(picture, tuple(move), axis=(1, 2)) for picture, move in zip(pictures, moves, strict=True)]
    return np.stack(moved) if moved else pictures


def _fitted(pictures: Array, schema: Schema) -> Array:
    """Shares of the range, brought to the schema's shape and range."""
    channels, height, wide = schema.shape
    values = torch.from_numpy(np.ascontiguousarray(pictures))
    if values.shape[2:] != (height, wide):
        values = torch.nn.functional.interpolate(values, (height, wide), mode="bilinear", antialias=True)
    if values.shape[1] != channels:
        values = values.mean(1, keepdim=True).expand(-1, channels, -1, -1)
    raw = schema.low + values.clamp(0, 1) * (schema.high - schema.low)
    if (schema.low, schema.high) == (0.0, 255.0):
        return np.ascontiguousarray(raw.round().to(torch.uint8).numpy())
    return np.ascontiguousarray(raw.numpy())


def _columns(schema: Schema) -> tuple[Column | None, ...]:
    """The columns; of plain numbers one for each."""
    return schema.columns or (None,) * schema.numbers


def _rows(schema: Schema, sizes: NDArray[np.int64], centres: NDArray[np.float64], rng: np.random.Generator) -> Records:
    labels = rng.permutation(np.repeat(np.arange(len(sizes), dtype=np.int64), sizes))
    shared = rng.normal(size=(len(labels), 1))
    own = rng.normal(size=(len(labels), centres.shape[1]))
    scores = APART * centres[labels] + math.sqrt(TOGETHER) * shared + math.sqrt(1 - TOGETHER) * own
    shares = torch.special.ndtr(torch.from_numpy(scores)).numpy()
    encoded = [_cells(column, shares[:, place]) for place, column in enumerate(_columns(schema))]
    x = (np.concatenate(encoded, axis=1) + 1) / 2 * (schema.high - schema.low) + schema.low
    return Records(x.astype(np.float32), labels)


def _cells(column: Column | None, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Encoded cells of one column, from places between 0 and 1."""
    if column is None or column.numeric:
        cells = (2 * shares - 1)[:, None]
    else:
        count = len(column.categories)
        ranks = np.minimum((shares * count).astype(np.int64), count - 1)
        if column.ordinal:
            cells = (2 * ranks / max(count - 1, 1) - 1)[:, None]
        else:
            cells = np.eye(count)[ranks]
    missing = column is not None and column.missing
    return np.concatenate([cells, np.zeros((len(cells), 1))], axis=1) if missing else cells
