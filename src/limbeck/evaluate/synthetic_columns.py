"""The columns of a synthetic table by themselves, and beside them what its model says: all of it public.

The model of a release was fitted to the noised answers, so its shares are what the answers said. No private record is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Array
from limbeck.evaluate.bins import Axis, axes_cut
from limbeck.evaluate.decoded import decoded, is_table
from limbeck.evaluate.table_marginals import ColumnMarginal, Shares
from limbeck.methods.graphical.network import NetworkModel
from limbeck.methods.mosaic.axes import Axis as Cells
from limbeck.methods.mosaic.model import TableModel
from limbeck.privacy.schema import Column, Schema

BINS = 20
MOST_ROWS = 50_000
DIGITS = 6
Numbers = NDArray[np.float64]


def synthetic_columns(
    x: Array, y: Array, schema: Schema, model: TableModel | NetworkModel | None = None
) -> tuple[ColumnMarginal, ...]:
    """The share of each bin among the rows (`synthetic`) and by the model (`real` is then its share; else it is None).

    Numbers are cut into 20 equal parts of the range that the rows have. Of very many rows every so
    many-th is counted: more of them would not show on a chart.
    """
    if not is_table(schema) or not len(x):
        return ()
    step = -(-len(x) // MOST_ROWS)
    x, y = x[::step], y[::step]
    rows = decoded(x, schema).numpy()
    cells = {} if model is None else {axis.column.name: axis for axis in model.axes}
    shares = {} if model is None else model.column_shares()
    found = []
    for axis in axes_cut(schema, _even_cuts(rows, schema)):
        own = np.bincount(axis.codes(rows, y), minlength=len(axis.bins)) / len(rows)
        said = None
        if axis.column is not None and axis.name in cells:
            said = _binned(cells[axis.name], shares[axis.name], axis)
        found.append(_marginal(axis, own, said))
    return tuple(found)


def _marginal(axis: Axis, own: Numbers, said: Numbers | None) -> ColumnMarginal:
    both = [
        Shares(
            real=None if said is None else round(float(said[place]), DIGITS), synthetic=round(float(own[place]), DIGITS)
        )
        for place in range(len(axis.bins))
    ]
    return ColumnMarginal(
        name=axis.name,
        numeric=axis.numeric,
        total_variation=None if said is None else round(0.5 * float(np.abs(own - said).sum()), DIGITS),
        missing=both[-1],
        bins=dict(zip(axis.bins[:-1], both, strict=False)),
    )


def _even_cuts(rows: Array, schema: Schema) -> dict[str, NDArray[np.float32]]:
    """In encoded numbers, of every numeric column."""
    cuts, start = {}, 0
    for column in schema.columns:
        if column.numeric:
            there = rows[:, start] if not column.missing else rows[rows[:, start + 1] < 0.5, start]
            low, high = (float(there.min()), float(there.max())) if len(there) else (-1.0, 1.0)
            cuts[column.name] = _between_steps(column, np.linspace(low, high, BINS + 1)[1:-1])
        start += column.width
    return cuts


def _between_steps(column: Column, cuts: Numbers) -> NDArray[np.float32]:
    """Halfway between two values where they have steps: what lies on a cut would be on either side by chance."""
    if column.grid is not None:
        (low, high), scale = column.range, column.grid[0]
        raw = (np.floor(_raw(column, cuts) * scale) + 0.5) / scale
        cuts = 2 * (raw - low) / (high - low) - 1
    return np.unique(cuts.astype(np.float32))


def _binned(cells: Cells, shares: Numbers, axis: Axis) -> Numbers:
    """The shares of the model's cells in the bins of a chart; a cell that reaches over several is shared out evenly."""
    column = cells.column
    found = np.zeros(len(axis.bins))
    found[-1] = shares[-1] if column.missing else 0.0
    values, edges = shares[: len(shares) - column.missing], cells.edges
    if cells.inner is not None:
        values, edges = values[cells.inner.owner] * cells.inner.shares, cells.inner.edges
    if axis.cuts is None:
        found[: len(values)] = values
        return found
    ends = np.concatenate([cells.range[:1], edges, cells.range[1:]])
    low, high = ends[:-1], ends[1:]
    bounds = np.concatenate([[-np.inf], _raw(column, axis.cuts), [np.inf]])
    reach = np.minimum(high[:, None], bounds[None, 1:]) - np.maximum(low[:, None], bounds[None, :-1])
    reach = np.maximum(reach, 0)
    whole = reach.sum(1, keepdims=True)
    place = np.clip(np.searchsorted(bounds, (low + high) / 2, side="left") - 1, 0, len(bounds) - 2)
    even = np.where(whole > 0, reach / np.where(whole > 0, whole, 1), np.eye(len(bounds) - 1)[place])
    found[: len(bounds) - 1] = values @ even
    return found


def _raw(column: Column, cuts: NDArray[np.floating[Any]]) -> Numbers:
    low, high = column.range
    return np.asarray(low + (cuts.astype(np.float64) + 1) / 2 * (high - low))
