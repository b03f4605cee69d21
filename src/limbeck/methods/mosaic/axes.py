"""Axes: columns of a table cut into cells, first finely, then into bins that hold enough records to be seen through the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.methods.mosaic.limits import Limit
from limbeck.privacy.schema import Column, Schema
from limbeck.vault.api import Cut

Numbers = NDArray[np.float64]

NO_LIMIT = Limit()
MOST_FINE = 1 << 17  # fine cells of a column: one for each whole number of up to so many
PLAIN_FINE = 512  # of others: half of them alike, half of them ever wider from the low end on
SURE = 4.0  # standard deviations of noise that the records of a bin outnumber
LIGHTEST = 0.0015  # share of the records below which no single value is a bin of its own
FEW = 120  # fine cells up to which a single one is treated like every other bin
AROUND, MANY_MORE = 8, 4.0  # cells on both sides, and how often their mean a cell has to hold to stand out


@dataclass(frozen=True, eq=False)
class Axis:
    """A column, where its numbers begin in an encoded record, and the raw values at which it is cut (none for categories)."""

    column: Column
    start: int
    edges: Numbers

    @property
    def cells(self) -> int:
        return self.cut().cells

    @property
    def is_cut(self) -> bool:
        return self.column.numeric or self.column.ordinal

    def cut(self) -> Cut:
        numbers = 1 if self.is_cut else len(self.column.categories)
        edges = torch.from_numpy(self._encoded(self.edges))
        return Cut(start=self.start, numbers=numbers, edges=edges, missing=self.column.missing)

    @property
    def range(self) -> tuple[float, float]:
        if self.column.ordinal:
            return 0.0, float(max(len(self.column.categories) - 1, 1))
        assert self.column.low is not None and self.column.high is not None
        return self.column.low, self.column.high

    def _encoded(self, values: Numbers) -> Numbers:
        if not self.is_cut:
            return np.zeros(0)
        low, high = self.range
        return 2 * (values - low) / (high - low) - 1

    def coarser(self, starts: Sequence[int]) -> Axis:
        """With the cells that begin at these places, which include the first one, as its only ones."""
        return replace(self, edges=self.edges[np.asarray(starts[1:], dtype=np.int64) - 1])

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers: places in a list are."""
        return self.column.integer or not self.column.numeric

    def spans(self, limit: Limit = NO_LIMIT) -> tuple[Numbers, Numbers]:
        """The least and the largest value of each cell that holds values, as far as the limit goes.

        Where nothing is left of a cell, the least is above the largest.
        """
        if not self.is_cut:
            first = last = np.arange(float(len(self.column.categories)))
        else:
            low, high = self.range
            bounds = np.concatenate([[low], self.edges, [high]])
            first, last = bounds[:-1], bounds[1:]
        if self.is_cut and self.is_whole:
            # Edges of whole numbers lie halfway between them.
            first, last = np.ceil(first), np.where(last == high, np.floor(high), np.ceil(last) - 1)
            last = np.maximum(last, first)
        low_end, high_end = (np.ceil(limit.low), np.floor(limit.high)) if self.is_whole else (limit.low, limit.high)
        return np.maximum(first, low_end), np.minimum(last, high_end)

    def kept(self, limit: Limit) -> Numbers:
        """(cells,): the share of each cell that the limit leaves. Of a cell with more than one value, values that are to be left
        out are not counted: whoever draws them draws again."""
        (first, last), (low, high) = self.spans(), self.spans(limit)
        if self.is_whole:
            share = np.maximum(high - low + 1, 0) / (last - first + 1)
            share[(low == high) & np.isin(low, list(limit.without))] = 0
        else:
            share = np.maximum(high - low, 0) / (last - first)
        gap = [float(limit.gaps)] * self.column.missing
        return np.concatenate([share * limit.values, gap])

    def encoded(
        self, cells: NDArray[np.int64], rng: np.random.Generator, limit: Limit = NO_LIMIT
    ) -> NDArray[np.float32]:
        """(records, width): values drawn evenly from what the limit leaves of their cells, as the schema encodes them."""
        encoded = np.zeros((len(cells), self.column.width), dtype=np.float32)
        if not self.is_cut:
            encoded[np.arange(len(cells)), cells] = 1
            return encoded
        first, last = self.spans(limit)
        is_there = cells < len(first)
        begin, end = (bound[np.minimum(cells, len(first) - 1)] for bound in (first, last))
        if self.is_whole:
            values = begin + np.floor(rng.random(len(cells)) * (end - begin + 1))
        else:
            values = begin + rng.random(len(cells)) * (end - begin)
        encoded[:, 0] = np.where(is_there, self._encoded(values), 0.0)
        if self.column.missing:
            encoded[:, 1] = ~is_there
        return encoded


def columns_of(schema: Schema) -> tuple[Column, ...]:
    """Of a table whose columns have no names: x0, x1 and so on."""
    return schema.columns or tuple(
        Column(name=f"x{index}", low=schema.low, high=schema.high) for index in range(schema.numbers)
    )


def axes_cut_at(schema: Schema, edges: Sequence[Numbers]) -> list[Axis]:
    """Every column of the schema with its edges."""
    columns = columns_of(schema)
    starts = np.cumsum([0, *(column.width for column in columns)])
    return [Axis(column, int(start), cuts) for column, start, cuts in zip(columns, starts[:-1], edges, strict=True)]


def fine_axes(schema: Schema) -> list[Axis]:
    """Every column, cut as finely as its public range allows."""
    return axes_cut_at(schema, [_fine_edges(column) for column in columns_of(schema)])


def _fine_edges(column: Column) -> Numbers:
    if column.ordinal:
        return np.arange(1.0, len(column.categories)) - 0.5
    if not column.numeric:
        return np.zeros(0)
    assert column.low is not None and column.high is not None
    low, high = column.low, column.high
    if column.integer and math.floor(high) - math.ceil(low) < MOST_FINE:
        return np.arange(math.ceil(low) + 1.0, math.floor(high) + 1.0) - 0.5
    # Long tails need cells that grow; the least is a millionth of the range.
    even = np.linspace(low, high, PLAIN_FINE // 2 + 1)[1:-1]
    growing = low + np.geomspace((high - low) * 1e-6, high - low, PLAIN_FINE // 2)[:-1]
    edges = np.unique(np.concatenate([even, growing]))
    return np.unique(np.ceil(edges)) - 0.5 if column.integer else edges


def bin_starts(counts: Numbers, noise: float, records: float, most: int) -> list[int]:
    """Where bins begin among fine cells, from the noised number of records in each.

    A bin is closed when it surely holds a fair share of the records. A cell that stands out by itself, such as a 0 that most
    records have, is a bin of its own.
    """
    fair = max(records / most, SURE * noise)
    heavy = counts > fair if len(counts) <= FEW else _stand_out(counts, noise, records, most)
    starts, is_new, held, cells = [], True, 0.0, 0
    for place, (count, is_heavy) in enumerate(zip(counts.tolist(), heavy.tolist(), strict=True)):
        if is_heavy:
            starts.append(place)
            is_new = True
            continue
        if is_new:
            starts.append(place)
            is_new, held, cells = False, 0.0, 0
        held, cells = held + count, cells + 1
        is_new = held - 0.5 * noise * math.sqrt(cells) >= fair
    return starts


def _stand_out(counts: Numbers, noise: float, records: float, most: int) -> NDArray[np.bool_]:
    """Cells with many more records than those around them, surely not by noise; no more of them than bins are wanted."""
    window = np.ones(2 * AROUND + 1)
    around = (np.convolve(counts, window, "same") - counts) / (np.convolve(np.ones(len(counts)), window, "same") - 1)
    surely = noise * (math.sqrt(2 * math.log(len(counts))) + 0.7)
    found = (counts > max(surely, LIGHTEST * records)) & (counts > MANY_MORE * np.maximum(around, 0))
    kept = np.zeros(len(counts), dtype=np.bool_)
    kept[np.argsort(np.where(found, counts, -np.inf))[-most:]] = True
    result: NDArray[np.bool_] = kept & found
    return result
