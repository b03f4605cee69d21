"""Rows of a whole table from its model: a part at a time, so that a million wide rows take the memory of their numbers alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.fit import Fit
from limbeck.methods.mosaic.keeping import Drawn, kept_rows, numbered
from limbeck.methods.mosaic.labels import balanced
from limbeck.methods.mosaic.model import TableModel

AT_ONCE = 100_000  # rows that are drawn together
MOST_BALANCED = 10**9  # about a minute for labels that add up; of more rows, or wider ones, they are drawn freely
ROW, PAIR = 500, 1  # what a row takes of it, and a pair of its columns


def drawn_table(fit: Fit, rows: int, rng: np.random.Generator) -> tuple[TableModel, Drawn]:
    """So many rows, encoded, with their labels, and the model that they are drawn from."""
    cells, labels = fit.cells(min(rows, AT_ONCE), rng, rows)
    model = fit.model(cells)
    x, y, begin = np.empty((rows, fit.schema.numbers), dtype=np.float32), np.empty(rows, dtype=np.int64), 0
    balance = rows * (ROW + PAIR * len(model.axes) ** 2) <= MOST_BALANCED
    while begin < rows:
        part = slice(begin, begin + len(cells))
        y[part] = labelled(model, cells, labels, rng, balance)
        x[part] = encoded(model, cells, y[part], rng)
        begin += len(cells)
        if begin < rows:
            cells, labels = fit.cells(min(AT_ONCE, rows - begin), rng, rows)
    return model, kept(model, x, y, rng, by_class=False)


def drawn_by_class(fit: Fit, per_class: int, rng: np.random.Generator) -> tuple[TableModel, Drawn]:
    """The same with so many rows of each class."""
    parts = [fit.cells_of(label, per_class, rng) for label in range(len(fit.schema.classes))]
    cells, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    model = fit.plain_model()
    return model, kept(model, encoded(model, cells, labels, rng), labels, rng, by_class=True)


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


def encoded(
    model: TableModel, cells: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float32]:
    return model.rows({}, np.ones(len(model.schema.classes))).encoded(cells, labels, rng)


def kept(
    model: TableModel, x: NDArray[np.float32], y: NDArray[np.int64], rng: np.random.Generator, by_class: bool
) -> Drawn:
    """The rows as the constraints of the schema ask for them, where it has any. by_class: whether a row keeps its class."""
    x, y = mended(model, x, y, rng, by_class)
    return numbered(x, model.schema, rng), y


def mended(
    model: TableModel, x: NDArray[np.float32], y: NDArray[np.int64], rng: np.random.Generator, by_class: bool
) -> Drawn:
    """The same, without numbers for unique columns."""
    if not model.schema.rules:
        return x, y
    return kept_rows(x, y, model.schema, lambda labels: _redrawn(model, labels, rng, by_class), rng, by_class)


def _redrawn(model: TableModel, labels: NDArray[np.int64], rng: np.random.Generator, by_class: bool) -> Drawn:
    """As many rows as there are labels; of the same classes where the set has so many of each."""
    counts = np.bincount(labels, minlength=len(model.schema.classes))
    if not by_class:
        return model.rows({}, np.ones(len(counts))).drawn(len(labels), rng, balance=False)
    order = np.argsort(labels, kind="stable")
    x = np.empty((len(labels), model.schema.numbers), dtype=np.float32)
    only = np.eye(len(counts))
    x[order] = np.concatenate(
        [model.rows({}, only[c]).drawn(n, rng, balance=False)[0] for c, n in enumerate(counts.tolist()) if n]
    )
    return x, labels
