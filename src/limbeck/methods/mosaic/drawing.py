"""Rows of a whole table from its model: a part at a time, so that a million wide rows take the memory of their numbers alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.labels import balanced
from limbeck.methods.mosaic.model import TableModel

AT_ONCE = 100_000  # rows that are drawn together
MOST_BALANCED = 10**9  # about a minute for labels that add up; of more rows, or wider ones, they are drawn freely
ROW, PAIR = 500, 1  # what a row takes of it, and a pair of its columns


def drawn_table(
    model: TableModel, rows: int, cells: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """So many rows, encoded, and their labels. cells, labels: the first of them, as the mixture has drawn them."""
    x = np.empty((rows, sum(axis.column.width for axis in model.axes)), dtype=np.float32)
    y, begin = np.empty(rows, dtype=np.int64), 0
    balance = rows * (ROW + PAIR * len(model.axes) ** 2) <= MOST_BALANCED
    while begin < rows:
        part = slice(begin, begin + len(cells))
        y[part] = labelled(model, cells, labels, rng, balance)
        x[part] = encoded(model.axes, cells, rng)
        begin += len(cells)
        if begin < rows:
            cells, labels = model.mixture.drawn(min(AT_ONCE, rows - begin), rng)
    return x, y


def labelled(
    model: TableModel, cells: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator, balance: bool
) -> NDArray[np.int64]:
    """Labels by the model of the label; without one those of the mixture, `labels`, stay."""
    if model.labels is None:
        return labels
    chances = model.label_chances(cells)
    if not balance:
        drawn: NDArray[np.int64] = (chances.cumsum(1)[:, :-1] < rng.random((len(cells), 1))).sum(1)
        return drawn
    starts = np.cumsum([0, *model.sizes])
    return balanced(chances, cells + starts[:-1], int(starts[-1]), rng)


def encoded(axes: Sequence[Axis], cells: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float32]:
    return np.concatenate([axis.encoded(cells[:, place], rng) for place, axis in enumerate(axes)], axis=1)
