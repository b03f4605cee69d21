"""From fine cells to those of the pairs, and what the first answer says about values inside of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.inner import Inner, pieces, shares_of_categories, shares_of_numbers

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


def coarse_axis(fine: Axis, owner: Places, counts: Numbers, noise: float) -> Axis:
    """The column cut into fewer cells, each with what is inside.

    owner: for each fine cell the new cell, of cells with values. counts: of records in fine cells, noised.
    """
    if not fine.is_cut:
        if len(set(owner.tolist())) == len(owner):
            return fine
        inner = Inner(np.zeros(0), owner, shares_of_categories(counts, owner))
        return replace(fine, groups=tuple(owner.tolist()), inner=inner)
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    axis = fine.coarser(starts.tolist())
    if len(starts) == len(owner):
        return axis
    begin = pieces(starts, len(owner))
    first, last = fine.spans()
    widths = last - first + (1 if fine.is_whole else 0)
    sums = [np.add.reduceat(each, begin) for each in (counts, np.ones(len(owner)), widths)]
    of_pieces = owner[begin]
    shares = shares_of_numbers(sums[0], sums[1], sums[2], of_pieces, noise)
    return replace(axis, inner=Inner(fine.edges[begin[1:] - 1], of_pieces, shares))


def added(counts: NDArray[np.float32], owner: Places) -> NDArray[np.float32]:
    """(classes, fine cells) to (classes, cells)."""
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    found: NDArray[np.float32] = np.add.reduceat(counts[:, order], starts, axis=1)
    return found
