"""Tables: rows to and from the encoded numbers of a record, by the public columns of the schema.

A numeric column takes one number, its public range scaled to [-1, 1]. A categorical column takes one number per
category (1 for the row's category, -1 for the others) or, if ordinal, one number, its place in the list scaled.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data.records import Array, Records, as_records
from limbeck.errors import BadInput, DataNotFound, DataUnreadable
from limbeck.schema import Column, Schema


def read_columns(path: Path) -> dict[str, list[str]]:
    """All columns of a CSV file with a header line, as stripped texts. A short row has empty cells at its end."""
    try:
        # A byte that is no UTF-8 is content of a record, so it must not raise; it becomes an unknown category.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, skipinitialspace=True)
            header = [name.strip() for name in next(reader, [])]
            rows = [row for row in reader if row]
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except (OSError, csv.Error) as error:
        raise DataUnreadable(f"{path} is not a readable CSV file ({type(error).__name__}).") from None
    if not header or len(set(header)) != len(header):
        raise DataUnreadable(f"{path} needs a header line with {'distinct' if header else 'the'} column names.")
    return {name: [row[i].strip() if i < len(row) else "" for row in rows] for i, name in enumerate(header)}


def require_columns(names: Sequence[str], schema: Schema, path: Path) -> None:
    if not schema.columns:
        raise BadInput(f"The schema of '{schema.name}' lists no columns, so the table {path} cannot be encoded.")
    if schema.label in {column.name for column in schema.columns}:
        raise BadInput(f"The label '{schema.label}' is also listed as a column of the schema of '{schema.name}'.")
    missing = [name for name in (*(column.name for column in schema.columns), schema.label) if name not in names]
    if missing:
        raise DataUnreadable(f"{path} has no column {', '.join(missing)}; its columns are: {', '.join(names)}.")


def read(path: Path, schema: Schema) -> Records:
    columns = read_columns(path)
    require_columns(list(columns), schema, path)
    return as_records(encode_rows(columns, schema), columns[schema.label], schema, str(path))


def encode_rows(columns: Mapping[str, Sequence[Any]], schema: Schema) -> Array:
    """float32 in [-1, 1], (rows, schema.numbers). No content of a cell raises."""
    return np.concatenate([_encode(column, columns[column.name]) for column in schema.columns], axis=1)


def _encode(column: Column, cells: Sequence[Any]) -> Array:
    if column.numeric:
        assert column.low is not None and column.high is not None
        values = np.array([_number(cell, column.low) for cell in cells], dtype=np.float64)
        scaled = (np.clip(values, column.low, column.high) - column.low) / (column.high - column.low)
        return (2 * scaled - 1).astype(np.float32)[:, None]
    index = {category: place for place, category in enumerate(column.categories)}
    places = np.array([index.get("" if cell is None else str(cell), -1) for cell in cells], dtype=np.int64)
    if column.ordinal:
        top = max(len(column.categories) - 1, 1)
        return (2 * np.maximum(places, 0) / top - 1).astype(np.float32)[:, None]
    # 0 and 1, not -1 and 1: the categories that a row does not have should take nothing of the clip.
    hot = np.zeros((len(cells), column.width), dtype=np.float32)
    known = np.flatnonzero(places >= 0)
    hot[known, places[known]] = 1
    return hot


def _number(cell: Any, missing: float) -> float:
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return missing
    return missing if value != value else value


def decode_rows(x: Array, schema: Schema) -> dict[str, Array]:
    """The columns that encoded rows stand for: values within the public ranges, the likeliest of the categories."""
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != schema.numbers or not schema.columns:
        raise BadInput(f"Rows of shape {x.shape} cannot be decoded by the schema of '{schema.name}' {schema.shape}.")
    x = np.nan_to_num(x, nan=-1.0)
    decoded, start = {}, 0
    for column in schema.columns:
        decoded[column.name] = _decode(column, x[:, start : start + column.width])
        start += column.width
    return decoded


def _decode(column: Column, x: Array) -> Array:
    if column.numeric:
        assert column.low is not None and column.high is not None
        values: Array = column.low + (np.clip(x[:, 0], -1, 1) + 1) / 2 * (column.high - column.low)
        if not column.integer:
            return values
        return np.clip(np.rint(values), np.ceil(column.low), np.floor(column.high)).astype(np.int64)
    if column.ordinal:
        places = np.rint((np.clip(x[:, 0], -1, 1) + 1) / 2 * (len(column.categories) - 1)).astype(np.int64)
    else:
        places = x.argmax(axis=1)
    return np.array(column.categories)[places]
