"""Where a column is cut: wherever the records of some class surely lie more densely on one side, and often enough elsewhere.

Values are drawn evenly from a bin, so a bin has to be even as far as the noise lets one see. A run of cells is cut in two, or a
node is cut out of it, where that makes the counts of the classes likeliest; a cut that noise could have made is none.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.levels import Levels

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

SURE = 4.0  # standard deviations of noise that the records of a bin outnumber
DOUBT = 2.0  # added to the logarithm of the number of cuts tried: how unlikely a cut by noise alone has to be
LEAST = 1e-3  # records: what a logarithm takes for none


def bin_starts(counts: Numbers, variance: float, records: float, most: int, alone: Sequence[int] = ()) -> list[int]:
    """Where bins begin among fine cells with values. Those at the places `alone` are bins.

    counts: (classes, cells), agreed among levels. variance: of the noise of one node. most: cuts that the counts ask for, at
    most; and one of so many bins is what records are then shared out among where they are even.
    """
    column = _Runs(counts, variance)
    cuts = column.cuts(most, alone)
    fair = max(records / most, SURE * math.sqrt(variance * len(counts)))
    starts: list[int] = []
    for begin, end in pairwise(sorted(cuts)):
        starts += [begin, *column.shared_out(begin, end, fair)]
    return starts


class _Runs:
    """Runs of cells with the noised counts of each class."""

    def __init__(self, counts: Numbers, variance: float) -> None:
        self.counts, self.variance = counts, variance
        self._below = np.concatenate([np.zeros((len(counts), 1)), counts.cumsum(1)], axis=1)
        self._levels = Levels.of(counts.shape[1])

    def cuts(self, most: int, alone: Sequence[int]) -> set[int]:
        """The likeliest cuts first; no more than `most` besides those around cells that are alone."""
        cells = self.counts.shape[1]
        found = {0, cells, *(place + side for place in alone for side in (0, 1))}
        waiting: list[tuple[float, int, int, list[int]]] = []

        def look_at(begin: int, end: int) -> None:
            gain, cuts = self._best(begin, end)
            if gain > 0:
                heapq.heappush(waiting, (-gain, begin, end, cuts))

        for begin, end in pairwise(sorted(found)):
            look_at(begin, end)
        left = most
        while waiting and left > 0:
            _, begin, end, cuts = heapq.heappop(waiting)
            found.update(cuts)
            left -= len(cuts)
            for one, two in pairwise([begin, *cuts, end]):
                look_at(one, two)
        return found

    def _best(self, begin: int, end: int) -> tuple[float, list[int]]:
        """What the part of a run that stands out most gains in log likelihood, and where to cut for it; 0 if none surely does."""
        if end - begin < 2:
            return 0.0, []
        inner = np.arange(begin + 1, end)
        tried = [(np.full(len(inner), begin), inner)]
        for level in range(self._levels.count):
            width = self._levels.branch**level
            nodes = np.arange(-(-begin // width) * width, end - width + 1, width)
            nodes = nodes[(nodes > begin) | (nodes + width < end)]
            if len(nodes):
                tried.append((nodes, nodes + width))
        gain, first, last = max(self._standing_out(begin, end, *each) for each in tried)
        return gain, [place for place in (first, last) if begin < place < end]

    def _standing_out(self, begin: int, end: int, first: Places, last: Places) -> tuple[float, int, int]:
        """Of these parts of a run the best one."""
        share = (last - first) / (end - begin)
        total = (self._below[:, end] - self._below[:, begin])[:, None]
        inside = self._below[:, last] - self._below[:, first]
        outside_nodes = self._levels.cover(np.full(1, begin), first) + self._levels.cover(last, np.full(1, end))
        noise = self.variance * (self._levels.cover(first, last) * (1 - share) ** 2 + outside_nodes * share**2)
        lacking = inside - total * share
        # A chi-square of that many degrees surpasses these only once in exp(doubt) (Laurent and Massart 2000).
        doubt, classes = math.log(2 * len(first)) + DOUBT, len(self.counts)
        is_sure = ((lacking**2).sum(0) / noise > classes + 2 * math.sqrt(classes * doubt) + 2 * doubt) | (
            lacking.sum(0) ** 2 / (classes * noise) > 1 + 2 * math.sqrt(doubt) + 2 * doubt
        )
        gain = _likelihood(inside, share) + _likelihood(total - inside, 1 - share) - _likelihood(total, np.ones(1))
        gain = np.where(is_sure, gain, 0.0)
        best = int(gain.argmax())
        return float(gain[best]), int(first[best]), int(last[best])

    def shared_out(self, begin: int, end: int, fair: float) -> list[int]:
        """Further cuts of an even run, so that no part holds much more than its fair share."""
        rising = np.maximum.accumulate(self._below[:, begin : end + 1].sum(0))
        rising -= rising[0]
        parts = int(rising[-1] / fair) if rising[-1] > 0 else 0
        places = begin + np.searchsorted(rising, rising[-1] * np.arange(1, parts) / max(parts, 1))
        return [int(place) for place in np.unique(places) if begin < place < end]


def _likelihood(counts: Numbers, share: Numbers) -> Numbers:
    there = np.maximum(counts, LEAST)
    likelihood: Numbers = (there * np.log(there / share)).sum(0)
    return likelihood
