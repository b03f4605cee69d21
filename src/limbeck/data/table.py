"""Tables: rows to and from the encoded numbers of a record, by the public columns of the schema.

A numeric column takes one number, its public range scaled to [-1, 1]; dates and time stamps are days and seconds. A
categorical column takes one number per category (1 for the row's category, 0 for the others) or, if ordinal, one number, its
rank in the list scaled. A column that may be missing takes one more number: 1 for a row that has no value there, 0 for others.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.data import csv_file
from limbeck.data.limits import require_count, require_room
from limbeck.data.records import Array, Records, as_records, class_indices
from limbeck.data.units import no_unit, unit_codes
from limbeck.errors import BadInput, DataUnreadable
from limbeck.privacy.dates import DATE, moment
from limbeck.privacy.schema import Column, Schema

# How many encoded numbers are made at a time.
CHUNK = 1 << 22
LONGEST_NUMBER = 1000


def require_columns(names: Sequence[str], schema: Schema, path: Path) -> None:
    """The schema's columns are there. Columns of the file are counted, never named: without a header line, or in a
    Parquet file made from such a table, their names are the first record."""
    if not schema.columns:
        raise BadInput(f"The schema of '{schema.name}' lists no columns, so the table {path} cannot be encoded.")
    if schema.label in {column.name for column in schema.columns}:
        raise BadInput(f"The label '{schema.label}' is also listed as a column of the schema of '{schema.name}'.")
    found = set(names)
    if schema.by_person and schema.unit not in found:
        raise no_unit(path, f"column '{schema.unit}'", schema, f"it has {len(names)} columns")
    missing = [name for name in (*(column.name for column in schema.columns), schema.label) if name not in found]
    if missing:
        listed = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        raise DataUnreadable(
            f"{path} has no column {listed}, which the schema of '{schema.name}' lists; it has {len(names)} columns. "
            "The names must stand in its first line."
        )


def rows_at_once(schema: Schema) -> int:
    return max(1, min(8192, CHUNK // schema.numbers))


def wanted_columns(schema: Schema) -> list[str]:
    """All that is read of a table: the columns, the label, and who a row is about where the schema says."""
    return [*(column.name for column in schema.columns), schema.label, *([schema.unit] if schema.by_person else [])]


def read(path: Path, schema: Schema) -> Records:
    names = wanted_columns(schema)
    with csv_file.opened(path) as (header, rows):
        require_columns(header, schema, path)
        index_of = {name: index for index, name in enumerate(header)}
        pieces = csv_file.pieces(rows, [index_of[name] for name in names], rows_at_once(schema), path)
        return as_table((dict(zip(names, piece, strict=True)) for piece in pieces), schema, path)


def as_table(pieces: Iterable[Mapping[str, Sequence[Any]]], schema: Schema, path: Path) -> Records:
    """The records of a table that comes in pieces, each with the columns of `wanted_columns`."""
    blocks, labels, persons, rows = [], [], [], 0
    for columns in pieces:
        rows += len(columns[schema.label])
        require_count(rows, schema, path)
        each = schema.numbers * 8 + (16 if schema.by_person else 0)  # the pieces, and the whole made of them
        require_room(rows * each, path, schema)
        blocks.append(encode_rows(columns, schema))
        labels.append(class_indices(columns[schema.label], schema, str(path)))
        if schema.by_person:
            persons.append(unit_codes(columns[schema.unit], str(path)))
    if not rows:
        raise DataUnreadable(f"{path} holds no record.")
    units = np.concatenate(persons) if persons else None
    return as_records(np.concatenate(blocks), np.concatenate(labels), schema, str(path), units)


def encode_rows(columns: Mapping[str, Sequence[Any]], schema: Schema) -> Array:
    """float32 in [-1, 1], (rows, schema.numbers). No content of a cell raises."""
    return np.concatenate([_encode(column, columns[column.name]) for column in schema.columns], axis=1)


def _encode(column: Column, cells: Sequence[Any]) -> Array:
    encoded, is_known = _encode_numbers(column, cells) if column.numeric else _encode_categories(column, cells)
    if not column.missing:
        return encoded
    empty = np.array([_is_empty(cell) for cell in cells], dtype=np.bool_) | ~is_known
    # Whoever has no value takes nothing of the clip but for saying so.
    missing = empty.astype(np.float32)[:, None]
    return np.concatenate([encoded * (1 - missing), missing], axis=1)


def _encode_numbers(column: Column, cells: Sequence[Any]) -> tuple[Array, NDArray[np.bool_]]:
    """The encoded values, and which of them are values at all."""
    low, high = column.range
    values = np.array([_number(cell, column.kind) for cell in cells], dtype=np.float64)
    is_known: NDArray[np.bool_] = ~np.isnan(values)
    scaled = (np.clip(np.where(is_known, values, low), low, high) - low) / (high - low)
    return (2 * scaled - 1).astype(np.float32)[:, None], is_known


def _encode_categories(column: Column, cells: Sequence[Any]) -> tuple[Array, NDArray[np.bool_]]:
    rank_of = {category: rank for rank, category in enumerate(column.categories)}
    ranks = np.array([rank_of.get("" if cell is None else str(cell), -1) for cell in cells], dtype=np.int64)
    is_known: NDArray[np.bool_] = ranks >= 0
    if column.ordinal:
        top = max(len(column.categories) - 1, 1)
        return (2 * np.maximum(ranks, 0) / top - 1).astype(np.float32)[:, None], is_known
    # 0 and 1, not -1 and 1: the categories that a row does not have should take nothing of the clip.
    hot = np.zeros((len(cells), len(column.categories)), dtype=np.float32)
    known = np.flatnonzero(is_known)
    hot[known, ranks[known]] = 1
    return hot, is_known


def _is_empty(cell: Any) -> bool:
    """Nothing, an empty text, or a number that is none."""
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and cell != cell)


def number(cell: Any) -> float:
    """The number of a cell; ValueError if it is none. A text of many thousands of digits is none: reading it takes long."""
    if isinstance(cell, str) and len(cell) > LONGEST_NUMBER:
        raise ValueError
    return float(cell)


def _number(cell: Any, kind: str) -> float:
    """NaN if it is none."""
    try:
        return moment(cell, kind) if kind else number(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def decode_rows(x: Array, schema: Schema, only: Container[str] | None = None) -> dict[str, Array]:
    """The columns that encoded rows stand for: values within the public ranges, the likeliest of the categories.

    only: the names of those that are needed; None for all.
    """
    x = np.asarray(x)
    if x.ndim != 2 or x.shape[1] != schema.numbers or not schema.columns:
        raise BadInput(f"Rows of shape {x.shape} cannot be decoded by the schema of '{schema.name}' {schema.shape}.")
    decoded, start = {}, 0
    for column in schema.columns:
        if (
            only is None or column.name in only
        ):  # one after the other: a million wide rows in double precision fill a machine
            part = x[:, start : start + column.width].astype(np.float64)
            decoded[column.name] = _decode(column, np.nan_to_num(part, nan=-1.0))
        start += column.width
    return decoded


def _decode(column: Column, x: Array) -> Array:
    decoded = _decode_values(column, x[:, : column.width - column.missing])
    if not column.missing:
        return decoded
    values: Array = decoded.astype(object)
    values[_is_missing(column, x)] = None
    return values


def _is_missing(column: Column, x: Array) -> NDArray[np.bool_]:
    """Of categories the largest number wins, and "missing" is one of them."""
    others = np.full(len(x), 0.5) if column.numeric or column.ordinal else x[:, :-1].max(axis=1)
    missing: NDArray[np.bool_] = x[:, -1] > others
    return missing


def _decode_values(column: Column, x: Array) -> Array:
    if column.numeric:
        return _decode_numbers(column, np.clip(x[:, 0], -1, 1))
    if column.ordinal:
        ranks = np.rint((np.clip(x[:, 0], -1, 1) + 1) / 2 * (len(column.categories) - 1)).astype(np.int64)
    else:
        ranks = x.argmax(axis=1)
    return np.array(column.categories)[ranks]


def _decode_numbers(column: Column, x: Array) -> Array:
    low, high = column.range
    values: Array = low + (x + 1) / 2 * (high - low)
    if column.grid is not None:
        scale, first, last = column.grid
        values = np.clip(np.rint(values * scale), first, last) / scale
    for point, mark in zip(column.points, column.marks, strict=True):
        values[x.astype(np.float32) == np.float32(mark)] = point
    if column.kind:
        return values.astype(np.int64).astype("datetime64[D]" if column.kind == DATE else "datetime64[s]")
    return values.astype(np.int64) if column.integer else values
