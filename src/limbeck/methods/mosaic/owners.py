"""Which cell of the pairs each fine cell of a column lies in."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.bins import SURE, bin_starts
from limbeck.methods.mosaic.inner import grouped
from limbeck.methods.mosaic.levels import Column

MANY = 64  # categories up to which each is a cell; of more, those with few records share one


def owner_of(column: Column, records: float, most: int, by_class: bool, each: bool) -> NDArray[np.int64]:
    """The cell that each fine one lies in; "missing" has the last one. each: of few values each is a cell."""
    axis, there = column.axis, column.levels.cells
    owner = np.arange(there)
    if axis.is_cut:
        begin = bin_starts(*column.seen(by_class), records, most, axis.alone) if most > 1 else axis.fewest()
        begin = sorted({*begin, *(_each_seen(column) if each and axis.is_whole and there <= most else [])})
        owner = np.repeat(np.arange(len(begin)), np.diff(begin, append=there))
    elif there > MANY:
        counts, variance = column.seen(by_class=False)
        owner = grouped(counts[0], math.sqrt(variance), records, most)
    return np.append(owner, [owner.max() + 1] * axis.column.missing).astype(np.int64)


def _each_seen(column: Column) -> list[int]:
    """Where cells begin if each of few values that surely has records is one of its own: another column may go by them."""
    counts, variance = column.seen(by_class=False)
    seen = np.flatnonzero(counts[0] > SURE * math.sqrt(variance)).tolist()
    return [place for each in seen for place in (each, each + 1) if place < counts.shape[1]]
