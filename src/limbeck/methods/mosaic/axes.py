"""Axes: columns of a table cut into cells, first finely, then into bins that hold enough records to be seen through the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.methods.mosaic.inner import Inner
from limbeck.methods.mosaic.limits import Limit
from limbeck.privacy.schema import LEAST_APART, Column, Schema
from limbeck.vault.api import Cut

Numbers = NDArray[np.float64]

NO_LIMIT = Limit()
NEAR = 1e-6  # of a step: 0.07 * 100 is a little more than 7
MOST_FINE = 1 << 17  # fine cells of a column: one for each whole number of up to so many
MOST_STEPS = 1 << 10  # one for each day, second or last digit of up to so many
PLAIN_FINE = 512  # of others: half of them alike, half of them ever wider from the low end on
SURE = 4.0  # standard deviations of noise that the records of a bin outnumber
LIGHTEST = 0.0015  # share of the records below which no single value is a bin of its own
FEW = 120  # fine cells up to which a single one is treated like every other bin
AROUND, MANY_MORE = 8, 4.0  # cells on both sides, and how often their mean a cell has to hold to stand out


@dataclass(frozen=True, eq=False)
class Axis:
    """A column, where its numbers begin in an encoded record, and the raw values at which it is cut (none for categories).

    groups: the cell of each category, where some share one. inner: what is known of values inside of cells; None: they are even.
    """

    column: Column
    start: int
    edges: Numbers
    groups: tuple[int, ...] = ()
    inner: Inner | None = None

    @property
    def cells(self) -> int:
        return self.cut().cells

    @property
    def is_cut(self) -> bool:
        return self.column.numeric or self.column.ordinal

    def cut(self) -> Cut:
        numbers = 1 if self.is_cut else len(self.column.categories)
        edges = torch.from_numpy(self._encoded_edges())
        return Cut(start=self.start, numbers=numbers, edges=edges, missing=self.column.missing, groups=self.groups)

    def with_inner(self, inner: Inner) -> Axis:
        return replace(self, inner=inner)

    def _finer(self, inner: Inner) -> Axis:
        return replace(self, edges=inner.edges, groups=(), inner=None)

    @property
    def range(self) -> tuple[float, float]:
        if self.column.ordinal:
            return 0.0, float(max(len(self.column.categories) - 1, 1))
        return self.column.range

    def _grid(self) -> tuple[float, float, float] | None:
        """How many steps make 1, and the first and the last step in the range; None for numbers of any length."""
        return (1.0, *self.range) if self.column.ordinal else self.column.grid

    def _encoded(self, values: Numbers) -> Numbers:
        if not self.is_cut:
            return np.zeros(0)
        low, high = self.range
        return 2 * (values - low) / (high - low) - 1

    def _encoded_edges(self) -> Numbers:
        """Around a special value they are so close that, in single precision, nothing else lies between them."""
        encoded = self._encoded(self.edges)
        for (below, above), mark in zip(_point_edges(self.column), self.column.marks, strict=False):
            encoded[self.edges == below] = np.float32(mark)
            encoded[self.edges == above] = np.nextafter(np.float32(mark), np.float32(2))
        return encoded

    @property
    def alone(self) -> list[int]:
        """The cells of special values, which are never joined with others."""
        return [int(place) for place in np.searchsorted(self.edges, self.column.points, side="right")]

    def fewest(self) -> list[int]:
        """Where cells begin if there are to be as few as can be: special values, and what lies between them."""
        last = len(self.edges)
        return sorted({0, *(place + side for place in self.alone for side in (0, 1) if place + side <= last)})

    def coarser(self, starts: Sequence[int]) -> Axis:
        """With the cells that begin at these places, which include the first one, as its only ones."""
        return replace(self, edges=self.edges[np.asarray(starts[1:], dtype=np.int64) - 1])

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole steps: whole numbers, days, last digits, places in a list."""
        return not self.is_cut or self._grid() is not None

    @property
    def scale(self) -> float:
        grid = self._grid() if self.is_cut else None
        return 1.0 if grid is None else grid[0]

    def spans(self, limit: Limit = NO_LIMIT) -> tuple[Numbers, Numbers]:
        """The least and the largest value of each cell that holds values, as far as the limit goes; in steps where it has any.

        Where nothing is left of a cell, the least is above the largest.
        """
        if not self.is_cut:
            first = last = np.arange(float(len(self.column.categories)))
        else:
            low, high = self.range
            bounds = np.concatenate([[low], self.edges, [high]])
            first, last = bounds[:-1], bounds[1:]
            grid = self._grid()
            if grid is not None:
                # Edges lie halfway between steps.
                scale, least, most = grid
                first = np.where(first == low, least, np.ceil(first * scale))
                last = np.maximum(np.where(last == high, most, np.ceil(last * scale) - 1), first)
        low_end, high_end = limit.low, limit.high
        if self.is_whole:
            low_end, high_end = np.ceil(low_end * self.scale - NEAR), np.floor(high_end * self.scale + NEAR)
        return np.maximum(first, low_end), np.minimum(last, high_end)

    def kept(self, limit: Limit) -> Numbers:
        """(cells,): the share of each cell that the limit leaves. Of a cell with more than one value, values that are to be left
        out are not counted: whoever draws them draws again."""
        if self.inner is not None:
            finer = self._finer(self.inner).kept(limit)
            found = self.inner.kept(finer[: len(self.inner.owner)])
            return np.concatenate([found, finer[len(self.inner.owner) :]])
        (first, last), (low, high) = self.spans(), self.spans(limit)
        if self.is_whole:
            share = np.maximum(high - low + 1, 0) / (last - first + 1)
            share[(low == high) & np.isin(low, [round(value * self.scale) for value in limit.without])] = 0
        else:
            share = np.maximum(high - low, 0) / (last - first)
        gap = [float(limit.gaps)] * self.column.missing
        return np.concatenate([share * limit.values, gap])

    def encoded(
        self, cells: NDArray[np.int64], rng: np.random.Generator, limit: Limit = NO_LIMIT
    ) -> NDArray[np.float32]:
        """(records, width): values drawn from what the limit leaves of their cells, as the schema encodes them."""
        if self.inner is not None:
            return self._encoded_inside(cells, rng, limit, self.inner)
        encoded = np.zeros((len(cells), self.column.width), dtype=np.float32)
        if not self.is_cut:
            encoded[np.arange(len(cells)), cells] = 1
            return encoded
        first, last = self.spans(limit)
        is_there = cells < len(first)
        begin, end = (bound[np.minimum(cells, len(first) - 1)] for bound in (first, last))
        if self.is_whole:
            values = (begin + np.floor(rng.random(len(cells)) * (end - begin + 1))) / self.scale
        else:
            values = begin + rng.random(len(cells)) * (end - begin)
        encoded[:, 0] = np.where(is_there, self._encoded(values), 0.0)
        for place, mark in zip(self.alone, self.column.marks, strict=True):
            encoded[cells == place, 0] = mark
        if self.column.missing:
            encoded[:, 1] = ~is_there
        return encoded

    def _encoded_inside(
        self, cells: NDArray[np.int64], rng: np.random.Generator, limit: Limit, inner: Inner
    ) -> NDArray[np.float32]:
        finer, count = self._finer(inner), len(inner.owner)
        is_there = cells < self.cells - self.column.missing
        found = np.full(len(cells), count, dtype=np.int64)
        found[is_there] = inner.drawn(cells[is_there], rng, finer.kept(limit)[:count])
        return finer.encoded(found, rng, limit)


def columns_of(schema: Schema) -> tuple[Column, ...]:
    """Of a table whose columns have no names: x0, x1 and so on."""
    return schema.columns or tuple(
        Column(name=f"x{index}", low=schema.low, high=schema.high) for index in range(schema.numbers)
    )


def asked_columns(schema: Schema) -> tuple[Column, ...]:
    """Those that are asked about: not what follows from others by a constraint, nor what is unique."""
    return tuple(column for column in columns_of(schema) if column.name not in schema.rules.not_asked)


def axes_cut_at(schema: Schema, edges: Sequence[Numbers]) -> list[Axis]:
    """Every column that is asked about with its edges."""
    columns = columns_of(schema)
    ends = np.cumsum([column.width for column in columns])
    starts = {column.name: int(end) - column.width for column, end in zip(columns, ends, strict=True)}
    asked = asked_columns(schema)
    return [Axis(column, starts[column.name], cuts) for column, cuts in zip(asked, edges, strict=True)]


def fine_axes(schema: Schema) -> list[Axis]:
    """Every column, cut as finely as its public range allows."""
    return axes_cut_at(schema, [_fine_edges(column) for column in asked_columns(schema)])


def _fine_edges(column: Column) -> Numbers:
    if column.ordinal:
        return np.arange(1.0, len(column.categories)) - 0.5
    if not column.numeric:
        return np.zeros(0)
    if column.grid is not None and _is_short(column):
        scale, first, last = column.grid
        return (np.arange(first + 1.0, last + 1.0) - 0.5) / scale
    # Long tails need cells that grow; the least is a millionth of the range.
    low, high = column.range
    even = np.linspace(low, high, PLAIN_FINE // 2 + 1)[1:-1]
    growing = low + np.geomspace((high - low) * 1e-6, high - low, PLAIN_FINE // 2)[:-1]
    edges = np.unique(np.concatenate([even, growing]))
    if column.grid is not None:
        edges = (np.unique(np.ceil(edges * column.grid[0])) - 0.5) / column.grid[0]
    for point in column.points:
        edges = edges[np.abs(edges - point) > LEAST_APART / 2 * (high - low)]
    around = np.array(_point_edges(column)).flatten()
    return np.unique(np.concatenate([edges, around[(around > low) & (around <= high)]]))


def _is_short(column: Column) -> bool:
    """Whether each of its values is a fine cell."""
    if column.grid is None:
        return False
    _, first, last = column.grid
    return last - first < (MOST_FINE if column.integer else MOST_STEPS)


def _point_edges(column: Column) -> list[tuple[float, float]]:
    """The edges of the cells of special values, where these are not cells anyway."""
    if not column.special or _is_short(column):
        return []
    if column.grid is None:
        return [(point, math.nextafter(point, math.inf)) for point in column.points]
    scale = column.grid[0]
    return [((round(point * scale) - 0.5) / scale, (round(point * scale) + 0.5) / scale) for point in column.points]


def bin_starts(counts: Numbers, noise: float, records: float, most: int, alone: Sequence[int] = ()) -> list[int]:
    """Where bins begin among fine cells, from the noised number of records in each. Those at the places `alone` are bins.

    A bin is closed when it surely holds a fair share of the records. A cell that stands out by itself, such as a 0 that most
    records have, is a bin of its own.
    """
    fair = max(records / most, SURE * noise)
    heavy = counts > fair if len(counts) <= FEW else _stand_out(counts, noise, records, most)
    heavy[np.asarray(alone, dtype=np.int64)] = True
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
