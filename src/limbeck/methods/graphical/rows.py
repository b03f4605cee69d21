"""Rows from a graphical model: clique after clique, each given what its parent has fixed.

Within every group of rows that agree so far, cells come in their shares, rounded; only who gets which, and the rest, is drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.graphical.model import GraphicalModel

Cells = NDArray[np.int64]


def rows_of(model: GraphicalModel, count: int, rng: np.random.Generator) -> Cells:
    """(count, columns): the cell of each row in each column, in an order that says nothing."""
    tree = model.tree
    rows = np.zeros((count, len(tree.sizes)), dtype=np.int64)
    done: set[int] = set()
    for clique, shares in zip(tree.cliques, model.shares(), strict=True):
        old, new = [place for place in clique if place in done], [place for place in clique if place not in done]
        table = shares.numpy().transpose([clique.index(place) for place in (*old, *new)])
        groups = np.zeros(count, dtype=np.int64)
        for place in old:
            groups = groups * tree.sizes[place] + rows[:, place]
        cells = cells_given(table.reshape(-1, tree.cells_of(new)), groups, rng)
        for place in reversed(new):
            cells, rows[:, place] = np.divmod(cells, tree.sizes[place])
        done.update(new)
    return rng.permutation(rows)


def cells_given(table: NDArray[np.float64], groups: Cells, rng: np.random.Generator) -> Cells:
    """A cell for each row by its group's line of the table: evenly spaced points of the line's cumulated shares."""
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    found, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    lines = table[found] + 1e-300
    bounds = np.cumsum(lines / lines.sum(1, keepdims=True), axis=1)
    bounds[:, -1] = 1.0
    rank = np.arange(len(groups)) - np.repeat(starts, sizes)
    points = (rank + np.repeat(rng.random(len(found)), sizes)) / np.repeat(sizes, sizes)
    line = np.repeat(np.arange(len(found)), sizes)
    flat = np.searchsorted((bounds + np.arange(len(found))[:, None]).ravel(), line + points, side="right")
    cells = np.empty(len(groups), dtype=np.int64)
    cells[order] = np.clip(flat - line * table.shape[1], 0, table.shape[1] - 1)
    return cells
