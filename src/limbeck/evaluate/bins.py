"""The cells of a table as a few bins: its categories, and numbers cut at the real rows' 20-quantiles.

The cuts are read off private records, so bins and all that is counted in them are the owner's.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Array
from limbeck.privacy.dates import iso_text
from limbeck.privacy.schema import Column, Schema

QUANTILES = 20
NO_VALUE = "no value"


@dataclass(frozen=True, eq=False)
class Axis:
    """A column of the table, or its label (then `column` is None). The last bin holds cells without a value.

    start: where the column begins in an encoded row. cuts: of a numeric column, in encoded numbers; a cell that equals a
    cut lies below it.
    """

    name: str
    bins: tuple[str, ...]
    column: Column | None = None
    start: int = 0
    cuts: NDArray[np.float32] | None = None

    @property
    def numeric(self) -> bool:
        return self.cuts is not None

    def codes(self, x: Array, y: Array) -> NDArray[np.int64]:
        """The bin of each row's cell. x: encoded rows with hard categories. y: their classes."""
        if self.column is None:
            return y.astype(np.int64)
        cells = x[:, self.start : self.start + self.column.width]
        found = _bins(self.column, cells, self.cuts)
        found[_without_value(self.column, cells)] = len(self.bins) - 1
        return found


def axes(schema: Schema, real: Array) -> list[Axis]:
    """One for each column, and one for the label where there is one. `real`: the encoded real rows, where numbers are cut."""
    cuts, start = {}, 0
    for column in schema.columns:
        if column.numeric:
            cuts[column.name] = _cuts(column, real[:, start : start + column.width])
        start += column.width
    return axes_cut(schema, cuts)


def axes_cut(schema: Schema, numbers: Mapping[str, NDArray[np.float32]]) -> list[Axis]:
    """The same with the cuts of each numeric column given."""
    found, start = [], 0
    for column in schema.columns:
        cuts = numbers.get(column.name)
        names = column.categories if cuts is None else _intervals(column, cuts)
        found.append(Axis(column.name, (*names, NO_VALUE), column, start, cuts))
        start += column.width
    return [*found, Axis(schema.label, (*schema.classes, NO_VALUE))] if schema.has_label else found


def _cuts(column: Column, cells: Array) -> NDArray[np.float32]:
    there = cells[~_without_value(column, cells), 0].astype(np.float32)
    if not len(there):
        return np.zeros(1, dtype=np.float32)
    inner = np.arange(1, QUANTILES) / QUANTILES
    # A cut is a cell of the table itself, so that whole numbers fall on the same side in both tables.
    return np.unique(np.quantile(there, inner, method="inverted_cdf")).astype(np.float32)


def _bins(column: Column, cells: Array, cuts: NDArray[np.float32] | None) -> NDArray[np.int64]:
    if cuts is not None:
        return np.searchsorted(cuts, cells[:, 0].astype(np.float32), side="left").astype(np.int64)
    if column.ordinal:
        return np.rint((cells[:, 0] + 1) / 2 * (len(column.categories) - 1)).astype(np.int64)
    likeliest: NDArray[np.int64] = cells[:, : len(column.categories)].argmax(axis=1)
    return likeliest


def _without_value(column: Column, cells: Array) -> NDArray[Any]:
    """Rows whose cell is empty, where the schema allows that, or holds none of the listed categories."""
    empty: NDArray[Any] = cells[:, -1] > 0.5 if column.missing else np.zeros(len(cells), dtype=bool)
    if column.numeric or column.ordinal:
        return empty
    unlisted: NDArray[Any] = cells[:, : len(column.categories)].max(axis=1) <= 0
    found: NDArray[Any] = empty | unlisted
    return found


def _intervals(column: Column, cuts: NDArray[np.float32]) -> list[str]:
    """
    >>> _intervals(Column(name="age", low=0, high=100), np.array([-0.5, 0.0]))
    ['up to 25', '25 to 50', 'above 50']
    """
    low_end, high_end = column.range
    values = [low_end + (float(cut) + 1) / 2 * (high_end - low_end) for cut in cuts]
    ends = [iso_text(round(value), column.kind) if column.kind else f"{value:.5g}" for value in values]
    between = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
    return [f"up to {ends[0]}", *between, f"above {ends[-1]}"]
