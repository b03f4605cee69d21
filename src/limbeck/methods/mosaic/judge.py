"""What a small set is worth: how well models that learn from it agree with a teacher, on rows that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.students import Numbers, boosted, logistic

ROUNDS = 100  # trees of a student, as XGBoost has them by itself


class Rows(NamedTuple):
    """x: (rows, numbers) encoded; cells: (rows, columns); y: (rows,) classes."""

    x: NDArray[np.float32]
    cells: NDArray[np.int64]
    y: NDArray[np.int64]


class Worth(NamedTuple):
    """How well students agree with the teacher: logistic regression, and trees."""

    linear: float
    trees: float

    @property
    def total(self) -> float:
        return self.linear + self.trees


NOTHING = Worth(-np.inf, -np.inf)


class Judge:
    """Compares sets by what their students make of the same rows.

    sizes: cells of each column. chances: (rows, classes), the teacher's
    """

    def __init__(self, sizes: Sequence[int], rows: Rows, chances: Numbers) -> None:
        cells = np.array(sizes)
        self._columns = np.repeat(np.arange(len(cells)), cells - 1)
        self._edges = np.concatenate([np.arange(count - 1) for count in cells])
        self._judged = np.ascontiguousarray(self._left(rows.cells).T)
        self._x, self._chances = rows.x.astype(np.float64), chances

    def worth(self, rows: Rows, least: float = -np.inf) -> Worth:
        """least: of logistic regression; with less of it, trees are not even tried."""
        classes = self._chances.shape[1]
        of_class = [(rows.y == label).astype(np.float64) for label in (range(classes) if classes > 2 else (1,))]
        lines = [logistic(rows.x.astype(np.float64), each) for each in of_class]
        linear = self._agreement([self._x @ weights + constant for weights, constant in lines])
        if linear < least:
            return Worth(linear, -np.inf)
        left = self._left(rows.cells).astype(np.float32)
        return Worth(linear, self._agreement([boosted(left, each, self._judged, ROUNDS) for each in of_class]))

    def _left(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        left: NDArray[np.bool_] = cells[:, self._columns] <= self._edges
        return left

    def _agreement(self, odds: list[Numbers]) -> float:
        """The accuracy and the area under the curve that are expected if the teacher is right."""
        if len(odds) == 1:
            chance = self._chances[:, 1]
            return float(np.where(odds[0] > 0, chance, 1 - chance).mean()) + area(odds[0], chance)
        guessed = np.argmax(odds, axis=0)
        areas = [area(each, chance) for each, chance in zip(odds, self._chances.T, strict=True)]
        return float(self._chances[np.arange(len(guessed)), guessed].mean() + self._chances.mean(0) @ areas)


def area(odds: Numbers, chance: Numbers) -> float:
    """Under the ROC curve, if rows are of the class by these chances. Rows of equal odds count half."""
    _, place = np.unique(odds, return_inverse=True)
    of_class, of_others = np.bincount(place, chance), np.bincount(place, 1 - chance)
    pairs = chance.sum() * (1 - chance).sum()
    return float((of_class * (of_others.cumsum() - of_others / 2)).sum() / pairs) if pairs > 0 else 0.5
