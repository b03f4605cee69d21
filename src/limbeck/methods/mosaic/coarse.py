"""From fine cells to those of the pairs, and what the answers say about values inside of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.inner import Inner, pieces, shares_of_categories, shares_of_numbers
from limbeck.methods.mosaic.measured import Measured

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coarse:
    """A column cut into fewer cells, and what the first answer says of its fine ones, of those with values.

    owner: for each fine cell its cell. counts: of records, noised. noise: the standard deviation of that.
    """

    fine: Axis
    owner: Places
    counts: Numbers
    noise: float

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
        counts, sizes, lengths = (
            np.add.reduceat(each, begin) for each in (self.counts, np.ones(len(self.owner)), widths)
        )
        shares = shares_of_numbers(counts, sizes, lengths, self.owner[begin], self.noise, totals)
        return replace(axis, inner=Inner(self.fine.edges[begin[1:] - 1], self.owner[begin], shares))


def shaped_axes(columns: Sequence[Coarse], measured: Measured, records: float) -> list[Axis]:
    """All columns with what is inside of their cells."""
    totals = (measured.totals() * records).double().numpy()
    return [column.shaped(totals[block]) for column, block in zip(columns, measured.blocks(), strict=True)]


def added(counts: NDArray[np.float32], owner: Places) -> NDArray[np.float32]:
    """(classes, fine cells) to (classes, cells)."""
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    found: NDArray[np.float32] = np.add.reduceat(counts[:, order], starts, axis=1)
    return found
