"""Axes: columns of a table cut into cells, first finely, then into bins that hold enough records to be seen through the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.privacy.schema import Column, Schema
from limbeck.vault.api import Cut

Numbers = NDArray[np.float64]

MOST_FINE = 1 << 17  # fine cells of a column: one for each whole number of up to so many
PLAIN_FINE = 512  # of others: half of them alike, half of them ever wider from the low end on
SURE = 4.0  # standard deviations of noise that the records of a bin outnumber
LIGHTEST = 0.0015  # share of the records below which no single value is a bin of its own
FEW = 120  # fine cells up to which a single one is treated like every other bin


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

    def _range(self) -> tuple[float, float]:
        if self.column.ordinal:
            return 0.0, float(max(len(self.column.categories) - 1, 1))
        return self.column.range

    def _encoded(self, values: Numbers) -> Numbers:
        if not self.is_cut:
            return np.zeros(0)
        low, high = self._range()
        return 2 * (values - low) / (high - low) - 1

    def coarser(self, starts: Sequence[int]) -> Axis:
        """With the cells that begin at these places, which include the first one, as its only ones."""
        return replace(self, edges=self.edges[np.asarray(starts[1:], dtype=np.int64) - 1])

    def encoded(self, cells: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float32]:
        """(records, width): values drawn evenly from their cells, as the schema encodes them."""
        encoded = np.zeros((len(cells), self.column.width), dtype=np.float32)
        if not self.is_cut:
            encoded[np.arange(len(cells)), cells] = 1
            return encoded
        low, high = self._range()
        bounds = np.concatenate([[low], self.edges, [high]])
        is_there = cells < len(bounds) - 1
        begin, end = (bounds[np.minimum(cells + side, len(bounds) - 1)] for side in (0, 1))
        if self.column.integer or self.column.ordinal:
            # Edges of whole numbers lie halfway between them.
            first, last = (
                np.ceil(begin),
                np.maximum(np.where(end == high, np.floor(high), np.ceil(end) - 1), np.ceil(begin)),
            )
            values = first + np.floor(rng.random(len(cells)) * (last - first + 1))
        else:
            values = begin + rng.random(len(cells)) * (end - begin)
        encoded[:, 0] = np.where(is_there, self._encoded(values), 0.0)
        if self.column.missing:
            encoded[:, 1] = ~is_there
        return encoded


def fine_axes(schema: Schema) -> list[Axis]:
    """Every column, cut as finely as its public range allows."""
    columns = schema.columns or tuple(
        Column(name=f"x{index}", low=schema.low, high=schema.high) for index in range(schema.numbers)
    )
    starts = np.cumsum([0, *(column.width for column in columns)])
    return [Axis(column, int(start), _fine_edges(column)) for column, start in zip(columns, starts[:-1], strict=True)]


def _fine_edges(column: Column) -> Numbers:
    if column.ordinal:
        return np.arange(1.0, len(column.categories)) - 0.5
    if not column.numeric:
        return np.zeros(0)
    low, high = column.range
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
    standing_out = noise * (math.sqrt(2 * math.log(max(len(counts), 2))) + 0.7)
    heavy = counts > (fair if len(counts) <= FEW else max(standing_out, LIGHTEST * records))
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
