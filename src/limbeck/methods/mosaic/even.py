"""Rows of a mixture, drawn so that pairs of cells add up.

Drawn independently, a pair of cells that n rows should have is off by sqrt(n). Here each row is the best of a few that its
component gives: the one whose pairs of cells are lacking most so far.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.methods.mosaic.follow import Follow, followed, wanted_pairs
from limbeck.methods.mosaic.mixture import Mixture, drawn_cells, edges_of, places_in

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

TRIED = 8  # rows for each that is kept
AT_ONCE = 1 << 22  # pairs of cells of candidates that are held at a time
MOST_PAIRS, MOST_LOOKED_AT = 1 << 25, 1 << 30  # of all cells, and of all rows; more of either are drawn independently


@torch.no_grad()
def even_cells(
    mixture: Mixture, count: int, rng: np.random.Generator, rows: int = 0, follows: Sequence[Follow] = ()
) -> Places:
    """(rows, columns). rows: of the whole table, where these are a part of it."""
    chances, shares = (part.double().cpu().numpy() for part in mixture())
    edges = edges_of(chances.reshape(shares.size, -1), mixture.sizes)
    cells, chosen = drawn_cells(edges, shares, count, rng)
    followed(cells, follows)
    pairs = len(edges) * (len(edges) - 1) // 2
    if sum(mixture.sizes) ** 2 <= MOST_PAIRS and 0 < max(count, rows) * pairs <= MOST_LOOKED_AT:
        total, starts = (chances * shares[:, :, None]).sum((0, 1)), np.cumsum([0, *mixture.sizes])
        _best(cells, chosen, edges, wanted_pairs(mixture.pairs(), total, starts, follows), rng, follows)
    return cells


def _best(
    cells: Places,
    chosen: Places,
    edges: Sequence[Numbers],
    pairs: Numbers,
    rng: np.random.Generator,
    follows: Sequence[Follow],
) -> None:
    """Put in place of each row the best of a few.

    chosen: the component of each row. pairs: (W, W), the share of rows that each pair of cells should have
    """
    count = len(cells)
    starts = np.cumsum([0, *(part.shape[1] for part in edges[:-1])])
    first, second = np.triu_indices(len(edges), 1)
    wanted = (pairs * count).astype(np.float32).flatten()
    found, weight = np.zeros_like(wanted), 1 / np.sqrt(wanted + 1)
    at_once = max(AT_ONCE // (TRIED * len(first)), 1)
    for begin in range(0, count, at_once):
        part = slice(begin, begin + at_once)
        tried = np.stack(
            [cells[part], *(followed(_again(edges, chosen[part], rng), follows) for _ in range(TRIED - 1))], axis=1
        )
        places = (tried + starts)[:, :, first] * len(pairs) + (tried + starts)[:, :, second]
        for row, own in enumerate(places):
            # Against what so many rows should have: nothing is lacking at the start, so rare pairs wait no longer than others.
            done = (begin + row) / count
            best = int(((found[own] - done * wanted[own]) * weight[own]).sum(1).argmin())
            found[own[best]] += 1
            cells[begin + row] = tried[row, best]


def _again(edges: Sequence[Numbers], chosen: Places, rng: np.random.Generator) -> Places:
    """Other rows of the same components."""
    return np.stack([places_in(part, chosen, rng.random(len(chosen))) for part in edges], axis=1)
