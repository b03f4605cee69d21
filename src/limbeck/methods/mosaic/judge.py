"""What a small set is worth: how well models that learn from it agree with a teacher, on rows that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.students import Numbers, boosted, chance_of, logistic

ROUNDS = 40  # trees of a student: XGBoost has 100 by itself, of which the later ones change little after so few rows


class Rows(NamedTuple):
    """x: (rows, numbers) encoded; cells: (rows, columns); y: (rows,) classes."""

    x: NDArray[np.float32]
    cells: NDArray[np.int64]
    y: NDArray[np.int64]


class Worth(NamedTuple):
    """How well students agree with the teacher: logistic regression, and trees; and how far trees are off on each row."""

    linear: float
    trees: float
    missed: Numbers

    @property
    def total(self) -> float:
        return self.linear + self.trees


NOTHING = Worth(-np.inf, -np.inf, np.zeros(0))


class Judge:
    """Compares sets by what their students make of the same rows.

    chances: (rows, classes), the teacher's
    """

    def __init__(self, axes: Sequence[Axis], x: NDArray[np.float32], chances: Numbers) -> None:
        self._axes, self._x, self._chances = axes, x.astype(np.float64), chances
        self._values = np.ascontiguousarray(seen_values(x, axes).T)

    def worth(self, x: NDArray[np.float32], y: NDArray[np.int64], least: float = -np.inf) -> Worth:
        """Of encoded rows. least: of logistic regression; with less of it, trees are not even tried."""
        classes = self._chances.shape[1]
        of_class = [(y == label).astype(np.float64) for label in (range(classes) if classes > 2 else (1,))]
        lines = [logistic(x.astype(np.float64), each) for each in of_class]
        linear = self._agreement([self._x @ weights + constant for weights, constant in lines])
        if linear < least:
            return NOTHING
        values = seen_values(x, self._axes)
        odds = [boosted(values, each, self._values, ROUNDS) for each in of_class]
        chances = self._chances.T if classes > 2 else self._chances.T[1:]
        missed = np.sum([(chance_of(own) - true) ** 2 for own, true in zip(odds, chances, strict=True)], axis=0)
        return Worth(linear, self._agreement(odds), missed)

    def _agreement(self, odds: list[Numbers]) -> float:
        """The accuracy and the area under the curve that are expected if the teacher is right."""
        if len(odds) == 1:
            chance = self._chances[:, 1]
            return float(np.where(odds[0] > 0, chance, 1 - chance).mean()) + area(odds[0], chance)
        guessed = np.argmax(odds, axis=0)
        areas = [area(each, chance) for each, chance in zip(odds, self._chances.T, strict=True)]
        return float(self._chances[np.arange(len(guessed)), guessed].mean() + self._chances.mean(0) @ areas)


def seen_values(x: NDArray[np.float32], axes: Sequence[Axis]) -> NDArray[np.float32]:
    """(rows, columns): what trees see of encoded rows. A number is itself, a category its place, and no value is the largest."""
    found = np.empty((len(x), len(axes)), dtype=np.float32)
    for place, axis in enumerate(axes):
        part = x[:, axis.start : axis.start + axis.column.width]
        there = part.shape[1] - axis.column.missing
        found[:, place] = part[:, 0] if axis.is_cut else part[:, :there].argmax(1)
        if axis.column.missing:
            found[part[:, -1] > 0, place] = np.inf
    return found


def area(odds: Numbers, chance: Numbers) -> float:
    """Under the ROC curve, if rows are of the class by these chances. Rows of equal odds count half."""
    _, place = np.unique(odds, return_inverse=True)
    of_class, of_others = np.bincount(place, chance), np.bincount(place, 1 - chance)
    pairs = chance.sum() * (1 - chance).sum()
    return float((of_class * (of_others.cumsum() - of_others / 2)).sum() / pairs) if pairs > 0 else 0.5
