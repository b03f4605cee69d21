"""Two .npy files: records in x.npy, labels in y.npy beside it (or train-x.npy and train-y.npy, and so on)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limbeck.data import arrays, faults, pairs
from limbeck.data.records import Array, Records
from limbeck.errors import BadInput, DataNotFound, DataUnreadable
from limbeck.privacy.schema import Schema

RECORDS, LABELS = "x.npy", "y.npy"


def is_records(path: Path) -> bool:
    return path.name == RECORDS or path.name.endswith(("-" + RECORDS, "_" + RECORDS))


def labels_beside(records: Path) -> Path:
    """The labels that belong to an array of records, by its name."""
    if not is_records(records):
        raise BadInput(
            f"{records} is one array; give the one that ends in {RECORDS} and has its labels beside it in {LABELS}."
        )
    found = records.with_name(records.name.removesuffix(RECORDS) + LABELS)
    if not found.is_file():
        raise DataNotFound(f"{records} has no labels file beside it; expected {found}.")
    return found


def sentences(path: Path) -> AbstractContextManager[None]:
    """What goes wrong with a file, as a sentence."""
    return faults.sentences(path, lambda error: "is not a readable .npy file of plain numbers")


@dataclass(frozen=True)
class Announced:
    """What a file's header says, where its numbers begin, and whether they lie column by column."""

    header: arrays.Header
    begin: int
    by_columns: bool


def announced(path: Path) -> Announced:
    """The header, compared with the size of the file."""
    with sentences(path), path.open("rb") as file:
        header, by_columns = arrays.announced(file)
        begin = file.tell()
        size = file.seek(0, 2) - begin
        if size != header.size:
            raise DataUnreadable(f"{path} has {size} bytes in an array whose header announces {header.size}.")
    return Announced(header, begin, by_columns)


def load(records: Path, schema: Schema | None = None) -> tuple[Array, Array]:
    """Records and labels. Both headers are read, and judged, before either array."""
    labels = labels_beside(records)
    x, y = announced(records).header, announced(labels).header
    pairs.judge(x, y, schema, records)
    return _values(records), _values(labels)


def _values(path: Path) -> Array:
    with sentences(path):
        values: Array = np.load(path, allow_pickle=False)
        return values


def words(records: Path) -> str:
    return f"{records} and its labels"


def read(records: Path, schema: Schema) -> Records:
    return pairs.read(records, schema, load, words(records))
