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
from limbeck.data.records import Array, Records, as_records, class_indices, no_labels
from limbeck.data.units import no_unit, unit_codes
from limbeck.errors import BadInput, DataUnreadable
from limbeck.privacy.currency import amount
from limbeck.privacy.dates import DATE, moment
from limbeck.privacy.schema import Column, Schema
from limbeck.privacy.values import numbers_by_name
from limbeck.privacy.words import truth_words, word_of

# How many encoded numbers are made at a time.
CHUNK = 1 << 22
LONGEST_NUMBER = 1000


def require_columns(names: Sequence[str], schema: Schema, path: Path) -> None:
    """The schema's columns are there. Columns of the file are counted, never named: without a header line, or in a
    Parquet file made from such a table, their names are the first record."""
    if not schema.columns:
        raise BadInput(f"The schema of '{schema.name}' lists no columns, so the table {path} cannot be encoded.")
    if schema.has_label and schema.label in {column.name for column in schema.columns}:
        raise BadInput(f"The label '{schema.label}' is also listed as a column of the schema of '{schema.name}'.")
    found = set(names)
    if schema.by_person and schema.unit not in found:
        raise no_unit(path, f"column '{schema.unit}'", schema, f"it has {len(names)} columns")
    missing = [name for name in _named(schema) if name not in found]
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
    return [*_named(schema), *([schema.unit] if schema.by_person else [])]


def _named(schema: Schema) -> list[str]:
    """The columns, and last the label where there is one."""
    return [*(column.name for column in schema.columns), *([schema.label] if schema.has_label else [])]


def read(path: Path, schema: Schema) -> Records:
    names = wanted_columns(schema)
    with csv_file.opened(path) as (header, rows):
        pieces = csv_file.pieces(rows, places_of(header, schema, path), rows_at_once(schema), path)
        return as_table((dict(zip(names, piece, strict=True)) for piece in pieces), schema, path)


def places_of(header: Sequence[str], schema: Schema, path: Path) -> list[int]:
    """Where the columns of `wanted_columns` stand in a row."""
    require_columns(header, schema, path)
    index_of = {name: index for index, name in enumerate(header)}
    return [index_of[name] for name in wanted_columns(schema)]


def as_table(pieces: Iterable[Mapping[str, Sequence[Any]]], schema: Schema, path: Path | str) -> Records:
    """The records of a table that comes in pieces, each with the columns of `wanted_columns`."""
    blocks, labels, persons, rows = [], [], [], 0
    for columns in pieces:
        rows += len(columns[schema.columns[0].name])
        require_count(rows, schema, path)
        each = schema.numbers * 8 + (16 if schema.by_person else 0)  # the pieces, and the whole made of them
        require_room(rows * each, path, schema)
        found = as_piece(columns, schema, path)
        blocks.append(found.x)
        labels.append(found.y)
        if schema.by_person:
            persons.append(unit_codes(columns[schema.unit], str(path)))
    if not rows:
        raise DataUnreadable(f"{path} holds no record.")
    units = np.concatenate(persons) if persons else None
    return as_records(np.concatenate(blocks), np.concatenate(labels), schema, str(path), units)


def as_piece(columns: Mapping[str, Sequence[Any]], schema: Schema, path: Path | str) -> Records:
    """Some rows of a table, without their persons."""
    x = encode_rows(columns, schema)
    return Records(x, class_indices(columns[schema.label], schema, str(path)) if schema.has_label else no_labels(x))


def class_words(labels: Sequence[Any], schema: Schema) -> list[str]:
    """The labels of a table as names of classes, whichever type its file or frame has for them."""
    known, truth = frozenset(schema.classes), truth_words(schema.classes)
    return [word_of(label, known, truth) for label in labels]


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
    values = _numbers(cells, column)
    is_known: NDArray[np.bool_] = ~np.isnan(values)
    scaled = (np.clip(np.where(is_known, values, low), low, high) - low) / (high - low)
    return (2 * scaled - 1).astype(np.float32)[:, None], is_known


def _encode_categories(column: Column, cells: Sequence[Any]) -> tuple[Array, NDArray[np.bool_]]:
    rank_of = {category: rank for rank, category in enumerate(column.categories)}
    truth = truth_words(column.categories)
    # Most cells are texts, which are their own word: a million of them need not be asked what they are.
    words = (cell if type(cell) is str else word_of(cell, rank_of, truth) for cell in cells)
    ranks = np.array([rank_of.get(word, -1) for word in words], dtype=np.int64)
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


def _numbers(cells: Sequence[Any], column: Column) -> NDArray[np.float64]:
    """The number of each cell, NaN where it is none. Where all are short texts of numbers, in one go: the same numbers."""
    if not column.kind and not column.format:
        try:
            if max(map(len, cells), default=0) <= LONGEST_NUMBER:
                return np.array(list(map(float, cells)), dtype=np.float64)
        except (TypeError, ValueError, OverflowError):  # some cell is no text, or no number
            pass
    return np.array([_number(cell, column) for cell in cells], dtype=np.float64)


def _number(cell: Any, column: Column) -> float:
    """NaN if it is none."""
    try:
        if column.kind:
            return moment(cell, column.kind, column.format)
        return amount(cell, column.format) if column.format and isinstance(cell, str) else number(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def decode_rows(x: Array, schema: Schema, only: Container[str] | None = None) -> dict[str, Array]:
    """The columns that encoded rows stand for: values within the public ranges, the likeliest of the categories.

    only: the names of those that are needed; None for all.
    """
    x = np.asarray(x)
    if x.ndim != 2 or x.shape[1] != schema.numbers or not schema.columns:
        raise BadInput(f"Rows of shape {x.shape} cannot be decoded by the schema of '{schema.name}' {schema.shape}.")
    names = [column.name for column in schema.columns if only is None or column.name in only]
    numbers = schema.rules.derive(numbers_by_name(x, schema.columns, schema.rules.sources_of(names)))
    return {column.name: _shown(column, numbers[column.name]) for column in schema.columns if column.name in names}


def _shown(column: Column, numbers: NDArray[np.float64]) -> Array:
    """Numbers as a file holds them: whole numbers, dates, names of categories; None for a gap."""
    is_gap = np.isnan(numbers)
    there = np.where(is_gap, 0.0, numbers)
    if not column.numeric:
        values: Array = np.array(column.categories)[there.astype(np.int64)]
    elif column.kind:
        values = there.astype(np.int64).astype("datetime64[D]" if column.kind == DATE else "datetime64[s]")
    else:
        values = there.astype(np.int64) if column.integer else there
    if column.missing:
        values = values.astype(object)
        values[is_gap] = None
    return values
