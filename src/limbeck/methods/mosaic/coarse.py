"""From fine cells to those of the pairs, and what the answers say about values inside of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.inner import Inner, pieces, shares_of_categories, shares_of_numbers
from limbeck.methods.mosaic.levels import Column
from limbeck.methods.mosaic.measured import Measured

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coarse:
    """A column cut into fewer cells, and what the first answer says of its fine ones.

    owner: for each fine cell with values its cell.
    """

    column: Column
    owner: Places

    @property
    def fine(self) -> Axis:
        return self.column.axis

    @property
    def counts(self) -> Numbers:
        """Of records of all classes in each fine cell with values, noised."""
        counts: Numbers = self.column.seen(by_class=False)[0][0]
        return counts

    @property
    def axis(self) -> Axis:
        """The column in cells that are even inside; of many categories those that share a cell by their counts."""
        if self.fine.is_cut:
            return self.fine.coarser(self._starts.tolist())
        if len(set(self.owner.tolist())) == len(self.owner):
            return self.fine
        inner = Inner(np.zeros(0), self.owner, shares_of_categories(self.counts, self.owner))
        return replace(self.fine, groups=tuple(self.owner.tolist()), inner=inner)

    @property
    def _starts(self) -> Places:
        return np.flatnonzero(np.diff(self.owner, prepend=-1))

    def shaped(self, totals: Numbers) -> Axis:
        """With what is known of values inside of cells. totals: records in each cell, as far as all answers say it."""
        starts, axis = self._starts, self.axis
        if not axis.is_cut or len(starts) == len(self.owner):
            return axis
        begin = pieces(starts, len(self.owner))
        first, last = self.fine.spans()
        widths = last - first + (1 if self.fine.is_whole else 0)
        seen, variance = self.column.seen(by_class=False)
        counts, lengths = (np.add.reduceat(each, begin) for each in (seen[0], widths))
        variances = variance * np.maximum(self.column.levels.cover(begin, np.append(begin[1:], len(self.owner))), 1.0)
        shares = shares_of_numbers(counts, variances, lengths, self.owner[begin], totals)
        return replace(axis, inner=Inner(self.fine.edges[begin[1:] - 1], self.owner[begin], shares))


def shaped_axes(columns: Sequence[Coarse], measured: Measured, records: float) -> list[Axis]:
    """All columns with what is inside of their cells."""
    totals = (measured.totals()[0] * records).double().numpy()
    return [column.shaped(totals[block]) for column, block in zip(columns, measured.blocks(), strict=True)]
