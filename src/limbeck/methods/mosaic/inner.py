"""What is known of the values inside of a cell: finer cells and their shares, from the first answer and at no price.

A cell of the pairs is as wide as the noise asks for. Where its records lie in it was measured, too: with more noise, so a share
moves away from what neighbouring cells suggest only as far as it surely does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

PIECES = 32  # finer cells of a cell of numbers, at most: a power of 2
MOST_RATE = 200.0
DOUBT = 4.0  # variances of noise that a difference has to have to count


@dataclass(frozen=True, eq=False)
class Inner:
    """edges: between finer cells, raw; none for categories. owner: the cell that each of them lies in. shares: of its cell."""

    edges: Numbers
    owner: Places
    shares: Numbers

    def drawn(self, cells: Places, rng: np.random.Generator, kept: Numbers) -> Places:
        """A finer cell for each cell. kept: how much of each finer cell may come."""
        order = np.argsort(self.owner, kind="stable")
        chances = (self.shares * kept)[order]
        ends = np.cumsum(np.bincount(self.owner))
        below = np.concatenate([[0.0], np.cumsum(chances)])
        first, last = below[ends - np.bincount(self.owner)], below[ends]
        wanted = first[cells] + rng.random(len(cells)) * (last - first)[cells]
        found = np.searchsorted(below[1:], wanted, side="right")
        places: Places = order[np.minimum(found, ends[cells] - 1)]
        return places

    def kept(self, kept: Numbers) -> Numbers:
        """(cells,) how much of each cell may come, from how much of each finer one may."""
        return np.bincount(self.owner, weights=self.shares * kept).astype(np.float64)


def pieces(starts: Places, fine: int) -> Places:
    """Where finer cells begin among `fine` ones, if cells begin at `starts`: up to PIECES of equal length in each."""
    ends = np.append(starts[1:], fine)
    found = []
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        step = -(-(end - begin) // PIECES)
        found.append(np.arange(begin, end, step))
    return np.concatenate(found)


def shares_of_numbers(
    counts: Numbers, sizes: Numbers, widths: Numbers, owner: Places, noise: float, totals: Numbers
) -> Numbers:
    """The share that each finer cell has of its cell.

    counts: of records, noised. sizes: how many noised counts each is the sum of. widths: how many values lie in it. totals: of
    records in each cell, as far as all answers say it
    """
    rates = _rates(totals, np.bincount(owner, weights=widths).astype(np.float64), np.bincount(owner))
    shares = np.ones(len(counts))
    for cell in range(int(owner[-1]) + 1):
        part = np.flatnonzero(owner == cell)
        if len(part) > 1:
            expected = _expected(widths[part], rates[cell])
            shares[part] = _shrunk(counts[part], sizes[part] * noise**2, expected)
    return shares


def _rates(totals: Numbers, widths: Numbers, members: NDArray[np.int64]) -> Numbers:
    """How fast density falls inside of a cell, as exp(-rate * t) for t from 0 to 1 over the cell; below 0 where it rises.

    Where it falls from the cell before to the one behind, it is half of the way up at the edge to the denser one: a wide cell at
    the end of a long tail has most of its records at its beginning. At a peak or a dip it is even. A cell with a single finer one
    says nothing about the others: it is often a value that stands out. Beyond both ends of the range there is nothing.
    """
    rates = np.zeros(len(totals))
    wide = np.flatnonzero(members > 1)
    density = np.maximum(totals[wide], 0) / widths[wide]
    for place, cell in enumerate(wide.tolist()):
        own = density[place]
        before = density[place - 1] if place else 0.0
        behind = density[place + 1] if place + 1 < len(wide) else 0.0
        if before > own > behind:
            rates[cell] = _rate(before / own)
        elif before < own < behind:
            rates[cell] = -_rate(behind / own)
    return rates


def _rate(ratio: float) -> float:
    """The rate at which density at the beginning of a cell is half of the way from its mean to `ratio` times that.

    >>> round(_rate(1.0), 3), round(_rate(3.0), 3)
    (0.0, 1.594)
    """
    wanted, low, high = min((ratio + 1) / 2, MOST_RATE), 0.0, MOST_RATE
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if middle / -np.expm1(-middle) < wanted else (low, middle)
    return low


def _expected(widths: Numbers, rate: float) -> Numbers:
    """Shares of pieces if density falls at this rate."""
    ends = np.concatenate([[0.0], np.cumsum(widths)]) / widths.sum()
    if abs(rate) > 1e-9:
        ends = np.expm1(-rate * ends) / np.expm1(-rate)
    found: Numbers = np.diff(ends)
    return found


def _shrunk(counts: Numbers, variances: Numbers, expected: Numbers) -> Numbers:
    """Halves of halves of a cell: each split is moved from what is expected towards what was counted."""
    length = 1 << (len(counts) - 1).bit_length()
    levels = [tuple(np.pad(each, (0, length - len(counts))) for each in (counts, variances, expected))]
    while len(levels[-1][0]) > 1:
        levels.append(tuple(each.reshape(-1, 2).sum(1) for each in levels[-1]))
    shares = np.ones(1)
    for count, variance, guess in reversed(levels[:-1]):
        left, right = count[::2], count[1::2]
        both = guess[::2] + guess[1::2]
        split = np.where(both > 0, guess[::2] / np.where(both > 0, both, 1), 0.5)
        gain = left - split * (left + right)
        doubt = (1 - split) ** 2 * variance[::2] + split**2 * variance[1::2]
        trust = np.maximum(1 - DOUBT * doubt / np.where(gain != 0, gain**2, np.inf), 0) * (gain != 0)
        total = left + right
        is_known = total > np.sqrt(DOUBT * (variance[::2] + variance[1::2]))
        moved = np.where(is_known, split + trust * gain / np.where(is_known, total, 1), split)
        moved = np.clip(moved, 0, 1)
        shares = np.stack([shares * moved, shares * (1 - moved)], axis=1).flatten()
    found: Numbers = shares[: len(counts)] / max(shares[: len(counts)].sum(), 1e-30)
    return found


def shares_of_categories(counts: Numbers, owner: Places) -> Numbers:
    """The share that each category has of its cell: the nearest ones to the counts that add up and are not negative."""
    shares = np.ones(len(counts))
    for cell in np.unique(owner):
        part = np.flatnonzero(owner == cell)
        total = counts[part].sum()
        shares[part] = _projected(counts[part] / total) if total > 0 else 1 / len(part)
    return shares


def _projected(values: Numbers) -> Numbers:
    """The nearest shares in the Euclidean sense (Held et al. 1974).

    >>> _projected(np.array([0.7, 0.5, -0.2])).round(3).tolist()
    [0.6, 0.4, 0.0]
    """
    falling = np.sort(values)[::-1]
    lowered = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    found: Numbers = np.maximum(values - lowered[np.flatnonzero(falling > lowered)[-1]], 0)
    return found


def grouped(counts: Numbers, noise: float, records: float, most: int) -> Places:
    """The cell of each of many categories: those that surely hold a fair share of the records have one each, the others one
    together, the last."""
    fair = max(records / (4 * most), 4 * noise)
    order = np.argsort(-counts, kind="stable")
    heavy = [int(place) for place in order[: most - 1] if counts[place] > fair]
    owner = np.full(len(counts), len(heavy), dtype=np.int64)
    owner[sorted(heavy)] = np.arange(len(heavy))
    return owner
