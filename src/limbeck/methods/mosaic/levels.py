"""Columns counted at several widths at once, and what these counts say together about every fine cell.

A sum of a thousand noised cells is a thousand noises. A column of many fine cells is therefore asked about in wider ones, too;
the counts are made to agree: of all fine counts that add up, the likeliest (Hay et al. 2010, with any number of cells in the last
node). What an interval holds is then known up to the noise of the few nodes that cover it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import Axis
from limbeck.vault.api import Answer, Cells

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

TWO_LEVELS, THREE_LEVELS = 128, 8192  # fine cells above which a column has so many levels
FEW = 64  # cells up to which pairs say of each what it holds, too; of more categories the rare ones share a cell there
SMALL = 0.3  # how much such a column counts beside each level of others


@dataclass(frozen=True)
class Levels:
    """How many there are for `cells` cells with values, and how many nodes make one of the next level.

    >>> Levels.of(100), Levels.of(100_000)
    (Levels(cells=100, count=1, branch=100), Levels(cells=100000, count=3, branch=47))
    """

    cells: int
    count: int
    branch: int

    @staticmethod
    def of(cells: int) -> Levels:
        count = 1 + (cells > TWO_LEVELS) + (cells > THREE_LEVELS)
        branch = 2
        while branch**count < cells:
            branch += 1
        return Levels(cells, count, branch)

    def starts(self, level: int) -> Places:
        """Where the nodes of a level begin among fine cells."""
        return np.arange(0, self.cells, self.branch**level)

    def cover(self, begin: Places, end: Places) -> Numbers:
        """How many nodes an interval of fine cells is made of, at least."""
        begin, end = (np.array(each, dtype=np.int64) for each in np.broadcast_arrays(begin, end))
        nodes = np.zeros(begin.shape)
        for _ in range(self.count - 1):
            up, down = -(-begin // self.branch), end // self.branch
            is_inside = up > down
            nodes += np.where(is_inside, end - begin, up * self.branch - begin + end - down * self.branch)
            begin, end = np.where(is_inside, 0, up), np.where(is_inside, 0, down)
        return nodes + (end - begin)


@dataclass(frozen=True, eq=False)
class Column:
    """A column as the first answer shows it.

    counts    (classes, cells): records in each fine cell, the last one holds those without a value where there may be some
    variance  of the noise of one node
    """

    axis: Axis
    counts: Numbers
    variance: float

    @property
    def levels(self) -> Levels:
        return levels_of(self.axis)

    def seen(self, by_class: bool) -> tuple[Numbers, float]:
        """Counts in fine cells with values, (classes, cells) or (1, cells) of all classes, and the variance of one node."""
        counts = self.counts[:, : self.levels.cells]
        if by_class:
            return counts, self.variance
        return counts.sum(0, keepdims=True), self.variance * len(counts)

    def added(self, owner: Places) -> tuple[Numbers, Numbers]:
        """(classes, cells) and (cells,): counts in the cells that fine ones lie in, and their variances."""
        order = np.argsort(owner, kind="stable")
        starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        counts = np.add.reduceat(self.counts[:, order], starts, axis=1)
        nodes = np.diff(starts, append=len(owner)).astype(np.float64)
        if self.axis.is_cut:
            nodes = self.nodes(starts)
        return counts, self.variance * np.maximum(nodes, 1.0)

    def nodes(self, starts: Places) -> Numbers:
        """How many nodes each run of fine cells is made of, at least; they begin at these places."""
        return self.levels.cover(starts, np.append(starts[1:], self.axis.cells))


def levels_of(axis: Axis) -> Levels:
    """Categories have one: none of them lies beside another."""
    cells = axis.cells - axis.column.missing
    return Levels.of(cells) if axis.is_cut else Levels(cells, 1, max(cells, 2))


def nodes_of(axis: Axis) -> int:
    """Of all levels."""
    levels = levels_of(axis)
    return sum(len(levels.starts(level)) + axis.column.missing for level in range(levels.count))


def question(axes: Sequence[Axis], form: int = 1, alone: bool = False) -> Cells:
    """All columns at all of their levels, finest first.

    form: 2 has weights that grow with the cells of a column. alone: nothing else says how columns go with the classes; then all
    of them count the same.
    """
    cuts, weights = [], []
    for axis in axes:
        levels = levels_of(axis)
        for level in range(levels.count):
            cuts.append(axis.cut() if level == 0 else axis.coarser(levels.starts(level).tolist()).cut())
            few = SMALL if form == 1 else 1.0 if alone else max(SMALL, levels.cells / FEW)
            weights.append(few if levels.cells <= FEW else 1.0)
    tuples = tuple((place,) for place in range(len(cuts)))
    # Of equal weights none need be told.
    return Cells(cuts=tuple(cuts), tuples=tuples, weights=tuple(weights) if len(set(weights)) > 1 else ())


def counted(axes: Sequence[Axis], cells: Cells, answer: Answer) -> list[Column]:
    """What the answer to `question` says."""
    parts = np.split(answer.values.astype(np.float64), np.cumsum([cut.cells for cut in cells.cuts])[:-1], axis=1)
    found, place = [], 0
    for axis in axes:
        count = levels_of(axis).count
        own = [part / added for part, added in zip(parts[place : place + count], cells.added[place:], strict=False)]
        found.append(_column(axis, own, (answer.noise_std / cells.added[place]) ** 2))
        place += count
    return found


def _column(axis: Axis, found: Sequence[Numbers], variance: float) -> Column:
    """found: (classes, cells) of each level, all with the same variance."""
    missing = int(axis.column.missing)
    counts = agreed([part[:, : part.shape[1] - missing] for part in found], levels_of(axis).branch)
    gaps = np.mean([part[:, part.shape[1] - missing :] for part in found], axis=0)
    return Column(axis, np.concatenate([counts, gaps], axis=1), variance)


def agreed(counted: Sequence[Numbers], branch: int) -> Numbers:
    """(classes, fine cells): the likeliest counts, from those of nodes of each level, finest first, whose noise is the same.

    Upwards, a node's own count and the sum of its children are weighed by their precision; downwards, what children lack of it
    is shared among them.
    """
    known, variances = [counted[0]], [np.ones(counted[0].shape[1])]
    for own in counted[1:]:
        starts = np.arange(0, known[-1].shape[1], branch)
        below, spread = np.add.reduceat(known[-1], starts, axis=1), np.add.reduceat(variances[-1], starts)
        known.append((own * spread + below) / (1 + spread))
        variances.append(spread / (1 + spread))
    found = known[-1]
    for below, variance in zip(known[-2::-1], variances[-2::-1], strict=True):
        starts, parents = np.arange(0, below.shape[1], branch), np.arange(below.shape[1]) // branch
        lacking = (found - np.add.reduceat(below, starts, axis=1)) / np.add.reduceat(variance, starts)
        found = below + lacking[:, parents] * variance
    return found


def total(found: Sequence[Column]) -> float:
    """How many records there are, and no fewer than noise would say: a column tells it the better, the fewer nodes it takes."""
    nodes = [column.levels.cover(np.zeros(1, dtype=np.int64), np.array([column.levels.cells]))[0] for column in found]
    precision = np.array(
        [1 / (column.variance * len(column.counts) * count) for column, count in zip(found, nodes, strict=True)]
    )
    totals = np.array([column.counts.sum() for column in found])
    return max(float(totals @ precision / precision.sum()), math.sqrt(min(column.variance for column in found)), 1.0)
