"""The values of a column as numbers: places in the list of categories, days and seconds; NaN where there is no value.

Encoded numbers become values here and nowhere else, so whatever looks at a row sees it as a Parquet file shows it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy.column import Column

Numbers = NDArray[np.float64]


def numbers_of(column: Column, x: NDArray[Any]) -> Numbers:
    """(rows,) from the encoded numbers of the column, (rows, width): within the public range, the likeliest category."""
    x = np.nan_to_num(np.asarray(x, dtype=np.float64), nan=-1.0)
    values = _values(column, x[:, : column.width - column.missing])
    if column.missing:
        # Of categories the largest number wins, and "missing" is one of them.
        others = np.full(len(x), 0.5) if column.numeric or column.ordinal else x[:, :-1].max(axis=1)
        values[x[:, -1] > others] = np.nan
    return values


def numbers_by_name(x: NDArray[Any], columns: Sequence[Column], only: Container[str]) -> dict[str, Numbers]:
    """Of encoded rows the values of these columns, by name."""
    found, start = {}, 0
    for column in columns:
        if column.name in only:
            found[column.name] = numbers_of(column, x[:, start : start + column.width])
        start += column.width
    return found


def _values(column: Column, x: Numbers) -> Numbers:
    if column.numeric:
        return _scaled(column, np.clip(x[:, 0], -1, 1))
    if column.ordinal:
        places: Numbers = np.rint((np.clip(x[:, 0], -1, 1) + 1) / 2 * (len(column.categories) - 1))
        return places
    likeliest: Numbers = x.argmax(axis=1).astype(np.float64)
    return likeliest


def _scaled(column: Column, x: Numbers) -> Numbers:
    low, high = column.range
    values: Numbers = low + (x + 1) / 2 * (high - low)
    if column.grid is not None:
        scale, first, last = column.grid
        values = np.clip(np.rint(values * scale), first, last) / scale
    for point, mark in zip(column.points, column.marks, strict=True):
        values[x.astype(np.float32) == np.float32(mark)] = point
    return values


def encoded(column: Column, numbers: Numbers) -> NDArray[np.float32]:
    """(rows, width): numbers as an encoded record has them; NaN as missing where that may be."""
    is_there = ~np.isnan(numbers)
    if column.numeric:
        low, high = column.range
        known = np.clip(np.where(is_there, numbers, low), low, high)
        made = (2 * ((known - low) / (high - low)) - 1).astype(np.float32)[:, None]
    elif column.ordinal:
        top = max(len(column.categories) - 1, 1)
        made = (2 * np.where(is_there, numbers, 0) / top - 1).astype(np.float32)[:, None]
    else:
        made = np.zeros((len(numbers), len(column.categories)), dtype=np.float32)
        there = np.flatnonzero(is_there)
        made[there, numbers[there].astype(np.int64)] = 1
    if not column.missing:
        return made
    gap = (~is_there).astype(np.float32)[:, None]
    return np.concatenate([made * (1 - gap), gap], axis=1)
