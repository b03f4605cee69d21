"""Where the unit of privacy is a person: one coin for each, and all of a person's records clipped together.

A person's vector is the sum of the vectors of their records, over all rows that these touch. It is clipped as a whole, so that
adding or removing the person, however many records that is, moves the sum by at most the clip. Records come sorted by person, so
only one person is open at a time, and memory grows neither with the persons nor with how many records one of them has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from limbeck.vault.maps.bound import SAFE
from limbeck.vault.noise import SecretStream
from limbeck.vault.sampling import rate_limits

Indices = NDArray[np.int64]


def sample_persons(
    labels: Indices,
    units: Indices,
    rates: Sequence[float],
    coins: SecretStream,
    most: int | None = None,
    contents: NDArray[np.uint64] | None = None,
) -> Indices:
    """Indices of the sampled records, person by person and class by class.

    most: how many records of one person are taken at most, chosen by secret words for their `contents`, (records, 2)

    Guarantee: each person is drawn by a coin of their own, with a chance of at most the largest rate. Whether a record is taken
    depends on its person's coin, on its class and on which records that person has, and on nobody else.
    """
    if min(rates) >= 1:
        taken = np.arange(len(labels), dtype=np.int64)
    else:
        codes, person = np.unique(units, return_inverse=True)
        coin = coins.words_of(np.stack([codes.view(np.uint64), np.zeros(len(codes), dtype=np.uint64)], axis=1))
        taken = np.flatnonzero(coin[person] < rate_limits(rates)[labels]).astype(np.int64)
    if most is not None:
        assert contents is not None
        taken = taken[np.lexsort((coins.words_of(contents[taken]), units[taken]))]
        taken = taken[_rank_in_group(units[taken]) < most]
    ordered: Indices = taken[np.lexsort((labels[taken], units[taken]))]
    return ordered


def _rank_in_group(groups: Indices) -> Indices:
    """0, 1, 2, ... within each run of equal values."""
    starts = _starts(groups)
    sizes = np.diff(np.append(starts, len(groups)))
    return np.arange(len(groups)) - np.repeat(starts, sizes)


def _starts(*keys: Indices) -> Indices:
    """Where a new run of equal values begins."""
    if not len(keys[0]):
        return np.zeros(0, dtype=np.int64)
    changes = np.any([np.diff(key) != 0 for key in keys], axis=0)
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


class PersonSums:
    """Adds up persons' clipped vectors, in whole steps, from records that come person by person.

    steps: how long a person's vector may be, in steps.
    """

    def __init__(self, shape: tuple[int, int], steps: float) -> None:
        self.total = np.zeros(shape, dtype=np.int64)
        self._steps = steps
        # Of the person who may have more records to come: a vector for each row that they touch.
        self._person, self._row = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._vectors = np.zeros((0, shape[1]), dtype=np.int64)

    def add(self, person: Indices, row: Indices, vectors: NDArray[np.int64]) -> None:
        """The next records, sorted by person: whose each is, the row of the total that it belongs to, and its vector."""
        person, row = np.concatenate([self._person, person]), np.concatenate([self._row, row])
        vectors = np.concatenate([self._vectors, vectors])
        order = np.lexsort((row, person))
        person, row = person[order], row[order]
        starts = _starts(person, row)
        # Whole numbers: a person's sum is the same in whatever pieces their records come.
        sums = np.add.reduceat(vectors[order], starts, axis=0) if len(starts) else vectors
        person, row = person[starts], row[starts]
        is_open = person == person[-1:]
        self._close(person[~is_open], row[~is_open], sums[~is_open])
        self._person, self._row, self._vectors = person[is_open], row[is_open], sums[is_open]

    def finish(self) -> NDArray[np.int64]:
        self._close(self._person, self._row, self._vectors)
        self._vectors = self._vectors[:0]
        return self.total

    def _close(self, person: Indices, row: Indices, sums: NDArray[np.int64]) -> None:
        """Clip whole persons and add them.

        Guarantee: what one person adds has a norm of at most `steps` over all rows, the rounding of what was scaled
        down included; it is computed from that person's own vectors alone.
        """
        if not len(person):
            return
        starts = _starts(person)
        rows_each = np.diff(np.append(starts, len(person)))
        squares = np.add.reduceat(np.square(sums, dtype=np.float64).sum(1), starts)
        room = (self._steps - np.sqrt(rows_each * sums.shape[1]) / 2) * SAFE
        is_long = np.sqrt(squares) > self._steps * SAFE
        with np.errstate(divide="ignore"):
            factors = np.where(is_long, np.maximum(room, 0.0) / np.sqrt(squares), 1.0)
        scaled = np.rint(sums * np.repeat(factors, rows_each)[:, None]).astype(np.int64)
        for index in np.unique(row):
            self.total[index] += scaled[row == index].sum(0)
