"""Rows that keep to the constraints of a schema.

Columns that follow from others are filled in, and unique ones are numbered. Of a row that does not hold, first values are drawn
again inside of their cells, which leaves all that was measured as it is. Then the cells of those columns are drawn again that a
broken constraint is about, given all others, so that nothing else is moved. The fit has learnt to make that rare (zeros.py). At
last whole rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import NO_LIMIT, Axis
from limbeck.methods.mosaic.limits import Limit
from limbeck.privacy.column import Column
from limbeck.privacy.schema import Schema
from limbeck.privacy.values import encoded, numbers_by_name
from limbeck.privacy.witness import witness

TRIES = 24  # values of a row, inside of the same cells
ROUNDS = 40  # of whole rows
MOST_UNIQUE = 1 << 22  # values that single precision keeps apart wherever they lie in a range

Rows = NDArray[np.float32]
Labels = NDArray[np.int64]
Drawn = tuple[Rows, Labels]


def numbers_to_check(x: Rows, y: Labels, schema: Schema) -> dict[str, NDArray[np.float64]]:
    """The columns that constraints are about, as a decoded row has them."""
    rows = schema.rules.derive(numbers_by_name(x, schema.columns, schema.rules.names))
    if schema.has_label:
        rows[schema.label] = y.astype(np.float64)
    return rows


def hold(x: Rows, y: Labels, schema: Schema) -> NDArray[np.bool_]:
    """Which rows keep to the constraints when they are decoded."""
    rules = schema.rules
    if not rules.names:
        return np.ones(len(x), dtype=np.bool_)
    return rules.hold(numbers_to_check(x, y, schema))


def encoded_rows(
    axes: Sequence[Axis],
    schema: Schema,
    cells: NDArray[np.int64],
    labels: Labels,
    rng: np.random.Generator,
    limits: Mapping[int, Limit],
) -> Rows:
    """Values for rows of cells. Not every row may keep to the constraints: cells may contradict each other."""
    x = _drawn(axes, schema, cells, rng, limits)
    for _ in range(TRIES if schema.rules.names else 0):
        wrong = np.flatnonzero(~hold(x, labels, schema))
        if not len(wrong):
            break
        x[wrong] = _drawn(axes, schema, cells[wrong], rng, limits)
    return x


def _drawn(
    axes: Sequence[Axis],
    schema: Schema,
    cells: NDArray[np.int64],
    rng: np.random.Generator,
    limits: Mapping[int, Limit],
) -> Rows:
    x = np.zeros((len(cells), schema.numbers), dtype=np.float32)
    for place, axis in enumerate(axes):
        part = slice(axis.start, axis.start + axis.column.width)
        x[:, part] = axis.encoded(cells[:, place], rng, limits.get(place, NO_LIMIT))
    return filled(x, schema)


def filled(x: Rows, schema: Schema) -> Rows:
    """The rows with the columns that follow from others by a constraint; changed in place, too."""
    rules = schema.rules
    if rules.derived:
        derived = {each.column.name for each in rules.derived}
        made = rules.derive(numbers_by_name(x, schema.columns, rules.names))
        for column, part in _places(schema):
            if column.name in derived:
                x[:, part] = encoded(column, made[column.name])
    return x


def broken_columns(
    x: Rows, y: Labels, schema: Schema, axes: Sequence[Axis]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The places of rows that break a constraint, and for each of them, (rows, columns), which columns that is about."""
    wrong = np.flatnonzero(~hold(x, y, schema))
    columns = np.zeros((len(wrong), len(axes)), dtype=np.bool_)
    rows = numbers_to_check(x[wrong], y[wrong], schema)
    for names, broken in schema.rules.broken(rows) if len(wrong) else ():
        columns |= broken[:, None] & np.array([axis.column.name in names for axis in axes])
    return wrong, columns


def kept_rows(
    x: Rows, y: Labels, schema: Schema, redrawn: Callable[[Labels], Drawn], rng: np.random.Generator, by_class: bool
) -> Drawn:
    """The rows with those that do not hold drawn again.

    Guarantee: every row holds, and it ends: rows that nothing was drawn for in many rounds are copies of others, or of the one
    that was found before anything was booked. By now everything is paid, so nothing may fail.

    by_class: whether a row keeps its class
    """
    for _ in range(ROUNDS):
        wrong = np.flatnonzero(~hold(x, y, schema))
        if not len(wrong):
            return x, y
        fresh, labels = redrawn(y[wrong])
        count = min(len(fresh), len(wrong))
        x[wrong[:count]], y[wrong[:count]] = fresh[:count], labels[:count]
    holds = hold(x, y, schema)
    for label in np.unique(y[~holds]).tolist() if by_class else [None]:
        wrong = np.flatnonzero(~holds & ((y == label) | (label is None)))
        right = np.flatnonzero(holds & ((y == label) | (label is None)))
        if len(right):
            chosen = rng.choice(right, len(wrong))
            x[wrong], y[wrong] = x[chosen], y[chosen]
        else:
            x[wrong], y[wrong] = _encoded_witness(schema, label)
    return x, y


def _encoded_witness(schema: Schema, label: int | None) -> tuple[Rows, int]:
    row = witness(schema, label)
    parts = [encoded(column, np.array([row[column.name]])) for column in schema.columns]
    return np.concatenate(parts, axis=1)[0], int(row[schema.label]) if schema.has_label else 0


def most_unique(schema: Schema) -> int | None:
    """How many rows a set may have at most; None: any number."""
    return min((_values(column) for column in schema.rules.unique), default=None)


def _values(column: Column) -> int:
    if column.grid is None if column.numeric else True:
        return len(column.categories)
    _, first, last = column.grid  # type: ignore[misc]
    return int(min(last - first + 1, MOST_UNIQUE))


def numbered(x: Rows, schema: Schema, rng: np.random.Generator) -> Rows:
    """Unique columns filled in: different values in an order that says nothing."""
    for column, part in _places(schema):
        if column not in schema.rules.unique:
            continue
        most = _values(column)
        chosen = rng.choice(most, len(x), replace=False).astype(np.float64)
        if column.numeric and column.grid is not None:
            scale, first, last = column.grid
            # Of a long range every so many-th value, so that single precision keeps them apart.
            chosen = (first + np.floor(chosen * ((last - first + 1) / most))) / scale
        x[:, part] = encoded(column, chosen)
    return x


def _places(schema: Schema) -> list[tuple[Column, slice]]:
    ends = np.cumsum([column.width for column in schema.columns]).tolist()
    return [(column, slice(end - column.width, end)) for column, end in zip(schema.columns, ends, strict=True)]
