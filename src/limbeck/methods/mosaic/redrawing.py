"""Some cells of a row drawn again, given its other cells: first a component, then the cells in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
AT_ONCE = 1 << 11  # rows


def redrawn_cells(
    edges: Sequence[Numbers],
    shares: Numbers,
    cells: NDArray[np.int64],
    columns: NDArray[np.bool_],
    labels: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The rows with other cells in those columns, as the mixture has them beside the cells that stay.

    edges: for each column (components, cells), chances added up. shares: (classes, components). columns: (rows, columns), those
    to be drawn again. labels: the classes whose components are meant; None: those of all
    """
    made = cells.copy()
    for begin in range(0, len(cells), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        own = None if labels is None else labels[part]
        chosen = _components(edges, shares, cells[part], columns[part], own, rng)
        for place, ends in enumerate(edges):
            redo = columns[part, place]
            uniform = rng.random(int(redo.sum()))
            found = (ends[chosen[redo]] < uniform[:, None]).sum(1)
            made[part][redo, place] = np.minimum(found, ends.shape[1] - 1)
    return made


def _components(
    edges: Sequence[Numbers],
    shares: Numbers,
    cells: NDArray[np.int64],
    columns: NDArray[np.bool_],
    labels: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """A component for each row, with the chances that the cells which stay leave it."""
    odds = np.repeat(np.log(np.maximum(shares.flatten(), 1e-300))[None], len(cells), axis=0)
    for place, ends in enumerate(edges):
        chances = np.log(np.maximum(np.diff(ends, axis=1, prepend=0.0), 1e-300)).T
        odds += np.where(columns[:, place, None], 0.0, chances[cells[:, place]])
    if labels is not None:
        is_own = np.repeat(np.arange(len(shares)), shares.shape[1]) == labels[:, None]
        odds = np.where(is_own, odds, -np.inf)
    weights = np.exp(odds - odds.max(1, keepdims=True)).cumsum(1)
    wanted = rng.random(len(cells)) * weights[:, -1]
    found: NDArray[np.int64] = np.minimum((weights < wanted[:, None]).sum(1), weights.shape[1] - 1)
    return found
